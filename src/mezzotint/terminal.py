"""The canvas as it is being written, on a terminal; plain text anywhere else.

Written text is plain, what the last pass wrote is bright, drafts are dim, and a hole is
a dot. A pipe gets the text byte for byte, each part as soon as nothing before it is open.
It knows steps and text, not models.
"""

from __future__ import annotations

import os
import re
import sys
import time
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from mezzotint.canvas import DRAFT, GIVEN, MASKED, WRITTEN, Canvas
from mezzotint.generate import Result, Run, Step, Tokenizer

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

HOLES = 32  # dots shown at most for a run of holes
STYLES = {GIVEN: "blue", WRITTEN: "", DRAFT: "dim italic", MASKED: "dim"}
FRESH = "bold green"
FRAME = 1 / 30  # seconds between pictures: drawing must not slow the writing
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a model must not steer the terminal


def live(out: TextIO) -> bool:
    """Whether `out` can show a canvas that changes: a terminal, not dumb, colour wanted."""
    return out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def show(run: Run, start: int, stop: int) -> Result:
    """Finish `run`, showing positions [start, stop) on stdout as they come; then its text.

    Ctrl-C leaves the terminal as it was.
    """
    if not sys.stdout.isatty():
        return _pipe(run, start)
    if live(sys.stdout):
        _watch(run, start, stop)
    result = run.result()
    print(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", result.text), flush=True)
    return result


def _pipe(run: Run, start: int) -> Result:
    """Print settled text as it grows; a character that may lack bytes waits for them."""
    printed = ""
    for step in run:
        settled = step.canvas.tokens[start : step.canvas.settled].tolist()
        if settled and settled[-1] in run.model.family.stop_ids:
            settled.pop()
        text = run.model.tokenizer.decode(settled).rstrip("\N{REPLACEMENT CHARACTER}")
        if len(text) > len(printed):
            print(text[len(printed) :], end="", flush=True)
            printed = text
    result = run.result()
    print(result.text[len(printed) :], flush=True)
    return result


def _watch(run: Run, start: int, stop: int) -> None:
    view = View(sys.stdout)
    try:
        for step in run:
            view.see(step, run.model.tokenizer, start, stop)
    finally:
        view.close()


class View:
    """A place on the terminal `out` where a canvas changes; `close` leaves nothing of it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live: Live | None = None
        self._shown_at = 0.0

    def see(self, step: Step, tokenizer: Tokenizer, start: int, stop: int) -> None:
        """Show positions [start, stop) after `step`, unless a picture was just shown."""
        from rich.console import Console
        from rich.live import Live

        if time.monotonic() - self._shown_at < FRAME:
            return
        self._shown_at = time.monotonic()
        if self._live is None:
            self._live = Live(console=Console(file=self._out), transient=True, auto_refresh=False)
            self._live.start()
        text, console = render(step, tokenizer, start, stop), self._live.console
        lines = text.wrap(console, console.width)[-max(console.height - 1, 1) :]
        self._live.update(type(text)("\n").join(lines), refresh=True)

    def close(self) -> None:
        if self._live:
            self._live.stop()
        self._live = None


def render(step: Step, tokenizer: Tokenizer, start: int, stop: int) -> Text:
    """Positions [start, stop) of the canvas after `step`, styled by what they are."""
    from rich.text import Text

    canvas, fresh = step.canvas, set(step.edit.positions.tolist())
    shown = Text()
    kinds = ((_kind(canvas, i, fresh), i) for i in range(start, min(stop, len(canvas))))
    for (state, new), run in groupby(kinds, key=lambda item: item[0]):
        at = [i for _, i in run]
        if state == MASKED:
            shown.append("·" * min(len(at), HOLES), STYLES[MASKED])
        else:
            text = tokenizer.decode(canvas.tokens[at].tolist())
            shown.append(text, FRESH if new else STYLES[state])
    return shown


def _kind(canvas: Canvas, position: int, fresh: set[int]) -> tuple[int, bool]:
    state = int(canvas.state[position])
    return state, state == WRITTEN and position in fresh


def timing(result: Result) -> str:
    """One line: milliseconds, passes, tokens a pass and a second, and why it stopped."""
    seconds = result.decode_seconds
    return " · ".join(
        (
            f"prefill {result.prefill_seconds * 1e3:.0f} ms",
            f"decode {seconds * 1e3:.0f} ms",
            f"{result.passes} passes",
            f"{result.tokens_per_pass:.2f} tokens/pass",
            f"{result.written / seconds if seconds else 0.0:.0f} tokens/s",
            f"stopped by {result.stop}",
        )
    )
