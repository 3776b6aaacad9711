"""No training sample may hold what an evaluation holds: 13 words in a row, or a whole request.

A word is a run of Latin letters or digits, or one Chinese character. The rule is the usual
one for benchmarks (GPT-3, arXiv 2005.14165, appendix C), made stricter for short texts: two
requests of fewer than 13 words overlap if they are the same.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mezzotint.toolcall import texts_in

SIZE = 13
_WORD = re.compile(r"[a-z0-9_]+|[\u3400-\u9fff]")


def words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


class Evaluations:
    """The texts that must not be trained on, by the name of the set they belong to."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, ...], str] = {}
        self.sizes: dict[str, int] = {}

    def add(self, name: str, texts: Iterable[str]) -> None:
        for text in texts:
            self.sizes[name] = self.sizes.get(name, 0) + 1
            for run in _runs(words(text)):
                self.runs.setdefault(run, name)

    def add_folder(self, folder: Path) -> None:
        """Every text in every JSON, JSON Lines or gzipped JSON Lines file below `folder`."""
        for file in sorted(folder.rglob("*.json*")):
            name = str(file.relative_to(folder))
            raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            text = raw.decode()
            rows = [text] if ".jsonl" not in name else text.splitlines()
            self.add(name, (t for row in rows if row.strip() for t in texts_in(json.loads(row))))

    def overlap(self, *texts: str) -> str | None:
        """The set that shares a run with one of `texts`, or None."""
        for text in texts:
            for run in _runs(words(text)):
                if run in self.runs:
                    return self.runs[run]
        return None


def _runs(tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if len(tokens) < SIZE:
        if tokens:
            yield tokens
        return
    for start in range(len(tokens) - SIZE + 1):
        yield tokens[start : start + SIZE]
