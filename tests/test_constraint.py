"""Constraints: what comes back parses and validates, in every mode, or is refused with a reason."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

import schemas
from mezzotint import cli, toolcall
from mezzotint.backend.toy import FAMILIES, MASK, ToyModel, ToySession, load
from mezzotint.canvas import GIVEN, Canvas
from mezzotint.constraint import Grammar, choice, json_schema, regex, tools, vocabulary
from mezzotint.constraint.checks import read, validator
from mezzotint.constraint.schema import TEXT, bounded
from mezzotint.constraint.walk import Walk
from mezzotint.errors import MezzotintError, UsageError
from mezzotint.family import Regime
from mezzotint.generate import Options, Result, Run, Step, generate, stream

PROMPT = list(b"Hello")
FORMATS = jsonschema.FormatChecker(["date", "ipv4", "email", "uuid"])
CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 9},
        "celsius": {"type": "integer", "minimum": -50, "maximum": 60},
        "rain": {"type": "boolean"},
    },
    "required": ["city", "celsius", "rain"],
}
TIMER = {
    "name": "set_timer",
    "description": "Start a timer.",
    "parameters": {
        "type": "object",
        "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}},
        "required": ["minutes"],
    },
}
MOVE = {
    "name": "move_event",
    "inputSchema": {
        "type": "object",
        "properties": {"event": {"$ref": "#/$defs/title"}, "to": {"format": "date-time"}},
        "required": ["event", "to"],
        "$defs": {"title": {"type": "string", "minLength": 1, "maxLength": 20}},
    },
}
MOVE["inputSchema"]["properties"]["to"]["type"] = "string"  # type: ignore[index]


class Bytes(ToyModel):
    """Random logits over every byte, the mask and the stop, not printable ones alone."""

    def session(self) -> ToySession:
        return ToySession(MASK + 2, self.seed)


def model(name: str, seed: int = 0, kind: type[ToyModel] = ToyModel) -> ToyModel:
    return kind(FAMILIES[name], seed)


def valid(schema: Any, text: str) -> Any:
    """The value of a text, which the schema allows (read by the standard library)."""
    value = json.loads(text)
    jsonschema.Draft202012Validator(schema, format_checker=FORMATS).validate(value)
    return value


def started(writer: ToyModel, options: Options, grammar: Grammar) -> Run | None:
    """A run, or None if it was refused for want of room."""
    try:
        return stream(writer, PROMPT, options, grammar=grammar)
    except UsageError as error:
        if "no answer was found that fits" not in str(error):
            raise
        return None


@pytest.mark.parametrize("chunk", range(20))
def test_random_schemas_and_logits_give_valid_json_or_are_refused_before_any_pass(
    chunk: int,
) -> None:
    """1,000 schemas over all families; only a small max_tokens may be refused, and at once."""
    done = 0
    for seed in range(50 * chunk, 50 * chunk + 50):
        rng, schema = Random(seed), schemas.draw(seed)
        room, heat = rng.choice([24, 48, 96, 240]), rng.choice([0.0, 0.0, 1.0])
        writer = model(rng.choice(list(FAMILIES)), seed, rng.choice([ToyModel, Bytes]))
        run = started(writer, Options(room, temperature=heat, seed=seed), json_schema(schema))
        if run is None:
            assert room < 240, seed
            continue
        result = run.result()
        valid(schema, result.text)
        assert len(result.tokens) <= room
        done += 1
    assert done >= 30


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_settled_text_can_be_completed_in_the_room_that_is_left(name: str) -> None:
    words = vocabulary(load(name).tokenizer, FAMILIES[name])
    for seed in range(5):
        schema, room = schemas.draw(seed), 60
        grammar = json_schema(schema)
        for step in started(model(name, seed), Options(room), grammar) or ():
            tokens = step.canvas.tokens[len(PROMPT) : step.canvas.settled].tolist()
            walk = Walk(words, grammar, room)
            assert all(walk.push(token) for token in tokens), (seed, tokens)
            valid(schema, bytes([*walk.tokens, *walk.ending]).decode())


@pytest.mark.parametrize("name", ["toy-window", "toy-masks"])
@pytest.mark.parametrize("room", [45, 200])
def test_verified_drafts_write_what_constrained_ar_decoding_writes(name: str, room: int) -> None:
    """Also where the room runs out, and in fewer passes."""
    passes = [0, 0]
    for seed in range(25):
        grammar, drafting = json_schema(schemas.draw(seed)), model(name, seed)
        plain = replace(drafting, family=replace(FAMILIES["toy-ar"], mask_id=MASK))
        run = started(plain, Options(room), grammar)
        if run is None:
            continue
        one = run.result()
        many = generate(drafting, PROMPT, Options(room, policy="verify:0.02"), grammar=grammar)
        assert (many.text, many.tokens, many.forced) == (one.text, one.tokens, one.forced)
        assert one.passes + one.forced == one.written
        passes = [passes[0] + one.passes, passes[1] + many.passes]
    assert passes[1] < passes[0]


def test_drawn_drafts_keep_the_distribution_of_constrained_ar_decoding() -> None:
    """Two letters of three after random logits: 9 texts, 900 runs each way."""
    grammar = regex("[abc]{2}-[xy]")
    drafting = model("toy-window", 3)
    plain = replace(drafting, family=replace(FAMILIES["toy-ar"], mask_id=MASK))
    counts = []
    for writer in (plain, drafting):
        options = [
            Options(
                8, temperature=1.5, seed=s, policy="verify:0.01" if writer is drafting else None
            )
            for s in range(900)
        ]
        counts.append(Counter(generate(writer, PROMPT, o, grammar=grammar).text for o in options))
    texts = sorted(counts[0] | counts[1])
    a, b = (np.array([count[text] for text in texts]) for count in counts)
    assert len(texts) > 9
    assert ((a - b) ** 2 / (a + b)).sum() < 41  # 17 degrees of freedom, p = 0.001


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_text_that_is_all_forced_needs_no_pass(name: str) -> None:
    result = generate(load(name), PROMPT, Options(40), grammar=json_schema({"const": {"a": [1]}}))
    assert (result.text, result.passes, result.stop) == ('{"a":[1]}', 0, "stop")
    assert result.forced == result.written


@pytest.mark.parametrize("name", list(FAMILIES))
def test_regex_and_choice(name: str) -> None:
    for seed in range(10):
        writer = model(name, seed)
        text = generate(writer, PROMPT, Options(30), grammar=regex(r"[a-c]+(-\d{2}){1,3}")).text
        assert set(text.split("-")[0]) <= set("abc")
        assert all(len(part) == 2 and part.isdecimal() for part in text.split("-")[1:])
        options = ["yes", "no", "yes and no", "雨", '😀"\n']
        assert generate(writer, PROMPT, Options(12), grammar=choice(options)).text in options


@pytest.mark.parametrize("name", list(FAMILIES))
def test_tools(name: str) -> None:
    """Calls that parse and validate, at most as many as asked; or prose that is no call."""
    calls = prose = 0
    for seed in range(12):
        for most, free in ((1, False), (3, False), (3, True)):
            writer = model(name, seed, Bytes if free else ToyModel)
            grammar = tools([TIMER, {"type": "function", "function": MOVE}], most, free)
            text = generate(writer, PROMPT, Options(160), grammar=grammar).text
            made = toolcall.parse(text)
            assert len(made) <= most
            prose += not made
            calls += len(made)
            assert made or free
            for call in made:
                tool = {"set_timer": TIMER, "move_event": MOVE}[call.name]
                valid(toolcall.function(tool)["parameters"], json.dumps(call.arguments))
                if call.name == "move_event":
                    assert datetime.fromisoformat(call.arguments["to"])
    assert calls
    assert prose


def test_no_tool_may_leave_prose_only() -> None:
    assert not toolcall.is_call(generate(load(), PROMPT, Options(9), grammar=tools([])).text)
    with pytest.raises(UsageError, match="nothing could be written"):
        tools([], prose=False)


def laid(step: Step) -> bool:
    """Whether fixed text stands beyond a hole."""
    tokens, settled = step.canvas.tokens.tolist(), step.canvas.settled
    return b'"celsius":' in bytes(token for token in tokens[settled:] if token < 256)


@pytest.mark.parametrize("name", ["toy", "toy-dream", "toy-block", "toy-reordered"])
def test_the_holes_of_a_skeleton_are_filled_in_the_same_passes(name: str) -> None:
    run = stream(load(name), PROMPT, Options(120), grammar=json_schema(CITY))
    steps = list(run)
    assert laid(steps[0])
    city = json.dumps(valid(CITY, run.result().text)["city"])
    if FAMILIES[name].regime is Regime.FULL:
        assert len(steps) <= len(city) + 1  # the longest hole alone decides


@pytest.mark.parametrize("name", ["toy", "toy-block", "toy-window", "toy-reordered"])
def test_a_skeleton_is_laid_once_the_tool_is_known(name: str) -> None:
    listed = [{"name": "note", "parameters": CITY}, {"name": "no", "parameters": CITY}]
    grammar, steps = tools(listed, 1, prose=False), list[Step]()
    for seed in range(6):
        options = Options(120, policy="threshold:0.9")
        run = stream(model(name, seed), PROMPT, options, grammar=grammar)
        steps += run
        for call in toolcall.parse(run.result().text):
            valid(CITY, json.dumps(call.arguments))
    assert any(laid(step) for step in steps)


def test_long_values_end_before_the_room_does() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
              "required": ["a", "b"], "additionalProperties": False}  # fmt: skip
    for name in FAMILIES:
        for room in (15, 20, 33):
            family = replace(FAMILIES[name], stop_ids=(MASK + 1,))
            writer = Bytes(family, room)
            result = generate(writer, PROMPT, Options(room, temperature=1.0),
                              grammar=json_schema(schema))  # fmt: skip
            valid(schema, result.text)
            assert len(result.tokens) <= room


def test_holes_have_limits() -> None:
    schema = {"type": "object", "properties": {
        "s": {"type": "string"}, "n": {"type": "number"}, "any": {},
        "d": {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 10**17}},
    }}  # fmt: skip
    made = bounded(schema)
    assert made["additionalProperties"] is False
    assert made["properties"]["s"]["maxLength"] == TEXT
    assert made["properties"]["n"]["multipleOf"] == 1e-6
    assert made["properties"]["d"]["items"]["maximum"] == 10**18  # not below its own minimum
    assert schema["properties"]["s"] == {"type": "string"}
    tiny = bounded({"type": "number", "exclusiveMinimum": 0, "maximum": 1e-9})
    assert "multipleOf" not in tiny
    merged = bounded({"allOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]}]})
    assert "additionalProperties" not in merged["allOf"][0]


HOSTILE: dict[str, Any] = {
    "endless": {"$defs": {"n": {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}},
                                "required": ["c"]}}, "$ref": "#/$defs/n"},
    "itself": {"$ref": "#"},
    "a circle": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
                 "$ref": "#/$defs/a"},
    "bounds": {"type": "integer", "minimum": 5, "maximum": 3},
    "huge bound": {"type": "integer", "minimum": 10**400},
    "lengths": {"type": "string", "minLength": 5, "maxLength": 3},
    "too long": {"type": "string", "minLength": 5000},
    "too many": {"type": "array", "minItems": 10**9},
    "contradiction": {"allOf": [{"type": "integer"}, {"type": "string"}]},
    "patterns": {"allOf": [{"type": "string", "pattern": "^a+$"}, {"pattern": "^b+$"}]},
    "many patterns": {"allOf": [{"type": "string", "pattern": "a" * i} for i in range(1, 30)]},
    "regex": {"type": "string", "pattern": "^(a|b)*a(a|b){300}$"},
    "lookahead": {"type": "string", "pattern": "(?=a)b"},
    "bomb": {"$defs": {"d25": {"type": "string", "pattern": "a"}, **{f"d{i}": {"allOf": [
        {"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(25)}}, "$ref": "#/$defs/d0"},
    "enum": {"enum": list(range(100_000))},
    "wide": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(5000)}},
    "false": False,
    "no schema": [1],
    "type": {"type": "strin"},
    "not": {"not": {"type": "null"}},
    "unique": {"type": "array", "uniqueItems": True},
    "two free keys": {"type": "object", "minProperties": 2},
    "elsewhere": {"$ref": "http://localhost/x"},
    "no such key": {"type": "object", "required": ["x"], "additionalProperties": False},
}  # fmt: skip


def test_hostile_schemas_are_refused_with_a_reason() -> None:
    deep: Any = {"type": "integer"}
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    for name, schema in {**HOSTILE, "deep": deep}.items():
        with pytest.raises(UsageError) as error:
            generate(load("toy-ar"), PROMPT, Options(300), grammar=json_schema(schema))
        assert len(str(error.value)) > 20, name


def test_large_but_honest_schemas_are_held() -> None:
    alike: Any = {"$defs": {"d25": {"type": "integer"}, **{f"d{i}": {"anyOf": [
        {"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(25)}}, "$ref": "#/$defs/d0"}  # fmt: skip
    many = {"enum": [f"value {i}" for i in range(10_000)]}
    wide = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(300)}}
    for schema in (alike, many, wide, {"type": "string", "pattern": "^(a{1,1000}){1,1000}$"}):
        valid(schema, generate(load(), PROMPT, Options(200), grammar=json_schema(schema)).text)


def test_patterns_that_may_begin_anywhere_still_end() -> None:
    for pattern in ("foobar", "x.*foo.*bar", r"\d+ (km|mi)$"):
        schema = {"type": "string", "pattern": pattern}
        for seed in range(5):
            writer = model("toy-ar", seed)
            valid(schema, generate(writer, PROMPT, Options(40), grammar=json_schema(schema)).text)


def test_fractions_are_checked_as_decimals() -> None:
    """0.7 is a multiple of 0.1, whatever binary fractions say."""
    schema = {"type": "number", "multipleOf": 0.1}
    check = validator(schema)
    check(read("0.7"))
    with pytest.raises(ValueError, match=r"0.75.* is not a multiple of"):
        check(read("0.75"))
    validator({"type": "number"})(read("-1e99999999999999999999"))
    with pytest.raises(ValueError, match="too large"):
        check(read("1e99999999999999999999"))


def test_what_only_shows_at_the_end_is_an_error_with_its_reason() -> None:
    def refuse(text: str) -> None:
        raise ValueError("no vowel may occur")

    grammar: Grammar = replace(choice(["aa", "bb"]), check=refuse)
    with pytest.raises(MezzotintError, match="breaks its constraint: no vowel may occur"):
        generate(load(), PROMPT, Options(9), grammar=grammar)


def test_revising_policies_cannot_be_constrained() -> None:
    with pytest.raises(UsageError, match="takes text back"):
        generate(load(), PROMPT, Options(9, policy="llada21"), grammar=choice(["a"]))
    family = replace(FAMILIES["toy"], policy="llada21")
    writer = replace(load(), family=family)
    assert generate(writer, PROMPT, Options(9), grammar=choice(["a", "b"])).text in "ab"


def test_a_model_without_a_stop_token_is_refused() -> None:
    writer = replace(load(), family=replace(FAMILIES["toy"], stop_ids=()))
    with pytest.raises(UsageError, match="no stop token"):
        generate(writer, PROMPT, Options(9), grammar=choice(["a"]))


def test_an_approximate_cache_has_no_skeleton_and_valid_text() -> None:
    for cache in ("prefix", "dual"):
        options = Options(100, cache=cache, block=8)
        valid(CITY, generate(load(), PROMPT, options, grammar=json_schema(CITY)).text)


def test_the_prompt_is_never_touched() -> None:
    run = stream(load(), [*PROMPT, MASK], Options(60), grammar=json_schema(CITY))
    canvas: Canvas = run.result().canvas
    assert canvas.tokens[canvas.state == GIVEN].tolist() == [*PROMPT, MASK]


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["generate", "toy", "Hello", "--quiet", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    schema, listed = tmp_path / "schema.json", tmp_path / "tools.json"
    schema.write_text(json.dumps(CITY))
    listed.write_text(json.dumps([TIMER]))
    code, out, _ = command(capsys, "--schema", str(schema), "--json")
    made = json.loads(out)
    assert code == 0
    assert valid(CITY, made["text"])
    assert 0 < made["forced"] < made["written"]
    assert command(capsys, "--choice", "left|right")[1].strip() in ("left", "right")
    assert command(capsys, "--regex", "ab{3}")[1] == "abbb\n"
    assert command(capsys, "--tools", str(listed))[0] == 0


def test_command_line_mistakes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for arguments, message in (
        (["--regex", "a", "--choice", "b"], "--regex and --choice at once"),
        (["--schema", str(broken)], "is not JSON"),
        (["--schema", str(tmp_path / "none.json")], "cannot be read"),
        (["--tools", str(broken.with_name("t.json"))], "cannot be read"),
        (["--regex", "("], "cannot be held"),
        (["--regex", "a{200}", "--max-tokens", "50"], "fits into 50 tokens"),
    ):
        code, out, err = command(capsys, *arguments)
        assert (code, out) == (2, "")
        assert message in err


def real(path: Path) -> Any:
    from mezzotint.model import load as load_model

    return load_model(str(path), quiet=True)


def asked(writer: Any, seed: int) -> list[int]:
    words = ["a city", "a recipe", "my day", "二十四节气", "a star", "a train"]
    text = f"Describe {words[seed % len(words)]} as JSON."
    return list(writer.tokenizer.chat([{"role": "user", "content": text}]))


def test_exact_text_of_a_real_model_with_drafts_it_never_learnt(smollm2_path: Path) -> None:
    """An untrained window drafts badly; under a grammar too, verification makes AR's text of it."""
    plain = real(smollm2_path)
    window = replace(plain.family, regime=Regime.CAUSAL_WINDOW, mask_id=5, block=4, policy="verify")
    drafting = replace(plain, family=window)
    drafts = Options(40, policy="verify:0.01")
    for seed, grammar in enumerate(
        (json_schema(CITY), tools([TIMER], prose=False), regex("[a-z ]{9,}\\."))
    ):
        ids = asked(plain, seed)
        one = generate(replace(plain, family=replace(plain.family, mask_id=5)), ids, Options(40),
                       grammar=grammar)  # fmt: skip
        assert generate(drafting, ids, drafts, grammar=grammar).tokens == one.tokens
        assert one.passes + one.forced == one.written


@pytest.mark.slow
def test_two_hundred_schemas_on_a_real_model(smollm2_path: Path) -> None:
    writer, saved, written = real(smollm2_path), 0, 0
    for seed in range(200):
        schema = schemas.draw(seed)
        result: Result = generate(
            writer, asked(writer, seed), Options(200), grammar=json_schema(schema)
        )
        valid(schema, result.text)
        saved, written = saved + result.forced, written + result.written
    assert saved / written > 0.1  # what a model that never ends its strings leaves
