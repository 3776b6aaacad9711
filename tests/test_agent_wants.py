"""What a request wants: its orders, the tools for them, what is copied, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from mezzotint import toolcall
from mezzotint.agent import guard, names, reply
from mezzotint.agent.choose import Chooser
from mezzotint.agent.clauses import clauses
from mezzotint.agent.demo import fill
from mezzotint.agent.events import Asked, Did, Event, Refused, Revised, Said, Timing
from mezzotint.agent.ground import Moments, hours
from mezzotint.agent.handed import content, task
from mezzotint.agent.loop import Agent
from mezzotint.agent.stores import Stores, open_stores
from mezzotint.agent.tool import Preview, Tool
from mezzotint.agent.wants import wants
from mezzotint.agent.workspace import Workspace
from mezzotint.agent.writer import Line, schema
from mezzotint.constraint import lines
from mezzotint.generate import Options, generate
from mezzotint.model import load
from mezzotint.toolcall import Call

NOW = datetime(2026, 11, 30, 9, 0).astimezone()  # a Monday


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    fill(Workspace(tmp_path), NOW)
    return open_stores(Workspace(tmp_path))


class Scripted:
    """Writes the next turn of a script; keeps the lines that it was held to."""

    def __init__(self, *turns: Sequence[Call]) -> None:
        self.turns = list(turns)
        self.lines: list[list[Line]] = []

    def write(
        self, messages: Sequence[dict[str, str]], tools: Sequence[Tool], lines: Sequence[Line] = ()
    ) -> tuple[str, Timing]:
        self.lines.append(list(lines))
        return (toolcall.write(self.turns.pop(0)) if self.turns else "Done."), Timing(0.0, 1, 1)


def agent(stores: Stores, *turns: Sequence[Call], yes: bool = True) -> Agent:
    def consent(call: Call, tool: Tool) -> bool:
        return yes

    return Agent(Scripted(*turns), stores.tools, stores.journal, lambda: NOW, consent)


def of(events: Sequence[Event], kind: type) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def allowed(line: Line) -> dict[str, dict[str, object]]:
    """Tool → its arguments' schemas, of a line of a plan."""
    assert not isinstance(line, str)
    return {tool.name: tool.parameters["properties"] for tool in line}


ORDERS: list[tuple[str, list[str]]] = [
    ("Shift the meeting to Friday and write Tom that I'm there", ["move_event", "send_email"]),
    ("Email Tom that I'll be late and bring bread", ["send_email"]),
    ("Look for Eva's mail about the trip and forward it to Max", ["search_email", "forward_email"]),
    ("I'm leaving: lock the back door, then start the vacuum", ["lock_door", "start_vacuum"]),
    ("Mail Dr. Weber that I cancel. Then delete the file plan.txt", ["send_email", "delete_file"]),
    ("给陈磊发邮件说我明天不来，然后把后门锁上", ["send_email", "lock_door"]),
    ("Is the back door locked?", ["get_device"]),
    ("Order a taxi to the airport", []),
    # Orders without a verb, and words that only say why.
    (
        "Fan off, curtains shut, and is the back door locked?",
        ["switch_device", "set_cover", "get_device"],
    ),
    ("The kitchen ceiling light is too bright, bring it down to 30 percent", ["set_light"]),
    ("I don't need manual.txt any more, get rid of that file", ["delete_file"]),
    ("明天下午两点和李明开会，加到日历里", ["create_event"]),
]


@pytest.mark.parametrize(("request_", "tools"), ORDERS)
def test_orders_and_their_tools(stores: Stores, request_: str, tools: list[str]) -> None:
    found, _ = wants(request_, Chooser.of(stores.tools))
    assert len(found) == len(tools)
    assert all(t in {x.name for x in w.tools} for w, t in zip(found, tools, strict=True))


def test_an_order_that_says_it_waits_for_what_is_found(stores: Stores) -> None:
    look, act = wants("Find Eva's mail and forward it to Max", Chooser.of(stores.tools))[0]
    assert act.after is look
    assert act.next == ()
    (alone,) = wants("Delete the mail from the bank", Chooser.of(stores.tools))[0]
    assert {tool.name for tool in alone.next} <= {"search_email", "read_email"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("write Tom that I'll be there at ten", "I'll be there at ten"),
        ("Make a note: milk, eggs", "milk, eggs"),
        ("给陈磊发邮件说我明天不来", "我明天不来"),
        ("move that meeting to Friday", ""),
        ("tell her the car is ready", "the car is ready"),
    ],
)
def test_words_that_are_handed_on(text: str, said: str) -> None:
    assert content(text) == said


def test_parts_of_a_request() -> None:
    assert len(clauses("Turn off the lamp and the fan")) == 1
    assert task("remind me at 7 to pack my shoes")[0] == "pack my shoes"
    two = clauses("The bathroom is cold, set it to 23 degrees and turn the fan off")
    assert [part.acts for part in two] == [True, True]
    assert "bathroom" in two[0].text


