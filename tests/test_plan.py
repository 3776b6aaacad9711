"""What each plan computes, by hand; that caching changes nothing is tests/test_decode.py."""

import numpy as np
import pytest

from mezzotint.backend import Pass
from mezzotint.backend.toy import ToySession
from mezzotint.canvas import DRAFT, Canvas, Edit
from mezzotint.errors import UsageError
from mezzotint.plan import Blocks, Frontier, Full, Reordered, Span, shadowed

MASK = 9


def canvas(text: str) -> Canvas:
    """g given, . hole, d draft, w written; the token at a decided position is its index."""
    parts: list[list[int] | int] = [[i] if c == "g" else 1 for i, c in enumerate(text)]
    made = Canvas.of(parts, MASK)
    for i, c in enumerate(text):
        if c in "dw":
            made = made.apply(Edit.write([i], [i], [0.5], DRAFT if c == "d" else 3))
    return made


def predicts(span: Span) -> dict[int, int]:
    """Target position → position of the row that predicts it."""
    at = span.rows.positions[span.want]
    return dict(zip(span.targets.tolist(), at.tolist(), strict=True))


def sees(rows: Pass) -> list[str]:
    visible = rows.visible
    m = len(rows.tokens)
    if isinstance(visible, str):
        visible = np.tril(np.ones((m, m), bool)) if visible == "causal" else np.ones((m, m), bool)
    return ["".join(".x"[int(v)] for v in row) for row in visible]


def at(span: Span) -> list[int]:
    return span.rows.positions.tolist()


def test_plain_ar_costs_one_row_a_token() -> None:
    plan = Frontier(shift=True, masks=0)
    first = plan.span(canvas("ggg..."), 0, True)
    assert (at(first), predicts(first), first.keep) == ([0, 1, 2], {3: 2}, 3)
    after = canvas("gggw..")
    assert first.kept(after) == 3
    second = plan.span(after, 3, False)
    assert (at(second), predicts(second), second.keep) == ([3], {4: 3}, 1)


def test_a_row_that_still_predicts_the_first_hole_is_computed_again() -> None:
    """All rows cached, but nothing settled: row 2 must give the logits of position 3."""
    span = Frontier(True, 2, two_way=True).span(canvas("ggg.w."), 3, False)
    assert (span.base, at(span)) == (2, [2, 3, 4])
    assert predicts(span) == {3: 2}


def test_causal_window_sees_itself_and_the_text_after_it() -> None:
    span = Frontier(True, 2, two_way=True).span(canvas("ggg...gg"), 2, True)
    assert (at(span), span.keep) == ([2, 3, 4, 6, 7], 1)
    assert sees(span.rows) == ["x....", "xxxxx", "xxxxx", "x..x.", "x..xx"]
    assert predicts(span) == {3: 2, 4: 3}


def test_causal_window_stops_at_the_next_given_text() -> None:
    span = Frontier(False, 4, two_way=True).span(canvas("gg..g."), 0, True)
    assert at(span) == [0, 1, 2, 3, 4]
    assert predicts(span) == {2: 2, 3: 3}


def test_verify_puts_causal_drafts_before_the_window_and_uses_every_row() -> None:
    plan = Frontier(True, 2, two_way=True, verifies=True)
    span = plan.span(canvas("ggwdd...."), 2, False)
    assert (at(span), span.keep) == ([2, 3, 4, 5, 6], 3)
    assert sees(span.rows) == ["x....", "xx...", "xxx..", "xxxxx", "xxxxx"]
    assert predicts(span) == {3: 2, 4: 3, 5: 4, 6: 5, 7: 6}
    assert span.kept(canvas("ggwwww...")) == 3  # both drafts were accepted
    rejected = canvas("ggwww....").apply(Edit.write([4], [0], [0.5]))
    assert span.kept(rejected) == 2  # position 4 holds another token than the draft did


def test_causal_masks_of_width_n_minus_one() -> None:
    """I-DLM, N = 4: pending token, 3 drafts, 3 masks: 7 rows, 7 predictions."""
    span = Frontier(True, 3, verifies=True).span(canvas("gwddd......"), 1, False)
    assert at(span) == [1, 2, 3, 4, 5, 6, 7]
    assert span.rows.visible == "causal"
    assert list(predicts(span)) == [2, 3, 4, 5, 6, 7, 8]


