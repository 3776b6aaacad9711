"""Laws of the loop, for every regime: progress, exact caches, forks, interruption."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mezzotint.backend import Pass
from mezzotint.backend.toy import FAMILIES, ToySession
from mezzotint.canvas import DRAFT, GIVEN, WRITTEN, Canvas, Edit, FloatArray, IntArray
from mezzotint.decode import Step, cut_at_stop, decode
from mezzotint.errors import NoProgress
from mezzotint.family import Family
from mezzotint.options import plan_for
from mezzotint.plan import Full
from mezzotint.policy import Policy, Scores, parse
from mezzotint.sampling import Filtered

VOCAB, MASK = 6, 5
FREE = ("threshold:0.7", "low-confidence:steps=3", "random", "entropy:steps=7", "origin:steps=9",
        "factor", "entropy-bound:0.5", "dynamic:0.6,steps=2", "left-to-right")  # fmt: skip
REVISING = ("llada21:threshold=0.6,edit=0.4,post=3", "p2:steps=4")
POLICIES = {
    "toy": (*FREE, *REVISING, "wino"),
    "toy-ar": ("left-to-right", "verify"),
    "toy-dream": (*FREE, *REVISING),
    "toy-block": (*FREE, *REVISING, "wino"),
    "toy-shifted-block": FREE,
    "toy-window": (*FREE, "verify:theta=0.1"),
    "toy-masks": (*FREE, "verify:theta=0.1"),
    "toy-reordered": (*FREE, "wedlm"),
}
assert POLICIES.keys() == FAMILIES.keys()


class Forgetful(ToySession):
    """Keeps nothing: every pass is computed from scratch."""

    def keep(self, count: int) -> None:
        super().keep(count)
        self.truncate(0)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Family, Policy, list[int], int, int]:
    name = draw(st.sampled_from(list(POLICIES)))
    sampler = Filtered(draw(st.sampled_from([0.0, 1.0])))
    policy = parse(draw(st.sampled_from(POLICIES[name])), sampler)
    prompt = draw(st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=18))
    return FAMILIES[name], policy, prompt, draw(st.integers(1, 20)), draw(st.integers(0, 9))


def run(
    family: Family, policy: Policy, canvas: Canvas, session: ToySession, **options: object
) -> Iterator[Step]:
    plan = plan_for(family, policy, block=min(family.block, 8) if family.block else None)
    plan.prefill(session, canvas)
    return decode(session, canvas, plan, policy, rng=np.random.default_rng(1), **options)  # type: ignore[arg-type]


def tokens(steps: list[Step]) -> list[list[int]]:
    return [s.canvas.tokens.tolist() for s in steps]


@settings(max_examples=300, deadline=None)
@given(cases())
def test_exact_plans_give_the_text_of_computing_everything(
    case: tuple[Family, Policy, list[int], int, int],
) -> None:
    family, policy, prompt, holes, seed = case
    canvas = Canvas.of([prompt, holes], MASK)
    cached = list(run(family, policy, canvas, ToySession(VOCAB, seed)))
    fresh = list(run(family, policy, canvas, Forgetful(VOCAB, seed)))
    assert tokens(cached) == tokens(fresh)
    assert sum(s.rows for s in cached) <= sum(s.rows for s in fresh)
    assert not cached[-1].canvas.open
    assert (cached[-1].canvas.tokens != MASK)[len(prompt) :].all()


@settings(max_examples=150, deadline=None)
@given(cases(), st.data())
def test_given_positions_never_change_and_every_pass_makes_progress(
    case: tuple[Family, Policy, list[int], int, int], data: st.DataObject
) -> None:
    family, policy, prompt, holes, seed = case
    if family.name in ("toy-ar", "toy-shifted-block"):
        canvas = Canvas.of([prompt, holes], MASK)
    else:
        after = data.draw(st.lists(st.integers(0, VOCAB - 1), max_size=5))
        canvas = Canvas.of([prompt, holes, after, 2], MASK)
    given = canvas.state == GIVEN
    states = {(len(canvas.masked), len(canvas.drafts))}
    for step in run(family, policy, canvas, ToySession(VOCAB, seed)):
        assert (step.canvas.tokens[given] == canvas.tokens[given]).all()
        assert (step.canvas.state[given] == GIVEN).all()
        assert len(step.edit)
        states.add((len(step.canvas.masked), len(step.canvas.drafts)))
    assert (0, 0) in states


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(1, 6))
def test_a_run_can_be_left_and_forked(
    case: tuple[Family, Policy, list[int], int, int], count: int
) -> None:
    """Decoding on from any step, with the session or a fork of it, and a new prefill or none."""
    family, policy, prompt, holes, seed = case
    session, canvas = ToySession(VOCAB, seed), Canvas.of([prompt, holes], MASK)
    for _, step in zip(range(count), run(family, policy, canvas, session), strict=False):
        canvas = step.canvas
    fork = session.fork()
    a = tokens(list(run(family, policy, canvas, session)))
    b = tokens(list(run(family, policy, canvas, fork)))
    c = tokens(list(run(family, policy, canvas, ToySession(VOCAB, seed))))
    assert a == b == c


class Interrupted(ToySession):
    left = 3

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        logits = super().score(rows, want)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return logits


@pytest.mark.parametrize("name", list(FAMILIES))
def test_ctrl_c_leaves_the_session_usable(name: str) -> None:
    family, policy = FAMILIES[name], parse("threshold:0.7")
    canvas = Canvas.of([[1, 2, 3], 12], MASK)
    whole = list(run(family, policy, canvas, ToySession(VOCAB)))[-1].canvas
    session = Interrupted(VOCAB)
    steps: list[Step] = []
    with pytest.raises(KeyboardInterrupt):
        steps.extend(run(family, policy, canvas, session))
    canvas = steps[-1].canvas if steps else canvas
    assert canvas.open
    assert list(run(family, policy, canvas, session))[-1].canvas.tokens.tolist() == (
        whole.tokens.tolist()
    )


def test_stop_ends_the_text_only_when_nothing_is_open_before_it() -> None:
    stop = 2
    canvas = Canvas.of([[stop, 1], 3], MASK).apply(Edit.write([3], [stop], [0.9]))
    assert len(cut_at_stop(canvas, [stop])) == 5
    drafted = canvas.apply(Edit.write([2], [1], [0.9], DRAFT))
    assert len(cut_at_stop(drafted, [stop])) == 5
    assert cut_at_stop(drafted.apply(Edit.write([2], [1], [0.9])), [stop]).tokens.tolist() == [
        stop, 1, 1, stop,
    ]  # fmt: skip
    inside = Canvas.of([[1], 1, [3]], MASK).apply(Edit.write([1], [stop], [0.9]))
    assert len(cut_at_stop(inside, [stop])) == 3
    empty = Canvas.of([2], MASK).apply(Edit.write([0], [stop], [0.9]))
    assert len(cut_at_stop(empty, [stop])) == 1


def test_a_stop_ends_decoding_early() -> None:
    """Position 3 is a stop and the surest; 2 comes next, and the other holes are never filled."""
    rows = {2: [0, 1, 0, 0, 0, 0], 3: [0, 0, 5, 0, 0, 0]}
    session = ToySession(VOCAB, logits=lambda p: rows.get(p, [0.1, 0, 0, 0, 0, 0]))
    canvas = Canvas.of([[1, 1], 20], MASK)
    steps = list(decode(session, canvas, Full(False), parse("threshold:0.99"), stop_ids=[2]))
    assert [s.edit.positions.tolist() for s in steps] == [[3], [2]]
    assert steps[-1].canvas.tokens.tolist() == [1, 1, 1, 2]


class Lazy:
    """Fills nothing; or writes a draft again and again."""

    patience, drafts = 2, "shown"

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, scores: Scores) -> Edit:
        return Edit.write(scores.targets[: self.count], [1] * self.count, 0.5, DRAFT)


@pytest.mark.parametrize(("count", "passes"), [(1, 3), (0, 2)])
def test_no_progress_is_an_error_after_the_policys_patience(count: int, passes: int) -> None:
    """A first draft is progress; then two more passes are borne, and the third is not."""
    seen: list[Step] = []
    canvas = Canvas.of([[1], 3], MASK)
    with pytest.raises(NoProgress, match="3 passes"):
        seen.extend(decode(ToySession(VOCAB), canvas, Full(False), Lazy(count)))
    assert len(seen) == passes


class Even:
    """Allows even tokens only, and forces position 2 to be 4 as soon as anything is written."""

    def narrow(self, canvas: Canvas, targets: IntArray, logits: FloatArray) -> FloatArray:
        return np.where(np.arange(VOCAB) % 2 == 0, logits, -np.inf).astype(np.float32)

    def check(self, canvas: Canvas, edit: Edit) -> Edit:
        return edit if canvas.state[2] == WRITTEN else edit + Edit.write([2], [4], [1.0])


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_constraint_narrows_and_forces(name: str) -> None:
    canvas = Canvas.of([[1], 8], MASK)
    policy = parse("threshold:0.7")
    steps = list(run(FAMILIES[name], policy, canvas, ToySession(VOCAB), constraint=Even()))
    assert (steps[-1].canvas.tokens[1:] % 2 == 0).all()
    assert steps[0].canvas.tokens[2] == 4


@pytest.mark.parametrize("name", ["toy", "toy-dream"])
@pytest.mark.parametrize("cache", ["none", "prefix", "dual", "prefix:2", "dual:2"])
def test_approximate_caches_finish_and_cost_fewer_rows(name: str, cache: str) -> None:
    family, canvas = replace(FAMILIES[name], block=8), Canvas.of([[1, 2, 3, 4], 24], MASK)
    policy = parse("left-to-right")
    steps = list(decode(ToySession(VOCAB), canvas, plan_for(family, policy, cache), policy))
    shift = int(family.shift)
    after = {  # rows of the seven passes of a block that follow its first, full pass
        "none": [28] * 7,
        "prefix": [24 + shift] * 7,
        "dual": [8 + shift] * 7,
        "prefix:2": [24 + shift, 28, 24 + shift, 28, 24 + shift, 28, 24 + shift],
        "dual:2": [8 + shift, 28, 8 + shift, 28, 8 + shift, 28, 8 + shift],
    }
    assert [s.rows for s in steps[:8]] == [28, *after[cache]]
    assert not steps[-1].canvas.open
    assert steps[8].rows == 28


def test_refreshing_every_pass_is_exact() -> None:
    family, policy = replace(FAMILIES["toy"], block=8), parse("threshold:0.7")
    canvas = Canvas.of([[1, 2, 3, 4], 24], MASK)
    exact, often = (
        tokens(list(decode(ToySession(VOCAB), canvas, plan_for(family, policy, cache), policy)))
        for cache in ("none", "dual:1")
    )
    assert exact == often


def test_the_mask_is_never_written() -> None:
    session = ToySession(VOCAB, logits=lambda p: [0, 0, 1, 0, 0, 9])
    canvas = Canvas.of([[MASK], 3], MASK)
    *_, last = decode(session, canvas, Full(False), parse("threshold:0.9"))
    assert last.canvas.tokens.tolist() == [MASK, 2, 2, 2]
