"""The training data: grammar, format, grading, and what must not be in it."""

from __future__ import annotations

import json
import os
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mezzotint import toolcall
from mezzotint.adapt.data import episodes, pool, requests, times, values
from mezzotint.adapt.data.grade import grade
from mezzotint.adapt.data.overlap import Evaluations
from mezzotint.adapt.data.template import expand
from mezzotint.adapt.data.values import Scene

NOW = datetime(2025, 11, 4, 14, 5)  # a Tuesday
SHARED = Path(os.environ.get("MEZZOTINT_SHARED", Path(__file__).parents[2] / "shared" / "data"))


def scene(language: str, seed: int = 0) -> Scene:
    return Scene(language, NOW, Random(seed))


# Templates


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("[please] (open|shut) it", {"open it", "shut it", "please open it", "please shut it"}),
        ("(a;b)", {"a b", "b a"}),
        ("<verb> the [door]", {"open the door", "open the", "shut the door", "shut the"}),
        ("{x}, now", {"<x>, now"}),
    ],
)
def test_a_template_says_all_it_can_and_nothing_else(template: str, expected: set[str]) -> None:
    rules = {"verb": "open|shut"}
    rng = Random(0)
    assert {expand(template, rng, lambda s: f"<{s}>", rules) for _ in range(200)} == expected


@pytest.mark.parametrize("template", ["(a", "[a", "a)"])
def test_a_template_that_is_not_closed_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="close"):
        expand(template, Random(0), str)


# Times


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_said_moment_is_in_the_future(language: str) -> None:
    for seed in range(300):
        value = times.moment(language, Random(seed), NOW).value
        assert datetime.fromisoformat(value) > NOW


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [
        ("en", "tomorrow", "2025-11-05"),
        ("en", "on Friday", "2025-11-07"),
        ("en", "in 3 days", "2025-11-07"),
        ("zh", "后天", "2025-11-06"),
        ("zh", "下周五", "2025-11-14"),
        ("zh", "周一", "2025-11-10"),
    ],
)
def test_dates_mean_what_people_mean(language: str, text: str, value: str) -> None:
    said = {}
    for seed in range(2000):
        date = times.date(language, Random(seed), NOW)
        said[date.text] = date.value
    assert said[text] == value


def test_numbers_in_words() -> None:
    assert [times.chinese(n) for n in (2, 10, 12, 20, 35)] == ["二", "十", "十二", "二十", "三十五"]
    assert [times.english(n) for n in (7, 13, 20, 42)] == [
        "seven",
        "thirteen",
        "twenty",
        "forty-two",
    ]


# Grammar


def _samples() -> list[requests.Sample]:
    specs = [spec for spec in pool.specs() if not spec.held_out]
    chains = values.read("chains.toml")["chain"]
    made = []
    for seed in range(150):
        for language in pool.LANGUAGES:
            here = scene(language, seed)
            asked = requests.ask_until(specs, here, held=False)
            joined, lacks = requests.several(specs, here), requests.missing(specs, here)
            assert lacks is not None
            tools = requests.menu([asked, *joined, lacks.asked], specs, here.rng)
            one = requests.call([asked], tools, here)
            made += [one, episodes.after(asked, one, here), requests.call(joined, tools, here)]
            made += [requests.question(lacks, tools, here), requests.no_tool(specs, tools, here)]
            made += episodes.chain(chains, here, specs)
    return made


def test_every_call_of_the_grammar_fits_the_schema_it_is_shown() -> None:
    for sample in _samples():
        check(sample.target, sample.tools)


