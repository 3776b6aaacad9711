"""Draft and verify writes what AR decoding writes: to the token, or in distribution."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed import MASK as FIXED_MASK
from fixed import spread
from mezzotint.backend import Pass
from mezzotint.backend.toy import ToySession
from mezzotint.canvas import DRAFT, MASKED, WRITTEN, Canvas, Edit, FloatArray, IntArray
from mezzotint.decode import Step, decode
from mezzotint.plan import Frontier
from mezzotint.policy import Scores, parse
from mezzotint.policy.verify import Verify, accept
from mezzotint.sampling import Filtered, draw, softmax

VOCAB, MASK = 4, 3
AR = Frontier(True, 0)


def steps(
    session: ToySession, canvas: Canvas, plan: Frontier, policy: Verify, seed: int = 0
) -> list[Step]:
    return list(decode(session, canvas, plan, policy, rng=np.random.default_rng(seed)))


def greedy_ar(seed: int, prompt: list[int], holes: int) -> list[int]:
    canvas = Canvas.of([prompt, holes], MASK)
    *_, last = decode(ToySession(VOCAB, seed), canvas, AR, parse("left-to-right"))
    return last.canvas.tokens.tolist()


prompts = st.lists(st.integers(0, 2), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(prompts, st.integers(1, 16), st.lists(st.integers(0, 2), max_size=16), st.integers(0, 99),
       st.sampled_from([Frontier(True, 4, True, True), Frontier(True, 3, False, True),
                        Frontier(True, 0, False, True)]))  # fmt: skip
def test_greedy_verify_is_ar_for_any_drafts(
    prompt: list[int], holes: int, drafts: list[int], seed: int, plan: Frontier
) -> None:
    canvas = Canvas.of([prompt, holes], MASK)
    at = np.arange(len(prompt), len(prompt) + min(len(drafts), holes))
    canvas = canvas.apply(Edit.write(at, drafts[: len(at)], 0.5, DRAFT))
    made = steps(ToySession(VOCAB, seed), canvas, plan, Verify(0.0))
    assert made[-1].canvas.tokens.tolist() == greedy_ar(seed, prompt, holes)
    assert len(made) <= holes


def test_right_drafts_cost_one_pass() -> None:
    text = greedy_ar(5, [1, 2], 9)
    canvas = Canvas.of([[1, 2], 9], MASK).apply(Edit.write(range(2, 10), text[2:10], 0.5, DRAFT))
    made = steps(ToySession(VOCAB, 5), canvas, Frontier(True, 4, True, True), Verify())
    assert [s.canvas.tokens.tolist() for s in made] == [text]


def scores(canvas: Canvas, rows: dict[int, tuple[int, float]]) -> Scores:
    table = np.array([spread(*row) for row in rows.values()])
    return Scores(canvas, np.array(list(rows), np.int32), table)


def test_greedy_trace_by_hand() -> None:
    """Drafts 0, 1, 2 at 1…3. Rows say 0, 1, 3: two stand, 3 is corrected, nothing is drafted."""
    canvas = Canvas.of([[0], 7], FIXED_MASK).apply(Edit.write([1, 2, 3], [0, 1, 2], 0.5, DRAFT))
    mask_rows = {4: (0, 0.9), 5: (1, 0.9), 6: (2, 0.8), 7: (3, 0.5)}
    edit = Verify(0.5)(scores(canvas, {1: (0, 0.4), 2: (1, 0.6), 3: (3, 0.5), **mask_rows}))
    assert edit.positions.tolist() == [1, 2, 3]
    assert edit.tokens.tolist() == [0, 1, 3]
    assert edit.states.tolist() == [WRITTEN] * 3
    wrong_first = Verify(0.5)(scores(canvas, {1: (3, 0.4), 2: (1, 0.6), 3: (2, 0.5), **mask_rows}))
    assert wrong_first.states.tolist() == [WRITTEN, MASKED, MASKED]


def test_a_lenient_one_masks_only_what_it_doubts() -> None:
    """Drafts 0, 1, 2. The first rows find 0 half as likely as 3 and 1 a tenth as likely."""
    canvas = Canvas.of([[0], 5], FIXED_MASK).apply(Edit.write([1, 2, 3], [0, 1, 2], 0.5, DRAFT))
    table = np.log([[0.3, 1e-3, 1e-3, 0.6], [0.02, 0.05, 0.02, 0.5], [0.1, 0.1, 0.7, 0.1],
                    [0.9, 0.02, 0.02, 0.02], [0.9, 0.02, 0.02, 0.02]])  # fmt: skip
    given = Scores(canvas, np.arange(1, 6, dtype=np.int32), table.astype(np.float32))
    edit = parse("refine:0.5,keep=0.3")(given)
    assert edit.tokens[:2].tolist() == [0, 3]
    assert edit.states.tolist() == [WRITTEN, WRITTEN, MASKED]
    assert edit.confidence[:2] == pytest.approx([0.3 / 0.902, 0.5 / 0.59], rel=1e-5)
    assert parse("refine:0.5,keep=0.09")(given).tokens[:3].tolist() == [0, 1, 2]
    assert Verify(0.5)(given).tokens[:1].tolist() == [3]
    level = np.zeros((5, 4), np.float32)  # as likely as the one that AR takes is not enough
    tied = Scores(canvas, np.arange(1, 6, dtype=np.int32), level)
    assert Verify(0.5)(tied).tokens[:2].tolist() == [0, 0]


def test_drafts_go_on_while_the_product_of_confidences_stays() -> None:
    """All three stand, 4 is free; then 0.9, 0.9·0.8 = 0.72, 0.72·0.5 = 0.36 < 0.5: two drafts."""
    canvas = Canvas.of([[0], 7], FIXED_MASK).apply(Edit.write([1, 2, 3], [0, 1, 2], 0.5, DRAFT))
    rows = {
        1: (0, 0.4),
        2: (1, 0.6),
        3: (2, 0.5),
        4: (0, 0.3),
        5: (1, 0.9),
        6: (2, 0.8),
        7: (3, 0.5),
    }
    edit = Verify(0.5)(scores(canvas, rows))
    assert edit.positions.tolist() == [1, 2, 3, 4, 5, 6]
    assert edit.tokens.tolist() == [0, 1, 2, 0, 1, 2]
    assert edit.states.tolist() == [WRITTEN] * 4 + [DRAFT] * 2


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


def test_acceptance_keeps_the_verifiers_distribution() -> None:
    p = np.array([0.5, 0.2, 0.2, 0.1])
    q = np.array([0.1, 0.6, 0.25, 0.05])
    rng, n = np.random.default_rng(0), 20000
    drafts = draw(np.repeat(q[None], n, axis=0), rng)
    drawn = np.bincount([accept(p, q, int(t), rng) for t in drafts], minlength=4)
    assert chi_square(drawn, n * p) < 16.27  # 3 df, p = 0.001
    fixed = np.bincount([accept(p, None, 1, rng) for _ in range(n)], minlength=4)
    assert chi_square(fixed, n * p) < 16.27
    took = sum(accept(p, None, 1, rng) == 1 for _ in range(n)) / n
    assert abs(took - 0.2) < 0.012  # accepted with probability p/q = 0.2, within 4 sigma


def ar_probability(session: ToySession, prompt: list[int], text: tuple[int, ...]) -> float:
    """P(text | prompt) under causal decoding at temperature 1, the mask barred."""
    ids = np.array([*prompt, *text], np.int32)
    at = np.arange(len(ids), dtype=np.int32)
    logits = session.score(Pass(ids, at), at)
    probs = softmax(logits[len(prompt) - 1 : -1, :MASK])
    return float(np.prod(probs[np.arange(len(text)), list(text)]))


class Flat(ToySession):
    """Nearly even logits, so that every text and both outcomes of a draft are common."""

    def score(self, rows: Pass, want: IntArray) -> FloatArray:
        return super().score(rows, want) * np.float32(0.25)


@pytest.mark.parametrize("theta", [0.0, 0.5])
def test_speculative_text_has_the_ar_distribution(theta: float) -> None:
    """Three tokens, drafted and verified 3,000 times, against the 27 exact probabilities."""
    prompt, n = [1, 0], 3000
    session, canvas = Flat(VOCAB, 20), Canvas.of([prompt, 3], MASK)
    policy, plan = Verify(theta, Filtered(1.0)), Frontier(True, 4, True, True)
    texts = list(product(range(3), repeat=3))
    counts, passes = dict.fromkeys(texts, 0), []
    for seed in range(n):
        made = steps(session.fork(), canvas, plan, policy, seed)
        counts[tuple(made[-1].canvas.tokens[2:].tolist())] += 1
        passes.append(len(made))
    expected = n * np.array([ar_probability(session, prompt, text) for text in texts])
    assert abs(expected.sum() - n) < 1e-6
    assert expected.min() > 5
    assert chi_square(np.array(list(counts.values())), expected) < 54.05  # 26 df, p = 0.001
    assert set(passes) == {2, 3}  # drafts were accepted, and were rejected


def test_a_draft_drawn_from_the_verifiers_own_distribution_always_stands() -> None:
    """min(1, p/q) is 1 where q is remembered and equals p; a draft of unknown origin has q = 1."""
    canvas = Canvas.of([[0], 1], FIXED_MASK).apply(Edit.write([1], [2], 0.5, DRAFT))
    asked = scores(canvas, {1: (0, 0.7)})  # p of the draft is 0.1
    remembered = {1: Filtered(1.0).probs(asked.logits)[0]}
    policy = Verify(sampler=Filtered(1.0))
    stood = {True: 0, False: 0}
    for seed in range(200):
        for known in (True, False):
            rng = np.random.default_rng(seed)
            edit = policy(replace(asked, rng=rng, memory=remembered if known else {}))
            stood[known] += edit.tokens.tolist() == [2]
    assert stood[True] == 200
    assert 5 < stood[False] < 40  # 20 expected, within 4 sigma
