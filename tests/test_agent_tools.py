"""Tools, the workspace, the journal, dates in words, and the packs without a calendar."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel

from mezzotint import toolcall
from mezzotint.agent import demo, journal, when
from mezzotint.agent.journal import Journal, Run
from mezzotint.agent.packs import car, home, reminders
from mezzotint.agent.packs.contacts import Contacts
from mezzotint.agent.packs.contacts import tools as contact_tools
from mezzotint.agent.tool import Context, Effect, Outcome, Problem, Tool, language_of
from mezzotint.agent.workspace import Workspace
from mezzotint.errors import UsageError

NOW = datetime(2026, 11, 30, 10, 13, tzinfo=ZoneInfo("Europe/Berlin"))  # a Monday
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    return Workspace(tmp_path / "work")


def content(workspace: Workspace) -> dict[str, bytes | None]:
    return {path: workspace.read(path) for path in workspace.files("")}


# A function becomes a tool


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


def paint(
    what: str,
    at: datetime,
    from_: date,
    color: Color = Color.RED,
    size: Literal["small", "large"] | None = None,
    points: list[Point] | None = None,
    *,
    context: Context,
) -> str:
    """Paint
    a thing.

    It takes a while.
    what: the thing
    """
    return f"{what} {at:%d %H:%M %Z} {from_} {color.value} {size} {points} {context.language}"


def test_the_schema_of_a_function() -> None:
    tool = Tool.of(paint, Effect.READS)
    assert tool.name == "paint"
    assert tool.description == "Paint a thing."
    assert tool.parameters["required"] == ["what", "at", "from"]
    line = toolcall.signature(
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    )
    assert line == (
        'paint(what: str "the thing", at: datetime, from: date, color?: red|blue, '
        "size?: small|large, points?: {x: int, y?: int = 0}[]): Paint a thing."
    )


def test_arguments_are_validated_and_words_for_times_resolved() -> None:
    tool, context = Tool.of(paint, Effect.READS), Context(NOW, "zh")
    outcome = tool.run(
        {"what": "a wall", "at": "tomorrow at 4 pm", "from": "周三", "size": None}, context
    )
    assert outcome.said == "a wall 01 16:00 CET 2026-12-02 red None None zh"
    wrong = tool.run({"what": "x", "at": "someday", "from": "2026-12-01", "bad": 1}, context)
    assert not wrong.ok
    assert "at: 'someday' is not a date or a time" in wrong.error
    assert "bad: Extra inputs are not permitted" in wrong.error
    assert (
        "Input should be 'small' or 'large'"
        in tool.run({"what": "x", "at": "4 pm", "from": "today", "size": "huge"}, context).error
    )


def test_a_result_becomes_an_outcome() -> None:
    def count(n: int) -> list[Point]:
        return [Point(x=i) for i in range(n)]

    def fail() -> None:
        raise ZeroDivisionError("oh")

    outcome = Tool.of(count, Effect.READS).run({"n": "2"}, Context(NOW))
    assert outcome.data == [{"x": 0, "y": 0}, {"x": 1, "y": 0}]
    assert outcome.told() == {"result": outcome.data}
    assert Tool.of(fail, Effect.READS).run({}, Context(NOW)).error == "ZeroDivisionError: oh"
    assert Outcome(error="no file a", closest="b").told() == {"error": "no file a", "closest": "b"}
    assert Outcome().told() == {"ok": True}


def test_a_function_that_no_schema_can_describe_is_refused() -> None:
    def untyped(a):  # type: ignore[no-untyped-def]
        """No types."""

    def many(**rest: int) -> None:
        """Any arguments."""

    for function in (untyped, many):
        with pytest.raises(UsageError, match=function.__name__):
            Tool.of(function)


def test_an_undeclared_tool_is_irreversible_and_undo_says_so(workspace: Workspace) -> None:
    rung: list[str] = []

    def ring(bell: str) -> str:
        rung.append(bell)
        return f"Rang {bell}."

    tool, book = Tool.of(ring), Journal(workspace)
    assert tool.effect is Effect.IRREVERSIBLE
    assert tool.problem({"bell": "front"}, Context(NOW)) is None
    assert not tool.run({"bell": "front"}, Context(NOW)).ok  # no run to write through
    assert rung == []
    assert tool.run({"bell": "front"}, Context(NOW, "en", book.run("ring"))).said == "Rang front."
    undone = book.undo()
    assert undone.restored == ()
    assert undone.kept == ("ring({'bell': 'front'})",)


def test_a_check_is_the_call_up_to_its_first_write(workspace: Workspace) -> None:
    def save(name: str, *, context: Context) -> Outcome:
        if name == "taken":
            raise Problem("taken", choices=["a", "b"], argument="name")
        context.writing().write(f"notes/{name}.md", b"text")
        return Outcome("Saved.")

    tool = Tool.of(save, Effect.WRITES)
    context = Context(NOW, "en", Journal(workspace).run())
    refused = tool.problem({"name": "taken"}, context)
    assert refused is not None
    assert (refused.choices, refused.argument) == (("a", "b"), "name")
    assert tool.problem({"name": "new"}, context) is None
    assert content(workspace) == {}
    assert tool.run({"name": "new"}, context).said == "Saved."
    assert content(workspace) == {"notes/new.md": b"text"}


@pytest.mark.parametrize(("text", "language"), [("move it", "en"), ("把会议改到周三", "zh")])
def test_the_language_of_a_request(text: str, language: str) -> None:
    assert language_of(text) == language


# Paths stay inside


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../secret", "", "a//b", "a\0b"])
def test_a_path_that_could_leave_is_refused(workspace: Workspace, path: str) -> None:
    for use in (workspace.read, workspace.status, lambda p: workspace.put(p, b"x")):
        with pytest.raises(UsageError, match="not a path inside"):
            use(path)


def test_links_are_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (workspace.root / "door").symlink_to(outside)
    (workspace.root / "file").symlink_to(outside / "secret")
    for use in (
        lambda: workspace.read("door/secret"),
        lambda: workspace.read("file"),
        lambda: workspace.put("door/new", b"x"),
        lambda: workspace.rename("door/secret", "mine"),
        lambda: workspace.names("door"),
        lambda: workspace.path("door"),
    ):
        with pytest.raises(UsageError):
            use()
    workspace.put("file", b"mine")  # replaces the link, not what it points to
    assert (outside / "secret").read_text() == "secret"
    assert sorted(p.name for p in outside.iterdir()) == ["secret"]
    assert workspace.names("") == ["file"]


def test_no_gap_between_check_and_use(workspace: Workspace, tmp_path: Path) -> None:
    """A folder that turns into a link while it is read never gives away what is outside."""
    outside, inside = tmp_path / "outside", workspace.root / "folder"
    outside.mkdir()
    (outside / "file").write_bytes(b"secret")
    workspace.put("folder/file", b"public")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            inside.rename(workspace.root / "aside")
            inside.symlink_to(outside)
            inside.unlink()
            (workspace.root / "aside").rename(inside)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = set()
        for _ in range(2000):
            try:
                seen.add(workspace.read("folder/file"))
            except UsageError:
                seen.add(b"refused")
    finally:
        stop.set()
        thread.join()
    assert b"secret" not in seen


# The journal


def change(run: Run) -> None:
    """A call of every kind of change."""
    run.write("notes/a.md", b"new a")
    run.write("notes/deep/er/b.md", b"b")
    run.delete("notes/c.md")
    run.move("files/d.txt", "files/moved/d.txt")
    run.write("notes/a.md", b"newer a")


def filled(workspace: Workspace) -> dict[str, bytes | None]:
    for path, data in (("notes/a.md", b"a"), ("notes/c.md", b"c"), ("files/d.txt", b"d")):
        workspace.put(path, data)
    return content(workspace)


AFTER = {"notes/a.md": b"newer a", "notes/deep/er/b.md": b"b", "files/moved/d.txt": b"d"}


def test_undo_takes_the_last_run_back(workspace: Workspace) -> None:
    before, book = filled(workspace), Journal(workspace)
    with book.run("first").call("t", {}) as call:
        call.said = "One."
    run = book.run("change things")
    with run.call("t", {"x": 1}) as call:
        change(run)
        call.said = "Changed."
    assert content(workspace) == AFTER
    undone = book.undo()
    assert (undone.request, undone.restored, undone.kept) == ("change things", ("Changed.",), ())
    assert content(workspace) == before
    assert not workspace.is_folder("notes/deep")
    assert [(p.request, p.calls[0].state) for p in book.past()] == [
        ("first", "done"),
        ("change things", "undone"),
    ]
    assert book.undo().request == "first"
    assert book.undo() == journal.Undone()


def test_a_call_that_fails_changes_nothing(workspace: Workspace) -> None:
    before, book = filled(workspace), Journal(workspace)
    run = book.run("r")

    def failing() -> None:
        with run.call("t", {}):
            change(run)
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        failing()
    assert content(workspace) == before
    assert book.past()[0].calls[0].state == "rolled back"
    assert book.undo() == journal.Undone()


def test_undo_keeps_what_was_changed_since(workspace: Workspace) -> None:
    filled(workspace)
    book = Journal(workspace)
    run = book.run("r")
    with run.call("t", {}):
        change(run)
    workspace.put("notes/a.md", b"by hand")
    undone = book.undo()
    assert undone.kept[0] == "notes/a.md: changed since"
    assert content(workspace) == {
        "notes/a.md": b"by hand",
        "notes/c.md": b"c",
        "files/d.txt": b"d",
    }


def test_a_mail_that_was_sent_stays_sent(workspace: Workspace) -> None:
    book = Journal(workspace)
    run = book.run("send")
    with run.call("send_email", {}) as call:
        run.outside("a mail to anna@example.com was sent")
        run.write("mail/copy", b"copy")
        call.said = "Sent."
    assert book.undo() == journal.Undone("send", (), ("a mail to anna@example.com was sent",))
    assert content(workspace) == {}


def killed(at: int, body: Callable[[], object]) -> bool:
    """Run `body` in a child that is killed at its `at`-th flush to disk; whether it was."""
    child = os.fork()
    if child == 0:
        flushes, flush = 0, os.fsync

        def fsync(file: Any) -> None:
            nonlocal flushes
            flushes += 1
            if flushes == at:
                os.kill(os.getpid(), signal.SIGKILL)
            flush(file)

        os.fsync = fsync  # type: ignore[assignment]
        body()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def doing(workspace: Workspace) -> None:
    run = Journal(workspace).run("change things")
    with run.call("t", {}):
        change(run)


@forks
def test_killed_at_any_moment_a_call_is_done_wholly_or_not_at_all(tmp_path: Path) -> None:
    at, again, alive = 0, 0, False
    while not alive:
        at += 1
        (tmp_path / str(at)).mkdir()
        workspace = Workspace(tmp_path / str(at))
        before = filled(workspace)
        alive = not killed(at, lambda w=workspace: doing(w))  # type: ignore[misc]
        again = again % 7 + 1  # the recovery is killed too, somewhere
        killed(again, Journal(workspace).recover)
        Journal(workspace).recover()
        states = [call.state for past in Journal(workspace).past() for call in past.calls]
        assert states in (["done"], ["rolled back"], [])
        assert content(workspace) == (AFTER if states == ["done"] else before)
        assert states == ["done"] or not alive
        assert Journal(workspace).recover() == []
        run = Journal(workspace).run("the next")
        with run.call("t", {}):
            run.write("notes/next.md", b"next")
        assert workspace.read("notes/next.md") == b"next"
    assert at > 20  # it was killed at many moments


@forks
def test_killed_while_undoing_the_next_one_ends_it(tmp_path: Path) -> None:
    at, alive = 0, False
    while not alive:
        at += 1
        (tmp_path / str(at)).mkdir()
        workspace = Workspace(tmp_path / str(at))
        before = filled(workspace)
        doing(workspace)
        alive = not killed(at, Journal(workspace).undo)
        Journal(workspace).recover()
        if content(workspace) == AFTER:
            assert at == 1  # killed before it had begun
            continue
        assert content(workspace) == before
        assert Journal(workspace).undo() == journal.Undone()


@forks
def test_two_processes_wait_for_each_other(workspace: Workspace) -> None:
    def count() -> None:
        book = Journal(workspace)
        for _ in range(15):
            run = book.run()
            with run.call("count", {}):
                n = int(workspace.read("n") or b"0")
                run.write("n", str(n + 1).encode())

    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            count()
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert workspace.read("n") == b"30"


def test_a_busy_workspace_is_refused_in_the_end(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_PATIENCE", 0.05)
    with Journal(workspace).locked(), pytest.raises(UsageError, match="another process"):
        Journal(workspace).undo()


# Dates and times


@pytest.mark.parametrize(
    ("text", "day", "clock"),
    [
        ("2026-12-01T16:00", "2026-12-01", "16:00"),
        ("2026-12-01T16:00Z", "2026-12-01", "17:00"),
        ("2026-12-01", "2026-12-01", ""),
        ("Friday 11 December at 09:00", "2026-12-11", "09:00"),
        ("12月11日周五09:00", "2026-12-11", "09:00"),
        ("16:30", "", "16:30"),
        ("tomorrow at 4 pm", "2026-12-01", "16:00"),
        ("4pm on Friday", "2026-12-04", "16:00"),
        ("Monday", "2026-12-07", ""),
        ("next Friday", "2026-12-11", ""),
        ("the day after tomorrow at 9:30", "2026-12-02", "09:30"),
        ("the 3rd of May at 5 in the afternoon", "2027-05-03", "17:00"),
        ("Dec 24th 2027", "2027-12-24", ""),
        ("the 5th", "2026-12-05", ""),
        ("in 20 minutes", "2026-11-30", "10:33"),
        ("in an hour and a half", "2026-11-30", "11:43"),
        ("in two weeks", "2026-12-14", ""),
        ("tonight at 8", "2026-11-30", "20:00"),
        ("tomorrow morning", "2026-12-01", "09:00"),
        ("quarter to five pm", "", "16:45"),
        ("half past four", "", "16:30"),
        ("noon", "", "12:00"),
        ("at 4", "", "16:00"),
        ("明天下午四点", "2026-12-01", "16:00"),
        ("今晚八点", "2026-11-30", "20:00"),
        ("下周五上午十点半", "2026-12-11", "10:30"),
        ("周三", "2026-12-02", ""),
        ("本周日", "2026-12-06", ""),
        ("十二月四日下午3点一刻", "2026-12-04", "15:15"),
        ("二十分钟后", "2026-11-30", "10:33"),
        ("一个半小时后", "2026-11-30", "11:43"),
        ("半小时后", "2026-11-30", "10:43"),
        ("三天后", "2026-12-03", ""),
        ("中午12点", "", "12:00"),
        ("凌晨一点", "", "01:00"),
        ("星期天晚上7:30", "2026-12-06", "19:30"),
    ],
)
def test_what_is_said_of_a_time(text: str, day: str, clock: str) -> None:
    assert when.parse(text, NOW) == when.When(
        date.fromisoformat(day) if day else None, time.fromisoformat(clock) if clock else None
    )


@pytest.mark.parametrize("text", ["lunch", "12/1", "25:00", "February 30", "", "tomorrow lunch"])
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a date or a time"):
        when.parse(text, NOW)


def test_a_time_in_a_title_is_found_and_taken_out() -> None:
    said, rest = when.split("tomorrow's dentist appointment", NOW)
    assert said.day == date(2026, 12, 1)
    assert rest == "'s dentist appointment"
    assert when.split("Lunch with May", NOW) == (when.When(), "Lunch with May")
    assert when.split("周例会", NOW)[0] == when.When()


def test_times_are_said_in_both_languages() -> None:
    tomorrow, later = NOW + timedelta(days=1), NOW + timedelta(days=60)
    assert when.say(tomorrow, NOW, "en") == "tomorrow at 10:13"
    assert when.say(tomorrow, NOW, "zh") == "明天10:13"
    assert when.say(later, NOW, "en") == "Friday 29 January 2027 at 10:13"
    assert when.say(later, NOW, "zh") == "2027年1月29日周五10:13"


def test_an_hour_is_an_hour_when_the_clocks_change() -> None:
    before = datetime(2026, 10, 25, 2, 30, tzinfo=NOW.tzinfo)
    assert when.later(before, timedelta(hours=1)).isoformat() == "2026-10-25T02:30:00+01:00"


# The packs, on the demo


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("demo") / "demo"
    return demo.open_demo(NOW, root)


@pytest.fixture
def do(life: Workspace) -> Any:
    """Call a tool of the demo; what a test changed is taken back after it."""
    packs = [*contact_tools(Contacts(life)), *reminders.tools(life)]
    tools = {tool.name: tool for tool in (*packs, *home.tools(life), *car.tools(life))}
    book = Journal(life)

    def call(tool: str, language: Literal["en", "zh"] = "en", /, **arguments: Any) -> Outcome:
        return tools[tool].run(arguments, Context(NOW, language, book.run("test")))

    before = content(life)
    yield call
    while book.undo() != journal.Undone():
        pass
    assert content(life) == before


def test_a_demo_lives_for_a_day(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    first = demo.open_demo(NOW, root)
    first.put("notes/mine.md", b"mine")
    assert demo.open_demo(NOW, root).read("notes/mine.md") == b"mine"
    assert demo.open_demo(NOW + timedelta(days=1), root).read("notes/mine.md") is None
    own = tmp_path / "own"
    own.mkdir()
    (own / "file").write_text("x")
    assert content(demo.open_demo(NOW, own)) == {"file": b"x"}


def test_contacts(do: Any) -> None:
    assert do("find_contact", name="anna").data["email"] == "anna.berg@example.com"
    assert do("find_contact", name="mom").data["name"] == "Margaret Larsen"
    assert "138 0013 8000" in do("find_contact", "zh", name="王芳").said
    two = do("find_contact", name="David")
    assert set(two.choices) == {
        "David Kim (david.kim@acme.org)",
        "David Novak (d.novak@lakeside.edu)",
    }
    assert do("find_contact", name=two.choices[1]).data["phone"] == "555 0123"
    assert do("find_contact", name="Prya Patel").data["name"] == "Priya Patel"
    assert do("find_contact", name="Zoe").error == "no name Zoe"
    assert not do("add_contact", name="Anna Berg", phone="555 1").ok
    assert not do("add_contact", name="Zoe").ok
    assert do("add_contact", name="Zoe Lang", email="zoe@example.com").ok
    assert do("update_contact", name="zoe", phone="555 0199").said == (
        "Changed Zoe Lang: zoe@example.com, 555 0199."
    )


def test_reminders(do: Any) -> None:
    said = do("set_reminder", task="pay the rent", when="friday 9 am").said
    assert said == "I will remind you: pay the rent, Friday 4 December at 09:00."
    assert do("set_reminder", "zh", task="吃药", when="今晚八点", repeat="daily").ok
    assert not do("set_reminder", task="x", when="2026-11-01T09:00").ok
    due = do("list_reminders", date="2026-12-04").data["reminders"]
    assert due == [{"task": "pay the rent", "when": "2026-12-04T09:00"}]
    assert do("complete_reminder", task="rent").said == "Done: pay the rent."
    assert do("complete_reminder", "zh", task="吃药").said == "已完成：吃药。下次：明天20:00。"
    assert do("list_reminders", date="2026-12-04").data == {"reminders": []}
    assert do("delete_reminder", task="call bank").ok
    assert do("delete_reminder", task="call bank").error == "no task call bank"


def test_the_home(do: Any, life: Workspace) -> None:
    def state(kind: str, room: str = "") -> list[dict[str, Any]]:
        devices = json.loads(life.read(home.STATE) or b"")["devices"]
        return [d["state"] for d in devices if d["kind"] == kind and room in ("", d["room"])]

    assert do("set_light", light="desk lamp", brightness=40, color="blue").said == (
        "Office desk lamp: on, 40%, blue."
    )
    assert (
        do("set_light", "zh", light="台灯", brightness=10).said == "书房台灯：开，亮度10%，蓝色。"
    )
    assert state("light", "office") == [{"on": True, "brightness": 10, "color": "blue"}]
    asked = do("set_light", light="ceiling light", brightness=5)
    assert asked.choices == ("kitchen ceiling light", "living room ceiling light")
    assert do("set_light", light=asked.choices[0], brightness=5).ok
    assert [s["brightness"] for s in state("light", "kitchen")] == [5]
    assert do("switch_device", device="lights", on=False, room="living room").ok
    assert [s["on"] for s in state("light", "living room")] == [False, False]
    assert do("switch_device", "zh", device="所有的灯", on=True).ok
    assert all(s["on"] for s in state("light"))
    assert do("lock_door", "zh", door="前门", locked=True).said == "前门：已锁。"
    assert do("lock_door", door="cellar door", locked=True).error == "no door cellar door"
    assert do("set_cover", cover="blinds", position=50).ok
    assert state("cover", "office") == [{"position": 50}]
    assert do("set_thermostat", temperature=23, room="bedroom").ok
    assert [s["temperature"] for s in state("thermostat")] == [20, 23]
    assert not do("set_thermostat", temperature=99).ok
    assert do("activate_scene", "zh", scene="睡眠模式").ok
    assert not any(s["on"] for s in state("light"))
    assert all(s["locked"] for s in state("lock"))
    assert do("get_device", device="back door").said == "Back door: locked."


def test_the_car(do: Any) -> None:
    assert do("lock_car", locked=False).said == "Car doors: unlocked."
    assert do("car_window", "zh", window="driver", percent=30).said == "主驾车窗：打开30%。"
    assert do("charge_car", limit=90, start="11 pm").data["start"] == "23:00"
    assert do("set_car_temperature", degrees=21, seat="rear").data["temperature"] == 21
    assert do("check_tires").said == "Front tires: 2.5 bar; rear tires: 2.3 bar."
