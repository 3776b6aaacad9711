"""A tool: something the agent may do, and what that does to the world.

    def add_contact(name: str, phone: str = "", *, context: Context) -> Outcome: ...
    tool = Tool.of(add_contact, Effect.WRITES)
    tool.run({"name": "Anna"}, context)

A typed function is a tool: its name, the first paragraph of its docstring and its annotations
make the schema. A parameter annotated `Context` is not the model's: it gets the moment, the
language and the run to write through. An argument that is a Python keyword ends with an
underscore (`from_` is `from`). Tools of servers become the same value elsewhere. This file
knows no store, no model and no policy: who may run an irreversible tool is the loop's affair.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from mezzotint.agent import signature
from mezzotint.agent.journal import Run
from mezzotint.agent.signature import Arguments as Arguments
from mezzotint.agent.signature import Shape
from mezzotint.errors import MezzotintError, UsageError

Language = Literal["en", "zh"]


class Effect(StrEnum):
    """What a tool does to the world. writes: changes what undo can restore."""

    READS = "reads"
    WRITES = "writes"
    IRREVERSIBLE = "irreversible"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call.

    said: a sentence for the user, composed from what was done. data: JSON for the steps that
    follow. error: why nothing was done; then closest is a name that does exist and choices are
    the ones that fit, each of which fits alone as the value of `argument`; labels tell a user
    which is which, where they do not say so themselves. known: all names that there are, if none
    fits; a model is not shown them.
    """

    said: str = ""
    data: Any = None
    error: str = ""
    closest: str = ""
    choices: tuple[str, ...] = ()
    argument: str = ""
    labels: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.error

    def told(self) -> dict[str, Any]:
        """What a model is shown of it, in the form that it was trained on."""
        if self.error:
            told: dict[str, Any] = {"error": self.error}
            if self.closest:
                told["closest"] = self.closest
            if self.choices:
                told["choices"] = list(self.choices)
            return told
        if isinstance(self.data, dict):
            return self.data
        return {"ok": True} if self.data is None else {"result": self.data}


class Problem(Exception):
    """Raised inside a tool: the call cannot be done. It becomes the call's outcome."""

    def __init__(
        self,
        error: str,
        *,
        closest: str = "",
        choices: Sequence[str] = (),
        argument: str = "",
        labels: Sequence[str] = (),
        known: Sequence[str] = (),
    ) -> None:
        super().__init__(error)
        self.outcome = Outcome(
            error=error,
            closest=closest,
            choices=tuple(choices),
            argument=argument,
            labels=tuple(labels),
            known=tuple(known),
        )


@dataclass(frozen=True, slots=True)
class Preview:
    """What an act would do, as it was resolved: for the user to see before it is done.

    to: whom it reaches, each with an address. text: all that they get to read. about: the thing
    that it is done with.
    """

    to: tuple[str, ...] = ()
    subject: str = ""
    text: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """What a call happens in. now: aware, in the user's time zone. run: what a writing tool
    writes through; None in a rehearsal, which ends at the first write."""

    now: datetime
    language: Language = "en"
    run: Run | None = None

    def say(self, english: str, chinese: str) -> str:
        """The sentence in the language of the request."""
        return chinese if self.language == "zh" else english

    def writing(self, preview: Preview | None = None) -> Run:
        """What to write through. Everything before a tool's first use of it changes nothing.

        preview: what is about to be done; where it is only checked, the check gives that.
        """
        if self.run is None:
            raise _Rehearsed(preview)
        return self.run


class _Rehearsed(UsageError):
    """A rehearsal came as far as writing."""

    def __init__(self, preview: Preview | None) -> None:
        super().__init__("nothing may be written here")
        self.preview = preview


def language_of(request: str) -> Language:
    """Chinese if there is a Chinese character in it, else English."""
    return "zh" if re.search("[㐀-鿿]", request) else "en"


Act = Callable[[Arguments, Context], Outcome]
Check = Callable[[Arguments, Context], Preview | None]
Names = Callable[[str], list[str]]
"""Which of the things that a store knows a text speaks of, as the text says them."""
Things = Callable[[], list[str]]
"""What a store knows, by name."""


