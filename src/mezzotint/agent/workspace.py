"""A workspace: one folder with a subfolder a store, and no way out of it.

    mail/  calendar/  contacts/  notes/  files/  reminders/  home/  car/
    settings.toml      servers and habits of the user's own, if any
    .mezzotint/        the journal and what it keeps

Every path is relative and is walked from the root a folder at a time, following no symbolic
link, at the moment of the access: there is no gap between a check and a use. Writes replace a
file whole or not at all. This file knows names and bytes; what they mean, and who may undo
them, it refuses to know: tools write through `journal`.
"""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mezzotint.errors import UsageError

INTERNAL = ".mezzotint"
_PART = ".mezzotint.part"  # one a folder: a leftover of a killed write is replaced by the next
_WALKS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | _NOFOLLOW | _BINARY | getattr(os, "O_NONBLOCK", 0)  # no wait for a pipe


class Workspace:
    """The folder `root`. Raises UsageError if there is none."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        if not self.root.is_dir():
            raise UsageError(f"no workspace folder {root}", "create the folder first")

    def settings(self, section: str) -> Mapping[str, Any]:
        """A table of settings.toml; empty if there is none. Passwords are not kept there:
        it names the environment variable that has one."""
        data = self.read("settings.toml")
        try:
            table = tomllib.loads(data.decode("utf-8")).get(section, {}) if data else {}
        except (ValueError, UnicodeDecodeError) as e:
            raise UsageError(f"settings.toml of the workspace is not TOML: {e}") from None
        if not isinstance(table, dict):
            raise UsageError(f"settings.toml: {section!r} is not a table")
        return table

    def path(self, path: str) -> Path:
        """The place of a store, for a library that needs a name. For fixed names only: a
        name that a model or a user gave goes through `read`, `put` and their like."""
        where = self.root.joinpath(*parts(path))
        if where.resolve() != where:
            raise UsageError(f"{path!r} is or lies behind a symbolic link")
        return where

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None if nothing is there. Raises UsageError for a folder,
        a symbolic link, or a path that is not inside."""
        try:
            with self._parent(path) as (at, name):
                handle = os.open(name, _READ, dir_fd=at)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise _refused(path, e) from None
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path!r} is not a file")
            return file.read()

    def put(self, path: str, data: bytes | None) -> None:
        """Replace a file by `data`, whole or not at all and durably; None removes it.

        Missing folders are made.
        """
        if data is None:
            with suppress(FileNotFoundError), self._parent(path) as (at, name):
                os.unlink(name, dir_fd=at)
                _settle(at)
            return
        self.make_folder("/".join(parts(path)[:-1]))
        try:
            with self._parent(path) as (at, name):
                _replace(at, name, data)
        except OSError as e:
            raise _refused(path, e) from None

    def rename(self, source: str, target: str) -> None:
        """Move a file or a folder. Raises UsageError if `target` is there already."""
        if self.status(target) is not None:
            raise UsageError(f"{target!r} is there already")
        self.make_folder("/".join(parts(target)[:-1]))
        try:
            with self._parent(source) as (old, name), self._parent(target) as (new, wanted):
                os.rename(name, wanted, src_dir_fd=old, dst_dir_fd=new)
                _settle(old)
                _settle(new)
        except OSError as e:
            raise _refused(source, e) from None

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, where they are missing. "" is the root."""
        names = parts(path) if path else ()
        for depth in range(1, len(names) + 1):
            with self._parent("/".join(names[:depth])) as (at, name):
                try:
                    os.mkdir(name, dir_fd=at)
                    _settle(at)
                except FileExistsError:
                    continue

    def remove_folder(self, path: str) -> bool:
        """Remove a folder if it is there and empty; whether it was."""
        try:
            with self._parent(path) as (at, name):
                os.rmdir(name, dir_fd=at)
                return True
        except OSError:
            return False

    def status(self, path: str) -> os.stat_result | None:
        """What lies at a path, itself and not what it links to; None if nothing does."""
        try:
            with self._parent(path) as (at, name):
                return os.stat(name, dir_fd=at, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """The files and folders in a folder, sorted; hidden ones and links are left out.

        A folder that is not there is empty.
        """
        try:
            with (
                self._parent(f"{folder}/." if folder else ".") as (at, name),
                os.scandir(os.path.dirname(name) if at is None else at) as found,
            ):
                return sorted(e.name for e in found if e.name[0] != "." and not e.is_symlink())
        except FileNotFoundError:
            return []

    def is_folder(self, path: str) -> bool:
        found = self.status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def files(self, folder: str) -> Iterator[str]:
        """The path of every file in a folder and below, sorted; no hidden ones, no links."""
        for name in self.names(folder):
            path = f"{folder}/{name}" if folder else name
            if self.is_folder(path):
                yield from self.files(path)
            else:
                yield path

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int | None, str]]:
        """The open folder that holds `path`, and its name in there.

        Where the system has no folder handles, None and the whole path, checked just now.
        """
        *above, name = parts(path)
        if not _WALKS:
            folder = self.root.joinpath(*above)
            if folder.resolve() != folder:
                raise UsageError(f"{path!r} leaves the workspace by a link")
            yield None, str(folder / name)
            return
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in above:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle, name
        except OSError as e:
            if e.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _refused(path, e) from None
            raise
        finally:
            os.close(handle)


def parts(path: str) -> tuple[str, ...]:
    """The names that a path is made of. Raises UsageError for one that is absolute, holds
    "..", or means nothing inside a workspace."""
    windows = os.name == "nt"
    names = tuple((path.replace("\\", "/") if windows else path).split("/"))
    if any(n in ("", "..") or "\0" in n or (windows and ":" in n) for n in names):
        raise UsageError(
            f"{path!r} is not a path inside the workspace",
            "a path is relative, like Documents/report.txt, without '..'",
        )
    return names


def _replace(at: int | None, name: str, data: bytes) -> None:
    part = _PART if at is not None else os.path.join(os.path.dirname(name), _PART)
    with suppress(FileNotFoundError):
        os.unlink(part, dir_fd=at)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _BINARY
    with open(os.open(part, flags, 0o666, dir_fd=at), "wb") as out:
        out.write(data)
        out.flush()
        with suppress(FileNotFoundError, AttributeError):
            mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
            os.fchmod(out.fileno(), stat.S_IMODE(mode))
        os.fsync(out.fileno())
    os.replace(part, name, src_dir_fd=at, dst_dir_fd=at)
    _settle(at)


def _settle(folder: int | None) -> None:
    """Make a change of names last through a power cut, where the system can."""
    if folder is not None:
        os.fsync(folder)


def _refused(path: str, error: OSError) -> UsageError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return UsageError(f"{path!r} is or lies behind a symbolic link or a file")
    return UsageError(f"{path!r}: {error.strerror}")
