"""Revising a text: what must stay stays, all that differs is told, and it costs what it should."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from mezzotint.backend.toy import MASK, STOP, ToyModel, ToySession, ToyTokenizer, load
from mezzotint.conversation import chat_ids
from mezzotint.errors import TooLarge, UsageError
from mezzotint.family import Family
from mezzotint.fit import Branch, Reader
from mezzotint.generate import Options, generate
from mezzotint.pieces import Piece, again, pieces, rules, words
from mezzotint.revise import Bounds, Change, Revision, revise
from mezzotint.rewrite import asked, rewrite

CAUSAL = ["toy-window", "toy-ar", "toy-masks"]
SAYINGS = ["the ", "cat ", "Sat, ", "on 3.5 ", "a mat.\n", "你好", "é ", "  x-y"]
EAGER = Bounds(fell=-99.0, expected=-99.0, gain=-99.0, back=-99.0, weighed=24)
"""Every word is doubted and replaced if anything is likelier."""


def some_text(rng: random.Random) -> str:
    return "".join(rng.choice(SAYINGS) for _ in range(rng.randint(0, 9)))


def some_spans(rng: random.Random, text: str, most: int) -> list[tuple[int, int]]:
    """Ascending spans, none of which overlaps another."""
    ends = sorted(rng.randint(0, len(text)) for _ in range(2 * rng.randint(0, most)))
    return list(zip(ends[::2], ends[1::2], strict=True))


def taken_back(revision: Revision) -> tuple[str, list[tuple[int, int]]]:
    """The text before, from the new one and its spans; and where in it the spans were."""
    text, at, was = revision.text, 0, []
    for span in reversed(revision.spans):
        assert text[span.start : span.end] == span.after
        text = text[: span.start] + span.before + text[span.end :]
    for span in revision.spans:
        was.append((span.start - at, span.start - at + len(span.before)))
        at += len(span.after) - len(span.before)
    return text, was


@pytest.mark.parametrize("seed", range(12))
def test_only_what_is_told_changes_and_what_must_stay_stays(seed: int) -> None:
    rng = random.Random(seed)
    model, text = replace(load(CAUSAL[seed % 3]), seed=seed), some_text(rng)
    spans = some_spans(rng, text, 4)
    keep = [span for span in spans if rng.random() < 0.5]
    edits = [Change(*span, rng.choice(SAYINGS)) for span in spans if span not in keep]
    for revision in (
        revise(model, text, edits, keep, EAGER),
        rewrite(model, text, "Make it better.", keep),
    ):
        before, touched = taken_back(revision)
        assert before == text
        for first, last in keep:
            overlaps = [max(start, first) < min(stop, last) for start, stop in touched]
            inside = [first < start < last for start, _ in touched]
            assert not any(overlaps + inside)
        assert len(revision.text) < 40 * (len(text) + 20)


def test_the_edits_are_there_as_they_were_made() -> None:
    text = "one two three"
    made = [Change(0, 3, "1"), Change(7, 7, "!"), Change(8, 13, "")]
    revision = revise(load("toy-window"), text, made, keep=[(4, 7)])
    assert revision.text == "1 two! "
    assert [span.why for span in revision.spans] == ["edit", "edit", "edit"]


def test_an_edit_that_changes_nothing_costs_nothing() -> None:
    revision = revise(load("toy-window"), "one two three", [Change(4, 7, "two")])
    assert (revision.text, revision.spans, revision.passes) == ("one two three", (), 0)


def test_an_edit_at_the_end_costs_the_check_and_reuses_the_rest() -> None:
    text = "one two three four five six seven"
    bounds = Bounds(reach=0)
    revision = revise(load("toy-window"), text, [Change(28, 33, "eight")], bounds=bounds)
    assert revision.text == "one two three four five six eight"
    assert revision.reused >= 28
    assert revision.passes <= 4  # both texts: what comes before the edit, and the rest


def copying() -> ToyModel:
    """A causal model that expects, after "is ", the byte which followed the first "is "."""

    class Session(ToySession):
        held: np.ndarray = np.empty(0, np.int32)

        def score(self, rows, want):  # type: ignore[no-untyped-def]
            tokens = np.concatenate((self.held[: self.length], rows.tokens))
            matrix = rows.visible if not isinstance(rows.visible, str) else None
            super().score(rows, want)
            self.fresh = rows.tokens
            made = []
            for row in want.tolist():
                sees = np.arange(row + 1) if matrix is None else np.flatnonzero(matrix[row])
                made.append(expected(tokens[: self.length].tolist() + rows.tokens[sees].tolist()))
            return np.array(made, np.float32).reshape(len(want), self.vocab)

        def keep(self, count):  # type: ignore[no-untyped-def]
            self.held = np.concatenate((self.held[: self.length], self.fresh[:count]))
            super().keep(count)

        def fork(self):  # type: ignore[no-untyped-def]
            twin = super().fork()
            twin.held = self.held
            return twin

    class Model(ToyModel):
        def session(self) -> ToySession:
            return Session(STOP + 1)

    return Model(family=load("toy-window").family)


def expected(seen: list[int]) -> np.ndarray:
    logits = np.zeros(STOP + 1, np.float32)
    logits[[MASK, STOP]] = -50.0
    text = bytes(t for t in seen if t < 256)
    first = text.find(b"is ")
    if text.endswith(b"is ") and first < len(text) - 3:
        logits[text[first + 3]] = 12.0
    elif text.endswith(b"is"):
        logits[ord(" ")] = 12.0
    return logits


def test_a_word_that_followed_from_the_edit_is_changed_and_no_other() -> None:
    text = "It is A. Then he went out. It is A again, and A stays A."
    revision = revise(copying(), text, [Change(6, 7, "B")])
    assert revision.text == "It is B. Then he went out. It is B again, and A stays A."
    assert [(s.start, s.before, s.after) for s in revision.spans] == [(6, "A", "B"), (33, "A", "B")]
    assert revision.spans[1].why.startswith("repeats the edit")
    kept = revise(copying(), text, [Change(6, 7, "B")], keep=[(33, 34)])
    assert kept.text == "It is B. Then he went out. It is A again, and A stays A."


def test_branches_score_as_if_each_were_read_alone() -> None:
    text, other = list(b"a text of some length"), list(b"and another")
    reader = Reader(load("toy-window").session())
    read = reader.read(text, 2)
    weighed = reader.weigh([Branch(6, text[6:12]), Branch(3, text[3:5]), Branch(9, other)])
    alone = Reader(load("toy-window").session()).read(text[:9] + other, 9)
    expected = [read.sum(6, 12), read.sum(3, 5), alone.sum(9, 9 + len(other))]
    assert weighed == pytest.approx(expected, rel=1e-5)


def test_what_is_read_again_is_not_computed_again() -> None:
    text = list(b"a text of some length")
    reader = Reader(load("toy-window").session())
    first = reader.read(text, 1)
    assert reader.rows == len(text) - 1
    changed = [*text[:15], *b"bread"]
    again_ = reader.read(changed, 12)
    assert reader.rows == len(text) - 1 + len(changed) - 12
    assert again_.logp[:3] == pytest.approx(first.logp[11:14])


@pytest.mark.parametrize("text", ["", "At 10:30, in Paris.", "a_b 3pm\n\n  你好 don't\t1 ", "\n x"])
def test_words_are_the_whole_text(text: str) -> None:
    assert "".join(words(text)) == text
    assert "".join(piece.old for piece in pieces(text, (), ())) == text


def test_edits_widen_to_words_and_are_done_again_as_words() -> None:
    found = pieces("my cats, Cats", [Change(3, 6, "dog")], ())
    assert [(p.old, p.new) for p in found[:2]] == [("my", "my"), (" cats", " dogs")]
    assert again(rules(found[1])[0], found[3:]) == (1, " Dogs")
    joined = pieces("a car", [Change(5, 5, "t")], ())
    assert [(p.old, p.new) for p in joined] == [("a", "a"), (" car", " cart")]
    assert rules(Piece(" Karen Miller", " Susan Brown"))[1:] == [
        rules(Piece("Karen", "Susan"))[0],
        rules(Piece("Miller", "Brown"))[0],
    ]


@pytest.mark.parametrize(
    ("edits", "keep", "said"),
    [
        ([Change(2, 99, "x")], [], "2–99 is not within the text of 7"),
        ([Change(3, 2, "x")], [], "3–2"),
        ([Change(0, 3, "x"), Change(2, 4, "y")], [], "overlap at character 2"),
        ([Change(0, 3, "x")], [(2, 5)], "touches what must stay"),
        ([], [(0, 99)], "0–99"),
    ],
)
def test_impossible_requests_are_refused(
    edits: list[Change], keep: list[tuple[int, int]], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        revise(load("toy-window"), "one two", edits, keep)


def test_a_model_without_causal_rows_and_a_text_too_long_are_refused() -> None:
    with pytest.raises(UsageError, match="no causal rows"):
        revise(load("toy"), "one", [Change(0, 1, "x")])
    short = replace(load("toy-window"), context=40)
    with pytest.raises(TooLarge, match="the context is 40"):
        revise(short, "one " * 20, [Change(0, 1, "x")])
    with pytest.raises(TooLarge, match="the context is 40"):
        rewrite(short, "one " * 5, "x")
    with pytest.raises(UsageError, match="instruction is empty"):
        rewrite(short, "one", " ")


@pytest.mark.parametrize("name", CAUSAL)
def test_a_rewrite_is_the_plain_answer(name: str) -> None:
    model = load(name)
    made = rewrite(model, "some text", "Say more.").text
    prompt = chat_ids(model.tokenizer, asked("some text", "Say more."))
    assert made == generate(model, prompt, Options(len(made), "left-to-right")).text


@dataclass(frozen=True)
class Decided:
    """A model that answers `answer` after a prompt of `start` tokens, whatever they are."""

    answer: str
    start: int
    family: Family
    context: int = 4096
    tokenizer: ToyTokenizer = field(default_factory=ToyTokenizer)

    def session(self) -> ToySession:
        said = [*self.answer.encode(), STOP]

        def row(position: int) -> np.ndarray:
            logits = np.zeros(STOP + 1, np.float32)
            logits[said[max(min(position + 1 - self.start, len(said) - 1), 0)]] = 20.0
            return logits

        return ToySession(STOP + 1, logits=row)


@pytest.mark.parametrize(
    ("new", "most"),
    [
        ("the cat sat on the mat, and the dog lay down near the door", 4),
        ("the cat lay on the mat, and the dog lay down near the door", 7),
        ("the cat sat on the big mat, and the dog lay down near the door", 12),
        ("the cat sat on the mat, and lay down near the door", 8),
    ],
)
def test_what_a_rewrite_leaves_alone_costs_few_passes(new: str, most: int) -> None:
    old = "the cat sat on the mat, and the dog lay down near the door"
    start = sum(len(m["content"]) + 1 for m in asked(old, "x"))
    model = Decided(new, start, replace(load("toy-ar").family, mask_id=None))
    keep = [(0, 3), (25, 27)] if "big" not in new else []  # what the model leaves alone anyway
    revision = rewrite(model, old, "x", keep)
    assert revision.text == new
    assert revision.passes <= most
    assert taken_back(revision)[0] == old


def test_the_command_splices_a_file(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("Come on Monday.\n\nOn Monday we sing.\n", "utf-8")

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "mezzotint.cli", "revise", str(file), *more)
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    made = run("--model", "toy-ar", "--replace", "Monday=Friday", "--keep", "Monday we sing")
    assert made.stdout == "Come on Friday.\n\nOn Monday we sing.\n"
    assert "1: - 'Monday' + 'Friday'  (edit)" in made.stderr
    assert run("--model", "toy-ar").returncode == 2
    missing = run("--model", "toy-ar", "--replace", "Sunday=Friday")
    assert (missing.returncode, "no 'Sunday'" in missing.stderr) == (2, True)
