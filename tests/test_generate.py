"""Generating and infilling from end to end, on models without weights."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from mezzotint.backend.toy import FAMILIES, MASK, STOP, ToyModel, ToySession, ToyTokenizer, load
from mezzotint.canvas import WRITTEN
from mezzotint.errors import TooLarge, UsageError
from mezzotint.family import Family, Regime
from mezzotint.generate import Options, generate, infill, stream
from mezzotint.options import plan_for, policy_for
from mezzotint.policy import NAMES, parse

PROMPT = ToyTokenizer().encode("Once upon a time")


@dataclass(frozen=True)
class Fixed:
    """A model whose row at a position always has the same logits."""

    logits: dict[int, dict[int, float]]
    family: Family
    context: int = 64
    tokenizer: ToyTokenizer = field(default_factory=ToyTokenizer)

    def session(self) -> ToySession:
        def row(position: int) -> np.ndarray:
            row = np.zeros(STOP + 1, np.float32)
            for token, logit in self.logits.get(position, {}).items():
                row[token] = logit
            return row

        return ToySession(STOP + 1, logits=row)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_result_says_what_was_written(name: str) -> None:
    model = load(name)
    run = stream(model, PROMPT, Options(max_tokens=20))
    steps = list(run)
    result = run.result()
    assert result.passes == len(steps)
    assert result.rows == sum(s.rows for s in steps) - run.rode
    after = steps[bool(run.rode) :]  # the first pass may have read the prompt, too
    assert result.decode_seconds == pytest.approx(sum(s.seconds for s in after))
    assert result.prefill_seconds >= 0
    assert result.text == model.tokenizer.decode(result.tokens)
    assert result.written == int((result.canvas.state == WRITTEN).sum())
    assert result.tokens_per_pass == result.written / result.passes
    assert result.canvas.tokens[: len(PROMPT)].tolist() == PROMPT
    assert result.stop == ("length" if len(result.tokens) == 20 else "stop")
    assert MASK not in result.tokens


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_seed_gives_the_same_text(name: str) -> None:
    def text(seed: int) -> str:
        return generate(load(name), PROMPT, Options(20, temperature=1.0, seed=seed)).text

    assert text(3) == text(3)
    assert len({text(seed) for seed in range(4)}) > 1


@pytest.mark.parametrize("name", ["toy-window", "toy-masks"])
def test_verify_writes_what_plain_ar_decoding_of_the_same_weights_writes(name: str) -> None:
    for seed in range(5):
        model = replace(load(name), seed=seed)
        plain = replace(model, family=replace(FAMILIES["toy-ar"], mask_id=MASK))
        options = Options(max_tokens=30)
        assert generate(model, PROMPT, options).text == generate(plain, PROMPT, options).text


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_stop_token_ends_the_text_and_is_left_out(name: str) -> None:
    family = replace(FAMILIES[name], sub_block=0)
    logits = {p: {65 + p: 20.0} for p in range(40)}
    logits[9 - family.shift] = {STOP: 20.0}
    result = generate(Fixed(logits, family), [1, 2], Options(max_tokens=30))
    assert result.stop == "stop"
    assert result.tokens == tuple(65 + p - family.shift for p in range(2, 9))
    assert result.canvas.tokens[-1] == STOP
    assert len(result.canvas) == 10


def test_a_session_is_used_again_for_the_next_turn() -> None:
    """The second prompt begins with the first one and its answer: only the rest is computed."""
    model = load("toy-ar")
    session = model.session()
    first = generate(model, PROMPT, Options(max_tokens=6), session)
    longer = [*PROMPT, *first.tokens, *b" and"]
    assert session.length > len(PROMPT)
    again = generate(model, longer, Options(max_tokens=6), session)
    assert again.text == generate(model, longer, Options(max_tokens=6)).text


def test_a_block_family_rounds_the_canvas_up_and_cuts_the_text() -> None:
    result = generate(load("toy-block"), PROMPT[:3], Options(max_tokens=6, policy="sequential"))
    assert len(result.canvas) == 12
    assert (len(result.tokens), result.stop) == (6, "length")


def test_a_mask_token_in_the_prompt_is_text() -> None:
    result = generate(load("toy"), [65, MASK, 66], Options(max_tokens=5))
    assert result.canvas.tokens[:3].tolist() == [65, MASK, 66]
    assert result.written == len(result.canvas) - 3


@pytest.mark.parametrize("name", ["toy", "toy-dream", "toy-block", "toy-window", "toy-reordered"])
def test_infill_keeps_what_is_given(name: str) -> None:
    model = load(name)
    result = infill(model, [PROMPT, 5, [46], 2, [33]])
    expected = [*PROMPT, *[None] * 5, 46, None, None, 33]
    assert len(result.tokens) == len(expected)
    assert all(e in (None, t) for t, e in zip(result.tokens, expected, strict=True))
    assert (result.written, result.stop) == (7, "filled")
    assert STOP not in result.tokens


def test_a_hole_of_unknown_length_takes_the_surest_length() -> None:
    """Position 4 is sure (so are 2 and 3), 5 is not: of 1, 3 and 4 holes after two tokens the
    mean log confidence is best at 3 where 2 is doubtful."""
    logits = {2: {65: 2.0}, 3: {66: 20.0}, 4: {67: 20.0}, 5: {68: 1.0}}
    model = Fixed(logits, FAMILIES["toy"])
    result = infill(model, [[1, 2], None, [3]], Options(lengths=(1, 3, 4)))
    assert result.tokens == (1, 2, 65, 66, 67, 3)
    known = [infill(model, [[1, 2], n, [3]]) for n in (1, 3, 4)]
    assert result.passes == sum(k.passes for k in known)


DREAMON = Family(
    "dreamon", Regime.FULL, False, MASK, (STOP,), "entropy", expand_id=255, delete_id=254
)


def test_a_hole_that_resizes_itself_shrinks() -> None:
    """Of 4 holes at 2…5 the surest, 4, is deleted; then the given token stands at 5, and the
    rows of 2 and 3 are text; the hole now at 4 is deleted too."""
    logits = {2: {65: 9.0}, 3: {66: 8.0}, 4: {254: 20.0}, 5: {65: 1.0}}
    result = infill(Fixed(logits, DREAMON), [[1, 2], None, [3]], Options(lengths=(4,)))
    assert result.tokens == (1, 2, 65, 66, 3)


def test_a_hole_that_resizes_itself_grows_to_its_limit_and_ends() -> None:
    """Every row wants to expand above all; at 6 positions it may not, and writes its next best."""
    logits = {p: {255: 20.0, 65: 9.0} for p in range(64)}
    options = Options(lengths=(2,), grow=6)
    result = infill(Fixed(logits, DREAMON), [[1, 2], None, [3]], options)
    assert result.tokens == (1, 2, *[65] * 6, 3)


def test_a_hole_does_not_grow_beyond_the_context() -> None:
    logits = {p: {255: 20.0, 65: 9.0} for p in range(64)}
    result = infill(Fixed(logits, DREAMON, context=8), [[1, 2], 2, [3]])
    assert result.tokens == (1, 2, *[65] * 5, 3)


def test_expanding_and_deleting_in_turns_ends() -> None:
    """Position 2 expands and 3 deletes for ever; the expansion budget ends it."""
    logits = {2: {255: 20.0, 65: 1.0}, 3: {254: 30.0}, 4: {254: 30.0}}
    result = infill(Fixed(logits, DREAMON), [[1, 2], 1, [3]])
    assert result.tokens == (1, 2, 65, 3)


@pytest.mark.parametrize("name", ["toy-ar", "toy-masks"])
def test_a_causal_model_cannot_infill(name: str) -> None:
    with pytest.raises(UsageError, match="cannot infill") as error:
        infill(load(name), [PROMPT, 3, [33]])
    assert "generate" in error.value.hint


def test_a_prompt_over_the_context_is_refused_before_any_work() -> None:
    with pytest.raises(TooLarge, match="need 46 positions, the context is 20"):
        generate(replace(load("toy"), context=20), PROMPT, Options(max_tokens=30))


def test_the_context_may_end_inside_a_block() -> None:
    model = replace(load("toy-block"), context=6)
    assert len(generate(model, [1, 2], Options(max_tokens=4)).canvas) <= 6


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("toy", Options(0), "max_tokens is 0"),
        ("toy", Options(policy="verify"), "cannot verify"),
        ("toy-block", Options(policy="verify"), "cannot verify"),
        ("toy-dream", Options(policy="wino"), "is shifted"),
        ("toy-reordered", Options(policy="wino"), "no blocks"),
        ("toy-block", Options(cache="dual"), "exact cache"),
        ("toy", Options(cache="duel"), "no cache 'duel'"),
        ("toy", Options(cache="dual:x"), "no cache"),
        ("toy-block", Options(block=0), "block length of 1 or more"),
        ("toy", Options(block=-1), "block length of 0 or more"),
        ("toy", Options(steps=-1), "steps is -1"),
        ("toy", Options(temperature=-1), "temperature"),
        ("toy", Options(policy="nonesuch"), "no policy"),
    ],
)
def test_what_cannot_be_done_is_said(name: str, options: Options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        generate(load(name), PROMPT, options)


def test_infill_with_verify_is_refused_and_never_the_default() -> None:
    with pytest.raises(UsageError, match="without the text after it"):
        infill(load("toy-window"), [PROMPT, 3, [33]], Options(policy="verify"))
    filled = infill(load("toy-window"), [PROMPT, 3, [33]], Options(policy="fast"))
    assert filled.stop == "filled"  # by confidence: there it cannot look again
    assert policy_for(FAMILIES["toy-window"], Options(), infill=True).drafts == "none"


def test_a_misspelt_option_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Options(max_token=5)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_policy_runs_or_is_refused_on_every_family(name: str, family: str) -> None:
    try:
        plan_for(FAMILIES[family], parse(name))
    except UsageError:
        assert name in ("verify", "exact", "refine", "fast", "wino", "p2", "llada21")
        return
    result = generate(load(family), PROMPT, Options(max_tokens=12, policy=name))
    assert not result.canvas.open


def test_what_had_come_before_an_interruption_is_not_lost() -> None:
    family = replace(FAMILIES["toy-ar"], stop_ids=())
    run = stream(replace(load("toy-ar"), family=family), PROMPT, Options(max_tokens=20))
    steps = iter(run)
    seen = [next(steps) for _ in range(5)]
    run.stop()  # as an exception in a pass would
    result = run.result()
    assert result.stop == "interrupted"
    assert result.tokens == tuple(int(s.edit.tokens[0]) for s in seen)


def test_bad_options_are_refused_before_the_first_step() -> None:
    with pytest.raises(UsageError, match="no policy"):
        stream(load("toy"), PROMPT, Options(policy="nonesuch"))


def test_the_default_model_needs_no_arguments() -> None:
    assert generate(ToyModel(), PROMPT, Options(max_tokens=8)).text.isprintable()