def check(target: str, tools: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for call in toolcall.parse(target):
        schema = next(tool for tool in tools if tool["name"] == call.name)["parameters"]
        jsonschema.validate(dict(call.arguments), {**schema, "additionalProperties": False})


def test_every_request_of_every_tool_can_be_said() -> None:
    """Each line of each grammar names arguments that exist and gives the required ones."""
    for spec in pool.specs():
        for language in pool.LANGUAGES:
            assert spec.requests[language], spec.name
            for template in spec.requests[language]:
                asked = requests.ask(spec, scene(language), template)
                assert spec.required <= set(asked.arguments), (spec.name, template)
            for line in spec.asks.get(language, ()):
                asked = requests.ask(spec, scene(language), line.split(" => ")[0])
                assert not spec.required <= set(asked.arguments), (spec.name, line)


def test_texts_are_copied_from_the_request() -> None:
    for seed in range(300):
        for language in pool.LANGUAGES:
            asked = requests.ask(Random(seed).choice(pool.specs()), scene(language, seed))
            for name, value in asked.arguments.items():
                if values.schema(asked.spec.args[name].kind) == {"type": "string"}:
                    assert value.lower() in asked.text.lower()


def test_held_out_names_are_nowhere_in_the_rest_of_the_pool() -> None:
    held = {name for spec in pool.specs() if spec.held_out for name in spec.names}
    rest = {name for spec in pool.specs() if not spec.held_out for name in spec.names}
    assert held
    assert not held & rest


# Grading


@pytest.mark.parametrize(
    ("answer", "exact"),
    [
        ('{"f":{"a":5,"b":"The Rain"}}', True),
        ('{"f": {"b": "the rain.", "a": 5.0}}', True),
        ('{"f":{"a":"5","b":"the  rain"}}', True),
        ('{"f":{"a":5}}', False),
        ('{"f":{"a":5,"b":"the rain","c":1}}', False),
        ('{"g":{"a":5,"b":"the rain"}}', False),
        ('{"f":{"a":5,"b":"the rain"}}\n{"f":{"a":5,"b":"the rain"}}', False),
        ("It will rain.", False),
    ],
)
def test_grading_forgives_form_and_nothing_else(answer: str, exact: bool) -> None:
    assert grade(answer, '{"f":{"a":5,"b":"the rain"}}').exact == exact


def test_a_malformed_answer_is_not_readable() -> None:
    assert not grade('{"f":{"a":5', '{"f":{"a":5}}').readable
    assert grade("Which list?", "which list?").exact
    assert not grade('{"f":{"on":1}}', '{"f":{"on":true}}').exact


# Overlap


def test_overlap_is_thirteen_words_or_a_whole_request() -> None:
    guard = Evaluations()
    long = "one two three four five six seven eight nine ten eleven twelve thirteen"
    guard.add("x", ["Turn on the light!", f"{long} fourteen", "打开客厅的灯"])
    assert guard.overlap("turn ON the light") == "x"
    assert guard.overlap("please turn on the light") is None
    assert guard.overlap(f"zero {long}") == "x"
    assert guard.overlap(long.replace("seven", "7")) is None
    assert guard.overlap("打开客厅的灯。") == "x"


# The whole build, where the shared data is


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("home_assistant_intents")
    if not SHARED.exists():
        pytest.skip("no shared data")
    from mezzotint.adapt.data.build import build

    out = tmp_path_factory.mktemp("data")
    build(SHARED, out, seed=3, size=600)
    return out


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_the_build_is_the_same_twice_and_another_by_another_seed(
    built: Path, tmp_path: Path
) -> None:
    from mezzotint.adapt.data.build import build

    build(SHARED, tmp_path, seed=3, size=600)
    assert {f.name: f.read_bytes() for f in built.iterdir()} == {
        f.name: f.read_bytes() for f in tmp_path.iterdir()
    }
    build(SHARED, tmp_path, seed=4, size=600)
    assert (built / "train.jsonl").read_bytes() != (tmp_path / "train.jsonl").read_bytes()
    assert (built / "eval_en.jsonl").read_bytes() == (tmp_path / "eval_en.jsonl").read_bytes()


def test_built_calls_fit_their_schemas(built: Path) -> None:
    for file in built.glob("*.jsonl"):
        for row in rows(file):
            check(row["target"], row["schemas"])


def test_requests_come_in_bunches_under_one_menu(built: Path) -> None:
    """So that a call depends on what is asked, and the tools are computed once."""
    menus = [row["messages"][0]["content"] for row in rows(built / "train.jsonl")]
    assert len(menus) > 2.5 * sum(1 for one, other in pairwise(["", *menus]) if one != other)


def test_nothing_held_out_is_trained_on(built: Path) -> None:
    held = [spec for spec in pool.specs() if spec.held_out]
    names = {pool.show(spec, Random(seed)).schema["name"] for spec in held for seed in range(60)}
    for row in rows(built / "train.jsonl") + rows(built / "validation.jsonl"):
        assert not names & {tool["name"] for tool in row["schemas"]}
        assert not row["unseen"]


def test_training_requests_are_in_no_evaluation(built: Path) -> None:
    asked = {
        row["messages"][-1]["content"].casefold().strip(" .?!。")
        for file in built.glob("eval_*.jsonl")
        for row in rows(file)
    }
    for row in rows(built / "train.jsonl"):
        first = next(turn for turn in row["messages"] if turn["role"] == "user")
        assert first["content"].casefold().strip(" .?!。") not in asked


def test_evaluations_are_as_large_as_they_must_be(built: Path) -> None:
    english, chinese = rows(built / "eval_en.jsonl"), rows(built / "eval_zh.jsonl")
    assert len(english) >= 500
    assert len(chinese) >= 200
    for part in (english, chinese):
        assert sum(row["unseen"] == "tool" for row in part) * 3 >= len(part)
    assert len(rows(built / "eval_home.jsonl")) > 1800
