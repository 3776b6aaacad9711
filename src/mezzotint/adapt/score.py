"""What a model gets right on held-out prompts, decoded in several ways side by side.

Every arm answers a prompt before the next prompt comes, so that a slow moment of the
machine meets them all. The first arm is what the others are compared with, token by token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from mezzotint.adapt.data.grade import grade
from mezzotint.errors import UsageError
from mezzotint.generate import Options, generate
from mezzotint.model import Model
from mezzotint.progress import Report

ARMS = ("ar", "exact", "fast")
LONGEST = 192  # tokens of an answer; the longest in the sets has 130


@dataclass(frozen=True, slots=True)
class Answer:
    """One arm's answer to one prompt. same: token for token the first arm's. times in seconds."""

    arm: str
    file: str
    part: str
    exact: bool
    readable: bool
    same: bool
    written: int
    passes: int
    rows: int
    prefill: float
    decode: float


def read_prompts(files: Sequence[Path], limit: int = 0) -> list[tuple[str, Mapping[str, Any]]]:
    """(set, row) of each prompt; with `limit`, that many of each file, evenly spread."""
    found = []
    for file in files:
        try:
            rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {file}: {error}") from None
        step = max(len(rows) / limit, 1.0) if limit else 1.0
        found += [(file.stem, rows[int(i * step)]) for i in range(int(len(rows) / step))]
    return found


def score(
    model: Model, prompts: Sequence[tuple[str, Mapping[str, Any]]], arms: Sequence[str],
    block: int | None, report: Report,
) -> Iterator[Answer]:  # fmt: skip
    """Answers arm by arm, prompt by prompt; an arm is a mode or a policy's spelling."""
    for number, (file, row) in enumerate(prompts):
        report(number, len(prompts))
        ids, first = model.tokenizer.chat(row["messages"]), None
        for arm in arms:
            options = Options(max_tokens=LONGEST, temperature=0.0, policy=arm, block=block)
            result = generate(model, ids, options)
            first = first or result.tokens
            found = grade(result.text, row["target"])
            yield Answer(
                arm, file, _part(row), found.exact, found.readable, result.tokens == first,
                result.written, result.passes, result.rows,
                result.prefill_seconds, result.decode_seconds,
            )  # fmt: skip


def _part(row: Mapping[str, Any]) -> str:
    if row.get("unseen") == "sentence":
        return str(row["language"])
    return str(row.get("unseen") or "seen")


def summary(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """One row for each set and arm: shares of prompts, sums over them, and medians in ms."""
    groups: dict[tuple[str, str], list[Answer]] = {}
    for one in answers:
        groups.setdefault((one.file, one.arm), []).append(one)
    return [{"set": file, "arm": arm, **_sums(some)} for (file, arm), some in groups.items()]


def _sums(some: Sequence[Answer]) -> dict[str, Any]:
    parts: dict[str, list[bool]] = {}
    for one in some:
        parts.setdefault(one.part, []).append(one.exact)
    passes = sum(one.passes for one in some)
    return {
        "prompts": len(some),
        "exact": _share([one.exact for one in some]),
        "by_part": {part: _share(hits) for part, hits in sorted(parts.items())},
        "readable": _share([one.readable for one in some]),
        "same": _share([one.same for one in some]),
        "tokens_per_pass": sum(one.written for one in some) / passes,
        "rows_per_pass": sum(one.rows for one in some) / passes,
        "passes": passes / len(some),
        "decode_ms": 1e3 * median(one.decode for one in some),
        "prefill_ms": 1e3 * median(one.prefill for one in some),
    }


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The summary for a reader."""
    lines = [
        f"{'set':10} {'arm':18} {'prompts':>7} {'exact':>6} {'as first':>8} {'tok/pass':>8}"
        f" {'passes':>6} {'decode':>8}  by part"
    ]
    for r in rows:
        parts = ", ".join(f"{part} {share:.1%}" for part, share in r["by_part"].items())
        lines.append(
            f"{r['set']:10} {r['arm']:18} {r['prompts']:7} {r['exact']:6.1%} {r['same']:8.1%}"
            f" {r['tokens_per_pass']:8.2f} {r['passes']:6.1f} {r['decode_ms']:5.1f} ms  {parts}"
        )
    return "\n".join(lines)
