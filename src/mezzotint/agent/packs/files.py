"""Files: find, read, move, rename, delete, and what is in a folder.

Everything lies in the workspace's folder `files`, and every access walks from there without
following links; names that the model or the user gives are paths below it, or names of
something below it. Nothing is overwritten, and what is deleted goes to the journal's keeping.
A file's name and text are data. This file knows no format but plain text.
"""

from __future__ import annotations

import fnmatch
import re
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal

from mezzotint.agent import names
from mezzotint.agent.packs import texts
from mezzotint.agent.tool import Context, Effect, Names, Outcome, Problem, Tool
from mezzotint.agent.workspace import Workspace, parts
from mezzotint.errors import UsageError

ROOT = "files"
_SHOWN = 20  # search results
_LISTED = 100  # entries of a folder
_PATIENCE = 2.0  # seconds that a search may take
_LARGEST = 1 << 20  # bytes of a file that is searched or read
_INSTEAD = re.compile(r"\binstead\b|\brather than\b|不要叫|而不是", re.IGNORECASE)
_FILES = re.compile(r"(?<![\w@./])[\w/.-]*\w\.[a-z][a-z0-9]{1,4}\b(?!@)", re.ASCII | re.IGNORECASE)


def tools(workspace: Workspace) -> list[Tool]:
    """The tools over the folder `files` of a workspace."""
    files = Files(workspace)
    path: dict[str, Names] = {"path": files.named}
    folder: dict[str, Names] = {"folder": files.said}
    return [
        Tool.of(files.search_files, Effect.READS, known=folder),
        Tool.of(files.open_file, Effect.READS, known=path, things={"path": files.all}),
        Tool.of(files.list_folder, Effect.READS, known=folder),
        Tool.of(files.summarize_folder, Effect.READS, known=folder),
        Tool.of(
            files.move_file,
            Effect.WRITES,
            files.check_move,
            {"file": files.named, **folder},
            {"file": files.all},
        ),
        Tool.of(files.rename_file, Effect.WRITES, files.check_rename, {"old": _old, "new": _new}),
        Tool.of(files.delete_file, Effect.WRITES, files.check_delete, path, {"path": files.all}),
        Tool.of(files.create_folder, Effect.WRITES, files.check_create),
    ]


def _old(text: str) -> list[str]:
    """Of two names the first, unless the other one is said to be the old one."""
    return [] if _INSTEAD.search(text) else _FILES.findall(text)[:1]


def _new(text: str) -> list[str]:
    return [] if _INSTEAD.search(text) else _FILES.findall(text)[1:2]


