"""docs/api.md from the code: `python -m mezzotint.serve.document > docs/api.md`.

Tables come from the OpenAPI document and the settings; the prose that no type can say is here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mezzotint.backend import toy
from mezzotint.serve.app import create_app
from mezzotint.serve.settings import Settings
from mezzotint.serve.wire import Strict

Json = Mapping[str, Any]
_REF = "#/components/schemas/"

_HEAD = """\
# The HTTP API

Generated from the code by `python -m mezzotint.serve.document`; do not edit it.

    pip install 'mezzotint[serve]'
    mezzotint serve --open

serves the built-in model at `http://127.0.0.1:{port}/`: a page, and OpenAI's API under `/v1`. Any
OpenAI client works unchanged:

    from openai import OpenAI

    client = OpenAI(base_url="http://127.0.0.1:{port}/v1", api_key="unused")
    client.chat.completions.create(model="hybrid", messages=[{{"role": "user", "content": "Hi"}}])

`/openapi.json` is the machine's form of this document. `model` is the name given to
`mezzotint serve`, or its `--name`.

## What is promised

- Nothing is accepted and ignored: a parameter that is not listed here is a 400 that names it.
- A streamed answer is the whole answer in parts. A delta is settled text, in whole characters; it
  is never taken back, and no part of a stop string is ever sent.
- An answer is what it would be if the request were alone, however many run at once.
- A call always keeps to its tool's parameters, and JSON to its schema, `strict` or not.
- A client that goes away frees its slot. Nothing is kept of a request but keys and values of its
  tokens, in memory, so that a prompt that begins alike is not computed again
  (`cached_tokens`).

## Who may ask

Only this machine, unless there is an API key: `MEZZOTINT_API_KEY`, or `--api-key-file` with a
file that holds it. With one, `/v1/…` and `/metrics` need `Authorization: Bearer KEY`. The
`Host` of a request must be an address, `localhost`, or a name given by `--allow-host`. Pages of
other sites are refused (their `Origin` is not the server's), and there is no CORS. What requests
say is logged only with `--log-requests`.

## Limits

{limits}

## Errors

Every error is `{{"error": {{"message", "type", "param", "code"}}}}`.

| status | when |
|---|---|
| 400 | the request is wrong; `param` names where. `context_length_exceeded` where it is too long |
| 401 | the API key is missing or wrong |
| 403 | the `Host` is unknown, or the page that asks is another site's |
| 404 | no such model, session or path |
| 413 | the body is too large |
| 429 | the queue is full; `Retry-After` says in how many seconds there is likely room |
| 499 | the client went away (seen in metrics only) |
| 500 | a fault of the server |
| 503 | the server is closing |
| 504 | not finished within the deadline; `x-should-retry: false` |

Once a stream has begun, an error comes as its last event, `data: {{"error": …}}`.

## Canvas events

With `"stream": true` and `"mezzotint": {{"canvas": true}}`, each forward pass is an event besides
the ordinary ones:

    event: canvas
    data: {{"id": …, "index": 0, "pass": 3, "ms": 3.6, "rows": 8, "settled": 1, "cells":
           [{{"text": "The", "state": "written", "confidence": 0.93}}, …]}}

`cells` are the answer's positions so far: `written`, `draft` (may be taken back) or `masked`.
The first `settled` of them never change. A hole between a prompt and its suffix is filled without
such events.

## The built-in model's tools

Tools are shown to the model in the system message, before the client's own words, and it is
best at tools that look like those it was taught (docs/agent.md). It knows the time only from a
last line `Now: Mon 2026-11-30 14:05` of that message, so a client whose users speak of "tomorrow"
writes one.
"""

_LIMITS = {
    "body_bytes": "bytes of a request",
    "schema_chars": "characters of a schema, or of one tool's parameters, as JSON",
    "tools": "tools of a request",
    "candidates": "candidates (`n`)",
    "slots": "requests that run at once (`--slots`)",
    "queue": "requests that wait (`--queue`)",
    "deadline": "seconds a request may take, its wait included (`--deadline`)",
    "drain": "seconds that running requests have to finish at SIGTERM (`--drain`)",
}


def document() -> str:
    """The whole text, with a newline at its end."""
    settings = Settings("toy")
    app = create_app(toy.load(), settings)
    limits = (f"| {about} | {int(getattr(settings, name))} |" for name, about in _LIMITS.items())
    table = "\n".join(("| what | at most |", "|---|---|", *limits))
    parts = [_HEAD.format(port=settings.port, limits=table), *_endpoints(app.openapi())]
    return "\n".join(parts)


def _endpoints(api: Json) -> Iterator[str]:
    schemas: Json = api["components"]["schemas"]
    used: dict[str, None] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            yield f"## {method.upper()} {path}\n\n{operation.get('description', '')}\n"
            for name in _bodies(operation):
                yield from _model(name, schemas[name], f"{name}\n", used)
    yield "## Their parts\n"
    told: set[str] = set()
    while left := [name for name in used if name not in told]:
        told.add(left[0])
        yield from _model(left[0], schemas[left[0]], f"{left[0]}\n", used)


def _bodies(operation: Json) -> Iterator[str]:
    """Names of the schemas of the request and of the answer."""
    for holder in (operation.get("requestBody", {}), operation["responses"].get("200", {})):
        for content in holder.get("content", {}).values():
            if "$ref" in content.get("schema", {}):
                yield content["schema"]["$ref"].removeprefix(_REF)


def _model(name: str, schema: Json, title: str, used: dict[str, None]) -> Iterator[str]:
    """A heading, what the class says, and its fields. used: gains the names of the parts."""
    yield f"### {title}"
    if about := " ".join(schema.get("description", "").split()):
        yield f"{about}\n"
    if properties := schema.get("properties", {}):
        yield "| field | type | default |\n|---|---|---|"
        for field, inner in properties.items():
            needed = field in schema.get("required", ())
            default = "" if needed else f"`{json.dumps(inner.get('default'))}`"
            yield f"| `{field}` | {_type(inner, used)} | {default} |"
        yield ""
    inert = _inert().get(name, {})
    if inert:
        usual = (f"`{key}`{_only(values)}" for key, values in sorted(inert.items()))
        yield f"Taken only where it asks for nothing: {', '.join(usual)}.\n"


def _only(values: tuple[Any, ...]) -> str:
    shown = " or ".join(f"`{json.dumps(value)}`" for value in values)
    return f" ({shown})" if 0 < len(values) < 8 else ""


def _inert() -> dict[str, Mapping[str, tuple[Any, ...]]]:
    """What each part of a request takes only at values that ask for nothing, by class."""
    found, classes = {}, [Strict]
    for one in classes:
        classes += one.__subclasses__()
        found[one.__name__] = one.inert
    return found


def _type(schema: Json, used: dict[str, None]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        used.setdefault(name)
        return f"[{name}](#{name.lower()})"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(_type(item, used) for item in schema[union]))
    if "const" in schema or "enum" in schema:
        values = schema.get("enum") or [schema["const"]]
        return " or ".join(f"`{json.dumps(value)}`" for value in values)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), used)}"
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    known = {key: schema[key] for key in bounds if abs(schema.get(key, 2**53)) < 2**53}
    limits = [f"{bounds[key]} {value:g}" for key, value in known.items()]
    return f"{kind}, {', '.join(limits)}" if limits else str(kind)


if __name__ == "__main__":
    print(document(), end="")