def test_an_order_is_a_line_held_to_its_words(stores: Stores) -> None:
    some = agent(stores)
    list(some.ask("Email Anna that I'm late and remind me tomorrow at 8 to call Ben"))
    mail, reminder = some.writer.lines[0]
    to_anna = allowed(mail)["send_email"]
    assert (to_anna["to"], to_anna["body"]) == ({"enum": ["Anna"]}, {"enum": ["I'm late"]})
    assert "subject" not in to_anna
    call_ben = allowed(reminder)["set_reminder"]
    assert call_ben["task"] == {"enum": ["call Ben"]}
    assert call_ben["when"] == {"enum": ["2026-12-01T08:00"]}


def test_the_number_of_a_mail_is_the_one_that_was_found(stores: Stores) -> None:
    some = agent(stores, [Call("search_email", {"from": "Priya"})])
    list(some.ask("Find Priya's mail about the budget and move it to the archive"))
    (line,) = some.writer.lines[1]
    assert allowed(line)["move_email"]["id"] == {"enum": [100]}


def test_what_was_read_is_not_read_again_and_is_handed_on(stores: Stores) -> None:
    some = agent(stores, [Call("find_contact", {"name": "Carla"})])
    list(some.ask("Look up Carla's phone number and write it in a note"))
    (line,) = some.writer.lines[1]
    assert "find_contact" not in allowed(line)
    assert allowed(line)["create_note"]["text"] == {"enum": ["Carla Rossi: 555 0190"]}


def test_options_lengths_and_him(stores: Stores) -> None:
    some = agent(stores)
    list(some.ask("Cancel lunch with Ben and send him a mail saying I'm ill"))
    _, mail = some.writer.lines[0]
    assert allowed(mail)["send_email"]["to"] == {"enum": ["Ben"]}
    some = agent(stores)
    list(some.ask("Put coffee in my calendar for Friday at 3 pm, for half an hour"))
    (line,) = some.writer.lines[0]
    assert allowed(line)["create_event"]["duration"] == {"enum": [30]}
    assert names.said_in("push it back", ["back door"], kind=True) == []


# What nobody said is asked for


MISSING: list[tuple[str, Call, str, str, dict[str, object]]] = [
    ("I want to send Anna an email", Call("send_email", {"to": "Anna", "subject": "email"}),
     "What should it say?", "Tell her the fence is done", {"body": "the fence is done"}),
    ("Send Ben a mail about the party", Call("send_email", {"to": "Ben", "body": "the party"}),
     "What should it say?", "It begins at eight", {"body": "It begins at eight"}),
    ("Set the volume", Call("set_volume", {"level": 50}), "Which level?", "20 percent",
     {"level": 20}),
    ("Rename the file resume.txt", Call("rename_file", {"old": "resume.txt", "new": "resume.txt"}),
     "What should the new name be?", "cv.txt", {"old": "resume.txt", "new": "cv.txt"}),
    ("Remind me to feed the cat", Call("set_reminder", {"task": "feed the cat", "when": "10:00"}),
     "When?", "tonight at eight", {"when": "2026-11-30T20:00"}),
    ("Write a mail that I am late", Call("send_email", {"to": "Ben", "body": "I am late"}),
     "Who should get it?", "Anna", {"to": "Anna"}),
    ("Mail Carla, please", Call("send_email", {"to": "Carla", "body": "I'm sorry for you"}),
     "What should it say?", "Dinner is off", {"body": "Dinner is off"}),
    ("Add Nadia Haddad to my contacts", Call("add_contact", {"name": "Nadia Haddad"}),
     "What is the email or the phone number?", "it's 555 0142", {"phone": "555 0142"}),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "made_up", "question", "said", "then"), MISSING)
def test_what_is_missing_is_asked_for_not_made_up(
    stores: Stores, request_: str, made_up: Call, question: str, said: str, then: dict[str, object]
) -> None:
    some = agent(stores, [made_up])
    *events, asked = some.ask(request_)
    assert isinstance(asked, Said)
    assert (asked.question, asked.text) == (True, question)
    assert not of(events, Asked)
    (did,) = of(list(some.ask(said)), Did)
    assert did.outcome.ok
    assert then.items() <= did.call.arguments.items()


def test_nobody_gets_a_second_mail_that_was_not_ordered(stores: Stores) -> None:
    once = Call("send_email", {"to": "Anna", "body": "I am late"})
    twice = Call("send_email", {"to": "Anna Berg", "body": "late"})
    events = list(agent(stores, [once, twice]).ask("Email Anna that I am late"))
    assert [did.call for did in of(events, Did)] == [once]
    assert of(events, Refused)[0].why == "it went to them already"


