"""Samples from annotated corpora: real requests, their slots turned into arguments.

NLU-Evaluation-Data (CC BY 4.0), SNIPS 2017 (CC0), DroidCall (MIT) and the translations of the
Python documentation (CC0). grammar/corpora.toml says which intent
becomes which tool. An argument is copied as the user said it, so that it can be checked:
what does not occur in the request is left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from mezzotint.adapt.data import pool, requests, values
from mezzotint.adapt.data.pool import Arg, Spec
from mezzotint.adapt.data.requests import Asked, Sample
from mezzotint.adapt.data.values import draw_scene

_ANNOTATED = re.compile(r"\[(\w+) : ([^\]]*)\]")
_ODD = re.compile(r"[<>{}\[\]()]|xx|…")


def draw(asked: Sequence[Asked]) -> Callable[[Random], list[Sample]]:
    """Some requests for up to three tools, among distractors from the grammar."""
    crowd = [spec for spec in pool.specs() if not spec.held_out]
    by_spec: dict[Spec, list[Asked]] = {}
    for one in asked:
        by_spec.setdefault(one.spec, []).append(one)

    def some(rng: Random) -> list[Sample]:
        specs: list[Spec] = []
        for one in rng.sample(asked, 3):  # a tool as often as it is asked for
            if not any(requests.rivals(one.spec, spec) for spec in specs):
                specs.append(one.spec)
        chosen = [rng.choice(by_spec[rng.choice(specs)]) for _ in range(requests.BUNCH)]
        scene = draw_scene("en", rng)
        tools = requests.menu(chosen, crowd, rng)
        return [requests.call([one], tools, scene) for one in chosen]

    return some


def nlu(folder: Path) -> list[Asked]:
    specs = {name: _spec(name, table) for name, table in _tables()["nlu"].items()}
    found = []
    for row in _rows(folder / "nlu_eval_home_en.jsonl"):
        name = f"{row['scenario']}.{row['intent']}"
        if name in specs:
            slots = [(slot, _plain(value)) for slot, value in _ANNOTATED.findall(row["annot"])]
            text = _ANNOTATED.sub(lambda match: match[2], row["annot"])
            found.append(_asked(specs[name], _tables()["nlu"][name], text, slots))
    return [asked for asked in found if asked is not None]


def snips(folder: Path) -> list[Asked]:
    specs = {name: _spec(name, table) for name, table in _tables()["snips"].items()}
    found = []
    for row in _rows(folder / "snips_2017_en.jsonl"):
        name = row["intent"]
        slots = [(slot, value) for slot, value in row["slots"]]
        found.append(_asked(specs[name], _tables()["snips"][name], row["text"], slots))
    return [asked for asked in found if asked is not None]


def droid(folder: Path) -> list[Asked]:
    """Requests for a page of the phone; those that do not name it are left out."""
    pages = {
        name: (Spec(own, (own, other), (about,), {}, {}, group="setting"), re.compile(said, re.I))
        for name, (own, other, about, said) in _tables()["droid"].items()
    }
    found = []
    for row in _rows(folder / "droidcall_2024_intents.jsonl"):
        spec, said = pages.get(row["intent"], (None, re.compile("")))
        if spec and len(row["query"]) < 120 and said.search(row["query"]):
            found.append(Asked(spec, row["query"]))
    return found


def _tables() -> Mapping[str, Any]:
    return values.read_once("corpora.toml")


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _spec(name: str, table: Mapping[str, Any]) -> Spec:
    args = {}
    for slot, text in table["args"].items():
        names = text.lstrip("?").split()
        args[slot] = Arg("said", text.startswith("?"), tuple(names))
    return Spec(name, tuple(table["names"]), (table["about"],), args, {}, group=table["group"])


def _asked(
    spec: Spec, table: Mapping[str, Any], text: str, slots: Sequence[tuple[str, str]]
) -> Asked | None:
    """A request with its arguments; None if the annotation cannot be a good call."""
    text = " ".join(text.split())
    kept = {slot: value for slot, value in slots if slot not in table.get("ignore", ())}
    twice = max(Counter(slot for slot, _ in slots).values(), default=0) > 1
    whole = spec.required <= set(kept) <= set(spec.args)
    copied = all(value and value in text for value in kept.values())
    vague = not kept and spec.args and len(text.split()) < 3
    if twice or not whole or not copied or vague or _ODD.search(text) or len(text.split()) > 14:
        return None
    return Asked(spec, text, kept)


def _plain(value: str) -> str:
    return value.strip().removesuffix("'s")


def translations(folder: Path) -> list[tuple[str, str]]:
    """Short English–Chinese pairs of plain prose from the Python documentation."""
    rows = _rows(folder / "python_docs_zh_tutorial_pairs.jsonl")
    plain = re.compile(r"[`*:|]|--")
    return [
        (row["en"], row["zh"])
        for row in rows
        if 20 < len(row["en"]) < 200 and not plain.search(row["en"] + row["zh"])
    ]


def draw_pair(pairs: Sequence[tuple[str, str]]) -> Callable[[Random], list[Sample]]:
    """A sentence to translate, one way or the other."""

    def one(rng: Random) -> list[Sample]:
        en, zh = rng.choice(pairs)
        to_zh = rng.random() < 0.5
        task = rng.choice(["Translate into Chinese:", "翻译成中文："] if to_zh else
                          ["Translate into English:", "翻译成英文："])  # fmt: skip
        source, target = (en, zh) if to_zh else (zh, en)
        messages = [{"role": "user", "content": f"{task} {source}"}]
        return [Sample("translation", "zh" if to_zh else "en", messages, [], target)]

    return one
