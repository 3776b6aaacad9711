"""Samplers, by hand and by frequency."""

import numpy as np
import pytest

from mezzotint.errors import UsageError
from mezzotint.sampling import Filtered, Gumbel, draw, entropy, greedy, softmax, top_k, top_p
from mezzotint.schedule import even, mask_rate, reveal, times

RNG = np.random.default_rng


def logs(*p: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array([p], np.float32))


def test_greedy_takes_the_argmax_with_its_softmax_probability() -> None:
    d = greedy(logs(0.2, 0.7, 0.1), RNG(0))
    assert d.tokens.tolist() == [1]
    assert d.confidence == pytest.approx([0.7], abs=1e-6)
    assert d.probs()[0] == pytest.approx([0.2, 0.7, 0.1], abs=1e-6)


def test_top_p_keeps_the_smallest_set_that_exceeds_p() -> None:
    left = top_p(logs(0.1, 0.5, 0.4).astype(np.float64), 0.8)
    assert np.isfinite(left).tolist() == [[False, True, True]]
    assert np.isfinite(top_p(logs(0.1, 0.5, 0.4).astype(np.float64), 0.3)).sum() == 1


def test_top_k_keeps_k() -> None:
    assert np.isfinite(top_k(logs(0.1, 0.5, 0.4), 2)).tolist() == [[False, True, True]]
    assert np.isfinite(top_k(logs(0.1, 0.5, 0.4), 9)).all()


def test_order_of_filters_matters() -> None:
    """0.4, 0.3, 0.2, 0.1 with p = 0.75, k = 2.

    p then k: p keeps 0.4 + 0.3 + 0.2, k leaves 0.4 : 0.3. k then p: k leaves 4/7 : 3/7, and
    4/7 does not exceed 0.75, so p keeps both. With p = 0.5: p first keeps 0.4 + 0.3 (0.4 does
    not exceed 0.5), k first leaves 4/7 > 0.5, alone.
    """
    x = logs(0.4, 0.3, 0.2, 0.1)
    assert Filtered(1.0, 0.75, 2, "pk").probs(x)[0] == pytest.approx([4 / 7, 3 / 7, 0, 0], abs=1e-6)
    assert Filtered(1.0, 0.75, 2, "kp").probs(x)[0] == pytest.approx([4 / 7, 3 / 7, 0, 0], abs=1e-6)
    assert Filtered(1.0, 0.5, 2, "pk").probs(x)[0] == pytest.approx([4 / 7, 3 / 7, 0, 0], abs=1e-6)
    assert Filtered(1.0, 0.5, 2, "kp").probs(x)[0] == pytest.approx([1, 0, 0, 0], abs=1e-6)


def test_confidence_is_after_the_filter_for_filtered_and_before_the_noise_for_gumbel() -> None:
    x = logs(0.6, 0.3, 0.1)
    d = Filtered(0.0, top_k=2)(x, RNG(0))
    assert d.confidence == pytest.approx([2 / 3], abs=1e-6)
    for seed in range(20):
        d = Gumbel(1.0)(x, RNG(seed))
        assert d.confidence[0] == pytest.approx([0.6, 0.3, 0.1][d.tokens[0]], abs=1e-6)


def test_temperature_sharpens() -> None:
    assert Filtered(0.5).probs(logs(0.6, 0.4))[0, 0] == pytest.approx(0.36 / (0.36 + 0.16))


@pytest.mark.parametrize("sampler", [Filtered(1.0), Gumbel(1.0)])
def test_draws_follow_the_distribution(sampler: Filtered | Gumbel) -> None:
    p = np.array([0.5, 0.3, 0.15, 0.05])
    tokens = sampler(np.repeat(logs(*p), 20000, axis=0), RNG(1)).tokens
    counts = np.bincount(tokens, minlength=4)
    assert ((counts - 20000 * p) ** 2 / (20000 * p)).sum() < 16.27  # chi-square, 3 df, p = 0.001


def test_a_seed_gives_the_same_tokens() -> None:
    x = np.random.default_rng(3).normal(size=(50, 9)).astype(np.float32)
    for sampler in (Filtered(0.8, 0.9, 5), Gumbel(0.8)):
        assert (sampler(x, RNG(7)).tokens == sampler(x, RNG(7)).tokens).all()
        assert (sampler(x, RNG(7)).tokens != sampler(x, RNG(8)).tokens).any()


def test_draw_never_takes_a_token_without_probability() -> None:
    p = np.array([[0.0, 1.0, 0.0]] * 500)
    assert (draw(p, RNG(0)) == 1).all()
    assert draw(np.empty((0, 3)), RNG(0)).shape == (0,)


def test_entropy_in_nats() -> None:
    assert entropy(softmax([[0.0, 0.0], [0.0, -np.inf]])) == pytest.approx([np.log(2), 0.0])


@pytest.mark.parametrize("bad", [{"temperature": -1}, {"top_p": 1.5}, {"top_k": -1}])
def test_bad_settings_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(bad))):
        Filtered(**bad)  # type: ignore[arg-type]


def test_schedules_by_hand() -> None:
    assert even(7, 3) == [3, 2, 2]
    assert even(3, 5) == [1, 1, 1, 0, 0]
    assert even(3, 0) == [1, 1, 1]
    assert even(0, 0) == [0]
    assert times(4).tolist() == pytest.approx([1, 0.75025, 0.5005, 0.25075, 0.001])
    assert reveal(0, 4) == pytest.approx(0.24975)
    assert reveal(3, 4) == reveal(9, 4) == 1.0
    assert (mask_rate(0.0), mask_rate(1.0)) == (0.001, 1.0)
