"""Samples of Python: a docstring to its function, a bug to its repair, a rename, an example.

The functions are the standard library's own (PSF licence), as installed with the Python that
runs this, so another Python gives other samples. MBPP (CC BY 4.0): only tasks above 600.
"""

from __future__ import annotations

import ast
import json
import sysconfig
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mezzotint.adapt.data.requests import Sample

_FIRST_TRAINING_TASK = 601
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A top-level function. bare: its code without the docstring."""

    name: str
    code: str
    bare: str
    about: str


def functions() -> list[Function]:
    """Short documented functions of the standard library, in the order of their files."""
    root = Path(sysconfig.get_paths()["stdlib"])
    skipped = {"test", "tests", "site-packages", "idlelib", "lib2to3", "turtledemo", "__pycache__"}
    found = []
    for file in sorted(root.rglob("*.py")):
        if not skipped & set(file.relative_to(root).parts):
            found += _functions(file)
    return found


def _functions(file: Path) -> list[Function]:
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return []
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            about = (ast.get_docstring(node) or "").split("\n\n")[0]
            code = ast.unparse(node)
            if about and len(node.body) > 1:
                node.body = node.body[1:]
                bare = ast.unparse(node)
                if 40 < len(bare) < 500 and 15 < len(about) < 200 and about.isascii():
                    found.append(Function(node.name, code, bare, " ".join(about.split())))
    return found


def draw(found: Sequence[Function]) -> Callable[[Random], Sample | None]:
    """One of: write it from its docstring, repair an injected bug, rename a name in it."""

    def one(rng: Random) -> Sample | None:
        function = rng.choice(found)
        kind = rng.choice(["write", "write", "repair", "rename"])
        if kind == "write":
            head = function.bare.split("\n", 1)[0]
            return _sample(
                f"Write this Python function.\n{head}\n    # {function.about}", function.bare
            )
        if kind == "repair":
            wrong = broken(function.bare, rng)
            task = f"Fix the bug. It should: {function.about}"
            return _sample(f"{task}\n{wrong}", function.bare) if wrong else None
        return _rename(function, rng)

    return one


def broken(code: str, rng: Random) -> str | None:
    """`code` with one operator swapped for its neighbour; None if it has none."""
    tree = ast.parse(code)
    places = [
        node for node in ast.walk(tree)
        if isinstance(node, _OPERATING) and type(_operator(node)) in _SWAPS
    ]  # fmt: skip
    if not places:
        return None
    node = rng.choice(places)
    other = _SWAPS[type(_operator(node))]()
    if isinstance(node, ast.Compare):
        node.ops = [other, *node.ops[1:]]  # type: ignore[list-item]
    else:
        node.op = other  # type: ignore[assignment]
    return ast.unparse(tree)


_OPERATING = (ast.BinOp, ast.AugAssign, ast.BoolOp, ast.Compare)


def _operator(node: ast.BinOp | ast.AugAssign | ast.BoolOp | ast.Compare) -> ast.AST:
    """The node's operator; the first of a chain of comparisons."""
    return node.ops[0] if isinstance(node, ast.Compare) else node.op


def _rename(function: Function, rng: Random) -> Sample | None:
    found = renamed(function.bare, rng)
    if found is None:
        return None
    old, new, code = found
    return _sample(f"Rename `{old}` to `{new}`.\n{function.bare}", code)


def renamed(code: str, rng: Random) -> tuple[str, str, str] | None:
    """An argument's old and new name, and `code` with it renamed; None if that is not safe."""
    tree = ast.parse(code)
    names = sorted({node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} - {"self"})
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(names)
    new = rng.choice(["value", "item", "source", "other", "text", "path", "count", "data"])
    keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    free = [name for name in names if name not in keywords]
    if not free or new in used:
        return None
    old = rng.choice(free)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == old:
            node.arg = new
        elif isinstance(node, ast.Name) and node.id == old:
            node.id = new
    return old, new, ast.unparse(tree)


def mbpp(file: Path) -> list[tuple[str, str]]:
    """(task with a test, solution) of the tasks that may be trained on."""
    return [
        (
            f"{row['prompt']}\nIt must pass: {row['test_list'][0]}",
            textwrap.dedent(row["code"]).strip(),
        )
        for row in json.loads(file.read_text("utf-8"))
        if row["task_id"] >= _FIRST_TRAINING_TASK
    ]


def draw_tasks(tasks: Sequence[tuple[str, str]]) -> Callable[[Random], Sample]:
    def one(rng: Random) -> Sample:
        return _sample(*rng.choice(tasks))

    return one


def _sample(task: str, code: str) -> Sample:
    return Sample("code", "en", [{"role": "user", "content": task}], [], f"```python\n{code}\n```")
