"""The options that several commands share, each with its one sentence of help."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mezzotint.errors import UsageError

if TYPE_CHECKING:
    from mezzotint.constraint import Grammar


class Backend(StrEnum):
    native = "native"
    reference = "reference"
    toy = "toy"


ModelName = Annotated[str, typer.Argument(help="A name of `mezzotint list`, or a path.")]
Adapter = Annotated[Path | None, typer.Option(help="Folder of an adapter to merge in.")]
Threads = Annotated[int, typer.Option(help="Threads; 0 is one a physical core.")]
_WEIGHTS = typer.Option("--weights", help="int4, int6, int8, bf16 or fp32, or BODY/HEAD.")
Weights = Annotated[str, _WEIGHTS]
WeightsOption = Annotated[str | None, _WEIGHTS]
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
Schema = Annotated[Path | None, typer.Option(help="JSON Schema file that the text keeps to.")]
Regex = Annotated[str | None, typer.Option(help="Pattern that the whole text matches.")]
Choice = Annotated[str | None, typer.Option(help="Texts to choose from: yes|no|maybe.")]
Tools = Annotated[Path | None, typer.Option(help="File with a JSON list of tools to call.")]
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


def read_grammar(
    schema: Path | None, regex: str | None, choice: str | None, tools: Path | None
) -> Grammar | None:
    """What the text must keep to, if anything. Raises UsageError for more than one of them."""
    from mezzotint import constraint

    given = {"--schema": schema, "--regex": regex, "--choice": choice, "--tools": tools}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} at once", "a text keeps to one of them")
    if schema is not None:
        return constraint.json_schema(_read_json(schema))
    if regex is not None:
        return constraint.regex(regex)
    if choice is not None:
        return constraint.choice(choice.split("|"))
    if tools is None:
        return None
    listed = _read_json(tools)
    if not isinstance(listed, list) or not all(isinstance(tool, dict) for tool in listed):
        raise UsageError(f"{tools} is not a JSON list of tools")
    return constraint.tools(listed)


def _read_json(path: Path) -> Any:
    from mezzotint.text import text_from

    try:
        return json.loads(text_from(path.read_bytes(), str(path)))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from None


def emit(value: object) -> None:
    """Print `value` as one line of JSON."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
