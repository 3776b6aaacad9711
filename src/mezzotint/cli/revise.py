"""The command `revise`: change a text here, and see what else had to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mezzotint.cli import options as o
from mezzotint.errors import UsageError

if TYPE_CHECKING:
    from mezzotint.revise import Change, Revision


def revise(
    file: Annotated[str, typer.Argument(help="File with the text; - is stdin.")],
    replace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW", help="Replace the first OLD with NEW; may be given several times."
        ),
    ] = None,
    instruction: Annotated[
        str, typer.Option(help="What to change, in words; needs a model that follows such words.")
    ] = "",
    keep: Annotated[
        list[str] | None, typer.Option(help="Text that stays, wherever it stands.")
    ] = None,
    model: Annotated[str, typer.Option(help="A name of `mezzotint list`, or a path.")] = "hybrid",
    weights: o.WeightsOption = None,
    adapter: o.Adapter = None,
    backend: o.BackendOption = o.Backend.native,
    threads: o.Threads = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Change a part of a text; what no longer fits is rewritten, all else stays as it is."""
    from mezzotint.model import load
    from mezzotint.revise import revise as follow
    from mezzotint.rewrite import rewrite

    if bool(replace) == bool(instruction):
        raise UsageError("what is to change?", "give --replace OLD=NEW, or --instruction")
    text = _read(file)
    edits, kept = _edits(text, replace or []), _everywhere(text, keep or [])
    loaded = load(model, backend.value, weights, threads, quiet=quiet, adapter=adapter)
    if instruction:
        revision = rewrite(loaded, text, instruction, kept)
    else:
        revision = follow(loaded, text, edits, kept)
    if json:
        from dataclasses import asdict

        o.emit(asdict(revision))
        return
    sys.stdout.write(revision.text)
    if not quiet:
        _tell(revision)


def _read(file: str) -> str:
    from mezzotint.text import text_from

    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    text = text_from(raw, "stdin" if file == "-" else file)
    if not text.strip():
        raise UsageError("the text is empty")
    return text


def _edits(text: str, replace: list[str]) -> list[Change]:
    from mezzotint.revise import Change

    edits = []
    for given in replace:
        old, equals, new = given.partition("=")
        if not equals or not old:
            raise UsageError(f"--replace {given!r} is not OLD=NEW")
        at = text.find(old)
        if at < 0:
            raise UsageError(f"the text has no {old!r}")
        edits.append(Change(at, at + len(old), new))
    return edits


def _everywhere(text: str, keep: list[str]) -> list[tuple[int, int]]:
    spans = []
    for piece in keep:
        at = text.find(piece) if piece else -1
        if at < 0:
            raise UsageError(f"the text has no {piece!r} to keep")
        while at >= 0:
            spans.append((at, at + len(piece)))
            at = text.find(piece, at + len(piece))
    return spans


def _tell(revision: Revision) -> None:
    """What changed and why, a line each, and what it cost."""
    print(file=sys.stderr)
    for span in revision.spans:
        line = revision.text.count("\n", 0, span.start) + 1
        print(f"{line}: - {span.before!r} + {span.after!r}  ({span.why})", file=sys.stderr)
    print(
        f"{revision.passes} passes · {revision.rows} rows · {revision.reused} of "
        f"{revision.tokens} tokens reused · {revision.seconds * 1e3:.0f} ms",
        file=sys.stderr,
    )
