"""A second mix, `mezzotint adapt practice`: the first one's, and the agent's own situations.

OUT/ gets train.jsonl, parts.jsonl for the agent's retriever (single orders, and words that order
nothing), and of each hard kind of situation a held-out set; the validation set and
the evaluations of the first mix are copied as they are, so that numbers stay comparable. The
requests of the agent's scenarios are read for one purpose: none of them may be trained on.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from random import Random

from mezzotint import toolcall
from mezzotint.adapt.data import acts, corrected, situations, values
from mezzotint.adapt.data.build import Draw, Source, drawn, sources, write
from mezzotint.adapt.data.overlap import SIZE, Evaluations
from mezzotint.adapt.data.requests import Sample
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.values import Scene, draw_scene
from mezzotint.adapt.data.worlds import World
from mezzotint.errors import UsageError
from mezzotint.toolcall import texts_in

SHARE = 0.6  # of the mix that is new
HELD = 60  # samples of each held-out set
LIVES = 1_000  # whose single orders the retriever learns from
IDLE = 0.2  # of its samples, that order nothing
CHINESE = 0.33  # of the situations
_SETS = {"chain": "dependent", "several": "several", "corrected": "corrected"} | {
    "ask": "missing",
    "answer": "missing",
}
_SCENARIOS = [f"bench/scenarios/{name}" for name in ("suite", "spoken", "fresh")]
_FRAMED = ("call", "several", "ask", "no tool")


def build(
    first: Path,
    shared: Path,
    out: Path,
    seed: int = 0,
    size: int = 36_000,
    avoid: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write the second mix into `out`.

    first: what `build.build` made. shared: the shared data folder. size: new samples; as many
    of the first mix are drawn as make them `SHARE` of all. avoid: as in `build.build`.
    Raises UsageError if `first` holds no samples.
    """
    old = _bunches(first / "train.jsonl")
    guard, dropped = _guard(first, shared, avoid or {}), Counter[str]()
    with lived() as world:
        tests = held_out(world)
        for name, samples in tests.items():
            guard.add(name, (sample.request for sample in samples))
        grammars = {s.name[-2:]: s.draw for s in sources(shared) if s.name.startswith("grammar ")}
        mix = [Source(*part) for part in draws(world, grammars)]
        new = list(drawn(mix, guard, dropped, Random(f"{seed}/practice"), size))
        lives = (parts(world, Random(f"{seed}/parts/{n}")) for n in range(LIVES))
        single = [one for life in lives for one in life if guard.overlap(one.request) is None]
    rng = Random(f"{seed}/mix")
    rng.shuffle(old)
    kept = _kept(old, guard, dropped, round(size * (1 - SHARE) / SHARE))
    train = kept + [[sample.line() for sample in bunch] for bunch in new]
    rng.shuffle(train)
    out.mkdir(parents=True, exist_ok=True)
    for file in [*first.glob("eval_*.jsonl"), first / "validation.jsonl"]:
        shutil.copyfile(file, out / file.name)
    for name, samples in tests.items():
        write(out / f"{name}.jsonl", [sample.line() for sample in samples])
    write(out / "train.jsonl", [line for bunch in train for line in bunch])
    write(out / "parts.jsonl", [sample.line() for sample in single])
    report = {"words in a row": SIZE, "evaluated texts": guard.sizes, "dropped": dict(dropped)}
    write(out / "overlap.json", [json.dumps(report, ensure_ascii=False, indent=1)])
    kinds = Counter(f"{one.language} {one.kind}" for bunch in new for one in bunch)
    counts = {"first mix": sum(map(len, kept)), "new": dict(sorted(kinds.items()))}
    write(out / "mix.json", [json.dumps({"seed": seed, "samples": counts}, indent=1)])


