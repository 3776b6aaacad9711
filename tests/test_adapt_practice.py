"""The agent's situations as training data: its own tools, real results, nothing held out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import jsonschema
import pytest

pytest.importorskip("icalendar")  # the agent's extra

from mezzotint import toolcall
from mezzotint.adapt.data import acts, corrected, dependent, pool, practice, requests, situations
from mezzotint.adapt.data.requests import Sample
from mezzotint.adapt.data.values import draw_scene
from mezzotint.adapt.data.worlds import World
from mezzotint.agent.ground import corrects
from mezzotint.agent.writer import schema


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


def drawn(world: World, seed: int, count: int = 8) -> list[Sample]:
    rng, found = Random(seed), list[Sample]()
    for number in range(count):
        scene = draw_scene("zh" if number % 3 == 0 else "en", rng)
        make = corrected.corrected if number % 4 == 3 else situations.bunch
        found += make(world, scene)
    return found


@pytest.fixture(scope="module")
def samples(world: World) -> list[Sample]:
    return drawn(world, 1, 40)


def test_a_seed_gives_the_same_samples(world: World) -> None:
    assert [s.line() for s in drawn(world, 5)] == [s.line() for s in drawn(world, 5)]
    assert drawn(world, 5) != drawn(world, 6)


def test_every_kind_is_drawn_in_both_languages(samples: list[Sample]) -> None:
    kinds = {(s.language, s.kind) for s in samples}
    for kind in ("call", "several", "chain", "corrected"):
        assert {("en", kind), ("zh", kind)} <= kinds, kind
    assert {"ask", "answer", "no tool", "retry", "done"} <= {kind for _, kind in kinds}


def test_calls_fit_the_agents_own_schemas(world: World, samples: list[Sample]) -> None:
    for sample in samples:
        assert [dict(t) for t in sample.tools] == [
            dict(schema(world.tools[t["name"]])) for t in sample.tools
        ]
        by_name = {tool["name"]: tool for tool in sample.tools}
        for call in toolcall.parse(sample.target):
            jsonschema.validate(dict(call.arguments), by_name[call.name]["parameters"])


def texts(sample: Sample) -> Iterator[tuple[str, str]]:
    """(tool, text) of each free text that is to be written."""
    by_name = {tool["name"]: tool["parameters"]["properties"] for tool in sample.tools}
    for call in toolcall.parse(sample.target):
        for name, value in call.arguments.items():
            item = by_name[call.name][name]
            if isinstance(value, str) and "enum" not in item and "format" not in item:
                yield call.name, value


def test_texts_are_copied_from_what_was_told(samples: list[Sample]) -> None:
    folders = {"inbox", "spam", "trash", "archive", "sent", "drafts"}  # by their roles
    for sample in samples:
        said = "\n".join(turn["content"] for turn in sample.messages[1:]).lower()
        for tool, text in texts(sample):
            if text in folders:
                continue
            for part in text.lower().replace("：", ": ").split():
                assert part.rstrip(":") in said or "folder" in said, (tool, text, said)


def test_a_chain_ends_with_values_that_only_the_result_has(samples: list[Sample]) -> None:
    after = [s for s in samples if s.kind == "chain" and s.messages[-1]["role"] == "tool"]
    deleted = [s for s in after if s.target.startswith('{"delete_email"')]
    assert len(after) > 10
    for sample in deleted:
        numbers = [call.arguments["id"] for call in toolcall.parse(sample.target)]
        assert all(str(number) in sample.messages[-1]["content"] for number in numbers)
        assert all(str(number) not in sample.request for number in numbers)


def test_corrections_are_heard_as_such_and_change_something(samples: list[Sample]) -> None:
    some = [s for s in samples if s.kind == "corrected"]
    for sample in some:
        _, _, before, reply = sample.messages
        assert corrects(reply["content"])
        assert before["content"] != sample.target
        called = {call.name for call in toolcall.parse(before["content"])}
        assert {tool["name"] for tool in sample.tools} == called


def test_nothing_held_out_is_asked_for(samples: list[Sample]) -> None:
    specs = {spec.name: spec for spec in pool.specs()}
    for sample in samples:
        assert not [t for t in sample.tools if t["name"] in specs and specs[t["name"]].held_out]
        for call in toolcall.parse(sample.target):
            if call.name in specs and sample.kind in ("call", "several"):
                assert not requests.held_set(specs[call.name], call.arguments)


def test_every_line_of_every_tool_can_be_said(world: World) -> None:
    for language in ("en", "zh"):
        world.begin(draw_scene(language, Random(3)), ())
        for name in acts.usable():
            required = set(world.tools[name].parameters.get("required", ()))
            for line in acts.table()[name][language].strip().splitlines():
                for _ in range(3):
                    act = acts._filled(world.tools[name], line, world, 0.5)
                    assert act.text.strip()
                    assert "{" not in act.text
                    assert required <= act.arguments.keys(), (name, line)
            for line in acts.table()[name].get("ask", {}).get(language, "").strip().splitlines():
                assert line.count(" => ") == 1, line
                assert line.endswith(("?", "？"))


def test_parts_are_single_orders_or_none(world: World) -> None:
    """The retriever learns of every tool; the model, of those that are not held out."""
    found = [one for n in range(6) for one in practice.parts(world, Random(n))]
    called = [toolcall.parse(one.target) for one in found]
    assert all(len(calls) <= 1 for calls in called)
    assert 0.1 < sum(not calls for calls in called) / len(found) < 0.3
    names = {calls[0].name for calls in called if calls}
    assert names <= acts.table().keys()
    assert names - set(acts.usable())


def test_every_chain_can_be_begun(world: World) -> None:
    for rule in dependent.chains():
        assert {rule["first"][0], rule["then"][0]} <= world.tools.keys()
        assert rule["en"]
        assert rule["zh"]


def test_scenario_requests_are_known_to_the_guard() -> None:
    found = practice.scenario_requests()
    assert len(found) > 100


def test_lines_of_one_menu_stay_together(tmp_path: Path) -> None:
    heads = ["a", "a", "b", "a"]
    rows = [{"kind": "call", "messages": [{"role": "system", "content": h}]} for h in heads]
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [len(bunch) for bunch in practice._bunches(file)] == [2, 1, 1]
