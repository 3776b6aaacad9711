"""HammerBench's samples: a phone's assistant, English and Chinese, one turn.

Perfect: the user tells all a tool needs. Imperfect: only part of it; the call holds what was
told, so that every argument is shown as optional there. Irrelevant: the right tool is not
among those shown, and a call is wrong. Arguments are compared like our own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data.requests import NO_TOOL
from mezzotint.bench.tasks.calls import call_task, plain_tool
from mezzotint.bench.tasks.task import Suite, Task, shared

_PARTS = {"perfect": "ST_Perfect", "imperfect": "ST_Imperfect", "irrelevant": "ir_ST_Perfect"}


def suites() -> list[Suite]:
    source, licence, needs = "MadeAgents/HammerBench @ cdbe885", "Apache-2.0", "shared data"
    return [
        Suite(
            f"hammer-{language}", f"HammerBench samples, {name}", source, licence, needs,
            300, 45, partial(_load, language),
        )
        for language, name in {"en": "English", "zh": "Chinese"}.items()
    ]  # fmt: skip


def _load(language: str, data: Path) -> list[Task]:
    found: list[Task] = []
    for group, part in _PARTS.items():
        file = shared(data, f"eval/hammerbench/{language}_{part}.sample.json")
        for row in json.loads(file.read_text("utf-8")):
            found.append(_task(f"hammer-{language}", len(found), group, row))
    return found


def _task(suite: str, number: int, group: str, row: Mapping[str, Any]) -> Task:
    """The rows' second message is the call that the source holds right."""
    tools = [plain_tool(tool) for tool in row["multiple_tools"]]
    if group == "imperfect":
        tools = [{**tool, "parameters": {**tool["parameters"], "required": []}} for tool in tools]
    asked, answer = row["messages"]
    messages = [{"role": "system", "content": toolcall.system(tools)}, asked]
    call = toolcall.Call(answer["content"]["name"], answer["content"]["arguments"])
    gold = NO_TOOL[suite[-2:]] if group == "irrelevant" else toolcall.write([call])
    return call_task(suite, number, group, messages, tools, gold)
