"""An agent with two tools of your own: python examples/own_tools.py "water the ferns" """

import sys
import tempfile
from pathlib import Path

from mezzotint.agent.events import Said
from mezzotint.agent.journal import Journal
from mezzotint.agent.loop import Agent
from mezzotint.agent.tool import Effect, Tool
from mezzotint.agent.workspace import Workspace
from mezzotint.agent.writer import Writer
from mezzotint.model import load

watered: dict[str, int] = {}


def water_plant(plant: str, minutes: int = 2) -> str:
    """Water a plant."""
    watered[plant] = watered.get(plant, 0) + minutes
    return f"Watered the {plant} for {minutes} minutes."


def get_plant(plant: str) -> str:
    """Tell how long a plant was watered."""
    return f"The {plant} got {watered.get(plant, 0)} minutes of water."


tools = [Tool.of(water_plant, Effect.WRITES), Tool.of(get_plant, Effect.READS)]
journal = Journal(Workspace(Path(tempfile.mkdtemp())))
agent = Agent(Writer(load("hybrid")), tools, journal)
for event in agent.ask(sys.argv[1]):
    if isinstance(event, Said):
        print(event.text)
