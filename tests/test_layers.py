"""Imports point down: a module imports its own layer's seams or lower, never up."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src/mezzotint"
LAYERS = (
    "errors atomic progress canvas schedule",
    "family sampling download chat text store toolcall builtin pieces",
    "policy checkpoint backend sources constraint",
    "plan pull costs prefixes fit redraft",
    "decode options auto",
    "generate model",
    "conversation revise rewrite",
    "terminal doctor adapt agent",
    "serve",
    "bench",  # measures the others, the agent too
    "cli",
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}


def imported(file: Path) -> set[str]:
    """First names below `mezzotint` that the file imports, lazily or not."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    below = {name.split(".")[1] for name in names if name.startswith("mezzotint.")}
    return below - {"_core"}


def test_imports_point_down() -> None:
    wrong = []
    for file in sorted(ROOT.rglob("*.py")):
        module = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if module != "__init__":
            above = {n for n in imported(file) if RANK[n] > RANK[module]}
            wrong += [f"{file.relative_to(ROOT)} imports {name}" for name in above]
    assert not wrong


def test_torch_and_transformers_are_optional() -> None:
    """Only the reference backend and training may import torch when they are imported."""
    for file in ROOT.rglob("*.py"):
        if file.name == "reference.py" or file.parent.name == "adapt":
            continue
        top = [n for n in ast.parse(file.read_text("utf-8")).body if isinstance(n, ast.Import)]
        top += [n for n in ast.parse(file.read_text("utf-8")).body if isinstance(n, ast.ImportFrom)]  # type: ignore[misc]
        text = " ".join(ast.unparse(n) for n in top)
        assert "torch" not in text, file
        assert "transformers" not in text, file
        assert "llama_cpp" not in text, file
