"""Training samples: token ids, and which of them the model is to learn to write.

A line of the data file is one sample in one of these forms; what else it holds is ignored:

    {"prompt_ids": [...], "target_ids": [...]}     ids, the end of the turn included
    {"messages": [...], "tools": [...], "target": "text"}
    {"prompt": "raw text", "target": "text"}

Text targets get the end of the turn appended. It knows nothing of windows or masks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mezzotint.canvas import BoolArray, IntArray
from mezzotint.errors import UsageError
from mezzotint.text import Tokenizer


@dataclass(frozen=True, slots=True)
class Sample:
    """tokens (L,), and wanted (L,): the model learns to write these (never the first)."""

    tokens: IntArray
    wanted: BoolArray

    @classmethod
    def of(cls, prompt: Sequence[int], target: Sequence[int]) -> Sample:
        """A prompt of one token or more, and the answer to it."""
        if not len(prompt) or not len(target):
            raise UsageError(f"prompt and target need a token each: {len(prompt)}, {len(target)}")
        tokens = np.array([*prompt, *target], np.int32)
        return cls(tokens, np.arange(len(tokens)) >= len(prompt))

    def __len__(self) -> int:
        return len(self.tokens)


def read_samples(
    file: Path, tokenizer: Tokenizer, stop_id: int, longest: int
) -> tuple[list[Sample], int]:
    """The samples of a JSON Lines file of at most `longest` tokens, and how many were longer.

    Raises UsageError, with the line's number, for a line that is no sample.
    """
    samples, longer = [], 0
    for number, line in enumerate(_lines(file), 1):
        try:
            sample = _sample(json.loads(line), tokenizer, stop_id)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{file.name}, line {number} is no sample: {error}") from error
        if len(sample) <= longest:
            samples.append(sample)
        else:
            longer += 1
    if not samples:
        raise UsageError(f"{file.name} holds no sample of at most {longest} tokens")
    return samples, longer


def _lines(file: Path) -> Iterable[str]:
    try:
        with open(file, encoding="utf-8") as lines:
            yield from lines
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def _sample(row: Mapping[str, Any], tokenizer: Tokenizer, stop_id: int) -> Sample:
    if "prompt_ids" in row:
        return Sample.of(row["prompt_ids"], row["target_ids"])
    target = [*tokenizer.encode(row["target"]), stop_id]
    if "messages" in row:
        return Sample.of(tokenizer.chat(row["messages"], row.get("tools")), target)
    return Sample.of(tokenizer.prompt(row["prompt"]), target)
