"""What the agent's retriever has learnt, and how it is trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("icalendar")  # the agent's extra

from mezzotint.agent.choose import Chooser, hints
from mezzotint.agent.retrieve import Retriever, features
from mezzotint.agent.tool import Effect, Tool
from mezzotint.cli import run as command


def bare(name: str, description: str) -> Tool:
    parameters = {"type": "object", "properties": {}}
    return Tool(name, description, parameters, Effect.WRITES, act=lambda arguments, context: None)  # type: ignore[arg-type, return-value]


def test_features_are_words_stems_and_pairs() -> None:
    assert features("Reschedule it to 9, it!") == [
        "reschedule", "it", "to", "#", "resch~", "reschedule it", "it to", "to #", "# it",
    ]  # fmt: skip
    assert features("关灯") == ["关", "灯", "关 灯"]


@pytest.mark.parametrize(
    ("request_", "tool"),
    [
        ("The telly is far too loud, thirty percent", "set_volume"),
        ("I've got the dentist on Friday at ten, pencil it in", "create_event"),
        ("把这份旧清单删了吧，old.txt不要了", "delete_file"),
        ("不冷不热刚好，把卧室调到21度", "set_thermostat"),
    ],
)
def test_what_was_learnt_is_used(request_: str, tool: str) -> None:
    """With words that the hints do not have."""
    everything = Chooser.of([bare(name, "") for name in hints()])
    assert tool in [one.name for one in everything.choose(request_)]


def test_tools_that_were_not_learnt_are_known_by_their_words() -> None:
    mine = bare("water_plants", "Water the plants of a room.")
    chooser = Chooser.of([*(bare(name, "") for name in hints()), mine])
    assert mine in chooser.choose("The plants in the hall need water")
    assert mine not in chooser.choose("Move lunch to Friday")


def test_a_retriever_is_trained_from_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two tools by a word each, and requests of both; what was written is what was learnt."""
    words = {"set_light": "lamp", "play_music": "song"}
    lines = []
    for number in range(120):
        names = [["set_light"], ["play_music"], [*words]][number % 3]
        text = f"number {number} " + " and ".join(words[name] for name in names)
        target = "\n".join(json.dumps({name: {}}) for name in names)
        turns = [{"role": "system", "content": "Tools:"}, {"role": "user", "content": text}]
        lines.append(json.dumps({"messages": turns, "target": target}))
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    out = tmp_path / "retrieve.npz"
    assert command(["adapt", "tools", str(tmp_path / "train.jsonl"), str(out), "--held", "9"]) == 0
    assert "of 9 kept apart, 100.0% have all" in capsys.readouterr().out
    learnt = Retriever.read(out)
    for text, wanted in (("the lamp", {"set_light"}), ("a song and a lamp", set(words))):
        odds = learnt.odds(text)
        assert set(sorted(odds, key=lambda name: -odds[name])[: len(wanted)]) == wanted


def test_samples_that_say_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(
        '{"messages": [{"role": "system", "content": ""}], "target": "Hi"}'
    )
    assert command(["adapt", "tools", str(tmp_path / "train.jsonl"), str(tmp_path / "o.npz")]) == 2
    assert command(["adapt", "tools", str(tmp_path / "none.jsonl"), str(tmp_path / "o.npz")]) == 2
    assert not (tmp_path / "o.npz").exists()
