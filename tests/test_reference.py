"""The reference's own laws: gradients, the KV cache, and what a session refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from mezzotint.backend import Pass, extend
from mezzotint.checkpoint import open_checkpoint
from mezzotint.errors import TooLarge, UsageError

torch = pytest.importorskip("torch")

from mezzotint.backend import reference as ref  # noqa: E402

TOKENS = np.arange(40, 60, dtype=np.int32)
AT = np.arange(20, dtype=np.int32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ref.Reference:
    checkpoint = open_checkpoint(tiny.write(tmp_path_factory.mktemp("r"), "qwen2")[0])
    return ref.Reference.load(checkpoint.shape, checkpoint.weights)


def test_gradients_are_those_of_finite_differences(model: ref.Reference) -> None:
    """In float64, along a random direction of each parameter."""
    params = {n: p.double().requires_grad_() for n, p in model.params.items()}
    tokens, at = torch.from_numpy(TOKENS).long(), torch.arange(20)

    def loss(p: dict) -> torch.Tensor:
        hidden, _ = ref.forward(model.shape, p, tokens, at, torch.ones(20, 20, dtype=torch.bool))
        return torch.nn.functional.cross_entropy(ref.logits(p, hidden), tokens.roll(-1))

    loss(params).backward()
    torch.manual_seed(0)
    for name in ("embed", "norm", "layers.0.q", "layers.1.k_bias", "layers.1.down"):
        way = torch.randn_like(params[name])
        with torch.no_grad():
            ahead = loss({**params, name: params[name] + 1e-3 * way})
            behind = loss({**params, name: params[name] - 1e-3 * way})
        slope = (params[name].grad * way).sum().item()
        assert slope == pytest.approx((ahead - behind).item() / 2e-3, rel=2e-2, abs=1e-4), name


def test_hidden_rows_are_as_if_absent(model: ref.Reference) -> None:
    """Rows hidden and given again in the pass: the dual cache's pass equals the plain one."""
    session = model.session()
    extend(session, TOKENS[:12], "full")
    block = Pass(TOKENS[8:], AT[8:], "full", hide=(8, 12))
    got = session.score(block, np.arange(12))
    fresh = model.session()
    extend(fresh, TOKENS[:12], "full")
    fresh.truncate(8)
    want = fresh.score(Pass(TOKENS[8:], AT[8:], "full"), np.arange(12))
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_truncate_fork_and_extend(model: ref.Reference) -> None:
    one = model.session()
    whole = one.score(Pass(TOKENS, AT), AT)
    assert one.length == 0
    extend(one, TOKENS[:9])
    other = one.fork()
    extend(other, TOKENS[:3] + 7)
    one.truncate(5)
    last = extend(one, TOKENS[5:])
    assert (one.length, other.length) == (20, 12)
    np.testing.assert_allclose(last, whole[-1], atol=1e-5)


def test_what_a_session_refuses(model: ref.Reference) -> None:
    session = model.session()
    with pytest.raises(UsageError, match="keep needs a pass"):
        session.keep(1)
    with pytest.raises(UsageError, match=r"0 … 319, got \[320\]"):
        session.score(Pass(np.array([320], np.int32), AT[:1]), AT[:1])
    with pytest.raises(TooLarge, match="position 512 is outside the context of 512"):
        session.score(Pass(TOKENS[:1], np.array([512], np.int32)), AT[:1])
    with pytest.raises(UsageError, match="truncate to 3 of 0"):
        session.truncate(3)
    session.score(Pass(TOKENS[:2], AT[3:5]), AT[:1])
    with pytest.raises(UsageError, match="must be at"):
        session.keep(2)
