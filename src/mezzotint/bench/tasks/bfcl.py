"""The Berkeley function-calling leaderboard (v4, single turn), judged by its own checker.

Prompts, answers and checker are those of the package `bfcl-eval`. Two things are ours: the
tools are shown and called in the one format of `toolcall`, its types renamed to JSON
Schema's; and where no tool fits, an unreadable call is not prose. A score is thus comparable
with the leaderboard's in its tasks and its judge, not in its prompt.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from mezzotint import toolcall
from mezzotint.adapt.data.requests import NO_TOOL
from mezzotint.bench.tasks.calls import acted, judged, plain_tool
from mezzotint.bench.tasks.task import Grade, Suite, Task
from mezzotint.errors import UsageError
from mezzotint.toolcall import Call, Schema

CATEGORIES = {
    "simple_python": 400, "multiple": 200, "parallel": 200, "parallel_multiple": 200,
    "irrelevance": 240, "live_simple": 258,
}  # fmt: skip
PACKAGE = "bfcl-eval==2026.3.23"  # without what it asks for: every vendor's client
LONGEST = 512  # tokens: the longest right answer has some 300
_CONFIG = "bfcl_eval.constants.model_config"

Judge = Callable[..., Mapping[str, Any]]


def suites() -> list[Suite]:
    size = sum(CATEGORIES.values())
    needs, source = "package bfcl-eval", "Berkeley function-calling leaderboard v4"
    return [Suite("bfcl", "BFCL, single turn", source, "Apache-2.0", needs, size, 90, _load)]


def _load(data: Path) -> list[Task]:
    root = _package() / "data"
    return [
        task
        for category in CATEGORIES
        for task in _category(category, root, root / "possible_answer")
    ]


def _category(category: str, root: Path, answers: Path) -> list[Task]:
    file = f"BFCL_v4_{category}.json"
    gold = {}
    if category != "irrelevance":
        gold = {row["id"]: row["ground_truth"] for row in _rows(answers / file)}
    rows = _rows(root / file)
    return [_task(row, category, gold.get(row["id"], [])) for row in rows]


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _task(row: Mapping[str, Any], category: str, answers: Sequence[Any]) -> Task:
    tools = tuple(plain_tool(one) for one in row["function"])
    said = row["question"][0]
    state = "\n".join(turn["content"] for turn in said if turn["role"] == "system")
    messages = (
        {"role": "system", "content": toolcall.system(tools, state=state)},
        *(dict(turn) for turn in said if turn["role"] != "system"),
    )
    calls = [_first(answer, tools) for answer in answers]
    gold = toolcall.write(calls) if calls else NO_TOOL["en"]
    grade = partial(_graded, category, row["function"], answers, tools, calls)
    done = partial(acted, tools)
    return Task(f"bfcl/{row['id']}", "bfcl", category, messages, tools, gold, LONGEST, done, grade)


def _first(answer: Mapping[str, Mapping[str, Sequence[Any]]], tools: Sequence[Schema]) -> Call:
    """The first accepted value of each argument. "" says that it may be left out."""
    name, arguments = next(iter(answer.items()))
    schemas = {tool["name"]: tool["parameters"] for tool in tools}
    return Call(name, _chosen(arguments, schemas[name].get("required", ())))


def _chosen(accepted: Mapping[str, Sequence[Any]], needed: Sequence[str] = ()) -> dict[str, Any]:
    wanted = {key: some for key, some in accepted.items() if key in needed or "" not in some}
    values = {key: [one for one in some if one != ""] for key, some in wanted.items()}
    return {key: _accepted(some[0]) for key, some in values.items() if some}


def _accepted(value: Any) -> Any:
    """An accepted value; inside an object each field again lists what is accepted."""
    if isinstance(value, dict):
        return _chosen(value)
    return [_accepted(item) for item in value] if isinstance(value, list) else value


def _graded(
    category: str, functions: Sequence[Any], answers: Sequence[Any], tools: Sequence[Schema],
    wanted: Sequence[Call], text: str,
) -> Grade:  # fmt: skip
    return judged(text, wanted, tools, partial(_right, category, functions, answers))


def _right(
    category: str, functions: Sequence[Any], answers: Sequence[Any], made: Sequence[Call]
) -> bool:
    judge, python = _checker()
    calls = [{call.name: dict(call.arguments)} for call in made]
    try:
        return bool(judge(functions, calls, answers, python, category, "mezzotint")["valid"])
    except (ArithmeticError, AttributeError, LookupError, TypeError):
        return False  # the checker trips over values of a shape it does not expect


def _package() -> Path:
    spec = find_spec("bfcl_eval")
    if spec is None or spec.origin is None:
        raise UsageError(
            "the BFCL suite needs the package bfcl-eval", f"pip install --no-deps {PACKAGE}"
        )
    return Path(spec.origin).parent


@cache
def _checker() -> tuple[Judge, Any]:
    """The package's AST checker, and how it names Python.

    The checker asks the table of the leaderboard's models whether one writes dots as
    underscores, and that table imports every vendor's client: it gets a table of one model.
    """
    stub = ModuleType(_CONFIG)
    vars(stub)["MODEL_CONFIG_MAPPING"] = {"mezzotint": SimpleNamespace(underscore_to_dot=False)}
    sys.modules.setdefault(_CONFIG, stub)
    enums = import_module("bfcl_eval.constants.enums")
    checker = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")

    return checker.ast_checker, enums.Language.PYTHON