def _bunches(file: Path) -> list[list[str]]:
    """The lines of a data file, those of one system message together."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror}", "Run `adapt data` first."
        ) from None
    found: list[list[str]] = []
    before = None
    for line in lines:
        head = json.loads(line)["messages"][0]["content"]
        if head != before:
            found.append([])
        found[-1].append(line)
        before = head
    return found


def _kept(
    old: Sequence[list[str]], guard: Evaluations, dropped: Counter[str], count: int
) -> list[list[str]]:
    """So many of the old lines as overlap none of the sets that came since; all of the chat."""
    kept: list[list[str]] = []
    left = count
    for bunch in old:
        chat = json.loads(bunch[0])["kind"] == "chat"
        if left <= 0 and not chat:
            continue
        fine = [line for line in bunch if guard.overlap(_request(line)) is None]
        dropped["first mix"] += len(bunch) - len(fine)
        left -= 0 if chat else len(fine)
        kept += [fine] if fine else []
    return kept


def _request(line: str) -> str:
    turns = json.loads(line)["messages"]
    return "\n".join(turn["content"] for turn in turns if turn["role"] == "user")


def _guard(first: Path, shared: Path, avoid: Mapping[str, Sequence[str]]) -> Evaluations:
    guard = Evaluations()
    guard.add_folder(shared / "eval")
    for file in sorted(first.glob("eval_*.jsonl")):
        guard.add(file.stem, map(_request, file.read_text("utf-8").splitlines()))
    guard.add(
        "validation", map(_request, (first / "validation.jsonl").read_text("utf-8").splitlines())
    )
    guard.add("scenarios", scenario_requests())
    for name, texts in avoid.items():
        guard.add(name, texts)
    return guard


@contextmanager
def lived() -> Iterator[World]:
    """A world whose folder lasts as long as the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield World(Path(folder))


def draws(world: World, grammars: Mapping[str, Draw]) -> Iterator[tuple[str, float, Draw]]:
    """(name, share, draw) of each part. grammars: bunches of the grammar, by language."""

    def living(make: Callable[[World, Scene], list[Sample]], language: str) -> Draw:
        return lambda rng: make(world, draw_scene(language, rng))

    for language, share in (("en", 1 - CHINESE), ("zh", CHINESE)):
        yield f"situations {language}", 60 * share, living(situations.bunch, language)
        yield f"corrected {language}", 12 * share, living(corrected.corrected, language)
        yield f"framed {language}", 28 * share, _framed(grammars[language], language)


def _framed(draw: Draw, language: str) -> Draw:
    def framed(rng: Random) -> list[Sample]:
        scene = draw_scene(language, rng)
        return [_around(one, scene) if one.kind in _FRAMED else one for one in draw(rng)]

    return framed


def _around(sample: Sample, scene: Scene) -> Sample:
    *before, last = sample.messages
    asks = last["content"].rstrip().endswith(("?", "？", "吗"))
    stop = ("?" if sample.language == "en" else "？") if asks else ""
    text = acts.around(last["content"].rstrip(".?。？"), scene, stop)
    return replace(sample, messages=[*before, {**last, "content": text}])


def held_out(world: World) -> dict[str, list[Sample]]:
    """Prompts of the hard kinds, the same whatever is trained on."""
    rng = Random("evaluation/situations")
    found: dict[str, dict[str, Sample]] = {f"eval_{name}": {} for name in _SETS.values()}
    while any(len(some) < HELD for some in found.values()):
        scene = draw_scene("zh" if rng.random() < CHINESE else "en", rng)
        make = corrected.corrected if rng.random() < 0.3 else situations.bunch
        for sample in make(world, scene):
            some = found.get(f"eval_{_SETS.get(sample.kind)}")
            if some is not None and len(some) < HELD:
                some.setdefault(sample.request + sample.target, sample)
    return {name: list(some.values()) for name, some in found.items()}


def parts(world: World, rng: Random, count: int = 40) -> Iterator[Sample]:
    """Of one life: single orders in their bare words, and what people say beside them."""
    scene = draw_scene("zh" if rng.random() < CHINESE else "en", rng)
    frames = values.read_once("frames.toml")[scene.language]
    names = rng.sample([*acts.table()], 12)
    world.begin(scene, names)
    for _ in range(count):
        if rng.random() < IDLE:
            line = rng.choice(frames[rng.choice(["opening", "reason", "closing", "impossible"])])
            said, target = expand(line, rng, lambda kind: scene.say(kind).bare), ""
        else:
            act = acts.draw(rng.choice(names), world, known=0.8)
            said = (rng.choice(frames["order"]) if act.order else "{}").format(act.text)
            target = toolcall.write([act.call])
        turns = [{"role": "system", "content": ""}, {"role": "user", "content": said}]
        yield Sample("part", scene.language, turns, [], target)


def scenario_requests() -> list[str]:
    """Every text that the agent's scenarios say."""
    parsed = (
        tomllib.loads(file.read_text("utf-8"))
        for folder in _SCENARIOS
        for file in files("mezzotint").joinpath(folder).iterdir()
        if file.name.endswith(".toml")
    )
    return [text for content in parsed for text in texts_in(content)]
