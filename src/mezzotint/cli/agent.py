"""The command `agent`: ask, watch, take back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mezzotint.cli import options as o

if TYPE_CHECKING:
    from mezzotint.agent.events import Event
    from mezzotint.agent.loop import Agent
    from mezzotint.agent.rules import Rules
    from mezzotint.agent.stores import Stores
    from mezzotint.agent.tool import Tool
    from mezzotint.agent.transcript import Transcript
    from mezzotint.agent.workspace import Workspace
    from mezzotint.agent.writer import Writer
    from mezzotint.toolcall import Call


def agent(
    request: Annotated[
        str | None,
        typer.Argument(
            help="What to do; `undo` takes the last run back, `log` tells what was done;"
            " absent: ask by ask, on a terminal."
        ),
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="Your folder of stores; default: today's demo.")
    ] = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            "-y",
            help="Do not ask before what cannot be undone, if its values are your own words.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option(help="Plan and check; write nothing.")] = False,
    model: Annotated[str, typer.Option(help="A name of `mezzotint list`, or a path.")] = "hybrid",
    policy: o.Policy = None,
    structure: Annotated[
        bool, typer.Option(help="Hold calls to the tools' schemas (faster, always valid).")
    ] = True,
    weights: o.WeightsOption = None,
    threads: o.Threads = 0,
    trace: Annotated[Path | None, typer.Option(help="Write every event to this file.")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Act on mail, calendar, contacts, notes, files, home and car, offline."""
    from mezzotint.agent.loop import Agent
    from mezzotint.agent.transcript import Transcript

    place = _workspace(workspace)
    if request == "undo":
        return _undo(place)
    if request == "log":
        return _log(place)
    if request is None and not sys.stdin.isatty():
        request = o.read_text(None, "request")
    with ExitStack() as stack:
        stores, rules = _stores(place, yes, stack)
        writer = _writer(model, policy, structure, weights, threads, quiet)
        ready = Agent(
            writer, stores.tools, stores.journal, consent=_consent, rules=rules, rehearse=dry_run
        )
        show = _Show(json, quiet, trace)
        (_once if request else _talk)(ready, Transcript(place), show, request or "")
        show.finish()


def _workspace(folder: Path | None) -> Workspace:
    from mezzotint.agent.demo import open_demo
    from mezzotint.agent.workspace import Workspace

    return Workspace(folder) if folder else open_demo(datetime.now().astimezone())


def _stores(place: Workspace, yes: bool, stack: ExitStack) -> tuple[Stores, Rules]:
    """The workspace's stores, and the MCP servers that its settings name, until `stack` closes."""
    from mezzotint.agent.rules import Rules
    from mezzotint.agent.stores import open_stores

    stores, tables = open_stores(place), place.settings("mcp")
    stores.journal.recover()
    if tables:
        from mezzotint.agent.mcp import Connections, Server

        servers = [Server.of(name, table) for name, table in tables.items()]
        connections = stack.enter_context(Connections(servers))
        for name, why in connections.failed.items():
            print(f"MCP server {name} did not start: {why}", file=sys.stderr)
        more = connections.tools({tool.name for tool in stores.tools})
        stores = replace(stores, tools=(*stores.tools, *more))
    known = {tool.name for tool in stores.tools}
    return stores, Rules.of(place.settings("agent"), known, everything=yes)


def _writer(
    model: str, policy: str | None, structure: bool, weights: str | None, threads: int, quiet: bool
) -> Writer:
    from mezzotint.agent.writer import Writer
    from mezzotint.model import load, trained

    loaded = load(model, weights=weights, threads=threads, quiet=quiet)
    return Writer(trained(loaded, f"{model} cannot act"), policy, structure)


def _consent(call: Call, tool: Tool) -> bool:
    """Ask on the terminal; without one, no."""
    from mezzotint import toolcall

    shown = toolcall.write([call])
    if not sys.stdin.isatty():
        print(f"not allowed without --yes: {shown}", file=sys.stderr)
        return False
    print(f"{shown}\nThis cannot be undone. Do it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是", "好")


def _once(ready: Agent, kept: Transcript, show: _Show, request: str) -> None:
    waits = show.follow(kept.follow(request, ready.now(), ready.ask(request)))
    while waits and sys.stdin.isatty():
        reply = input("> ").strip()
        waits = show.follow(kept.follow(reply, ready.now(), ready.ask(reply)))


def _talk(ready: Agent, kept: Transcript, show: _Show, _: str) -> None:
    print("Ctrl-D ends; `undo` takes the last run back.", file=sys.stderr)
    while True:
        try:
            request = input("> ").strip()
        except EOFError:
            return
        if request == "undo":
            _undo(ready.journal.workspace)
        elif request:
            show.follow(kept.follow(request, ready.now(), ready.ask(request)))


def _undo(place: Workspace) -> None:
    from mezzotint.agent.stores import open_stores

    undone = open_stores(place).journal.undo()
    if not (undone.restored or undone.kept):
        print("Nothing to take back.")
        return
    print(f"Taken back: {undone.request}")
    for said in undone.restored:
        print(f"  no longer: {said}")
    for why in undone.kept:
        print(f"  kept: {why}")


def _log(place: Workspace) -> None:
    from mezzotint.agent.transcript import Transcript

    for one in Transcript(place).last(20):
        said = [content["text"] for kind, content in one.events if kind == "said"]
        print(f"{one.at[:16]}  {one.text}\n{'':18}{' '.join(said)}")


class _Show:
    """Events as they come: steps on stderr, the answer on stdout, or JSON lines."""

    def __init__(self, json: bool, quiet: bool, trace: Path | None) -> None:
        self._json, self._quiet, self._trace = json, quiet, trace
        self._kept: list[dict[str, object]] = []

    def follow(self, events: Iterator[Event]) -> bool:
        """Show them to the end; whether the last one waits for a reply."""
        from mezzotint.agent.events import Did, Said
        from mezzotint.agent.transcript import told

        tools, waits = 0.0, False
        for event in events:
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
        from mezzotint import toolcall
        from mezzotint.agent.events import Did, Planned, Refused, Revised

        if self._quiet:
            return
        match event:
            case Planned(first, calls, _):
                lines = [f"plan {first + i}  {toolcall.write([c])}" for i, c in enumerate(calls)]
            case Revised(step, _, after, _):
                lines = [f"plan {step}  {toolcall.write([after])}  (rewritten)"]
            case Did(step, _, outcome, seconds):
                found = outcome.said or outcome.error or "done"
                lines = [
                    f"{'done' if outcome.ok else 'fail'} {step}  {found}  ({1e3 * seconds:.0f} ms)"
                ]
            case Refused(step, _, why):
                lines = [f"held {step}  {why}"]
            case _:
                lines = []
        for line in lines:
            print(line, file=sys.stderr, flush=True)

    def _timing(self, event: Event, tools: float) -> None:
        if self._quiet:
            return
        t = event.timing  # type: ignore[union-attr]
        print(
            f"model {1e3 * t.seconds:.0f} ms · {t.passes} passes ·"
            f" {t.tokens / max(t.passes, 1):.1f} tokens/pass · {t.forced} forced ·"
            f" tools {1e3 * tools:.0f} ms",
            file=sys.stderr,
        )

    def finish(self) -> None:
        import json

        if self._trace:
            partial = self._trace.with_name(self._trace.name + ".partial")
            partial.write_text(json.dumps(self._kept, ensure_ascii=False, indent=1) + "\n", "utf-8")
            partial.replace(self._trace)
