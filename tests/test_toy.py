"""The toy session obeys the Session law, and notices when it is broken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.backend import Pass, extend
from mezzotint.backend.toy import ToySession, ToyTokenizer, load
from mezzotint.errors import UsageError

tokens = st.lists(st.integers(0, 7), min_size=2, max_size=12)


def ids(values: object) -> np.ndarray:
    return np.asarray(values, np.int32)


def causal(text: list[int]) -> np.ndarray:
    """Logits of every row, with nothing cached."""
    at = ids(range(len(text)))
    return ToySession(8).score(Pass(ids(text), at), at)


@given(tokens, st.data())
def test_cached_rows_are_as_good_as_rows_in_the_pass(text: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(text) - 1))
    session = ToySession(8)
    extend(session, text[:cut], chunk=3)
    at = ids(range(cut, len(text)))
    rows = session.score(Pass(ids(text[cut:]), at), ids(range(len(at))))
    assert np.array_equal(rows, causal(text)[cut:])


@given(tokens, st.data())
def test_truncate_then_extend_is_never_having_extended(
    text: list[int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(text)))
    session = ToySession(8)
    extend(session, [1, 2, 3] if cut == 0 else [*text[:cut], 7, 7])
    session.truncate(cut)
    logits = extend(session, text[cut:])
    if cut < len(text):
        assert logits is not None
        assert np.array_equal(logits, causal(text)[-1])
    assert session.length == len(text)


def test_forks_do_not_see_each_other() -> None:
    session = ToySession(8)
    extend(session, [1, 2])
    fork = session.fork()
    extend(session, [3])
    extend(fork, [4])
    assert np.array_equal(extend(session, [5]), causal([1, 2, 3, 5])[-1])
    assert np.array_equal(extend(fork, [5]), causal([1, 2, 4, 5])[-1])


def test_a_row_depends_on_what_it_sees_and_on_nothing_else() -> None:
    at, want = ids([0, 1, 2]), ids([1])
    see = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1]], bool)
    row = ToySession(8).score(Pass(ids([1, 2, 3]), at, see), want)
    same = ToySession(8).score(Pass(ids([1, 2, 9]), at, "causal"), want)
    assert not np.array_equal(row, same)  # row 0, which it sees, saw another row 2
    see[0, 2] = False
    row = ToySession(8).score(Pass(ids([1, 2, 3]), at, see), want)
    assert np.array_equal(row, same)
    swapped = ToySession(8).score(Pass(ids([2, 1]), ids([1, 0]), "full"), ids([0]))
    assert not np.array_equal(swapped, ToySession(8).score(Pass(ids([1, 2]), at[:2], "full"), want))


def test_hidden_cached_rows_are_not_seen() -> None:
    session = ToySession(8)
    extend(session, [1, 2, 3], "full")
    rows = Pass(ids([5]), ids([3]), hide=(1, 3))
    other = ToySession(8)
    extend(other, [1, 2, 3], "full")
    other.truncate(1)
    assert np.array_equal(
        session.score(rows, ids([0])), other.score(Pass(ids([5]), ids([3])), ids([0]))
    )


def test_keep_wants_the_rows_that_follow_the_cache() -> None:
    session = ToySession(8)
    with pytest.raises(UsageError, match="keep"):
        session.keep(1)
    session.score(Pass(ids([1, 2]), ids([0, 2])), ids([]))
    with pytest.raises(UsageError, match="keep"):
        session.keep(2)
    session.keep(1)
    with pytest.raises(UsageError, match="keep"):
        session.keep(1)  # the pass is used up
    with pytest.raises(UsageError, match="outside"):
        session.truncate(2)


def test_fixed_logits_and_seed() -> None:
    session = ToySession(3, logits=lambda p: [p, 0, 1])
    assert session.score(Pass(ids([0, 0]), ids([0, 1])), ids([1])).tolist() == [[1.0, 0.0, 1.0]]
    at = ids([0])
    a, b = (ToySession(8, seed).score(Pass(at, at), at) for seed in (0, 1))
    assert not np.array_equal(a, b)


def test_tokenizer_and_load() -> None:
    text = "Grüße, 世界"
    assert ToyTokenizer().decode([*ToyTokenizer().encode(text), 256, 257]) == text
    assert load("toy-ar").family.name == "toy-ar"
    with pytest.raises(UsageError, match="no toy model 'x'"):
        load("x")
