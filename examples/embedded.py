"""The built-in stores inside another program: each request from stdin, each event as a line."""

import sys
from pathlib import Path

from mezzotint.agent.events import Did, Planned, Said
from mezzotint.agent.loop import Agent
from mezzotint.agent.stores import open_stores
from mezzotint.agent.tool import Tool
from mezzotint.agent.workspace import Workspace
from mezzotint.agent.writer import Writer
from mezzotint.model import load
from mezzotint.toolcall import Call


def consent(call: Call, tool: Tool) -> bool:
    """Where your program would show a button."""
    return call.name == "send_email" and call.arguments["to"] == "Anna"


stores = open_stores(Workspace(Path(sys.argv[1])))
agent = Agent(Writer(load("hybrid")), stores.tools, stores.journal, consent=consent)
for request in sys.stdin:
    for event in agent.ask(request.strip()):
        match event:
            case Planned(_, calls, timing):
                print(f"plan: {len(calls)} calls, {1e3 * timing.seconds:.0f} ms")
            case Did(_, call, outcome, _):
                print(f"{call.name}: {'done' if outcome.ok else outcome.error}")
            case Said(text):
                print(text)