@dataclass(frozen=True)
class Files:
    """The tools, and how they find what a name means. Paths are relative to `files`."""

    workspace: Workspace

    def all(self) -> list[str]:
        """The names of all files."""
        return [_name_in(path) for path, is_folder in self._paths("")[0] if not is_folder]

    def named(self, text: str) -> list[str]:
        """Which files a text names: what looks like a file's name, and Chinese ones that exist."""
        chinese = (name for name in self.all() if not name.isascii() and name in text)
        return _FILES.findall(text) or list(chinese)

    def said(self, text: str) -> list[str]:
        """Which folders a text names in full."""
        folders = (_name_in(path) for path, is_folder in self._paths("")[0] if is_folder)
        return names.said_in(text, folders, whole=True)

    def search_files(self, query: str, folder: str = "", *, context: Context) -> Outcome:
        """Find files by name or words."""
        start = self._folder(folder, context) if folder else ""
        paths, complete = self._paths(start)
        by_name = self._named(query, [path for path, is_folder in paths if not is_folder])
        wanted, deadline = texts.terms(query), time.monotonic() + _PATIENCE
        found: list[dict[str, Any]] = [{"path": path} for path in by_name]
        for path, is_folder in paths:
            if len(found) > _SHOWN or time.monotonic() > deadline:
                complete = False
                break
            if not is_folder and wanted and path not in by_name:
                text = self._text(path)
                if text and texts.holds(text, wanted):
                    found.append({"path": path, "line": texts.line_with(text, wanted)})
        if not found:
            told = context.say(f"No file fits {query!r}.", f"没有找到“{query}”文件。")
            return Outcome(told, {"files": []})
        found, complete = found[:_SHOWN], complete and len(found) <= _SHOWN
        listed = ", ".join(one["path"] for one in found)
        data = found[0] if len(found) == 1 else {"files": found}
        if not complete:
            data = data | {"note": context.say("there may be more", "可能还有更多")}
        return Outcome(context.say(f"Found {listed}.", f"找到：{listed}。"), data)

    def open_file(self, path: str, *, context: Context) -> Outcome:
        """Open a file."""
        path = self._file(path, context, "path")
        text, size = self._text(path), self._status(path).st_size
        if text is None:
            about = context.say(
                f"{path}: not text, {size:,} bytes.", f"{path}：不是文本，{size:,}字节。"
            )
            return Outcome(about, {"path": path, "size": size, "text": None})
        shown = texts.cut(text, context)
        return Outcome(f"{path}:\n{shown}", {"path": path, "text": shown})

    def list_folder(
        self, folder: str, sort: Literal["name", "date", "size"] = "name", *, context: Context
    ) -> Outcome:
        """List the files in a folder."""
        folder = self._folder(folder, context)
        found = [(name, self._status(_join(folder, name))) for name in self._names(folder)]
        if sort == "date":
            found.sort(key=lambda one: one[1].st_mtime, reverse=True)
        elif sort == "size":
            found.sort(key=lambda one: one[1].st_size, reverse=True)
        shown = [name + "/" * stat.S_ISDIR(status.st_mode) for name, status in found]
        listed = ", ".join(shown[:_LISTED]) or context.say("nothing", "空的")
        data: dict[str, Any] = {"folder": folder or ROOT, "files": shown[:_LISTED]}
        if len(shown) > _LISTED:
            data["more"] = len(shown) - _LISTED
        return Outcome(f"{folder or ROOT}: {listed}", data)

    def summarize_folder(self, folder: str, *, context: Context) -> Outcome:
        """Count the files in a folder and below, their sizes and kinds, and find the newest."""
        folder = self._folder(folder, context)
        paths, complete = self._paths(folder)
        files = [(path, self._status(path)) for path, is_folder in paths if not is_folder]
        kinds = Counter(PurePosixPath(path).suffix.lower() or "-" for path, _ in files)
        size = sum(status.st_size for _, status in files)
        data: dict[str, Any] = {"folder": folder or ROOT, "files": len(files), "bytes": size}
        data |= {"folders": len(paths) - len(files), "kinds": dict(kinds.most_common(5))}
        english = f"{len(files)} files, {size:,} bytes"
        chinese = f"{len(files)}个文件，{size:,}字节"
        if files:
            newest, status = max(files, key=lambda one: one[1].st_mtime)
            when = f"{datetime.fromtimestamp(status.st_mtime, context.now.tzinfo):%Y-%m-%d %H:%M}"
            data |= {"newest": newest, "modified": when}
            english, chinese = f"{english}, newest {newest}", f"{chinese}，最新的是{newest}"
        if not complete:
            data["note"] = context.say("there may be more", "可能还有更多")
        where = folder or ROOT
        return Outcome(context.say(f"{where}: {english}.", f"{where}：{chinese}。"), data)

    def move_file(self, file: str, folder: str, *, context: Context) -> Outcome:
        """Move a file to a folder."""
        source, target = self._move(file, folder, context)
        context.writing().move(_join(ROOT, source), _join(ROOT, target))
        return Outcome(
            context.say(f"Moved {source} to {target}.", f"已把{source}移到{target}。"),
            {"path": target},
        )

    def check_move(self, file: str, folder: str, *, context: Context) -> None:
        self._move(file, folder, context)

    def _move(self, file: str, folder: str, context: Context) -> tuple[str, str]:
        source = self._anything(file, context, "file")
        target = _join(self._folder(folder, context), _name_in(source))
        if f"{target}/".startswith(f"{source}/"):
            raise Problem(
                context.say(f"{source} is there already", f"{source}已经在那里了")
                if target == source
                else context.say(f"{source} cannot move into itself", f"{source}不能移到自己里面")
            )
        self._free(target, context)
        return source, target

    def rename_file(self, old: str, new: str, *, context: Context) -> Outcome:
        """Rename a file."""
        source, target = self._rename(old, new, context)
        context.writing().move(_join(ROOT, source), _join(ROOT, target))
        name = _name_in(target)
        return Outcome(
            context.say(f"Renamed {source} to {name}.", f"已把{source}改名为{name}。"),
            {"path": target},
        )

    def check_rename(self, old: str, new: str, *, context: Context) -> None:
        self._rename(old, new, context)

    def _rename(self, old: str, new: str, context: Context) -> tuple[str, str]:
        """A new name without an ending keeps the old one: `report` for a PDF is report.pdf."""
        source = self._anything(old, context, "old")
        above, new = _above(source), new.strip()
        new = _name(new.removeprefix(f"{above}/"), context)
        if not PurePosixPath(new).suffix and not self._is_folder(source):
            new += PurePosixPath(source).suffix
        target = _join(above, new)
        self._free(target, context)
        return source, target

    def delete_file(self, path: str, *, context: Context) -> Outcome:
        """Delete a file."""
        path = self._file(path, context, "path")
        context.writing().delete(_join(ROOT, path))
        return Outcome(context.say(f"Deleted {path}.", f"已删除{path}。"), {"deleted": path})

    def check_delete(self, path: str, *, context: Context) -> None:
        self._file(path, context, "path")

    def create_folder(self, folder: str, *, context: Context) -> Outcome:
        """Make a new folder."""
        folder = self._create(folder, context)
        context.writing().folder(_join(ROOT, folder))
        return Outcome(
            context.say(f"Made the folder {folder}.", f"已新建文件夹{folder}。"), {"folder": folder}
        )

    def check_create(self, folder: str, *, context: Context) -> None:
        self._create(folder, context)

    def _create(self, folder: str, context: Context) -> str:
        folder = folder.strip().rstrip("/")
        for name in parts(folder):
            _name(name, context)
        self._free(folder, context)
        return folder

    def _file(self, said: str, context: Context, argument: str) -> str:
        return self._one(said, {False}, context, argument)

    def _anything(self, said: str, context: Context, argument: str) -> str:
        return self._one(said, {False, True}, context, argument)

    def _folder(self, said: str, context: Context) -> str:
        """A folder; "" is `files` itself, which is also said as ".", "/" and its own name."""
        said = said.strip()
        if said in (".", "/", "~", ROOT) and not (said == ROOT and self._is_folder(ROOT)):
            return ""
        return self._one(said, {True}, context, "folder")

    def _one(self, said: str, kinds: set[bool], context: Context, argument: str) -> str:
        """The one file (False) or folder (True) that `said` means: a path, or as much of a name
        as tells it. Raises UsageError for a path that leads outside: it is no loose name."""
        said = said.strip().removesuffix("/").removeprefix("./")
        hidden = any(part[0] == "." for part in parts(said))
        if not hidden and self._kind(said) in kinds:
            return said
        found, complete = self._paths("")
        if not complete:
            raise Problem(
                context.say(
                    f"too many files to look for {said!r}; give its path",
                    f"文件太多，找不到“{said}”，请给出路径",
                )
            )
        paths = [path for path, is_folder in found if is_folder in kinds]
        called = str if "/" in said else _name_in
        return names.only(said, paths, called, context, argument, label=str)

    def _kind(self, path: str) -> bool | None:
        """False for a file, True for a folder, None for anything else."""
        status = self.workspace.status(_join(ROOT, path))
        if status is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return None
        return stat.S_ISDIR(status.st_mode)

    def _named(self, query: str, paths: list[str]) -> list[str]:
        if any(c in query for c in "*?"):
            pattern = texts.folded(query)
            return [p for p in paths if fnmatch.fnmatchcase(texts.folded(_name_in(p)), pattern)]
        wanted = texts.terms(query)
        found = [path for path in paths if wanted and texts.holds(_name_in(path), wanted)]
        return found or names.fitting(query, paths, _name_in)

    def _free(self, target: str, context: Context) -> None:
        if self.workspace.status(_join(ROOT, target)) is not None:
            raise Problem(
                context.say(
                    f"there is a {target} already; nothing is overwritten",
                    f"已经有{target}了，不会覆盖",
                )
            )

    def _paths(self, folder: str) -> tuple[list[tuple[str, bool]], bool]:
        """All paths below a folder, each with whether it is one; and whether that is all that
        there is, or only what was found in the time that a search has."""
        deadline, found = time.monotonic() + _PATIENCE, []
        for path, is_folder in self._walk(folder):
            found.append((path, is_folder))
            if time.monotonic() > deadline:
                return found, False
        return found, True

    def _walk(self, folder: str) -> Iterator[tuple[str, bool]]:
        for name in self._names(folder):
            path = _join(folder, name)
            is_folder = self._is_folder(path)
            yield path, is_folder
            if is_folder:
                yield from self._walk(path)

    def _names(self, folder: str) -> list[str]:
        return self.workspace.names(_join(ROOT, folder))

    def _is_folder(self, path: str) -> bool:
        return self.workspace.is_folder(_join(ROOT, path))

    def _status(self, path: str) -> Any:
        status = self.workspace.status(_join(ROOT, path))
        if status is None:
            raise UsageError(f"{path!r} has just gone")
        return status

    def _text(self, path: str) -> str | None:
        """The text of a file; None if it is not text, too large, or cannot be read."""
        try:
            if self._status(path).st_size > _LARGEST:
                return None
            data = self.workspace.read(_join(ROOT, path))
        except UsageError:
            return None
        return None if data is None else texts.decoded(data)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _name_in(path: str) -> str:
    return path.rpartition("/")[2]


def _name(name: str, context: Context) -> str:
    """A new name as given. Raises Problem for one that a disk or a person could not handle."""
    wrong = not name or name[0] == "." or name != texts.clean(name) or set(name) & set('/\\:*?"<>|')
    if wrong or len(name.encode()) > 200:
        raise Problem(context.say(f"{name!r} cannot be a name here", f"不能用“{name}”作名称"))
    return name
