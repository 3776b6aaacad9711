"""Commands that write a model for other programs: export gguf."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mezzotint.builtin import DEFAULT
from mezzotint.cli import options as o
from mezzotint.errors import UsageError


def gguf(
    model_and_out: Annotated[
        list[str],
        typer.Argument(metavar="[MODEL] OUT", help=f"Model (default: {DEFAULT}) and new file."),
    ],
    kind: Annotated[
        str, typer.Option("--type", help="f32, f16, bf16, q8_0, q5_1, q5_0, q4_1 or q4_0.")
    ] = "bf16",
    adapter: o.Adapter = None,
    quiet: o.Quiet = False,
) -> None:
    """Write a model, its adapter merged, as a GGUF file for llama.cpp (decoded as AR there)."""
    from mezzotint.checkpoint.gguf_write import write_gguf
    from mezzotint.model import open_named
    from mezzotint.progress import bar

    if len(model_and_out) > 2:
        raise UsageError(f"{len(model_and_out)} arguments", "give a model and a file, or a file")
    *named, out = model_and_out
    opened = open_named(named[0] if named else DEFAULT, quiet=quiet, adapter=adapter)
    with bar(f"writing {kind}", quiet, of_bytes=False) as report:
        write_gguf(opened, Path(out), kind, report)
