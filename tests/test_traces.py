"""Greedy traces of the published rules on fixed logits, worked out by hand from the formulas.

Unless said otherwise the prompt is two tokens, and position p is predicted with the
confidence that the table gives.
"""

import numpy as np
import pytest

from fixed import MASK, pair, spread, trace
from mezzotint.canvas import Canvas
from mezzotint.plan import Blocks, Full, Reordered
from mezzotint.policy import parse

PROMPT = [0, 1]
TOKENS = [1, 2, 3, 1, 0, 2]  # at positions 2…7


def rows(*confidence: float, shift: int = 0) -> dict[int, np.ndarray]:
    return {2 + i - shift: spread(TOKENS[i], c) for i, c in enumerate(confidence)}


def canvas(holes: int) -> Canvas:
    return Canvas.of([PROMPT, holes], MASK)


def wrote(*passes: list[int]) -> list[list[tuple[int, int]]]:
    """The trace that fills these positions, pass by pass."""
    return [[(p, TOKENS[p - 2]) for p in positions] for positions in passes]


def test_llada_low_confidence_counts_with_remainder() -> None:
    """5 holes in 2 steps: 3 then 2 of the surest."""
    table = rows(0.5, 0.9, 0.7, 0.6, 0.8)
    policy = parse("low_confidence:steps=2")
    assert trace(table, canvas(5), Full(False), policy) == wrote([3, 4, 6], [2, 5])


def test_llada_semi_autoregressive_blocks() -> None:
    """Blocks of 3 in 2 steps each: 2 then 1, and nothing beyond the block (position 6 is sure)."""
    table = rows(0.5, 0.9, 0.7, 0.6, 0.99, 0.4)
    policy = parse("low_confidence:steps=2")
    passes = wrote([3, 4], [2], [5, 6], [7])
    assert trace(table, canvas(6), Full(False, 3), policy) == passes


def test_llada_more_steps_than_holes_costs_no_empty_pass() -> None:
    table = rows(0.5, 0.9)
    policy = parse("low_confidence:steps=5")  # counts 1, 1, 0, 0, 0
    assert trace(table, canvas(2), Full(False), policy) == wrote([3], [2])


def dream_rows() -> dict[int, np.ndarray]:
    """Shifted: row p − 1 predicts p. Two tokens share position 2, four share position 3.

    Position 2: p1 0.60, margin 0.60 − 0.40 = 0.20, Σ p·ln p = −0.673
    Position 3: p1 0.65, margin 0.65 − 0.35/3 = 0.53, Σ p·ln p = −1.032
    Position 4: p1 0.90, position 5: 0.80, both spread: sure by every measure.
    """
    table = rows(0.0, 0.65, 0.9, 0.8, shift=1)
    return table | {1: pair(TOKENS[0], 0.6)}


@pytest.mark.parametrize(
    ("rank", "order"),
    [("entropy", [4, 2, 5, 3]), ("maskgit_plus", [4, 5, 3, 2]), ("topk_margin", [4, 5, 3, 2])],
)
def test_dream_ranks(rank: str, order: list[int]) -> None:
    """Σ p·ln p of 0.9 spread is −0.435 and of 0.8 spread −0.720; so entropy puts 2 before 5."""
    passes = trace(dream_rows(), canvas(4), Full(True), parse(rank))
    assert passes == wrote(*([p] for p in order))


def test_dream_timesteps() -> None:
    """6 holes, 4 steps, t = 1, 0.75025, 0.5005, 0.25075, 0.001.

    1 − s/t = 0.24975, 0.33289, 0.49900, then 1: counts int(6·0.24975) = 1, int(5·0.33289) = 1,
    int(4·0.499) = 1, then the 3 that are left.
    """
    table = rows(0.5, 0.9, 0.7, 0.6, 0.8, 0.4, shift=1)
    policy = parse("maskgit_plus:steps=4")
    assert trace(table, canvas(6), Full(True), policy) == wrote([3], [6], [4], [2, 5, 7])


def test_dream_skips_the_steps_that_reveal_nothing() -> None:
    """2 holes, 3 steps, t = 1, 0.667, 0.334, 0.001: int(2·0.333) = int(2·0.49925) = 0, then 2."""
    table = rows(0.5, 0.9, shift=1)
    assert trace(table, canvas(2), Full(True), parse("entropy:steps=3")) == wrote([2, 3])


def test_fast_dllm_threshold_takes_equal_and_always_the_best() -> None:
    table = rows(0.95, 0.7, 0.92, 0.6)
    passes = wrote([2, 4], [3], [5])
    assert trace(table, canvas(4), Full(False), parse("threshold:0.9")) == passes
    half = {p: np.array([0, 0, -np.inf, -np.inf, -np.inf], np.float32) for p in (2, 3)}
    at = [[(2, 0), (3, 0)]]  # probability exactly 0.5
    assert trace(half, canvas(2), Full(False), parse("threshold:0.5")) == at
    strict = [[(2, 0)], [(3, 0)]]
    assert trace(half, canvas(2), Full(False), parse("threshold:0.5,strict=1")) == strict
    assert trace(half, canvas(2), Full(False), parse("dynamic:0.5")) == strict