def test_nothing_predicts_a_first_hole_under_shift() -> None:
    with pytest.raises(UsageError, match="first position"):
        Frontier(True, 0).span(canvas(".."), 0, True)


def test_reordered_puts_decided_first() -> None:
    span = Reordered(4).span(canvas("gg.w.w.."), 1, False)
    assert (at(span), span.keep) == ([1, 3, 5, 2, 4], 1)
    assert span.rows.visible == "causal"
    assert predicts(span) == {2: 2, 4: 4}


def test_a_finished_block_rides_with_the_next() -> None:
    span = Blocks(4).span(canvas("ggggwwww...."), 4, True)
    assert (at(span), span.base, span.keep) == ([*range(4, 12)], 4, 4)
    assert sees(span.rows) == ["xxxx....", *["xxxx...."] * 3, *["xxxxxxxx"] * 4]
    assert predicts(span) == {8: 8, 9: 9, 10: 10, 11: 11}


@pytest.mark.parametrize(
    ("text", "rows", "keep"),
    [
        ("gggg....", [*range(8)], 4),  # prompt ≡ 0
        ("ggggg...", [*range(8)], 4),  # ≡ 1: the block is shared with the prompt
        ("ggg.....", [*range(4)], 0),  # ≡ block − 1
        ("gggg..", [*range(6)], 4),  # the last block is cut short
        ("gggwwddd", [*range(8)], 8),  # no hole left: if the drafts stand, the block is clean
    ],
)
def test_blocks_are_aligned_to_zero(text: str, rows: list[int], keep: int) -> None:
    span = Blocks(4).span(canvas(text), 0, True)
    assert (at(span), span.keep) == (rows, keep)


def test_blocks_with_shift() -> None:
    plan = Blocks(4, shift=True, sub=2)
    opening = plan.span(canvas("ggggwwww...."), 4, True)
    assert (at(opening), predicts(opening), opening.keep) == ([4, 5, 6, 7], {8: 7}, 4)
    first = plan.span(canvas("ggggwwwww..."), 8, True)
    assert (at(first), predicts(first)) == ([8, 9, 10, 11], {9: 8})
    second = plan.span(canvas("ggggwwwwww.."), 8, True)
    assert predicts(second) == {10: 9, 11: 10}
    assert plan.block(canvas("ggggwwwwww..")) == (10, 12)


def test_blocks_prefill_only_what_the_first_pass_need_not_compute() -> None:
    for shift, length, rows in ((False, 8, 4), (False, 9, 4), (True, 8, 1), (True, 9, 4)):
        session, text = ToySession(10), canvas("g" * length + "....")
        Blocks(4, shift).prefill(session, text)
        assert session.length == 8
        assert len(at(Blocks(4, shift).span(text, 8, True))) == rows


def test_full_caches() -> None:
    text = canvas("ggww....")
    assert at(Full(False, 2).span(text, 0, True)) == [*range(8)]
    prefix = Full(False, 2, "prefix")
    opening = prefix.span(text, 2, True)
    assert (at(opening), opening.base, opening.kept(text)) == ([*range(8)], 0, 4)
    assert at(prefix.span(text, 4, False)) == [4, 5, 6, 7]
    dual = Full(False, 2, "dual")
    opening = dual.span(text, 0, True)
    assert (opening.keep, opening.kept(text)) == (8, 8)
    inner = dual.span(text, 8, False)
    assert (at(inner), inner.rows.hide, predicts(inner)) == ([4, 5], (4, 6), {4: 4, 5: 5})
    assert inner.kept(text) == 0


def test_full_with_shift_reads_position_zero_from_row_zero() -> None:
    assert predicts(Full(True).span(canvas("..g."), 0, True)) == {0: 0, 1: 0, 3: 2}
    span = Full(True, 2, "dual").span(canvas("gg...."), 6, False)
    assert (at(span), predicts(span)) == ([1, 2, 3], {2: 1, 3: 2})


def test_shadow_rows_do_not_see_their_draft() -> None:
    text = canvas("gd.d")
    span = shadowed(Full(False).span(text, 0, True), text)
    assert span.rows.tokens.tolist() == [0, 1, MASK, 3, MASK, MASK]
    assert at(span) == [0, 1, 2, 3, 1, 3]
    assert sees(span.rows) == [*["xxxx.."] * 4, "x.xxx.", "xxx..x"]
    assert dict(zip(span.targets.tolist(), span.want.tolist(), strict=True)) == {2: 2, 1: 4, 3: 5}
