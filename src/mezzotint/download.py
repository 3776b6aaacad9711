"""Bytes from an http(s) address to a file: resumed, counted, checksummed.

Knows HTTP and the disk; names, stores and models it refuses to know.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mezzotint.errors import PullError
from mezzotint.progress import Report

CHUNK = 1 << 20
TRIES = 3
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFull(PullError):
    """No room; the caller removes what was written."""


def need(place: Path, size: int) -> None:
    """Raise DiskFull unless the disk of `place` has `size` bytes free, and some slack."""
    free = shutil.disk_usage(place).free
    if free < size + (8 << 20):
        raise DiskFull(
            f"{place} needs {size / 1e6:.1f} MB and has {free / 1e6:.1f} MB free",
            "free some space, or set MEZZOTINT_HOME to a folder on another disk",
        )


@contextmanager
def room(file: Path) -> Iterator[None]:
    """Turn "no space" while writing `file` into DiskFull with the numbers."""
    try:
        yield
    except OSError as e:
        if e.errno not in FULL:
            raise
        done = file.stat().st_size if file.exists() else 0
        free = shutil.disk_usage(file.parent).free
        raise DiskFull(
            f"no space for {file.name}: stopped after {done / 1e6:.1f} MB, "
            f"{free / 1e6:.1f} MB free on the disk ({e.strerror})",
            "free some space, or set MEZZOTINT_HOME to a folder on another disk",
        ) from e


def digest(file: Path) -> str:
    """sha256 of a file, in hex."""
    with open(file, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def check(file: Path, sha256: str, what: str) -> str:
    """The sha256 of `file`; deletes it and raises PullError if it is not the one wanted."""
    found = digest(file)
    if sha256 and found != sha256.lower():
        file.unlink()
        raise PullError(
            f"{what} has sha256 {found}, not {sha256}",
            "it was damaged on the way or changed at its source; nothing was kept",
        )
    return found


def fetch(
    url: str,
    file: Path,
    report: Report,
    sha256: str = "",
    headers: Mapping[str, str] | None = None,
) -> str:
    """Download `url` to `file`; its sha256. An interrupted download is continued.

    `headers` go to this host alone, never to where it redirects. The incomplete file is
    `file`.part, beside a note of the version it is part of. Raises PullError.
    """
    if not file.exists():
        part = file.with_name(file.name + ".part")
        for left in reversed(range(TRIES)):
            try:
                _attempt(url, part, report, headers or {})
                break
            except (urllib.error.URLError, http.client.HTTPException, TimeoutError, EOFError) as e:
                if left == 0 or isinstance(e, urllib.error.HTTPError):
                    raise _failure(url, part, e) from e
        os.replace(part, file)
        part.with_name(part.name + ".version").unlink(missing_ok=True)
    return check(file, sha256, url)


def _failure(url: str, part: Path, e: Exception) -> PullError:
    if isinstance(e, urllib.error.HTTPError):
        hint = {
            401: "it needs a login: run `hf auth login`",
            403: "accept its terms on its page, then run `hf auth login`",
            404: "check the address and the file's name",
        }.get(e.code, "try again later")
        return PullError(f"{url} answered {e.code} {e.reason}", hint)
    done = part.stat().st_size if part.exists() else 0
    why = getattr(e, "reason", None) or str(e) or type(e).__name__
    hint = "run the same command again to continue" if done else "check the address and network"
    return PullError(f"{url} broke off after {done / 1e6:.1f} MB: {why}", hint)


def _attempt(url: str, part: Path, report: Report, headers: Mapping[str, str]) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "mezzotint"})
    for key, value in headers.items():
        request.add_unredirected_header(key, value)
    note = part.with_name(part.name + ".version")
    done = part.stat().st_size if part.exists() and note.exists() else 0
    if done:
        request.add_header("Range", f"bytes={done}-")
        request.add_header("If-Range", note.read_text("utf-8"))
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as e:
        if e.code == 416 and e.headers.get("Content-Range") == f"bytes */{done}":
            return  # the part is already the whole
        raise
    with response:
        if response.status != 206 or not _continues(response.headers, done):
            done = 0  # changed, or the server cannot resume: from the start
        length = int(response.headers.get("Content-Length") or 0)  # 0: it does not say
        need(part.parent, length)
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        with room(part), open(part, "ab" if done else "wb") as out:
            note.write_text(version, "utf-8") if version else note.unlink(missing_ok=True)
            _copy(response, out, done, done + length if length else 0, report)


def _continues(headers: Mapping[str, str], done: int) -> bool:
    return bool(re.match(rf"bytes {done}-", headers.get("Content-Range") or ""))


def _copy(source: BinaryIO, out: BinaryIO, done: int, total: int, report: Report) -> None:
    report(done, total)
    while block := source.read(CHUNK):
        out.write(block)
        done += len(block)
        report(done, total)
    out.flush()
    os.fsync(out.fileno())
    if total and done < total:
        raise EOFError(f"{done} of {total} bytes came")
