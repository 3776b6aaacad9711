"""Laws of the canvas."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.canvas import DRAFT, GIVEN, MASKED, WRITTEN, Canvas, Edit
from mezzotint.errors import UsageError

parts = st.lists(st.one_of(st.integers(0, 5), st.lists(st.integers(0, 9), max_size=5)), max_size=6)


@given(parts, st.data())
def test_given_positions_never_change(parts: list[list[int] | int], data: st.DataObject) -> None:
    canvas = Canvas.of(parts, mask_id=7)
    assert len(canvas) == sum(p if isinstance(p, int) else len(p) for p in parts)
    if not len(canvas):
        return
    at = data.draw(st.lists(st.integers(0, len(canvas) - 1), unique=True))
    edit = Edit.write(at, np.ones(len(at)), 0.5)
    if (canvas.state[at] == GIVEN).any():
        with pytest.raises(UsageError, match="given"):
            canvas.apply(edit)
    else:
        after = canvas.apply(edit)
        assert (after.state[at] == WRITTEN).all()
        assert (after.tokens[at] == 1).all()
        others = np.setdiff1d(np.arange(len(canvas)), at)
        assert (after.tokens[others] == canvas.tokens[others]).all()
        assert (after.state[others] == canvas.state[others]).all()


def test_a_literal_mask_token_in_the_prompt_is_given() -> None:
    canvas = Canvas.of([[7, 7], 1, [7]], mask_id=7)
    assert canvas.masked.tolist() == [2]
    assert canvas.tokens.tolist() == [7, 7, 7, 7]


def test_canvas_is_immutable() -> None:
    canvas = Canvas.of([[1], 2], mask_id=0)
    with pytest.raises(ValueError, match="read-only"):
        canvas.tokens[1] = 5
    canvas.apply(Edit.write([1], [5], [0.5]))
    assert canvas.masked.tolist() == [1, 2]


def test_settled_and_open_count_drafts_as_undecided() -> None:
    canvas = Canvas.of([[1, 2], 3], mask_id=0)
    drafted = canvas.apply(Edit.write([2], [5], [0.5], DRAFT) + Edit.write([3, 4], [6, 7], 0.9))
    assert (drafted.settled, drafted.open, drafted.drafts.tolist()) == (2, True, [2])
    done = drafted.apply(Edit.write([2], [5], [0.5]))
    assert (done.settled, done.open) == (5, False)


def test_remask_shows_the_mask_again_and_the_later_edit_wins() -> None:
    canvas = Canvas.of([[1], 2], mask_id=0).apply(Edit.write([1, 2], [5, 6], 0.9))
    after = canvas.apply(Edit.write([1], [8], [0.5]) + Edit.remask([1]))
    assert after.tokens.tolist() == [1, 0, 6]
    assert after.state.tolist() == [GIVEN, MASKED, WRITTEN]
    assert after.confidence[1] == 0.0


def test_splice_counts_positions_before_any_splice() -> None:
    canvas = Canvas.of([[1], 3, [2]], mask_id=0)
    edit = replace(Edit.write([2], [9], [0.5]), splice=((1, 2), (3, 0)))
    after = canvas.apply(edit)
    assert after.tokens.tolist() == [1, 0, 0, 9, 2]
    assert after.masked.tolist() == [1, 2]
    with pytest.raises(UsageError, match="only a masked position"):
        after.apply(replace(Edit.write([], [], []), splice=((3, 0),)))


def test_cut_and_bad_input() -> None:
    canvas = Canvas.of([[1, 2], 3], mask_id=0)
    assert len(canvas.cut(3)) == 3
    assert len(canvas.cut(99)) == 5
    with pytest.raises(UsageError, match="outside"):
        canvas.apply(Edit.write([5], [1], [0.5]))
    with pytest.raises(UsageError, match="0 or more"):
        Canvas.of([-1], mask_id=0)
    with pytest.raises(UsageError, match="one shape"):
        Canvas(canvas.tokens, canvas.state[:2], canvas.confidence, 0)
