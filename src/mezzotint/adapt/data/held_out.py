"""The held-out prompts: drawn once from the grammar, then kept, so that scores stay comparable.

A third asks for tools that training never shows (`held_out` in the grammar), a third for seen
tools with an argument set that training never has (`requests.held_set`), a third for neither.
The grammar may grow; held_out.jsonl.gz stays, and no training sample may overlap it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data import pool, requests, values
from mezzotint.adapt.data.requests import Sample
from mezzotint.adapt.data.values import draw_scene

EVALUATED = {"en": 540, "zh": 240}
_FILE = "held_out.jsonl.gz"


def read(language: str) -> list[Sample]:
    """The held-out prompts of a language. `unseen` says of each what training lacks."""
    raw = (files("mezzotint.adapt.data") / _FILE).read_bytes()
    rows = [json.loads(line) for line in gzip.decompress(raw).decode().splitlines()]
    return [_sample(row) for row in rows if row["language"] == language]


def _sample(row: dict[str, Any]) -> Sample:
    now = datetime.fromisoformat(row["now"]) if row["now"] else None
    messages = [
        {"role": "system", "content": toolcall.system(row["tools"], now)},
        {"role": "user", "content": row["request"]},
    ]
    return Sample("call", row["language"], messages, row["tools"], row["target"], row["unseen"])


def write(folder: Path) -> Path:
    """Draw them anew from the grammar as it is now, into `folder`: another benchmark."""
    rows = [row for language in EVALUATED for row in _rows(language)]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file = folder / _FILE
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return file


def _rows(language: str) -> Iterator[dict[str, Any]]:
    seen, unseen = tools()
    count, rng = EVALUATED[language], Random(f"evaluation/{language}")
    asked_before: set[str] = set()
    while len(asked_before) < count:
        scene = draw_scene(language, rng)
        third = len(asked_before) * 3 // count
        if third == 0:
            asked, label = requests.ask(rng.choice(unseen), scene), "tool"
        elif third == 1:
            asked, label = requests.ask_until(seen, scene, held=True), "arguments"
        else:
            asked, label = requests.ask_until(seen, scene, held=False), ""
        crowd = unseen + seen if label == "tool" else seen
        sample = requests.call([asked], requests.menu([asked], crowd, rng), scene, label)
        if sample.request not in asked_before:
            asked_before.add(sample.request)
            now = scene.now.isoformat(" ", "minutes")
            told = toolcall.NOW in sample.messages[0]["content"]
            yield {
                "language": language, "unseen": label, "now": now if told else None,
                "request": sample.request, "tools": sample.tools, "target": sample.target,
            }  # fmt: skip


def tools() -> tuple[list[pool.Spec], list[pool.Spec]]:
    """Seen and held-out specs; written grammars count thrice as often as made ones."""
    made = tuple(f"_{name}" for name in values.read("objects.toml"))
    weighted = [spec for spec in pool.specs() for _ in range(1 if spec.name.endswith(made) else 3)]
    seen = [spec for spec in weighted if not spec.held_out]
    return seen, [spec for spec in weighted if spec.held_out]
