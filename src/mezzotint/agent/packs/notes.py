"""Notes: a folder of Markdown files, with full-text search.

A note's title is its first heading, or else its file's name. The files are the truth: an index
lives for one search, so it can be neither stale nor broken, and takes tens of milliseconds for
a thousand notes. What a note says is data.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from mezzotint.agent import names
from mezzotint.agent.packs import texts
from mezzotint.agent.tool import Context, Effect, Outcome, Problem, Tool
from mezzotint.agent.workspace import Workspace

FOLDER = "notes"
_SHOWN = 10  # search results
_TITLE = 40  # characters of a title made from a note's text
_HEADING = re.compile(r"\A\s*#+ +(\S.*)")
_CHINESE = re.compile(r"([㐀-鿿])")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.I)  # not file names on Windows


@dataclass(frozen=True, slots=True)
class Note:
    path: str
    title: str
    text: str


def tools(workspace: Workspace) -> list[Tool]:
    """The tools over the folder `notes` of a workspace."""
    pack = _Pack(workspace)
    known, things = {"title": pack.said}, {"title": pack.titles}
    return [
        Tool.of(pack.create_note, Effect.WRITES, pack.check_create),
        Tool.of(pack.append_note, Effect.WRITES, pack.check_append, known, things),
        Tool.of(pack.read_note, Effect.READS, known=known, things=things),
        Tool.of(pack.list_notes, Effect.READS),
        Tool.of(pack.search_notes, Effect.READS),
    ]


class _Pack:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def create_note(self, text: str, title: str = "", *, context: Context) -> Outcome:
        """Save a note."""
        title, path = self._new(text, title, context)
        context.writing().write(path, f"# {title}\n\n{text.strip()}\n".encode())
        said = context.say(f"Saved the note {title!r}.", f"已保存笔记“{title}”。")
        return Outcome(said, {"title": title})

    def check_create(self, text: str, title: str = "", *, context: Context) -> None:
        self._new(text, title, context)

    def append_note(self, title: str, text: str, *, context: Context) -> Outcome:
        """Add text to an existing note."""
        note = self._find(title, context)
        whole = f"{note.text.rstrip()}\n\n{text.strip()}\n"
        context.writing().write(note.path, whole.encode())
        said = context.say(f"Added to the note {note.title!r}.", f"已添加到笔记“{note.title}”。")
        return Outcome(said, {"title": note.title})

    def check_append(self, title: str, text: str, *, context: Context) -> None:
        if not text.strip():
            raise Problem(context.say("the text is empty", "内容是空的"), argument="text")
        self._find(title, context)

    def read_note(self, title: str, *, context: Context) -> Outcome:
        """Read a note."""
        note = self._find(title, context)
        shown = texts.cut(note.text, context)
        return Outcome(shown, {"title": note.title, "text": shown})

    def list_notes(self, *, context: Context) -> Outcome:
        """List the titles of the notes."""
        titles = sorted((note.title for note in self._all()), key=texts.folded)
        if not titles:
            return Outcome(context.say("There are no notes.", "没有笔记。"), {"notes": []})
        return Outcome(context.say(", ".join(titles), "、".join(titles)), {"notes": titles})

    def search_notes(self, query: str, *, context: Context) -> Outcome:
        """Search the notes."""
        notes = self._all()
        found = [notes[number] for number in _ranked(notes, query)]
        if not found:
            said = context.say(f"No note says {query!r}.", f"没有关于“{query}”的笔记。")
            return Outcome(said, {"notes": []})
        wanted = texts.terms(query)
        hits: list[dict[str, Any]] = [
            {"title": note.title, "line": texts.line_with(_body(note), wanted)} for note in found
        ]
        listed = "; ".join(f"{hit['title']}: {hit['line']}" for hit in hits)
        return Outcome(listed, hits[0] if len(hits) == 1 else {"notes": hits})

    def _new(self, text: str, title: str, context: Context) -> tuple[str, str]:
        """The title and the free path of a new note. A title that the user gave must be new;
        one made from the text is told apart by a number."""
        if not text.strip():
            raise Problem(context.say("the note is empty", "笔记是空的"), argument="text")
        given = texts.clean(title).lstrip("# ")
        if given and (
            same := [n for n in self._all() if texts.folded(n.title) == texts.folded(given)]
        ):
            raise Problem(
                context.say(
                    f"there is a note {same[0].title!r} already; add to it or choose another title",
                    f"已有笔记“{same[0].title}”，请添加到其中或换个标题",
                ),
                argument="title",
            )
        wanted = given or _title(text) or context.say("Note", "笔记")
        number, title = 1, wanted
        while self._workspace.status(path := f"{FOLDER}/{_stem(title)}.md") is not None:
            number += 1
            title = f"{wanted} {number}"
        return title, path

    def _find(self, title: str, context: Context) -> Note:
        notes = self._all()
        titles = Counter(note.title for note in notes)

        def label(note: Note) -> str:
            return note.title if titles[note.title] == 1 else note.path.removeprefix(f"{FOLDER}/")

        return names.only(title, notes, lambda note: note.title, context, "title", label)

    def said(self, text: str) -> list[str]:
        """The titles that a text names in full, as it names them."""
        return names.said_in(text, self.titles(), whole=True)

    def titles(self) -> list[str]:
        return [note.title for note in self._all()]

    def _all(self) -> list[Note]:
        found = []
        for path in self._workspace.files(FOLDER):
            data = self._workspace.read(path) if path.endswith((".md", ".txt")) else None
            if data is not None and (text := texts.decoded(data)) is not None:
                heading = _HEADING.match(text)
                stem = path.rpartition("/")[2].rpartition(".")[0]
                found.append(Note(path, texts.clean(heading[1] if heading else stem), text))
        return found


def _ranked(notes: list[Note], query: str) -> list[int]:
    """Which notes fit a query, the best first: those with all its words, else with any.

    Each Chinese character is indexed as a word of its own, and a run of them searched as a
    phrase, so that words of any length are found; English words are stemmed.
    """
    phrases = [f'"{_spaced(term)}"' for term in texts.terms(query)]
    if not phrases:
        return []
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute(
            "CREATE VIRTUAL TABLE note USING fts5(title, body, tokenize='porter unicode61')"
        )
        rows = [(i, _spaced(n.title), _spaced(_body(n))) for i, n in enumerate(notes)]
        index.executemany("INSERT INTO note(rowid, title, body) VALUES (?, ?, ?)", rows)
        for joined in (" AND ".join(phrases), " OR ".join(phrases)):
            found = index.execute(
                "SELECT rowid FROM note WHERE note MATCH ? ORDER BY bm25(note, 5, 1) LIMIT ?",
                (joined, _SHOWN),
            ).fetchall()
            if found:
                return [row[0] for row in found]
    return []


def _spaced(text: str) -> str:
    return _CHINESE.sub(r" \1 ", texts.folded(text))


def _body(note: Note) -> str:
    return _HEADING.sub("", note.text).strip()


def _title(text: str) -> str:
    """A title from the beginning of a text: whole words of the first line."""
    line = texts.clean(text.strip().splitlines()[0]).lstrip("#-* ")
    if len(line) <= _TITLE:
        return line.rstrip(".。!！")
    cut = line[:_TITLE]
    return cut.rpartition(" ")[0] or cut


def _stem(title: str) -> str:
    """A title as a file name that every system takes: no separators, at most 120 bytes."""
    name = re.sub(r'[/\\:*?"<>|.\s]+', " ", texts.clean(title)).strip()
    name = name.encode()[:120].decode("utf-8", "ignore").strip() or "note"
    return f"{name}_" if _RESERVED.match(name) else name
