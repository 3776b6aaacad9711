"""Policies that revise, and the spelling of policies; traces of the others: test_traces.py."""

from dataclasses import replace

import numpy as np
import pytest

from fixed import MASK, spread
from mezzotint.canvas import DRAFT, MASKED, WRITTEN, Canvas, Edit
from mezzotint.errors import UsageError
from mezzotint.policy import NAMES, Resize, Scores, parse
from mezzotint.policy.unmask import Origin, Unmask
from mezzotint.sampling import Filtered, Gumbel

CANVAS = Canvas.of([[0], 4], MASK)
Change = tuple[int, int, int]  # position, token, state


def scores(canvas: Canvas, rows: dict[int, np.ndarray], step: int = 0, idle: int = 0) -> Scores:
    """Position p of the canvas predicted by rows[p]."""
    at = np.array(list(rows), np.int32)
    return Scores(canvas, at, np.array(list(rows.values())), step, total=4, idle=idle)


def changes(edit: Edit) -> list[Change]:
    """What the edit does, by position; of two changes to one position the later."""
    triples = zip(edit.positions, edit.tokens, edit.states, strict=True)
    return sorted({int(p): (int(p), int(t), int(s)) for p, t, s in triples}.values())


def drafted(tokens: dict[int, int]) -> Canvas:
    return CANVAS.apply(Edit.write(list(tokens), list(tokens.values()), 0.5, DRAFT))


def test_llada21_fills_and_edits_in_the_same_pass() -> None:
    """Threshold 0.95, edit 0.9. Hole 4 is filled. Draft 1 is changed (0.92 for another token),
    draft 2 is not (0.8 for another), draft 3 is not (it is the argmax)."""
    canvas = drafted({1: 0, 2: 0, 3: 0})
    table = {1: spread(2, 0.92), 2: spread(2, 0.8), 3: spread(0, 0.99), 4: spread(3, 0.5)}
    edit = parse("llada21")(scores(canvas, table))
    assert changes(edit) == [(1, 2, DRAFT), (4, 3, DRAFT)]


def test_llada21_settles_when_nothing_is_left_to_edit_or_patience_ends() -> None:
    canvas = drafted({1: 0, 2: 1, 3: 2, 4: 3})
    calm = {p: spread(p - 1, 0.9) for p in (1, 2, 3, 4)}
    settled = [(1, 0, WRITTEN), (2, 1, WRITTEN), (3, 2, WRITTEN), (4, 3, WRITTEN)]
    assert changes(parse("llada21")(scores(canvas, calm))) == settled
    restless = calm | {1: spread(3, 0.95)}
    policy = parse("llada21:post=2")
    assert changes(policy(scores(canvas, restless, idle=1))) == [(1, 3, DRAFT)]
    assert changes(policy(scores(canvas, restless, idle=2))) == settled


def test_wino_accepts_widely_and_takes_back_fewer() -> None:
    """Holes 1, 2 pass 0.6. Drafts 3 (0.2) and 4 (0.5) are doubted, but only 2 − 1 may go: 3."""
    canvas = drafted({3: 0, 4: 1})
    table = {1: spread(2, 0.7), 2: spread(3, 0.65), 3: spread(1, 0.4), 4: spread(1, 0.5)}
    edit = parse("wino")(scores(canvas, table))
    assert changes(edit) == [(1, 2, DRAFT), (2, 3, DRAFT), (3, 0, MASKED)]


def test_wino_settles_once_nothing_is_open_or_doubted() -> None:
    canvas = drafted({2: 1, 3: 0, 4: 1})
    table = {1: spread(2, 0.7), 2: spread(1, 0.95), 3: spread(0, 0.91), 4: spread(1, 0.99)}
    edit = parse("wino")(scores(canvas, table))
    assert changes(edit) == [(1, 2, WRITTEN), (2, 1, WRITTEN), (3, 0, WRITTEN), (4, 1, WRITTEN)]


def test_p2_keeps_the_highest_scores_and_masks_the_rest() -> None:
    """Step 1 of 4 (the second) leaves 4·(1 − 2/4) = 2 masks: the lowest of 0.9, 0.3, 0.8 (holes)
    and 0.2 (the draft at 4), that is 4 and 2. Eta 0 lifts the draft to ln 1 = 0."""
    canvas = drafted({4: 0})
    table = {1: spread(1, 0.9), 2: spread(2, 0.3), 3: spread(3, 0.8), 4: spread(1, 0.4)}
    edit = parse("p2:steps=4")(scores(canvas, table, step=1))
    assert changes(edit) == [(1, 1, DRAFT), (2, 0, MASKED), (3, 3, DRAFT), (4, 0, MASKED)]
    edit = parse("p2:steps=4,eta=0")(scores(canvas, table, step=1))
    assert changes(edit) == [(1, 1, DRAFT), (2, 0, MASKED), (3, 0, MASKED), (4, 0, DRAFT)]
    last = parse("p2:steps=4")(scores(canvas, table, step=3))
    assert [state for *_, state in changes(last)] == [WRITTEN] * 4


