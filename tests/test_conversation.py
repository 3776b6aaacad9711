"""Turns share a session, and say what they would have said without sharing."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.text import Text

from mezzotint import terminal
from mezzotint.backend import toy
from mezzotint.canvas import DRAFT, Canvas, Edit
from mezzotint.conversation import Conversation, chat_ids
from mezzotint.decode import Step
from mezzotint.generate import Options, generate


@pytest.mark.parametrize("name", toy.FAMILIES)
def test_a_kept_session_changes_no_answer(name: str) -> None:
    model, options = toy.load(name), Options(max_tokens=12)
    talk = Conversation(model, options)
    for text in ("one", "two, longer than the first", "three"):
        run = talk.ask(text)
        reused = run.session.length
        talk.answered(run.result())
        fresh = generate(model, chat_ids(model.tokenizer, talk.messages[:-1]), options)
        assert talk.messages[-1]["content"] == fresh.text
        if text != "one" and name not in ("toy", "toy-dream"):
            assert reused > 0


def test_an_unfinished_turn_leaves_nothing_behind() -> None:
    model, options = toy.load("toy-ar"), Options(max_tokens=12)
    talk, calm = Conversation(model, options), Conversation(model, options)
    next(iter(talk.ask("stop me")))
    talk.messages.clear()
    assert talk.ask("again").result().text == calm.ask("again").result().text


def test_render_tells_fresh_written_draft_and_hole_apart() -> None:
    tokenizer = toy.ToyTokenizer()
    canvas = Canvas.of([list(b">"), 50], toy.MASK)
    canvas = canvas.apply(Edit.write([1, 2], list(b"ab"), 0.9))
    edit = Edit.write([3], [ord("c")], 0.9) + Edit.write([4], [ord("d")], 0.3, DRAFT)
    shown = terminal.render(Step(edit, canvas.apply(edit), 1, 0.0), tokenizer, 1, 51)
    assert shown.plain == "abcd" + "·" * terminal.HOLES
    styles = [(s.start, s.end, s.style) for s in shown.spans if s.style]
    assert styles == [
        (2, 3, terminal.FRESH),
        (3, 4, terminal.STYLES[DRAFT]),
        (4, 4 + terminal.HOLES, "dim"),
    ]
    assert isinstance(shown, Text)


def test_a_model_cannot_steer_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Evil(toy.ToyTokenizer):
        def decode(self, tokens: object) -> str:
            return "a\x1b]0;owned\x07b\n"

    model = toy.ToyModel(tokenizer=Evil())
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    talk = Conversation(model, Options(max_tokens=4))
    terminal.show(talk.ask("x"), 2, 6)
    assert capsys.readouterr().out == "a�]0;owned�b\n\n"