def test_a_name_of_the_users_is_replaced_by_no_other_unasked(stores: Stores) -> None:
    some = agent(stores, [Call("lock_door", {"door": "cellar door", "locked": False})])
    *_, said = some.ask("Unlock the cellar door")
    assert said.question
    assert "Did you mean" in said.text
    assert of(list(some.ask("no")), Refused)


def test_the_request_itself_may_say_which(stores: Stores) -> None:
    some = agent(stores, [Call("set_light", {"light": "ceiling light", "brightness": 30})])
    events = list(some.ask("The kitchen ceiling light is too bright, dim that light to 30 percent"))
    assert of(events, Did)[-1].outcome.ok
    assert "itchen" in of(events, Said)[0].text


def test_who_is_a_stranger() -> None:
    from mezzotint.agent.found import Found

    mail = Call("send_email", {"to": "mallory@evil.example", "body": "hi"})
    will = Preview(("mallory@evil.example",), "", "hi")
    assert guard.stranger(mail, will, "Email Ben hi", Found()) == "to"
    assert not guard.stranger(mail, will, "Email mallory@evil.example hi", Found())
    known = Call("send_email", {"to": "Priya Patel", "body": "hi"})
    assert not guard.stranger(known, Preview(("Priya Patel <p@a.org>",)), "Email Priya", Found())


def test_replies() -> None:
    assert reply.picked("the second", ["Anna", "Ben"]) == 1
    assert reply.picked("Ben", ["Anna Berg", "Ben Okafor"]) == 1
    assert reply.picked("no", ["Anna"]) is None
    assert reply.singled_out("the kitchen light", ["kitchen light", "hall light"]) == 0
    assert reply.singled_out("the light", ["kitchen light", "hall light"]) is None
    assert hours("No, seven is better", Moments.of("at 6 pm", NOW)).clocks[0].hour == 19
    assert names.said_in("Switch Anna's lamp off", ["Anna Berg", "王芳"]) == ["Anna"]


# Only what depends on a change is written again


def test_a_correction_rewrites_what_it_is_about_and_keeps_the_rest(stores: Stores) -> None:
    note = Call("create_note", {"text": "buy bread"})
    six, seven = (Call("set_reminder", {"task": "call Mom", "when": w}) for w in ("18:00", "19:00"))
    some = agent(stores, [note, six], [note, seven])
    list(some.ask("Make a note: buy bread; and remind me at 6 pm to call Mom"))
    events = list(some.ask("No wait, seven is better"))
    (revised,) = of(events, Revised)
    assert [(span.before, span.after, span.masked) for span in revised.spans] == [
        (note, note, False),
        (six, seven, True),
    ]
    canvas = some.writer.lines[-1]
    assert canvas[0] == toolcall.write([note])  # given
    assert allowed(canvas[1])["set_reminder"]["when"] == {"enum": ["19:00"]}  # masked
    assert [did.call for did in of(events, Did)] == [seven]
    past = stores.journal.past()[-1].calls
    assert [(c.tool, c.state) for c in past] == [
        ("create_note", "done"),
        ("set_reminder", "undone"),
        ("set_reminder", "done"),
    ]


def test_a_choice_goes_to_every_line_that_waits_for_it(stores: Stores) -> None:
    plan = [
        Call("draft_email", {"to": "David", "body": "I am ill"}),
        Call("send_email", {"to": "David", "body": "See you soon"}),
        Call("create_note", {"text": "ill"}),
    ]
    some = agent(stores, plan)
    *_, said = some.ask("Draft David a mail: I am ill. Send David a mail: See you soon. Note: ill")
    assert said.question
    events = list(some.ask("Kim"))
    (revised,) = of(events, Revised)
    assert [span.masked for span in revised.spans] == [True, True, False]
    assert all(did.outcome.ok for did in of(events, Did))
    assert {did.outcome.data.get("to") for did in of(events, Did)} >= {"david.kim@acme.org"}


@pytest.mark.parametrize("policy", ["left-to-right", "threshold:0.9"])
def test_lines_that_stay_are_given_and_cost_no_pass(stores: Stores, policy: str) -> None:
    """On the toy: random logits cannot leave the plan."""
    tools = {tool.name: schema(tool) for tool in stores.tools}
    kept = toolcall.write([Call("create_note", {"text": 'a "b"\nc'})])
    model, options = load("toy"), Options(max_tokens=200, temperature=0.0, policy=policy)
    plan = lines([kept, [tools["move_email"]], kept])
    made = generate(model, model.tokenizer.encode("x"), options, grammar=plan)
    first, middle, last = made.text.split("\n")
    assert (first, last) == (kept, kept)
    assert toolcall.parse(middle)[0].name == "move_email"
    assert made.forced >= 2 * len(model.tokenizer.encode(kept))