def test_resize_splits_and_removes_holes() -> None:
    """Token 2 expands, token 3 deletes, token 1 is text."""
    policy = Resize(parse("threshold:0.5"), expand=2, delete=3, limit=9)
    table = {1: spread(2, 0.9), 2: spread(1, 0.9), 3: spread(3, 0.9)}
    edit = policy(scores(CANVAS, table))
    assert changes(edit) == [(2, 1, WRITTEN)]
    assert sorted(edit.splice) == [(1, 2), (3, 0)]
    assert CANVAS.apply(edit).tokens.tolist() == [0, MASK, MASK, 1, MASK]


@pytest.mark.parametrize(("limit", "idle"), [(4, 0), (9, 64)])
def test_resize_stops_growing(limit: int, idle: int) -> None:
    """4 positions are not given; expansion (0.9) is barred, so the next best is written."""
    policy = Resize(parse("threshold:0.5"), expand=2, delete=3, limit=limit)
    edit = policy(scores(CANVAS, {1: np.log([0.02, 0.06, 0.9, 0.02, 1e-9])}, idle=idle))
    assert (changes(edit), edit.splice) == ([(1, 1, WRITTEN)], ())


def test_resize_splits_no_more_holes_than_there_is_room_for() -> None:
    policy = Resize(parse("threshold:0.5"), expand=2, delete=None, limit=5)
    edit = policy(scores(CANVAS, {p: spread(2, 0.9) for p in (1, 2, 3, 4)}))
    assert (len(edit.positions), edit.splice) == (0, ((1, 2),))


def test_origin_reveals_each_hole_with_probability_one_minus_s_over_t() -> None:
    """Step 1 of 4: 1 − 0.5005/0.75025 = 0.33289 of 40,000 draws, within 4 sigma (0.0094)."""
    policy = Unmask(Filtered(), Origin(steps=4))
    rng, count = np.random.default_rng(5), 0
    table = scores(CANVAS, {p: spread(1, 0.9) for p in (1, 2, 3, 4)}, step=1)
    for _ in range(10000):
        count += len(policy(replace(table, rng=rng)))
    assert abs(count / 40000 - 0.33289) < 0.0094
    assert len(policy(replace(table, step=3))) == 4


def test_alg_temp_draws_positions_in_proportion() -> None:
    """One of two holes, score / alg_temp = ln 3 apart: the surer is taken 3 times of 4."""
    scale = 0.3 / np.log(3)
    policy = parse(f"maskgit_plus:alg_temp={scale}")
    table, rng = scores(CANVAS, {1: spread(1, 0.9), 2: spread(1, 0.6)}), np.random.default_rng(2)
    first = sum(policy(replace(table, rng=rng)).positions[0] == 1 for _ in range(8000))
    assert abs(first / 8000 - 0.75) < 0.02


def test_random_and_confidence_differ() -> None:
    table = scores(CANVAS, {p: spread(1, 0.5 + p / 10) for p in (1, 2, 3, 4)})
    rng = np.random.default_rng(0)
    seen = {int(parse("random")(replace(table, rng=rng)).positions[0]) for _ in range(50)}
    assert seen == {1, 2, 3, 4}
    assert parse("low_confidence")(table).positions.tolist() == [4]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_fills_a_sure_hole(name: str) -> None:
    edit = parse(name, steps=1)(scores(CANVAS, {1: spread(1, 0.99)}))
    assert changes(edit)[0][:2] == (1, 1)


def test_spellings() -> None:
    assert parse("dynamic:0.8,steps=4") == parse(" dynamic : threshold = 0.8 , steps = 4")
    assert parse("low-confidence", steps=8) == parse("low_confidence:steps=8")
    assert parse("low-confidence:steps=4", steps=8) == parse("low_confidence:steps=4")
    warm = parse("low-confidence", Filtered(0.7))
    assert isinstance(warm, Unmask)
    assert warm.sampler == Gumbel(0.7)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("treshold:0.9", "no policy 'treshold'", "threshold"),
        ("threshold:tau=0.9", "no option 'tau'", "threshold, strict"),
        ("threshold:high", "must be a number, not 'high'", ""),
        ("threshold:-1", "must be 0 or more", ""),
        ("left-to-right:3", "no option '3'", "no options"),
        ("low-confidence:rank=1", "no option 'rank'", "steps"),
        ("", "no policy ''", "threshold"),
    ],
)
def test_misspellings_are_answered(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        parse(text)
    assert hint in error.value.hint


def test_gumbel_rules_refuse_filters() -> None:
    with pytest.raises(UsageError, match="no top-p"):
        parse("low-confidence", Filtered(0.5, 0.9))
