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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from random import Random

from mezzotint.adapt.data import (
    code,
    corpora,
    episodes,
    home_assistant,
    home_llm,
    pool,
    requests,
    values,
)
from mezzotint.adapt.data.overlap import SIZE, Evaluations, words
from mezzotint.adapt.data.requests import Sample
from mezzotint.adapt.data.values import draw_scene
from mezzotint.errors import UsageError

Draw = Callable[[Random], Sample | None]

EVALUATED = {"en": 540, "zh": 240}
HOME_TESTS = "ohf_intents_tests_en_zh.jsonl"
_TEMPLATES = "home-assistant-intents"


@dataclass(frozen=True)
class Source:
    """One part of the mix. share: of all samples, in percent."""

    name: str
    share: float
    draw: Draw


def build(
    folder: Path, out: Path, seed: int = 0, size: int = 60_000, chat: Path | None = None
) -> None:
    """Write the data made from the shared `folder` (its train/ and eval/) into `out`.

    size: training samples. chat: more samples, one JSON object a line, added as they are.
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
    dropped: Counter[str] = Counter()
    train = list(_train(sources(folder), guard, dropped, Random(f"{seed}/train"), size))
    held = max(1, size // 100)
    out.mkdir(parents=True, exist_ok=True)
    lines = [sample.line() for sample in train[held:]]
    if chat is not None:
        lines += _chat(chat, guard, dropped)
    Random(f"{seed}/order").shuffle(lines)
    _write(out / "train.jsonl", lines)
    _write(out / "validation.jsonl", [sample.line() for sample in train[:held]])
    for name, samples in tests.items():
        _write(out / f"{name}.jsonl", [sample.line() for sample in samples])
    report = {"words in a row": SIZE, "evaluated texts": guard.sizes, "dropped": dict(dropped)}
    _write(out / "overlap.json", [json.dumps(report, ensure_ascii=False, indent=1)])
    kinds = Counter(f"{sample.language} {sample.kind}" for sample in train)
    made_by = {"python": platform.python_version(), _TEMPLATES: version(_TEMPLATES)}
    mix = {"seed": seed, "made by": made_by, "samples": dict(sorted(kinds.items()))}
    _write(out / "mix.json", [json.dumps(mix, indent=1)])


def evaluations(folder: Path) -> dict[str, list[Sample]]:
    """Held-out prompts: a third unseen tools, a third unseen argument sets, a third seen."""
    seen, unseen = _tools()
    found: dict[str, list[Sample]] = {}
    for language, count in EVALUATED.items():
        samples: dict[str, Sample] = {}
        rng = Random(f"evaluation/{language}")
        while len(samples) < count:
            scene = draw_scene(language, rng)
            third = len(samples) * 3 // count
            if third == 0:
                asked, label = requests.ask(rng.choice(unseen), scene), "tool"
            elif third == 1:
                asked, label = requests.ask_until(seen, scene, held=True), "arguments"
            else:
                asked, label = requests.ask_until(seen, scene, held=False), ""
            sample = requests.call(
                [asked], scene, unseen + seen if label == "tool" else seen, label
            )
            samples.setdefault(sample.request, sample)
        found[f"eval_{language}"] = list(samples.values())
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
        Source("grammar en", 30, _grammar("en")),
        Source("grammar zh", 20, _grammar("zh")),
        Source("home en", 13, _home("en")),
        Source("home zh", 12, _home("zh")),
        Source("nlu", 8, corpora.draw(nlu)),
        Source("snips", 5, corpora.draw(snips)),
        Source("droidcall", 1.5, corpora.draw(droid)),
        Source("home-llm", 4, home_llm.draw(homes)),
        Source("functions", 4, code.draw(functions)),
        Source("mbpp", 0.2, code.draw_tasks(tasks)),
        Source("translations", 1.5, corpora.draw_pair(pairs)),
    ]


def _tools() -> tuple[list[pool.Spec], list[pool.Spec]]:
    """Seen and held-out specs; written grammars count thrice as often as made ones."""
    weighted = [spec for spec in pool.specs() for _ in range(1 if spec.name.endswith(_MADE) else 3)]
    seen = [spec for spec in weighted if not spec.held_out]
    return seen, [spec for spec in weighted if spec.held_out]


_MADE = tuple(f"_{name}" for name in values.read("objects.toml"))


def _grammar(language: str) -> Draw:
    seen, _ = _tools()
    distinct = list(dict.fromkeys(seen))
    chains = values.read("chains.toml")["chain"]

    def draw(rng: Random) -> Sample:
        scene = draw_scene(language, rng)
        kind = rng.random()
        if kind < 0.55:
            return requests.call([requests.ask_until(seen, scene, held=False)], scene, distinct)
        if kind < 0.68:
            return requests.call(requests.several(seen, scene), scene, distinct)
        if kind < 0.78:
            return requests.missing(seen, scene, distinct)
        if kind < 0.86:
            return requests.no_tool(seen, scene, distinct)
        if kind < 0.93:
            asked = requests.ask_until(seen, scene, held=False)
            return episodes.after(asked, requests.call([asked], scene, distinct), scene)
        return episodes.chain(chains, scene, distinct)

    return draw


def _home(language: str) -> Draw:
    blocks = home_assistant.grammar(language).blocks

    def draw(rng: Random) -> Sample | None:
        return home_assistant.sample(draw_scene(language, rng), blocks)

    return draw


def _train(
    mix: Sequence[Source], guard: Evaluations, dropped: Counter[str], rng: Random, size: int
) -> Iterator[Sample]:
    """Distinct samples that overlap no evaluation, in random order of their sources."""
    seen: set[tuple[str, str]] = set()
    shares = [source.share for source in mix]
    while len(seen) < size:
        source = rng.choices(mix, shares)[0]
        sample = source.draw(rng)
        if sample is None:
            continue
        key = (sample.messages[0]["content"] + sample.request, sample.target)
        if key in seen:
            continue
        prose = sample.target if len(words(sample.target)) >= SIZE else ""  # "Done." is nobody's
        hit = guard.overlap(sample.request, prose)
        if hit is not None:
            dropped[f"{source.name}: {hit}"] += 1
            continue
        seen.add(key)
        yield sample


def _chat(file: Path, guard: Evaluations, dropped: Counter[str]) -> list[str]:
    lines = []
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        if guard.overlap(row["target"], *(turn["content"] for turn in row["messages"])) is None:
            lines.append(line)
        else:
            dropped["chat"] += 1
    return lines


def _write(file: Path, lines: Sequence[str]) -> None:
    part = file.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    part.replace(file)
