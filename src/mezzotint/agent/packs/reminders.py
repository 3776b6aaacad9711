"""Reminders: a folder of .ics files, each a to-do (VTODO) that is due at a moment.

A repeated one is due again when it is done. Other programs that read to-dos read these.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any, Literal

import icalendar

from mezzotint.agent import names, when
from mezzotint.agent.packs import ics
from mezzotint.agent.packs.texts import clean
from mezzotint.agent.tool import Context, Effect, Outcome, Problem, Tool
from mezzotint.agent.when import Day, Said, When
from mezzotint.agent.workspace import Workspace

FOLDER = "reminders"
Repeat = Literal["daily", "weekly", "monthly", "weekdays"]
_RULES: dict[str, dict[str, Any]] = {
    "daily": {"FREQ": "DAILY"},
    "weekly": {"FREQ": "WEEKLY"},
    "monthly": {"FREQ": "MONTHLY"},
    "weekdays": {"FREQ": "WEEKLY", "BYDAY": ["MO", "TU", "WE", "TH", "FR"]},
}
_CHINESE = {"daily": "每天", "weekly": "每周", "monthly": "每月", "weekdays": "每个工作日"}
_MORNING = time(9)  # of a reminder for which a day is said and no time


@dataclass(frozen=True, slots=True)
class Reminder:
    """An open reminder. due: in the user's zone. repeat: a key of the rules, or ""."""

    path: str
    task: str
    due: datetime
    repeat: str


def tools(workspace: Workspace) -> list[Tool]:
    pack = _Pack(workspace)
    return [
        Tool.of(pack.set_reminder, Effect.WRITES),
        Tool.of(pack.list_reminders, Effect.READS),
        *(
            Tool.of(act, Effect.WRITES, known={"task": pack.said}, things={"task": pack.tasks})
            for act in (pack.complete_reminder, pack.delete_reminder)
        ),
    ]


class _Pack:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def set_reminder(
        self, task: str, when: Said, repeat: Repeat | None = None, *, context: Context
    ) -> Outcome:
        """Remind the user of something at a given time."""
        due = _due(when, context)
        if due <= context.now:
            past = _say(due, context)
            raise Problem(context.say(f"{past} is in the past", f"{past}已经过去了"))
        todo = icalendar.Todo.new(uid=str(uuid.uuid4()), summary=task, start=due)
        todo.add("due", due)
        if repeat:
            todo.add("rrule", _RULES[repeat])
        path = f"{FOLDER}/{todo['UID']}.ics"
        self._write(path, todo, context)
        made = next(r for r in self._open(context) if r.path == path)
        said = context.say(
            f"I will remind you: {_line(made, context)}.", f"好的，提醒：{_line(made, context)}。"
        )
        return Outcome(said, _data(made))

    def list_reminders(self, date: Day | None = None, *, context: Context) -> Outcome:
        """List the open reminders, of a day or all."""
        found = [r for r in self._open(context) if not date or r.due.date() == date]
        if not found:
            return Outcome(context.say("There is no reminder.", "没有提醒。"), {"reminders": []})
        lines = [_line(reminder, context) for reminder in found]
        said = context.say(f"Reminders: {'; '.join(lines)}.", f"提醒：{'；'.join(lines)}。")
        return Outcome(said, {"reminders": [_data(reminder) for reminder in found]})

    def complete_reminder(self, task: str, *, context: Context) -> Outcome:
        """Mark a reminder as done."""
        found = self._find(task, context)
        todo = self._todo(found.path)
        following = ics.next_todo(todo, max(found.due, context.now)) if found.repeat else None
        if following:
            _set(todo, "dtstart", following)
            _set(todo, "due", following)
        else:
            _set(todo, "status", "COMPLETED")
            _set(todo, "completed", datetime.now(UTC).replace(microsecond=0))
        self._write(found.path, todo, context)
        said = context.say(f"Done: {found.task}.", f"已完成：{found.task}。")
        if following:
            then = _say(following, context)
            said += context.say(f" Due again {then}.", f"下次：{then}。")
        return Outcome(said, {"task": found.task})

    def delete_reminder(self, task: str, *, context: Context) -> Outcome:
        """Delete a reminder."""
        found = self._find(task, context)
        context.writing().delete(found.path)
        said = context.say(
            f"Deleted the reminder: {_line(found, context)}.",
            f"已删除提醒：{_line(found, context)}。",
        )
        return Outcome(said, {"task": found.task})

    def said(self, text: str) -> list[str]:
        """The tasks that a text names in full, as it names them."""
        return names.said_in(text, self.tasks(), whole=True)

    def tasks(self) -> list[str]:
        todos = filter(None, map(self._todo, self._workspace.files(FOLDER)))
        return [clean(str(todo.get("SUMMARY", ""))) for todo in todos]

    def _find(self, task: str, context: Context) -> Reminder:
        return names.only(
            task,
            self._open(context),
            lambda r: r.task,
            context,
            "task",
            lambda r: _line(r, context),
        )

    def _open(self, context: Context) -> list[Reminder]:
        """What is not done, by the time when it is due."""
        return sorted(self._read(context), key=lambda reminder: reminder.due)

    def _read(self, context: Context) -> Iterator[Reminder]:
        zone = context.now.tzinfo
        assert zone is not None
        for path in self._workspace.files(FOLDER):
            todo = self._todo(path)
            if todo is None or str(todo.get("STATUS", "")) in ("COMPLETED", "CANCELLED"):
                continue
            due = todo.get("DUE") or todo.get("DTSTART")
            if due is not None:
                moment = ics.moment(due.dt, zone)
                yield Reminder(path, clean(str(todo.get("SUMMARY", ""))), moment, _repeat(todo))

    def _todo(self, path: str) -> Any:
        """The to-do of a file, or None."""
        calendar = ics.parsed(self._workspace.read(path))
        return next(iter(calendar.todos), None) if calendar else None

    def _write(self, path: str, todo: Any, context: Context) -> None:
        context.writing().write(path, ics.text_of(todo))


def _due(said: When, context: Context) -> datetime:
    return When(said.day, said.clock or _MORNING).at(context.now)


def _repeat(todo: Any) -> str:
    rule = todo.get("RRULE")
    if rule is None:
        return ""
    plain = {key: [str(v) for v in rule[key]] for key in ("FREQ", "BYDAY") if key in rule}
    for name, wanted in _RULES.items():
        if plain == {k: v if isinstance(v, list) else [v] for k, v in wanted.items()}:
            return name
    return ""


def _set(todo: Any, name: str, value: Any) -> None:
    todo.pop(name, None)
    todo.add(name, value)


def _say(moment: datetime, context: Context) -> str:
    return when.say(moment, context.now, context.language)


def _line(reminder: Reminder, context: Context) -> str:
    due = _say(reminder.due, context)
    often = f", {reminder.repeat}" if reminder.repeat else ""
    return context.say(
        f"{reminder.task}, {due}{often}",
        f"{due}{_CHINESE.get(reminder.repeat, '')}{reminder.task}",
    )


def _data(reminder: Reminder) -> dict[str, str]:
    data = {"task": reminder.task, "when": f"{reminder.due:%Y-%m-%dT%H:%M}"}
    return data | ({"repeat": reminder.repeat} if reminder.repeat else {})
