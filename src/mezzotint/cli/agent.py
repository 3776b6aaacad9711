"""The command `agent`: ask, watch, take back."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mezzotint.cli import options as o

if TYPE_CHECKING:
    from mezzotint.agent.loop import Agent
    from mezzotint.agent.rules import Rules
    from mezzotint.agent.stores import Stores
    from mezzotint.agent.tool import Tool
    from mezzotint.agent.transcript import Transcript
    from mezzotint.agent.workspace import Workspace
    from mezzotint.cli.agent_show import Show
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
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the last run, if it was cut off.")
    ] = False,
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
    from mezzotint.agent.writer import Writer
    from mezzotint.cli.agent_show import Show
    from mezzotint.model import load, trained

    place = _workspace(workspace)
    if request == "undo":
        return _undo(place)
    if request == "log":
        return _log(place, json)
    if request is None and not resume and not sys.stdin.isatty():
        request = o.read_text(None, "request")
    with ExitStack() as stack:
        stores, rules = _stores(place, yes, stack)
        show, kept = Show(json, quiet, trace), Transcript(place)
        loaded = load(model, weights=weights, threads=threads, quiet=quiet)
        loaded = trained(loaded, f"{model} cannot act")
        writer = Writer(loaded, policy, structure, show.watch)
        ready = Agent(
            writer, stores.tools, stores.journal, consent=_consent, rules=rules, rehearse=dry_run
        )
        if not dry_run:
            _cut_off(ready, kept, show, resume)
        if request:
            _once(ready, kept, show, request)
        elif not resume:
            _talk(ready, kept, show)
        show.finish()


def _workspace(folder: Path | None) -> Workspace:
    from mezzotint.agent.demo import open_demo
    from mezzotint.agent.when import local_now
    from mezzotint.agent.workspace import Workspace

    return Workspace(folder) if folder else open_demo(local_now())


def _stores(place: Workspace, yes: bool, stack: ExitStack) -> tuple[Stores, Rules]:
    """The workspace's stores, and the MCP servers that its settings name, until `stack` closes."""
    from mezzotint.agent.rules import Rules
    from mezzotint.agent.stores import open_stores

    stores, tables = stack.enter_context(open_stores(place)), place.settings("mcp")
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


def _consent(call: Call, tool: Tool) -> bool:
    """Ask on the terminal, where what it comes to was shown just before; without one, no."""
    from mezzotint import toolcall

    if not sys.stdin.isatty():
        print(f"not allowed without --yes: {toolcall.write([call])}", file=sys.stderr)
        return False
    return _agrees("This cannot be undone. Do it? [y/N] ")


def _agrees(question: str) -> bool:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是", "好")


def _cut_off(ready: Agent, kept: Transcript, show: Show, resume: bool) -> None:
    """Tell of a last run that was cut off, and go on with it if the user wants that."""
    from mezzotint import toolcall
    from mezzotint.agent.resume import unfinished

    left = unfinished(kept, ready.journal)
    if left is None:
        if resume:
            print("The last run is complete: there is nothing to go on with.", file=sys.stderr)
        return
    print(f"The last run was cut off: {left.request}", file=sys.stderr)
    for said in left.done:
        print(f"  done   {said}", file=sys.stderr)
    for call in left.open:
        perhaps = "  (nobody knows whether it was done)" if call in left.unknown else ""
        print(f"  open   {toolcall.write([call])}{perhaps}", file=sys.stderr)
    if not resume and not sys.stdin.isatty():
        print("`mezzotint agent --resume` goes on with it.", file=sys.stderr)
    elif resume or _agrees("Go on with the rest? [y/N] "):
        events = kept.follow(left.request, ready.now(), ready.resume(left), onto=left.id)
        _answered(ready, kept, show, show.follow(events))
    else:
        list(kept.follow(left.request, ready.now(), [left.dropped()], onto=left.id))


def _once(ready: Agent, kept: Transcript, show: Show, request: str) -> None:
    waits = show.follow(kept.follow(request, ready.now(), ready.ask(request)))
    _answered(ready, kept, show, waits)


def _answered(ready: Agent, kept: Transcript, show: Show, waits: bool) -> None:
    """Questions and replies, as long as the agent waits for one."""
    while waits and sys.stdin.isatty():
        reply = input("> ").strip()
        waits = show.follow(kept.follow(reply, ready.now(), ready.ask(reply)))


def _talk(ready: Agent, kept: Transcript, show: Show) -> None:
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
    from mezzotint.agent.stores import undo

    undone = undo(place)
    if not (undone.restored or undone.kept):
        print("Nothing to take back.")
        return
    print(f"Taken back: {undone.request}")
    for said in undone.restored:
        print(f"  no longer: {said}")
    for why in undone.kept:
        print(f"  kept: {why}")


def _log(place: Workspace, json: bool) -> None:
    """The last requests with their answers; as JSON, with every event, in order."""
    from mezzotint.agent.transcript import Transcript

    for one in Transcript(place).last(20):
        if json:
            events = [{"event": kind, **content} for kind, content in one.events]
            o.emit({"request": one.text, "at": one.at, "events": events})
            continue
        said = [content["text"] for kind, content in one.events if kind == "said"]
        print(f"{one.at[:16]}  {one.text}\n{'':18}{' '.join(said)}")
