"""Runs that are killed, with a real SIGKILL, at every step; and what the next run makes of them."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from mezzotint import toolcall
from mezzotint.agent.demo import fill
from mezzotint.agent.events import Asked, Did, Event, Refused, Resumed, Said, Timing
from mezzotint.agent.journal import Entry, Journal
from mezzotint.agent.loop import Agent
from mezzotint.agent.resume import unfinished
from mezzotint.agent.stores import open_stores
from mezzotint.agent.tool import Effect, Tool
from mezzotint.agent.transcript import Transcript
from mezzotint.agent.workspace import Workspace
from mezzotint.agent.writer import Line
from mezzotint.toolcall import Call

NOW = datetime(2026, 11, 30, 9, 0).astimezone()  # a Monday
REQUEST = (
    "Look up the phone number of Ben and save it in a note, move the dentist to tomorrow 4 pm"
    " and email Anna that I am late"
)
FIRST = [
    Call("find_contact", {"name": "Ben"}),
    Call("move_event", {"title": "dentist", "start": "2026-12-01T16:00"}),
    Call("send_email", {"to": "Anna", "body": "I am late"}),
]
THEN = [Call("create_note", {"text": "Ben Okafor: 555 0177"})]


class Model:
    """Writes the plan, and then what follows from what was read."""

    def write(
        self, messages: Sequence[dict[str, str]], tools: Sequence[Tool], lines: Sequence[Line] = ()
    ) -> tuple[str, Timing]:
        rounds = sum(message["role"] == "tool" for message in messages)
        calls = {0: FIRST, 1: THEN}.get(rounds, [])
        return toolcall.write(calls) or "Done.", Timing(0.0, 1, 1)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo")
    fill(Workspace(place), NOW)
    return place


def run(place: Workspace, tools: Sequence[Tool] = (), tick: Callable[[], None] = lambda: None,
        request: str = REQUEST) -> None:  # fmt: skip
    with open_stores(place) as stores:
        some = [*stores.tools, *tools]
        agent = Agent(Model(), some, stores.journal, lambda: NOW, consent=lambda call, tool: True)
        for _ in Transcript(place).follow(request, NOW, agent.ask(request)):
            tick()


def killed(work: Callable[[Callable[[], None]], None], at: int) -> bool:
    """Do the work in another process, which is killed at its `at`-th entry or event; whether it
    came so far."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    ticks = iter(range(1, 1 << 20))

    def tick() -> None:
        if next(ticks) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    append = Journal.append

    def counted(self: Journal, entry: Entry) -> None:
        tick()  # before it is announced
        append(self, entry)
        tick()  # announced, and not done

    try:
        Journal.append = counted  # type: ignore[method-assign]
        work(tick)
    finally:
        os._exit(0)


def state(place: Workspace) -> list[tuple[str, ...]]:
    """What the user has: the dentist's time, the notes, and the mails that were sent."""
    calendar = [b for f in place.root.glob("calendar/*.ics") if b"entist" in (b := f.read_bytes())]
    starts = [line for b in calendar for line in b.decode().split() if "DTSTART" in line]
    notes = [file.read_text() for file in place.root.glob("notes/*.md")]
    sent = [
        f.read_text()
        for f in place.root.rglob("mail/**/*")
        if f.is_file() and "sent" in str(f).lower()
    ]
    late = sum("I am late" in text for text in sent)
    return [tuple(starts), tuple(sorted(notes)), (str(late),)]


def resumed(place: Workspace, consent: Callable[[Call, Tool], bool] = lambda call, tool: True,
            tools: Sequence[Tool] = ()) -> list[Event]:  # fmt: skip
    """Go on with the last run, or ask anew if it had not begun."""
    with open_stores(place) as stores:
        some, kept = [*stores.tools, *tools], Transcript(place)
        agent = Agent(Model(), some, stores.journal, lambda: NOW, consent=consent)
        left = unfinished(kept, stores.journal)
        if left is None:
            return []
        return list(kept.follow(left.request, NOW, agent.resume(left), onto=left.id))


def places(demo: Path, tmp_path: Path) -> Iterator[Workspace]:
    for number in range(1, 1 << 20):
        shutil.copytree(demo, tmp_path / str(number))
        yield Workspace(tmp_path / str(number))


def test_a_run_killed_anywhere_goes_on_to_the_same_end(demo: Path, tmp_path: Path) -> None:
    fresh = places(demo, tmp_path)
    whole = next(fresh)
    run(whole)
    wanted = state(whole)
    assert wanted[2] == ("1",)
    for at, place in enumerate(fresh, 1):
        if not killed(lambda tick, place=place: run(place, tick=tick), at):
            break
        events = resumed(place)
        if not events:  # before anything was chosen, or after the answer
            begun = Transcript(place).last(1)
            if not (begun and begun[-1].events):
                run(place)
        assert state(place) == wanted, f"killed at {at}"
        made = [e.step for e in events if isinstance(e, Did)]
        before = next((e.done for e in events if isinstance(e, Resumed)), ())
        assert not set(made) & set(before), f"killed at {at}: made again"
    assert at > 15


def test_the_same_undo_takes_both_parts_back(demo: Path, tmp_path: Path) -> None:
    place = next(places(demo, tmp_path))
    before = state(place)
    assert killed(lambda tick: run(place, tick=tick), 9)
    resumed(place)
    assert state(place) != before
    with open_stores(place) as stores:
        stores.journal.undo()
    assert state(place)[:2] == before[:2]


def test_an_act_whose_end_is_unknown_is_asked_for(demo: Path, tmp_path: Path) -> None:
    place, told = next(places(demo, tmp_path)), tmp_path / "told"

    def announce(text: str) -> str:
        """Announce something to everybody."""
        with told.open("a") as file:
            file.write(text)
        if told.stat().st_size == len(text):
            os.kill(os.getpid(), signal.SIGKILL)
        return "Announced."

    tool = Tool.of(announce, Effect.IRREVERSIBLE)
    request = "Announce hello"

    class Says(Model):
        def write(self, *_: object, **__: object) -> tuple[str, Timing]:
            return toolcall.write([Call("announce", {"text": "hello"})]), Timing()

    def ask(place: Workspace) -> None:
        with open_stores(place) as stores:
            agent = Agent(Says(), [tool], stores.journal, lambda: NOW, consent=lambda c, t: True)
            list(Transcript(place).follow(request, NOW, agent.ask(request)))

    assert killed(lambda tick: ask(place), 1 << 20)
    assert told.read_text() == "hello"
    with open_stores(place) as stores:
        left = unfinished(Transcript(place), stores.journal)
    assert left is not None
    assert [call.name for call in left.unknown] == ["announce"]
    events = resumed(place, consent=lambda call, tool: False, tools=[tool])
    (asked,) = (event for event in events if isinstance(event, Asked))
    assert asked.unknown
    assert any(isinstance(event, Refused) for event in events)
    assert told.read_text() == "hello"


def test_a_complete_run_and_one_at_work_are_not_offered(demo: Path, tmp_path: Path) -> None:
    place = next(places(demo, tmp_path))
    kept = Transcript(place)
    with open_stores(place) as stores:
        assert unfinished(kept, stores.journal) is None
        agent = Agent(Model(), stores.tools, stores.journal, lambda: NOW)
        events = kept.follow(REQUEST, NOW, agent.ask(REQUEST))
        next(events)
        assert unfinished(Transcript(place), stores.journal) is None  # somebody is at it
        *_, said = events
        assert isinstance(said, Said)
        assert unfinished(kept, stores.journal) is None