def _no_check(arguments: Arguments, context: Context) -> None:
    """For a tool whose server or function does all the checking."""


@dataclass(frozen=True, slots=True)
class Tool:
    """parameters: JSON Schema of an object. act: does it. check: raises if act would, as far
    as can be known, else tells what it would do; it changes nothing. known: for arguments that
    name what a store knows, which of those a text names; things: all of those that there are."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    act: Act = field(repr=False)
    check: Check = field(default=_no_check, repr=False)
    known: Mapping[str, Names] = field(default_factory=dict, repr=False)
    things: Mapping[str, Things] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        effect: Effect = Effect.IRREVERSIBLE,
        check: Callable[..., Any] | None = None,
        known: Mapping[str, Names] | None = None,
        things: Mapping[str, Things] | None = None,
    ) -> Tool:
        """A typed function as a tool.

        effect: undeclared, it is taken for irreversible, so that the user is asked first.
        check: called before `function` with the same arguments; raises Problem if the call
        cannot be done. If not given, and `function` takes the context, it is the function
        itself up to its first write. Raises UsageError for parameters without a type.
        """
        shape = signature.shape(function, Context)
        if check is None and shape.context and effect is not Effect.READS:
            check = function
        documentation = inspect.getdoc(function) or ""
        return cls(
            name=function.__name__,
            description=" ".join(documentation.split("\n\n")[0].split()),
            parameters=signature.schema(shape, documentation),
            effect=effect,
            act=partial(_act, function, shape, effect),
            check=partial(_check, check, shape),
            known=known or {},
            things=things or {},
        )

    def checked(self, arguments: Arguments, context: Context) -> Outcome | Preview | None:
        """Why the call would fail, as far as that is known without making it; else what it
        would do, if the tool can say."""
        try:
            return self.check(arguments, context)
        except Exception as e:
            return _failed(e)

    def problem(self, arguments: Arguments, context: Context) -> Outcome | None:
        """Why the call would fail, as far as that is known without making it."""
        found = self.checked(arguments, context)
        return found if isinstance(found, Outcome) else None

    def run(self, arguments: Arguments, context: Context) -> Outcome:
        """Make the call. Never raises for what a tool does; a failed call changed nothing
        that undo could restore."""
        if problem := self.problem(arguments, context):
            return problem
        try:
            if self.effect is Effect.READS:
                return self.act(arguments, context)
            with context.writing().call(self.name, arguments) as call:
                outcome = self.act(arguments, context)
                if not outcome.ok:
                    raise _Failed(outcome)
                call.said = outcome.said
                return outcome
        except Exception as e:
            return _failed(e)


class _Failed(Exception):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error)
        self.outcome = outcome


def _failed(error: Exception) -> Outcome:
    if isinstance(error, Problem | _Failed):
        return error.outcome
    if isinstance(error, ValidationError):
        return Outcome(error="; ".join(map(_told, error.errors())))
    if isinstance(error, MezzotintError):
        return Outcome(error=str(error))
    return Outcome(error=f"{type(error).__name__}: {error}")


def _told(detail: Any) -> str:
    where = ".".join(map(str, detail["loc"]))
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _check(
    check: Callable[..., Any] | None, shape: Shape, arguments: Arguments, context: Context
) -> Preview | None:
    bound = shape.bound(arguments, replace(context, run=None))
    try:
        found = check(**bound) if check else None
    except _Rehearsed as e:
        return e.preview
    if isinstance(found, Outcome) and not found.ok:
        raise _Failed(found)
    return found if isinstance(found, Preview) else None


def _act(
    function: Callable[..., Any],
    shape: Shape,
    effect: Effect,
    arguments: Arguments,
    context: Context,
) -> Outcome:
    if effect is not Effect.READS and not shape.context:
        # It cannot have written through the journal, so undo must not claim to restore it.
        context.writing().outside(f"{function.__name__}({dict(arguments)})")
    result = function(**shape.bound(arguments, context))
    if isinstance(result, Outcome):
        return result
    try:
        data = to_jsonable_python(result)
    except PydanticSerializationError:
        data = str(result)
    return Outcome(said=result if isinstance(result, str) else "", data=data)
