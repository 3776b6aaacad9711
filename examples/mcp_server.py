"""Tools of an MCP server: pip install 'mezzotint[servers]' mcp-server-time, then
python examples/mcp_server.py "What is 09:00 in Europe/Berlin in Asia/Tokyo?" """

import sys
import tempfile
from pathlib import Path

from mezzotint.agent.events import Did, Said
from mezzotint.agent.journal import Journal
from mezzotint.agent.loop import Agent
from mezzotint.agent.mcp import Connections, Server
from mezzotint.agent.workspace import Workspace
from mezzotint.agent.writer import Writer
from mezzotint.model import load

command = (sys.executable, "-m", "mcp_server_time")
with Connections([Server("time", command=command)]) as connections:
    journal = Journal(Workspace(Path(tempfile.mkdtemp())))
    tools = connections.tools(taken=())
    agent = Agent(Writer(load("hybrid")), tools, journal, consent=lambda call, tool: True)
    for event in agent.ask(sys.argv[1]):
        match event:
            case Did(_, call, outcome, _):
                print(call.name, dict(call.arguments), outcome.told())
            case Said(text):
                print(text)
