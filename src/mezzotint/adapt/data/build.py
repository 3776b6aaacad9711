"""Builds the training mix and the held-out prompts: `mezzotint adapt data`.

OUT/ gets train.jsonl and validation.jsonl, the evaluations eval_en, eval_zh and eval_home
(.jsonl, graded by grade.py), overlap.json (what was dropped, and why) and mix.json (what
there is). The same folder, seed and size give the same bytes. Another seed draws tools,
distractors and values anew; evaluations do not depend on it.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from random import Random

from mezzotint.adapt.data import (
    code,
    corpora,
    episodes,
    held_out,
    home_assistant,
    home_llm,
    pool,
    requests,
    values,
)
from mezzotint.adapt.data.overlap import SIZE, Evaluations, words
from mezzotint.adapt.data.requests import Asked, Missing, Sample
from mezzotint.adapt.data.values import Scene, draw_scene
from mezzotint.atomic import replacing
from mezzotint.errors import UsageError

Draw = Callable[[Random], Sequence[Sample]]
Asking = Sequence[Asked] | Missing

HOME_TESTS = "ohf_intents_tests_en_zh.jsonl"
_TEMPLATES = "home-assistant-intents"


@dataclass(frozen=True)
class Source:
    """One part of the mix. share: of all bunches, in percent."""

    name: str
    share: float
    draw: Draw


def build(
    folder: Path,
    out: Path,
    seed: int = 0,
    size: int = 60_000,
    chat: Path | None = None,
    avoid: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write the data made from the shared `folder` (its train/ and eval/) into `out`.

    size: training samples. chat: more samples, one JSON object a line, added as they are.
    avoid: texts of other evaluations, by name, that no sample may overlap.
    Raises UsageError if a file is missing.
    """
    for needed in (folder / "train", folder / "eval" / HOME_TESTS):
        if not needed.exists():
            raise UsageError(f"{needed} is not there", "Give the shared data folder with --shared.")
    tests = evaluations(folder)
    guard = Evaluations()
    guard.add_folder(folder / "eval")
    for name, samples in tests.items():
        guard.add(name, (sample.request for sample in samples))
    for name, some in (avoid or {}).items():
        guard.add(name, some)
    dropped: Counter[str] = Counter()
    bunches = list(drawn(sources(folder), guard, dropped, Random(f"{seed}/train"), size))
    held = max(1, len(bunches) // 100)
    out.mkdir(parents=True, exist_ok=True)
    train = [[sample.line() for sample in bunch] for bunch in bunches[held:]]
    if chat is not None:
        train += [[line] for line in _chat(chat, guard, dropped)]
        Random(f"{seed}/order").shuffle(train)
    write(out / "train.jsonl", [line for bunch in train for line in bunch])
    validation = [sample.line() for bunch in bunches[:held] for sample in bunch]
    write(out / "validation.jsonl", validation)
    for name, samples in tests.items():
        write(out / f"{name}.jsonl", [sample.line() for sample in samples])
    report = {"words in a row": SIZE, "evaluated texts": guard.sizes, "dropped": dict(dropped)}
    write(out / "overlap.json", [json.dumps(report, ensure_ascii=False, indent=1)])
    kinds = Counter(f"{one.language} {one.kind}" for bunch in bunches for one in bunch)
    made_by = {"python": platform.python_version(), _TEMPLATES: version(_TEMPLATES)}
    mix = {"seed": seed, "made by": made_by, "samples": dict(sorted(kinds.items()))}
    write(out / "mix.json", [json.dumps(mix, indent=1)])


def evaluations(folder: Path) -> dict[str, list[Sample]]:
    """The held-out prompts of each language, and Home Assistant's test sentences."""
    found = {f"eval_{language}": held_out.read(language) for language in held_out.EVALUATED}
    found["eval_home"] = home_assistant.tests(folder / "eval" / HOME_TESTS, seed=0)
    return found


def sources(folder: Path) -> list[Source]:
    """The mix. Shares follow what the model must do: device calls in English, then Chinese."""
    train = folder / "train"
    nlu, snips = corpora.nlu(train), corpora.snips(train)
    droid, homes = corpora.droid(train), home_llm.read(train)
    functions, tasks = code.functions(), code.mbpp(train / "sanitized_mbpp.json")
    pairs = corpora.translations(train)
    return [
        Source("grammar en", 36, _grammar("en")),
        Source("grammar zh", 20, _grammar("zh")),
        Source("chain en", 2, _chain("en")),
        Source("chain zh", 1, _chain("zh")),
        Source("home en", 14, _home("en")),
        Source("home zh", 11, _home("zh")),
        Source("nlu", 4, corpora.draw(nlu)),
        Source("snips", 2, corpora.draw(snips)),
        Source("droidcall", 1, corpora.draw(droid)),
        Source("home-llm", 3, _alone(home_llm.draw(homes))),
        Source("functions", 4, _alone(code.draw(functions))),
        Source("mbpp", 0.2, _alone(code.draw_tasks(tasks))),
        Source("translations", 1.8, corpora.draw_pair(pairs)),
    ]


def _alone(draw: Callable[[Random], Sample | None]) -> Draw:
    def bunch(rng: Random) -> list[Sample]:
        sample = draw(rng)
        return [sample] if sample else []

    return bunch


def _grammar(language: str) -> Draw:
    seen, _ = held_out.tools()
    distinct = list(dict.fromkeys(seen))

    def draw(rng: Random) -> list[Sample]:
        scene = draw_scene(language, rng)
        golds: list[pool.Spec] = []
        for spec in rng.sample(seen, rng.choice([1, 2, 3, 3, 4, 5])):
            if not any(requests.rivals(spec, gold) for gold in golds):
                golds.append(spec)
        kinds = rng.choices(list(_KINDS), list(_KINDS.values()), k=requests.BUNCH)
        asked = [_ask(kind, golds, scene) for kind in kinds]
        named = [one for some in asked for one in _named(some)]
        tools = requests.menu(named, distinct, rng)
        return [
            _answer(kind, some, tools, seen, scene) for kind, some in zip(kinds, asked, strict=True)
        ]

    return draw


_KINDS = {"call": 64, "several": 10, "missing": 9, "no tool": 8, "after": 9}


def _ask(kind: str, golds: Sequence[pool.Spec], scene: Scene) -> Asking:
    if kind == "no tool":
        return []
    if kind == "several" and len(golds) > 1:
        return requests.several(golds, scene)
    lacks = requests.missing(golds, scene) if kind == "missing" else None
    return lacks or [requests.ask_until(golds, scene, held=False)]


def _named(asked: Asking) -> Sequence[Asked]:
    return [asked.asked] if isinstance(asked, Missing) else asked


def _answer(
    kind: str, asked: Asking, tools: requests.Menu, seen: Sequence[pool.Spec], scene: Scene
) -> Sample:
    if isinstance(asked, Missing):
        return requests.question(asked, tools, scene)
    if not asked:
        return requests.no_tool(seen, tools, scene)
    called = requests.call(asked, tools, scene)
    return episodes.after(asked[0], called, scene) if kind == "after" else called


def _chain(language: str) -> Draw:
    distinct = list(dict.fromkeys(held_out.tools()[0]))
    chains = values.read("chains.toml")["chain"]
    return lambda rng: episodes.chain(chains, draw_scene(language, rng), distinct)


def _home(language: str) -> Draw:
    blocks = home_assistant.grammar(language).blocks
    return lambda rng: home_assistant.samples(draw_scene(language, rng), blocks)


def drawn(
    mix: Sequence[Source], guard: Evaluations, dropped: Counter[str], rng: Random, size: int
) -> Iterator[list[Sample]]:
    """Bunches of distinct samples that overlap no evaluation, sources in random order."""
    seen: set[tuple[str, str]] = set()
    shares = [source.share for source in mix]
    while len(seen) < size:
        source = rng.choices(mix, shares)[0]
        kept = []
        for sample in source.draw(rng):
            key = (sample.messages[0]["content"] + sample.request, sample.target)
            if key in seen:
                continue
            prose = (
                sample.target if len(words(sample.target)) >= SIZE else ""
            )  # "Done." is nobody's
            hit = guard.overlap(sample.request, prose)
            if hit is not None:
                dropped[f"{source.name}: {hit}"] += 1
                continue
            seen.add(key)
            kept.append(sample)
        if kept:
            yield kept


def _chat(file: Path, guard: Evaluations, dropped: Counter[str]) -> list[str]:
    lines = []
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        if guard.overlap(row["target"], *(turn["content"] for turn in row["messages"])) is None:
            lines.append(line)
        else:
            dropped["chat"] += 1
    return lines


def write(file: Path, lines: Sequence[str]) -> None:
    with replacing(file) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), "utf-8")
