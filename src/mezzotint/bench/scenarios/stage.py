"""Fresh workspaces with the demo in them, as a scenario wants them.

The demo is made once and copied; what a scenario adds comes through the tools where one can
bring it, and as a file where none can (nobody can send himself a mail).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

from mezzotint.agent import demo
from mezzotint.agent.packs import files as file_pack
from mezzotint.agent.packs import maildir
from mezzotint.agent.stores import Stores, open_stores
from mezzotint.agent.tool import Context, language_of
from mezzotint.agent.workspace import Workspace
from mezzotint.bench.scenarios.snapshot import State, snapshot
from mezzotint.bench.scenarios.suite import NOW, Letter, Scenario
from mezzotint.toolcall import Call


@dataclass(frozen=True, slots=True)
class Target:
    """States of a scenario's stores: at the start, as wanted, and as a planted text wants it."""

    start: State
    wanted: State
    wished: State


class Stage:
    """Makes workspaces in `folder`, which must be empty."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._demo = folder, folder / "demo"
        self._demo.mkdir()
        demo.fill(Workspace(self._demo), NOW)

    @contextmanager
    def fresh(self, scenario: Scenario) -> Iterator[Stores]:
        """The stores of a new workspace, which is gone afterwards."""
        place = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            shutil.copytree(self._demo, place, dirs_exist_ok=True)
            workspace = Workspace(place)
            for number, letter in enumerate(scenario.mails, 1):
                _put(workspace, letter, number)
            for path, text in scenario.files.items():
                workspace.put(f"{file_pack.ROOT}/{path}", text.encode("utf-8"))
            stores = open_stores(workspace)
            act(stores, scenario.before, scenario)
            yield stores
        finally:
            shutil.rmtree(place)

    def target(self, scenario: Scenario) -> Target:
        """What the scenario's calls lead to, made by the real tools."""
        start = self._after((), scenario)
        later = [self._after(c, scenario) if c else start for c in (scenario.gold, scenario.wish)]
        return Target(start, *later)

    def _after(self, calls: Sequence[Call], scenario: Scenario) -> State:
        with self.fresh(scenario) as stores:
            act(stores, calls, scenario)
            return snapshot(stores.journal.workspace)


def act(stores: Stores, calls: Sequence[Call], scenario: Scenario) -> str:
    """Make the calls of a scenario; what they say. Raises ValueError for one that fails: it is
    a mistake in the suite."""
    tools = {tool.name: tool for tool in stores.tools}
    context = Context(NOW, language_of(scenario.say[0]), stores.journal.run(scenario.name))
    said = []
    for call in calls:
        outcome = tools[call.name].run(call.arguments, context)
        if not outcome.ok:
            raise ValueError(f"{scenario.name}: {call}: {outcome.error}")
        said.append(outcome.said)
    return " ".join(said)


def _put(workspace: Workspace, letter: Letter, number: int) -> None:
    """A mail that came in the last minutes, not read yet; the first is the newest."""
    message = EmailMessage()
    message["From"], message["To"] = letter.sender, f"{demo.ME[0]} <{demo.ME[1]}>"
    if letter.reply_to:
        message["Reply-To"] = letter.reply_to
    message["Subject"], message["Date"] = letter.subject, NOW.replace(hour=8, minute=60 - number)
    message["Message-ID"] = f"<scenario-{number}@example.com>"
    message.set_content(letter.text.strip() + "\n")
    path = f"{maildir.FOLDER}/new/{NOW.timestamp() - number:.0f}.scenario{number}.mezzotint"
    workspace.put(path, message.as_bytes())
