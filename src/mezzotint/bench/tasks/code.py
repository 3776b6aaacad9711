"""Python with a hole, Python with a bug, Python with a name to change; run, not read.

MBPP's test ids and HumanEval, with their own tests, in the sandbox. Which lines are missing
and which operator is wrong is drawn from each problem's name; code.toml leaves out those
whose tests pass all the same. An answer may be the missing lines or the whole program,
fenced or not, and its indentation may be its own.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import textwrap
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from random import Random

from mezzotint.adapt.data.code import broken, renamed
from mezzotint.bench import sandbox
from mezzotint.bench.tasks.task import Grade, Suite, Task, shared, whole_turn

_MBPP = "train/sanitized_mbpp.json"
_HUMANEVAL = "eval/humaneval/HumanEval.jsonl.gz"
_TESTED = range(11, 511)  # MBPP's ids for testing; the others are trained on
_HOLE = "# missing"
_FENCE = re.compile(r"```[a-z]*\n(.*?)(?:```|\Z)", re.DOTALL)
_WHOLE = re.compile(r"^(def|import|from) ", re.MULTILINE)
_FEW, _MANY = 256, 512  # tokens of some lines, of a program


@dataclass(frozen=True, slots=True)
class Problem:
    """head: what comes before the lines that may be missing. checks: run after the program."""

    name: str
    about: str
    head: str
    body: str
    checks: str


def suites() -> list[Suite]:
    mbpp, needs = "MBPP sanitised, ids 11-510", "shared data; the sandbox"
    return [
        Suite(
            "infill", "Missing lines of Python", f"{mbpp}; HumanEval", "CC BY 4.0; MIT", needs,
            631, 40, partial(_load, "infill"),
        ),
        Suite(
            "edit", "Small edits of Python", mbpp, "CC BY 4.0", needs,
            387, 40, partial(_load, "edit"),
        ),
    ]  # fmt: skip


def _load(suite: str, data: Path) -> list[Task]:
    sandbox.available()
    mbpp = list(_mbpp(shared(data, _MBPP)))
    some = [*_humaneval(shared(data, _HUMANEVAL)), *mbpp] if suite == "infill" else mbpp
    makers = (_line, _lines) if suite == "infill" else (_repair, _rename)
    with warnings.catch_warnings(action="ignore"):  # the sources' own escapes
        drawn = [task for problem in some for maker in makers if (task := maker(problem))]
    return [task for task in drawn if task.id not in _left_out()]


@cache
def _left_out() -> frozenset[str]:
    text = (files("mezzotint.bench.tasks") / "code.toml").read_text("utf-8")
    return frozenset(tomllib.loads(text)["left_out"])


def _mbpp(file: Path) -> Iterator[Problem]:
    for row in json.loads(file.read_text("utf-8")):
        if row["task_id"] in _TESTED:
            about = row["prompt"].strip()
            lines = textwrap.dedent(row["code"].replace("\r", "")).rstrip().split("\n")
            body = "\n".join(line.rstrip() for line in lines)
            checks = "\n".join([*row["test_imports"], *row["test_list"]])
            head = f"# {about}\n# {row['test_list'][0]}\n"
            yield Problem(f"mbpp-{row['task_id']}", about, head, body, checks)


def _humaneval(file: Path) -> Iterator[Problem]:
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        row = json.loads(line)
        name = row["task_id"].lower().replace("/", "-")
        checks = f"{row['test']}\ncheck({row['entry_point']})"
        body = row["canonical_solution"].rstrip()
        yield Problem(name, "", row["prompt"], body, checks)


def _line(problem: Problem) -> Task | None:
    return _infill(problem, "line", 1)


def _lines(problem: Problem) -> Task | None:
    return _infill(problem, "lines", Random(problem.name).choice([2, 3]))


def _infill(problem: Problem, group: str, count: int) -> Task | None:
    """`count` lines of the body in a row are missing, none of them blank, a comment or a `def`."""
    lines = problem.body.split("\n")
    spans = [
        range(start, start + count)
        for start in range(len(lines) - count + 1)
        if all(_maskable(line) for line in lines[start : start + count])
    ]
    if not spans or (count > 1 and len(lines) < 2 * count):
        return None
    span = Random(f"{problem.name}/{group}").choice(spans)
    before = problem.head + "".join(f"{line}\n" for line in lines[: span.start])
    after = "".join(f"\n{line}" for line in lines[span.stop :]) + "\n"
    gold = "\n".join(lines[span.start : span.stop])
    indent = gold[: len(gold) - len(gold.lstrip())]
    shown = f"```python\n{before}{indent}{_HOLE}{after}```"
    ask = f"Write the lines of this program that stand where it says `{_HOLE}`, and only those."
    grade = partial(_filled, problem, before, after, indent)
    return Task(
        f"infill/{problem.name}-{group}", "infill", f"{problem.name.split('-')[0]}-{group}",
        ({"role": "user", "content": f"{ask}\n{shown}"},), (), gold, _FEW, whole_turn, grade,
        parts=(before, None, after),
    )  # fmt: skip


def _maskable(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(("#", "def ", "import ", "from ", '"""', "@"))


def _filled(problem: Problem, before: str, after: str, indent: str, text: str) -> Grade:
    lines = code_in(text)
    if _WHOLE.search(lines):  # the program, not the lines: no such line is ever missing
        return _run(problem.checks, f"{problem.head}\n{lines}")
    fits = [lines, indent + lines, textwrap.indent(lines, indent)]
    programs = [f"{before}{fit}{after}" for fit in fits]
    return _run(problem.checks, next(filter(compiles, programs), ""))


def _repair(problem: Problem) -> Task | None:
    wrong = broken(problem.body, Random(f"{problem.name}/repair"))
    if wrong is None:
        return None
    ask = f"Fix the bug. It should: {problem.about}\n{wrong}"
    return _edit(problem, "repair", ask, problem.body)


def _rename(problem: Problem) -> Task | None:
    found = renamed(problem.body, Random(f"{problem.name}/rename"))
    if found is None:
        return None
    old, new, code = found
    ask = f"Rename `{old}` to `{new}`.\n{ast.unparse(ast.parse(problem.body))}"
    return _edit(problem, "rename", ask, code)


def _edit(problem: Problem, group: str, ask: str, gold: str) -> Task:
    grade = partial(_repaired, problem.checks) if group == "repair" else partial(_renamed, gold)
    return Task(
        f"edit/{problem.name}-{group}", "edit", group, ({"role": "user", "content": ask},), (),
        f"```python\n{gold}\n```", _MANY, whole_turn, grade,
    )  # fmt: skip


def _repaired(checks: str, text: str) -> Grade:
    return _run(checks, code_in(text))


def _renamed(gold: str, text: str) -> Grade:
    """Right if nothing but the name has changed: the same program, whatever its layout."""
    program = code_in(text)
    if not compiles(program):
        return Grade(False, False, "not Python")
    same = ast.dump(ast.parse(program)) == ast.dump(ast.parse(gold))
    return Grade(same, True, "" if same else "another program")


def _run(checks: str, program: str) -> Grade:
    if not program.strip() or not compiles(program):
        return Grade(False, False, "not Python")
    outcome = sandbox.execute(program, checks)
    return Grade(outcome.passed, True, outcome.fault)


def code_in(text: str) -> str:
    """The code of an answer: what its first fence holds, or all of it; outer newlines off."""
    found = _FENCE.search(text)
    return (found[1] if found else text).strip("\n").rstrip()


def compiles(program: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(program, "program", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