def test_fast_dllm_factor() -> None:
    """f = 1: bounds 1 − 1/(n+1) = 0.5 (waived), 0.667, 0.75. Sorted 0.9, 0.8, 0.7, 0.6, 0.5:
    0.8 ≥ 0.667 but 0.7 < 0.75, so two; then 0.7 alone, for 0.6 < 0.667; then one by one."""
    table = rows(0.6, 0.9, 0.5, 0.8, 0.7)
    passes = wrote([3, 5], [6], [2], [4])
    assert trace(table, canvas(5), Full(False), parse("factor:1")) == passes


def test_entropy_bound() -> None:
    """H of pairs 0.9, 0.8, 0.7 is 0.325, 0.500, 0.611. γ = 0.4: ΣH − max H is 0, 0.325, 0.825,
    so two. Then 0.611 alone."""
    table = {2: pair(1, 0.8), 3: pair(2, 0.7), 4: pair(3, 0.9)}
    passes = wrote([2, 4], [3])
    assert trace(table, canvas(3), Full(False), parse("entropy_bound:0.4")) == passes


def test_sdar_dynamic() -> None:
    """Blocks of 4, prompt 2: the first block has 2 holes, the next 4, one a step at least.
    τ = 0.75: 0.5 and 0.6 one by one; then 0.9 and 0.8 at once, 0.7, 0.65."""
    table = rows(0.5, 0.6, 0.9, 0.65, 0.8, 0.7)
    passes = wrote([3], [2], [4, 6], [7], [5])
    assert trace(table, canvas(6), Blocks(4), parse("dynamic:0.75")) == passes


def test_sdar_static_and_sequential() -> None:
    """Blocks of 4, 3 steps: 2 holes make counts 1, 1, 0; 4 holes make 2, 1, 1."""
    table = rows(0.5, 0.6, 0.9, 0.65, 0.8, 0.7)
    passes = wrote([3], [2], [4, 6], [7], [5])
    assert trace(table, canvas(6), Blocks(4), parse("static:steps=3")) == passes
    passes = wrote([2], [3], [4, 5], [6], [7])
    assert trace(table, canvas(6), Blocks(4), parse("sequential:steps=3")) == passes


def test_llada2_falls_back_to_the_schedule() -> None:
    """4 holes in 2 steps: 2 a step. Only 0.96 passes 0.95, fewer than 2, so the top 2."""
    table = {p: spread(1, c) for p, c in zip((4, 5, 6, 7), (0.7, 0.96, 0.9, 0.8), strict=True)}
    first = Canvas.of([[0, 1, 2, 3], 4], MASK)
    passes = [[(5, 1), (6, 1)], [(4, 1), (7, 1)]]
    assert trace(table, first, Blocks(4), parse("llada2:steps=2")) == passes


def test_left_to_right() -> None:
    table = rows(0.5, 0.9, 0.7)
    assert trace(table, canvas(3), Full(False), parse("left_to_right")) == wrote([2], [3], [4])


def test_wedlm() -> None:
    """H of a pair 0.9 is 0.325, of 0.6 0.673; a place further costs 0.02; the bound is 0.4.

    Holes 2…7, 0.6 at 3. Pass 1: distances 0, 2, 3 pass (0.385), 4 does not (0.405). Pass 2, first
    hole 3: 6 is 3 away, 0.385; 7 is 4 away, no. Pass 3: neither, so the least, 7 at 0.405.
    """
    table = {2 + i: pair(TOKENS[i], 0.6 if i == 1 else 0.9) for i in range(6)}
    passes = wrote([2, 4, 5], [6], [7], [3])
    assert trace(table, canvas(6), Reordered(6), parse("wedlm")) == passes


def test_fast_dllm_v2_reads_a_blocks_first_token_from_the_block_before() -> None:
    """Blocks of 4, sub-blocks of 2, prompt 4. Position 4 comes from row 3 alone. Sub-block 4–5:
    row 4 gives 5. Sub-block 6–7: row 5 gives 6 and row 6 gives 7, the surer. Then 8 from row 7.
    """
    table = {3: spread(1, 0.3), 4: spread(2, 0.5), 5: spread(3, 0.6), 6: spread(1, 0.8),
             7: spread(2, 0.4)}  # fmt: skip
    first = Canvas.of([[0, 1, 2, 3], 5], MASK)
    passes = [[(4, 1)], [(5, 2)], [(7, 1)], [(6, 3)], [(8, 2)]]
    assert trace(table, first, Blocks(4, True, 2), parse("threshold:0.9,strict=1")) == passes
