"""Tools of MCP servers, as the same `Tool`, through the official SDK.

    with Connections([Server("time", command=("mcp-server-time",))]) as connections:
        tools = connections.tools(taken={"send_email"})

    [mcp.time]                       # in settings.toml; or url = "https://…/mcp"
    command = ["mcp-server-time"]

A server is a program that is started here (stdio) or an address (streamable HTTP). What a tool
does to the world is what its server declares of it, and unknown means irreversible, so that
the user is asked first; nothing that a server does can be undone here. What it answers is
data. The SDK is asynchronous: it lives in one thread of its own, behind calls that wait.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from mezzotint.agent.packs import texts
from mezzotint.agent.tool import Act, Arguments, Context, Effect, Outcome, Problem, Tool
from mezzotint.errors import BackendError, UsageError

if TYPE_CHECKING:
    from anyio.abc import TaskStatus
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Declared

_KEYS = ("command", "env", "url", "timeout", "ask")
_PAGES = 50  # of a list of tools: a server that never ends it is not waited for
_GRACE = 10.0  # seconds for the servers to end


@dataclass(frozen=True, slots=True)
class Server:
    """command and env: the program of a stdio server and what is added to its environment.
    url: the address of another. timeout: seconds for its start and for each call. ask: do not
    believe what it declares of its tools, and ask before each of them."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    timeout: float = 30.0
    ask: bool = False

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> Server:
        """From a table [mcp.NAME] of settings.toml. Raises UsageError for one of no use."""
        unknown = [key for key in settings if key not in _KEYS]
        if unknown:
            raise UsageError(f"[mcp.{name}] has {unknown[0]!r}", f"it takes {', '.join(_KEYS)}")
        command = settings.get("command", ())
        if isinstance(command, str) or bool(command) == bool(settings.get("url")):
            raise UsageError(
                f"[mcp.{name}] needs a command (a list) or a url, and not both",
                'like command = ["mcp-server-time"]',
            )
        return cls(name, **{**settings, "command": tuple(command)})


@dataclass(slots=True)
class _Link:
    """A connected server. done: ends with the connection, with what broke it, if anything."""

    server: Server
    client: Client
    declared: list[Declared]
    done: Future[None]


class Connections:
    """The servers' connections, from entering to leaving. failed: why a server did not start,
    by its name; the others work. Raises BackendError if the SDK is missing."""

    def __init__(self, servers: Sequence[Server]) -> None:
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise BackendError(
                "MCP servers need the mcp package", "pip install 'mezzotint[servers]'"
            ) from None
        self._servers = servers
        self._links: list[_Link] = []
        self._portal: BlockingPortal
        self.failed: dict[str, str] = {}

    def __enter__(self) -> Connections:
        import anyio
        from anyio.from_thread import start_blocking_portal

        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            self._end = anyio.Event()
            stack.callback(self._close)
            with ThreadPoolExecutor(max(1, len(self._servers))) as starting:
                links = list(starting.map(self._start, self._servers))
            self._links = [link for link in links if link is not None]
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def tools(self, taken: Collection[str] = ()) -> list[Tool]:
        """Every server's tools. A name that is taken, or that two servers have, gets its
        server's in front."""
        names = Counter(tool.name for link in self._links for tool in link.declared)
        names.update(taken)
        return [
            self._tool(
                link,
                tool,
                tool.name if names[tool.name] == 1 else f"{link.server.name}_{tool.name}",
            )
            for link in self._links
            for tool in link.declared
        ]

    def _start(self, server: Server) -> _Link | None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            try:
                done, (client, declared) = self._portal.start_task(self._serve, server, log)
            except Exception as e:
                self.failed[server.name] = _reason(e, server) + _last_line(log)
                return None
        return _Link(server, client, declared, done)

    async def _serve(
        self,
        server: Server,
        log: TextIO,
        *,
        task_status: TaskStatus[tuple[Client, list[Declared]]],
    ) -> None:
        """Hold a connection until the end. Only its start is bounded in time."""
        import anyio
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        where: Any = server.url
        if server.command:
            program, *arguments = server.command
            env = dict(server.env)
            where = stdio_client(
                StdioServerParameters(command=program, args=arguments, env=env), log
            )
        with anyio.fail_after(server.timeout) as starting:
            async with Client(where, read_timeout_seconds=server.timeout) as client:
                declared = await _declared(client)
                starting.deadline = math.inf
                task_status.started((client, declared))
                await self._end.wait()

    def _close(self) -> None:
        self._portal.call(self._end.set)
        for link in self._links:
            with suppress(Exception):  # one that broke says so when it is closed, too
                link.done.result(_GRACE)

    def _tool(self, link: _Link, declared: Declared, name: str) -> Tool:
        effect = Effect.IRREVERSIBLE if link.server.ask else _effect(declared)
        act: Act = partial(self._call, link, declared.name, effect)
        return Tool(name, declared.description or "", declared.input_schema, effect, act)

    def _call(
        self, link: _Link, tool: str, effect: Effect, arguments: Arguments, context: Context
    ) -> Outcome:
        server = link.server
        if effect is not Effect.READS:
            context.writing().outside(f"{server.name}: {tool}({dict(arguments)})")
        try:
            result = self._portal.call(_answer, link, tool, dict(arguments))
        except Exception as e:
            raise Problem(_reason(e, server)) from None
        told = "\n".join(_texts(result))
        if result.is_error:
            return Outcome(error=texts.cut(told, context) or f"{tool} failed")
        data = result.structured_content
        shown = texts.cut(told, context)
        return Outcome(said=shown, data=shown if data is None or len(told) > len(shown) else data)


async def _declared(client: Client) -> list[Declared]:
    """All pages of a server's list of tools."""
    page = await client.list_tools()
    tools = list(page.tools)
    for _ in range(_PAGES):
        if page.next_cursor is None:
            break
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


async def _answer(link: _Link, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    import anyio

    with anyio.fail_after(link.server.timeout):
        return await link.client.call_tool(tool, arguments)


def _effect(declared: Declared) -> Effect:
    """Hints are all that there is to go by, and silence is not one."""
    hints = declared.annotations
    if hints is not None and hints.read_only_hint:
        return Effect.READS
    if hints is not None and hints.destructive_hint is False:
        return Effect.WRITES
    return Effect.IRREVERSIBLE


def _texts(result: CallToolResult) -> Iterator[str]:
    for block in result.content:
        if block.type == "text":
            yield block.text
        elif block.type == "resource" and hasattr(block.resource, "text"):
            yield str(block.resource.text)
        else:
            yield f"[{block.type}]"


def _reason(error: BaseException, server: Server) -> str:
    """What broke, of all that the SDK's task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return f"MCP server {server.name} did not answer within {server.timeout:g} seconds"
    if "Connection closed" in str(error):
        return f"MCP server {server.name} has ended"
    return f"MCP server {server.name}: {error or type(error).__name__}"


def _last_line(log: TextIO) -> str:
    """The last thing a program said before it failed to start."""
    log.seek(0)
    lines = [line for line in log.read()[-2000:].splitlines() if line.strip()]
    return f" ({texts.clean(lines[-1])})" if lines else ""
