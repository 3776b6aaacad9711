"""What a run leaves: one journal while it goes on, one results.json when it is done.

The journal is JSON lines, each flushed to the disk before the next is measured: a run that was
stopped, killed or cut off goes on where it was, and a last line that is not whole is dropped.
The schema has a version; a file of another one is refused, never guessed at.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mezzotint.atomic import replacing
from mezzotint.errors import UsageError

VERSION: Literal[2] = 2
JOURNAL, RESULTS, REPORT = "journal.jsonl", "results.json", "report.html"


class Row(BaseModel):
    """One turn. Times in seconds, as in `arms.Answer`; an arm that failed has none.

    useful: tokens of the answer's text by one vocabulary, the same for every arm.
    prompt: sha256 of the ids, its first 16 hex digits. at: seconds since 1970.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    arm: str
    task: str
    suite: str
    group: str
    warm: bool
    right: bool
    valid: bool
    note: str = ""
    text: str = ""
    first: float | None = None
    end: float = 0.0
    prefill: float = 0.0
    model: float = 0.0
    cpu: float | None = None
    joules: float | None = None
    passes: int = 0
    tokens: int = 0
    forced: int = 0
    useful: int = 0
    stop: str = ""
    error: str = ""
    prompt: str
    prompt_tokens: int
    held: int
    at: float

    @property
    def wait(self) -> float:
        """Until a valid action, or, if none came, until the end of the turn."""
        return self.end if self.first is None else self.first


class Run(BaseModel):
    """What is needed to do it again. `same` fields make two runs one: it can be resumed.

    prompts: sha256 over the ids of all prompts in their order. arms: as they were opened,
    with the sha256 of their weights.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: Literal[2] = VERSION
    started: str
    suites: tuple[str, ...]
    limit: int | None
    quick: bool
    seed: int
    threads: int
    prompts: str
    tasks: int
    arms: tuple[dict[str, Any], ...]
    weights: dict[str, dict[str, Any]]
    warmup: str
    machine: dict[str, Any]

    def same(self) -> dict[str, Any]:
        loose = {"started", "machine"}
        return self.model_dump(exclude=loose) | {"packages": self.machine.get("packages")}


class Results(BaseModel):
    """trials: of llama.cpp's file types and drafts. parts: what was measured beside the rows,
    by the name of its stage: memory, passes, …"""

    model_config = ConfigDict(extra="forbid")
    run: Run
    rows: list[Row] = Field(default_factory=list)
    trials: list[dict[str, Any]] = Field(default_factory=list)
    parts: dict[str, Any] = Field(default_factory=dict)

    @property
    def arms(self) -> list[str]:
        return [arm["name"] for arm in self.run.arms]

    def titles(self) -> dict[str, str]:
        return {arm["name"]: arm.get("title") or arm["name"] for arm in self.run.arms}


class Journal:
    """Appends to DIR/journal.jsonl; `lines` are what was there before and since.

    Raises UsageError if another run is at work in the folder.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._lock = folder, FileLock(folder / "run.lock")
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise UsageError(f"another run is at work in {folder}", "name another --out") from None
        self.lines, whole = _whole(folder / JOURNAL)
        self._out = (folder / JOURNAL).open("ab")
        self._out.truncate(whole)

    def add(self, part: str, value: Any) -> None:
        self.lines.append((part, value))
        self._out.write(json.dumps([part, value], ensure_ascii=False).encode() + b"\n")
        self._out.flush()
        os.fsync(self._out.fileno())

    def part(self, name: str) -> Any:
        """The newest value of a part, or None."""
        return next((value for part, value in reversed(self.lines) if part == name), None)

    def close(self) -> None:
        self._out.close()
        self._lock.release()

    def results(self) -> Results:
        """Raises UsageError for a journal without a beginning, or of another version."""
        return _results(self.lines)


def _whole(file: Path) -> tuple[list[tuple[str, Any]], int]:
    """The whole lines of a journal, up to the first that is not, and their bytes."""
    lines, size = [], 0
    for line in file.read_bytes().splitlines(keepends=True) if file.exists() else ():
        try:
            part, value = json.loads(line if line.endswith(b"\n") else b"")
        except ValueError:
            break
        lines.append((str(part), value))
        size += len(line)
    return lines, size


def _results(lines: list[tuple[str, Any]]) -> Results:
    begun = next((value for part, value in lines if part == "run"), None)
    if begun is None:
        raise UsageError("no run has begun here", "mezzotint bench run --out DIR")
    return _valid(
        {
            "run": begun,
            "rows": [value for part, value in lines if part == "row"],
            "trials": [value for part, value in lines if part == "trial"],
            "parts": {n: value for n, value in lines if n not in ("run", "row", "trial")},
        },
        JOURNAL,
    )


def read(folder: Path) -> Results:
    """The results in a folder, of a run that is done or not. Raises UsageError if none are."""
    file = folder / RESULTS
    if not file.is_file():
        if not (folder / JOURNAL).is_file():
            raise UsageError(f"no results in {folder}", "mezzotint bench run --out DIR makes some")
        return _results(_whole(folder / JOURNAL)[0])
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} is unreadable: {error}") from None
    return _valid(value, str(file))


def write(results: Results, folder: Path) -> None:
    """DIR/results.json, whole or not at all."""
    with replacing(folder / RESULTS) as partial:
        partial.write_text(results.model_dump_json(indent=1), "utf-8")


def _valid(value: Any, where: str) -> Results:
    found = value.get("run", {}).get("version") if isinstance(value, dict) else None
    if found != VERSION:
        raise UsageError(f"{where} has version {found!r}; this program reads {VERSION}")
    try:
        return Results.model_validate(value)
    except ValidationError as error:
        raise UsageError(f"{where} is no results file: {error.errors()[0]['msg']}") from None
