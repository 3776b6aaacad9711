"""Pull a model into the store: lock, stage, check, then one rename.

Knows the store's rules; how each kind of source gives its bytes is `sources`. A pull
that was interrupted is continued by the next pull of the same source under that name.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path, PurePosixPath

from mezzotint.builtin import BUILTIN
from mezzotint.download import DiskFull, room
from mezzotint.errors import UsageError
from mezzotint.sources import get, is_remote
from mezzotint.store import (
    KNOWN,
    Known,
    Stored,
    folder,
    home,
    locked,
    stored,
    unknown,
    write_manifest,
)


def pull(source: str, name: str = "", sha256: str = "", quiet: bool = False) -> Stored:
    """Bring a model into the store; its entry. A model already there is left as it is.

    source: a known name, or as in `sources`. name: what to call it; empty takes it from
    the source. sha256: the checksum the file must have, in hex.
    Raises UsageError (bad source or name), PullError (network, checksum, disk).
    """
    if source in BUILTIN:  # what there is to bring is its base
        source = BUILTIN[source].base
    known = KNOWN.get(source)
    name = name or (source if known else _name_of(source))
    place = known.source if known else source
    if not is_remote(place):
        path = Path(place).expanduser().absolute()
        if not path.exists():
            raise unknown(source)
        place = str(path)
    folder(name)  # a usable name, or UsageError before anything is made
    with locked(name):
        entry = stored(name) or _into_store(place, name, sha256, known, quiet)
    if entry.source != place:
        raise UsageError(
            f"{name!r} is already in the store, from {entry.source}",
            f"choose another --name, or run `mezzotint rm {name}` first",
        )
    return entry


def ensure(name: str, quiet: bool = False) -> None:
    """Pull `name` if it is a known model that the store lacks; nothing otherwise."""
    if name in KNOWN and stored(name) is None:
        pull(name, quiet=quiet)


def _name_of(source: str) -> str:
    tail = PurePosixPath(re.sub(r"[?#].*", "", source).rstrip("/")).name
    if source.startswith("hf:"):
        tail = tail.partition("@")[0]
    return re.sub(r"\.gguf$", "", tail).lower()


def _into_store(source: str, name: str, sha256: str, known: Known | None, quiet: bool) -> Stored:
    tag = hashlib.sha256(source.encode()).hexdigest()[:12]
    staging = home() / "partial" / name / tag
    staging.mkdir(parents=True, exist_ok=True)
    try:
        with room(staging / "manifest.json"):
            got = get(source, staging, known.sha256 if known else sha256, known, quiet)
            entry = Stored(
                name=name, path=got.path, source=source, sha256=got.sha256,
                size=_size(staging / got.path),  # an absolute path stands alone
                licence=known.licence if known else got.licence,
                linked=got.path.is_absolute(),
            )  # fmt: skip
            write_manifest(entry, staging)
        target = folder(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging, target)
    except DiskFull:
        shutil.rmtree(staging)
        raise
    finally:
        _drop_if_empty(staging)
        _drop_if_empty(staging.parent)
    done = stored(name)
    assert done is not None
    return done


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files if f.is_file())


def _drop_if_empty(place: Path) -> None:
    if place.is_dir() and not any(place.iterdir()):
        place.rmdir()
