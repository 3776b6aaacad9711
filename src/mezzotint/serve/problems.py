"""What goes wrong, as OpenAI's clients read it: {"error": {message, type, param, code}}.

Law: a message speaks of the request alone. What it could tell of this machine, a path or a
traceback, stays here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from mezzotint.errors import (
    Busy,
    Cancelled,
    Deadline,
    MezzotintError,
    ModelError,
    TooLarge,
    UsageError,
)

LONGEST = 400  # characters of a message


class Problem(HTTPException):
    """A request that is answered by an error. kind: OpenAI's `type` of it."""

    def __init__(
        self,
        status: int,
        message: str,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message[:LONGEST], headers)
        self.kind, self.param, self.code = kind, param, code

    def body(self) -> dict[str, Any]:
        told = {"message": self.detail, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": told}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body(), self.status_code, self.headers)


class Told(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """Every error has this body."""

    error: Told


def bad(message: str, param: str | None = None, code: str | None = None) -> Problem:
    """The request itself is wrong; `param` names where."""
    return Problem(400, message, param=param, code=code)


def problem(error: BaseException) -> Problem:
    """What a client is told of `error`."""
    match error:
        case Problem():
            return error
        case HTTPException():
            return Problem(error.status_code, error.detail, headers=error.headers)
        case Busy():
            after = {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
            message = "the queue is full; try again later"
            return Problem(429, message, "rate_limit_error", code="queue_full", headers=after)
        case Deadline():
            # Trying again would take as long, so clients are asked not to.
            again = {"x-should-retry": "false"}
            message = "the answer was not finished within the server's deadline"
            return Problem(504, message, "timeout_error", code="deadline", headers=again)
        case Cancelled():
            return Problem(503, "the server is closing", "server_error", code="closing")
        case TooLarge():
            return bad(_said(error), code="context_length_exceeded")
        case UnicodeEncodeError():
            return bad("the request holds half of a character (a lone surrogate)")
        case RecursionError():
            return bad("the request is nested too deep")
        case UsageError() | ModelError():
            return bad(_said(error))
        case MezzotintError() if type(error) is MezzotintError:
            return Problem(500, _said(error), "server_error")
        case _:
            return Problem(500, "the server failed to answer", "server_error")


def install(app: FastAPI) -> None:
    """Every error of the application has OpenAI's shape."""
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind in (HTTPException, MezzotintError, Exception):
        app.add_exception_handler(kind, _other)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return invalid(error.errors()).response()


async def _other(request: Request, error: Exception) -> JSONResponse:
    return problem(error).response()


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """The first thing that is wrong with a request's body."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return bad("the body is not JSON")
    place = [*first["loc"], *first.get("ctx", {}).get("param", "").split()]
    param = _place(place[1:])
    if first["type"] == "extra_forbidden":
        return bad(f"{param} is not supported", param, "unsupported_parameter")
    if first["type"] == "unsupported":
        return bad(f"{param} {first['msg']}", param, "unsupported_value")
    return bad(f"{param}: {first['msg']}" if param else first["msg"], param or None)


def _place(loc: Sequence[str | int]) -> str:
    return "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in loc).lstrip(".")


def _said(error: MezzotintError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)
