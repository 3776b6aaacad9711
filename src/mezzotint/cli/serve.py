"""The command `serve`: other programs and a browser use the model."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mezzotint.cli import options as o
from mezzotint.errors import BackendError, UsageError

KEY = "MEZZOTINT_API_KEY"
EXTRA = ("fastapi", "prometheus_client", "uvicorn")


def serve(
    model: o.ModelName = "hybrid",
    host: Annotated[str, typer.Option(help="Address; others than this machine need a key.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8383,
    slots: Annotated[int, typer.Option(help="Requests that run at once.")] = 8,
    queue: Annotated[int, typer.Option(help="Requests that wait; more are refused.")] = 64,
    deadline: Annotated[float, typer.Option(help="Seconds a request may take.")] = 300.0,
    drain: Annotated[float, typer.Option(help="Seconds to finish what runs at SIGTERM.")] = 30.0,
    api_key_file: Annotated[
        Path | None, typer.Option(help=f"File that holds the key; or set {KEY}.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that requests may be sent to.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The model's id; default: as given.")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log requests with their text.")
    ] = False,
    weights: o.WeightsOption = None,
    adapter: o.Adapter = None,
    backend: o.BackendOption = o.Backend.native,
    threads: o.Threads = 0,
    quiet: o.Quiet = False,
) -> None:
    """Serve OpenAI's API and a page on this machine (extra: serve)."""
    try:
        from mezzotint.serve import server
        from mezzotint.serve.app import create_app
        from mezzotint.serve.settings import Settings
    except ImportError as error:
        if error.name not in EXTRA:
            raise
        raise BackendError(f"{error.name} is missing", "pip install 'mezzotint[serve]'") from None
    from mezzotint.model import load

    settings = Settings(
        name or Path(model).name, host, port, slots, queue, api_key=_key(api_key_file),
        hosts=tuple(allow_host or ()), deadline=deadline, drain=drain, log_requests=log_requests,
    )  # fmt: skip
    bound = server.listen(settings)
    loaded = load(model, backend.value, weights, threads, quiet=quiet, adapter=adapter)
    server.run(
        create_app(loaded, settings), bound, settings, lambda: _ready(server.url(bound), open_)
    )


def _key(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(KEY) or None
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"{file} cannot be read: {why}") from None


def _ready(url: str, shows: bool) -> None:
    print(url, flush=True)
    if shows:
        import webbrowser

        if not webbrowser.open(url):
            print("no browser was found; open the address yourself", file=sys.stderr)


def bench(
    model: Annotated[str, typer.Option(help="What our server serves.")] = "hybrid",
    clients: Annotated[int, typer.Option(min=1)] = 64,
    requests: Annotated[int, typer.Option(min=10)] = 2000,
    gguf: Annotated[
        Path | None, typer.Option(help="The same weights for llama.cpp's server: also race it.")
    ] = None,
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Put a crowd of clients on our server, and race llama.cpp's (extras: serve, bench)."""
    from mezzotint.bench import serve as measured

    stood = measured.stand(model, clients, requests, threads=threads)
    raced = measured.race(model, gguf, threads=threads) if gguf else []
    if json:
        o.emit(measured.report(stood, raced))
    else:
        print(measured.table(stood, raced))
