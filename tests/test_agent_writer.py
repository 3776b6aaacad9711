"""What the agent's model is given to read, on the real model."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from mezzotint.agent.tool import Effect, Outcome, Tool
from mezzotint.agent.writer import Writer, calls_in, system
from mezzotint.generate import Run, Step
from mezzotint.model import Model, load

NOW = datetime(2026, 12, 1, 9, 30)


def remind(when: dict[str, object]) -> Tool:
    properties = {"task": {"type": "string"}, "when": when}
    schema = {"type": "object", "properties": properties, "required": ["task", "when"]}
    return Tool(
        "remind", "Remind the user of something.", schema, Effect.WRITES, lambda *_: Outcome()
    )


@pytest.mark.parametrize(
    ("when", "structure", "told"),
    [
        ({"enum": ["2026-12-02T18:00"]}, True, False),
        ({"type": "string", "format": "date-time"}, True, True),
        ({"enum": ["2026-12-02T18:00"]}, False, True),  # nothing holds it to that
    ],
)
def test_the_time_is_read_where_a_date_is_open(
    smollm2_path: Path, when: dict[str, object], structure: bool, told: bool
) -> None:
    model = load(str(smollm2_path), quiet=True)
    assert isinstance(model, Model)
    read: set[str] = set()

    def watch(run: Run, step: Step) -> None:
        read.add(model.tokenizer.decode(run.canvas.tokens[: run.start].tolist()))

    tool = remind(when)
    request = {"role": "user", "content": "Remind me to buy milk tomorrow at six"}
    writer = Writer(model, structure=structure, watch=watch)
    text, _ = writer.write([system([tool], NOW), request], [tool], [[tool]])
    (prompt,) = read
    assert ("Now: Tue 2026-12-01 09:30" in prompt) == told
    assert "remind(task: str, when: " in prompt
    assert "buy milk" in prompt
    if structure:
        (call,) = calls_in(text)
        assert call.name == "remind"


def test_a_line_that_is_decided_reads_nothing(
    smollm2_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEZZOTINT_HOME", str(tmp_path))
    model = load(str(smollm2_path), quiet=True)
    assert isinstance(model, Model)
    writer, request = Writer(model), {"role": "user", "content": "Remind me to buy milk at six"}
    tool = remind({"enum": ["18:00"]})
    decided = replace(tool, parameters=_with_task(tool, {"enum": ["buy milk"]}))
    for one, passes in ((decided, False), (tool, True)):
        text, timing = writer.write([system([one], NOW), request], [one], [[one]])
        assert calls_in(text)[0].name == "remind"
        assert (timing.passes > 0) == passes
        assert (tmp_path / "prefixes").exists() == passes


def _with_task(tool: Tool, task: dict[str, object]) -> dict[str, object]:
    properties = {**tool.parameters["properties"], "task": task}
    return {**tool.parameters, "properties": properties}
