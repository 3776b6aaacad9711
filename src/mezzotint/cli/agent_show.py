"""What the command `agent` shows of a run while it goes on.

Steps and what is about to be asked go to stderr, the answer to stdout; with --json every event
is a line of JSON. Imported by the command alone, for it needs the agent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from mezzotint import toolcall
from mezzotint.agent.events import Asked, Did, Event, Planned, Refused, Resumed, Revised, Said
from mezzotint.agent.transcript import told
from mezzotint.atomic import replacing
from mezzotint.cli import options as o
from mezzotint.generate import Run, Step
from mezzotint.terminal import View, live


class Show:
    """Events as they come: steps on stderr, the answer on stdout, or JSON lines."""

    def __init__(self, as_json: bool, quiet: bool, trace: Path | None) -> None:
        self._json, self._quiet, self._trace = as_json, quiet, trace
        self._kept: list[dict[str, object]] = []
        moving = live(sys.stderr) and not as_json and not quiet
        self._view = View(sys.stderr) if moving else None

    def follow(self, events: Iterator[Event]) -> bool:
        """Show them to the end; whether the last one waits for a reply."""
        try:
            return self._follow(events)
        finally:
            self._still()

    def watch(self, run: Run, step: Step) -> None:
        """The calls as their holes fill, on a terminal."""
        if self._view:
            self._view.see(step, run.model.tokenizer, run.start or 0, len(step.canvas))

    def _still(self) -> None:
        if self._view:
            self._view.close()

    def _follow(self, events: Iterator[Event]) -> bool:
        tools, waits = 0.0, False
        for event in events:
            self._still()
            kind, content = told(event)
            self._kept.append({"event": kind, **content})
            if isinstance(event, Did):
                tools += event.seconds
            waits = isinstance(event, Said) and event.question
            if self._json:
                o.emit({"event": kind, **content})
            elif isinstance(event, Said):
                print(event.text, flush=True)
                self._timing(event, tools)
            else:
                self._step(event)
        return waits

    def _step(self, event: Event) -> None:
        if self._quiet and not isinstance(event, Asked):
            return
        for line in _lines(event):
            print(line, file=sys.stderr, flush=True)

    def _timing(self, event: Said, tools: float) -> None:
        if self._quiet:
            return
        t = event.timing
        rate = f" {t.tokens / t.passes:.1f} tokens/pass ·" if t.passes else ""
        print(
            f"model {1e3 * t.seconds:.0f} ms · {t.passes} passes ·{rate} {t.forced} forced ·"
            f" tools {1e3 * tools:.0f} ms",
            file=sys.stderr,
        )

    def finish(self) -> None:
        if self._trace:
            with replacing(self._trace) as partial:
                text = json.dumps(self._kept, ensure_ascii=False, indent=1)
                partial.write_text(text + "\n", "utf-8")


def _lines(event: Event) -> list[str]:
    """An event for a reader."""
    match event:
        case Planned(first, calls, _):
            return [f"plan {first + i}  {toolcall.write([c])}" for i, c in enumerate(calls)]
        case Revised(spans, _):
            marks = {True: "again", False: "kept "}
            return [f"{marks[s.masked]} {s.step}  {toolcall.write([s.after])}" for s in spans]
        case Resumed(_, done, unknown):
            return [f"goes on after {len(done)} done" + f", {len(unknown)} unknown" * bool(unknown)]
        case Asked():
            return _asked(event)
        case Did(step, _, outcome, seconds):
            found = outcome.said or outcome.error or "done"
            state = "done" if outcome.ok else "fail"
            return [f"{state} {step}  {found}  ({1e3 * seconds:.0f} ms)"]
        case Refused(step, _, why):
            return [f"held {step}  {why}"]
    return []


def _asked(event: Asked) -> list[str]:
    """What an act comes to: the address, the mail it is about, all of its text; and which of it
    are not the user's own words."""
    lines = ["It may have been done before the run was cut off."] if event.unknown else []
    if (will := event.preview) is None:
        lines.append(toolcall.write([event.call]))
    else:
        rows = (("to", ", ".join(will.to)), ("about", will.about), ("subject", will.subject))
        lines += [f"  {name:8} {value}" for name, value in rows if value]
        lines += [f"  | {line}" for line in will.text.splitlines()]
    if event.strange:
        lines.append(f"  not in your words: {', '.join(event.strange)}")
    return [f"ask  {event.step}  {event.call.name}", *lines]
