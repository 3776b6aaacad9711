"""The options that several commands share, each with its one sentence of help."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer

from mezzotint.errors import UsageError


class Backend(StrEnum):
    native = "native"
    reference = "reference"
    toy = "toy"


ModelName = Annotated[str, typer.Argument(help="A name of `mezzotint list`, or a path.")]
Threads = Annotated[int, typer.Option(help="Threads; 0 is one a physical core.")]
WeightsOption = Annotated[
    str, typer.Option("--weights", help="int4, int8, bf16 or fp32; int8/bf16 names the head apart.")
]
BackendOption = Annotated[Backend, typer.Option("--backend", help="Engine.")]
MaxTokens = Annotated[int, typer.Option(help="Tokens to write at most.")]
Policy = Annotated[
    str | None, typer.Option(help="Decoding rule, such as threshold:0.9; default: the family's.")
]
Temperature = Annotated[float | None, typer.Option(help="0 is greedy.")]
TopP = Annotated[float | None, typer.Option(help="Keep the likeliest tokens of this mass.")]
TopK = Annotated[int | None, typer.Option(help="Keep this many likeliest tokens; 0 is all.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same text.")]
Block = Annotated[int | None, typer.Option(help="Positions denoised together.")]
Cache = Annotated[
    str, typer.Option(help="For full attention: none, prefix or dual; prefix:8 refreshes.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no timing.")]


def read_text(argument: str | None, what: str) -> str:
    """The argument, or stdin if it is absent or "-". Raises UsageError if it is empty."""
    from mezzotint.text import text_from

    if argument is None or argument == "-":
        if argument is None and sys.stdin.isatty():
            raise UsageError(f"no {what}", f"give the {what} as an argument or on stdin")
        argument = text_from(sys.stdin.buffer.read(), "stdin").removesuffix("\n")
    if not argument:
        raise UsageError(f"the {what} is empty")
    return argument


def emit(value: object) -> None:
    """Print `value` as one line of JSON."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
