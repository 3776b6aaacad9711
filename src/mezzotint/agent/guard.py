"""What no call may make up: what the user left out, and whom an act reaches.

A model fills every hole it is given. These checks look at a finished call, with no model: a
number where none was said, a mail whose text is only the word "mail", a recipient whom nobody
named. What is missing becomes a question to the user ("Who should get it?"), not a request for
consent: a user who says yes to everything must not have agreed to something invented.
"""

from __future__ import annotations

import re

from mezzotint.agent import names
from mezzotint.agent.found import Found
from mezzotint.agent.ground import MOMENTS, Moments, content_of
from mezzotint.agent.handed import content, topic
from mezzotint.agent.tool import Context, Effect, Outcome, Preview, Tool
from mezzotint.agent.unsaid import missing
from mezzotint.toolcall import Call, texts_in

_PEOPLE = ("to", "recipient", "cc", "bcc")
# What a thing is called says nothing of what it should hold.
_KINDS = re.compile(
    r"\b(?:e-?mails?|mails?|messages?|notes?|reminders?|events?|lines?|texts?|something|anything"
    r"|a|an|the|new|my|short|quick|this|that|it|to|for|about|of|back|please|pls|thanks|thank you"
    r"|cheers|now|asap|(?:would|could|will|can) you)\b|电子邮件|邮件|笔记|备忘录?|提醒|日程|日历"
    r"|一[封个条则份下]|新的?|[个封条]|谢谢|麻烦|请|吧$",
    re.IGNORECASE,
)
_TEXTS, _LEAST = ("body", "comment"), 3  # words of what a mail says, if nobody dictated it
_QUESTIONS = {
    **dict.fromkeys(_PEOPLE, ("Who should get it?", "发给谁？")),
    **dict.fromkeys(("body", "text", "content"), ("What should it say?", "写什么内容？")),
    "email": ("What is the email or the phone number?", "邮箱或电话是什么？"),
    "task": ("What should I remind you of?", "提醒你什么？"),
    "new": ("What should the new name be?", "新名字是什么？"),
}


def lacking(tool: Tool, call: Call, request: str, said: Moments, found: Found) -> str:
    """An argument that the request does not say and the tool must be told, or ""."""
    needed = tool.parameters.get("required", ())
    text = content_of(tool)
    if text and (text in needed or text == "body") and _empty(call, text, request):
        return text
    if text and tool.effect is Effect.IRREVERSIBLE and _invented(call, text, request, found):
        return text
    unsaid = missing(tool, request, bool(said) or bool(found and found.days()))
    for name in needed:
        if name in unsaid:
            return str(name)
        value = call.arguments.get(name)
        before = [call.arguments.get(n) for n in needed if n != name]
        if isinstance(value, str) and name in ("new", "to", "body") and value in before:
            return str(name)
        if name == "new" and name in strange(call, request):
            return str(name)
    return ""


def question(argument: str, context: Context) -> str:
    """How the user is asked for an argument."""
    english, chinese = _QUESTIONS.get(argument, (f"Which {argument}?", f"{argument}是什么？"))
    return context.say(english, chinese)


def moment_question(context: Context) -> str:
    return context.say("When?", "什么时候？")


def stranger(call: Call, preview: Preview | None, request: str, found: Found) -> str:
    """The argument that says whom an act reaches, if the user named no such person: neither in
    the request, nor by speaking of what was read and holds that person. "" if all are known."""
    said = set(names.words(request))
    read = {str(value) for name in _PEOPLE for value in found.values(name)}
    for name in _PEOPLE:
        value = call.arguments.get(name)
        if not isinstance(value, str) or not value.strip() or value in read:
            continue
        if set(names.words(value)) <= said or value.casefold() in request.casefold():
            continue
        if preview and preview.to and all(said & set(names.words(who)) for who in preview.to):
            continue
        return name
    return ""


def strange(call: Call, request: str) -> tuple[str, ...]:
    """Arguments of which a text is not in the user's own words."""
    said = _plain(request)
    return tuple(
        name
        for name, value in call.arguments.items()
        if not all(_plain(text) in said for text in texts_in(value))
    )


def again(tool: Tool, preview: Preview | None, sent: list[Preview], orders: int) -> bool:
    """Whether an act would reach somebody again whom the same run has reached, though the user
    asked for fewer such acts."""
    if tool.effect is not Effect.IRREVERSIBLE or preview is None:
        return False
    return len(sent) >= orders and any(set(preview.to) & set(one.to) for one in sent)


def _empty(call: Call, name: str, request: str) -> bool:
    """Whether a text says nothing but what it is or is about, or what other arguments say."""
    value = call.arguments.get(name)
    if not isinstance(value, str):
        return True
    if name in _TEXTS and len(names.words(value)) < _LEAST and value not in content(request):
        return True
    others = {
        w
        for n, v in call.arguments.items()
        if n in _PEOPLE and isinstance(v, str)
        for w in names.words(v)
    }
    about = set(names.words(topic(request.replace(content(request) or "\0", " "))))
    return not set(names.words(_KINDS.sub(" ", value))) - others - about


def _invented(call: Call, name: str, request: str, found: Found) -> bool:
    """Whether more than two thirds of a text's longer words are neither the user's nor of what was
    read."""
    value = call.arguments.get(name)
    said = {*names.words(request), *names.words(found.words())}
    words = names.words(value) if isinstance(value, str) else []
    mine = [word for word in words if len(word) > 2 or not word.isascii()]
    return 3 * sum(word in said for word in mine) < len(mine)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w@]+", " ", text.casefold()).split())


def unknown(tool: Tool, argument: str, context: Context) -> Outcome:
    """The outcome of a call that lacks an argument: a question."""
    schema = tool.parameters["properties"].get(argument, {})
    asked = (
        moment_question(context) if schema.get("format") in MOMENTS else question(argument, context)
    )
    return Outcome(error=asked, argument=argument)
