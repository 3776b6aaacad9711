"""Commands that write text: run, generate, infill."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mezzotint.cli import options as o

if TYPE_CHECKING:
    from mezzotint.conversation import Conversation
    from mezzotint.generate import Model, Options, Result, Run


def run(
    model: o.ModelName = "hybrid",
    prompt: Annotated[
        str | None, typer.Argument(help="What to ask; absent: stdin, or a chat on a terminal.")
    ] = None,
    system: Annotated[str, typer.Option(help="A system message.")] = "",
    max_tokens: o.MaxTokens = 256,
    policy: o.Policy = None,
    temperature: o.Temperature = None,
    top_p: o.TopP = None,
    top_k: o.TopK = None,
    seed: o.Seed = 0,
    block: o.Block = None,
    cache: o.Cache = "none",
    weights: o.WeightsOption = None,
    adapter: o.Adapter = None,
    backend: o.BackendOption = o.Backend.native,
    threads: o.Threads = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Ask a model; without a prompt, on a terminal, chat with it."""
    from mezzotint.conversation import Conversation
    from mezzotint.generate import Options
    from mezzotint.model import load

    chat = prompt is None and sys.stdin.isatty()
    text = "" if chat else o.read_text(prompt, "prompt")
    how = Options(
        max_tokens=max_tokens, policy=policy, block=block, cache=cache, temperature=temperature,
        top_p=top_p, top_k=top_k, seed=seed,
    )  # fmt: skip
    loaded = load(model, backend.value, weights, threads, quiet=quiet, adapter=adapter)
    talk = Conversation(loaded, how)
    if system:
        talk.messages.append({"role": "system", "content": system})
    if chat:
        _chat(talk, json, quiet)
    else:
        _answer(talk.ask(text), json, quiet)


def _chat(talk: Conversation, json: bool, quiet: bool) -> None:
    print("Ctrl-C stops an answer, Ctrl-D ends the chat.", file=sys.stderr)
    while True:
        try:
            text = input("> ").strip()
        except EOFError:
            return
        if not text:
            continue
        run = talk.ask(text)
        try:
            result = _answer(run, json, quiet)
        except KeyboardInterrupt:
            run.stop()
            result = run.result()
            print(f"\n{result.text} …", flush=True)
        talk.answered(result)


def generate(
    model: o.ModelName,
    prefix: Annotated[
        str | None, typer.Argument(help="Text to continue; absent or -: stdin.")
    ] = None,
    schema: o.Schema = None,
    regex: o.Regex = None,
    choice: o.Choice = None,
    tools: o.Tools = None,
    max_tokens: o.MaxTokens = 128,
    policy: o.Policy = None,
    temperature: o.Temperature = None,
    top_p: o.TopP = None,
    top_k: o.TopK = None,
    seed: o.Seed = 0,
    block: o.Block = None,
    cache: o.Cache = "none",
    weights: o.WeightsOption = None,
    adapter: o.Adapter = None,
    backend: o.BackendOption = o.Backend.native,
    threads: o.Threads = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Continue a text as it is, without a chat template; freely, or held to a constraint."""
    from mezzotint.conversation import raw_ids
    from mezzotint.generate import Options, stream
    from mezzotint.model import load

    text = o.read_text(prefix, "prefix")
    grammar = o.read_grammar(schema, regex, choice, tools)
    how = Options(
        max_tokens=max_tokens, policy=policy, block=block, cache=cache, temperature=temperature,
        top_p=top_p, top_k=top_k, seed=seed,
    )  # fmt: skip
    loaded = load(model, backend.value, weights, threads, quiet=quiet, adapter=adapter)
    ids = raw_ids(loaded.tokenizer, text)
    _answer(stream(loaded, ids, how, grammar=grammar), json, quiet)


def infill(
    model: o.ModelName,
    text: Annotated[
        str | None,
        typer.Argument(
            help="Text with holes; absent or -: stdin. [[8]] is eight tokens, [[?]] any "
            "number, \\[[8]] is plain text."
        ),
    ] = None,
    policy: o.Policy = None,
    temperature: o.Temperature = None,
    top_p: o.TopP = None,
    top_k: o.TopK = None,
    seed: o.Seed = 0,
    block: o.Block = None,
    cache: o.Cache = "none",
    weights: o.WeightsOption = None,
    adapter: o.Adapter = None,
    backend: o.BackendOption = o.Backend.native,
    threads: o.Threads = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fill the holes of a text, seeing what stands on both sides."""
    from mezzotint.cli.holes import parse
    from mezzotint.conversation import raw_ids
    from mezzotint.generate import Options
    from mezzotint.generate import infill as fill
    from mezzotint.model import load

    parts = parse(o.read_text(text, "text"))
    how = Options(
        policy=policy, block=block, cache=cache, temperature=temperature, top_p=top_p,
        top_k=top_k, seed=seed,
    )  # fmt: skip
    loaded = load(model, backend.value, weights, threads, quiet=quiet, adapter=adapter)
    encode = loaded.tokenizer.encode
    ids = [encode(part) if isinstance(part, str) else part for part in parts]
    start = raw_ids(loaded.tokenizer, "")  # the ids a model wants before any text
    result = fill(loaded, [start, *ids] if start else ids, how)
    if not json:
        print(result.text, flush=True)
    _report(result, loaded, how, json, quiet)


def _answer(run: Run, json: bool, quiet: bool) -> Result:
    """Finish the run: text (or JSON) on stdout, timing on stderr."""
    from mezzotint.terminal import show

    start = len(run.canvas) - len(run.canvas.masked)
    result = run.result() if json else show(run, start, start + run.options.max_tokens)
    _report(result, run.model, run.options, json, quiet)
    return result


def _report(result: Result, model: Model, how: Options, json: bool, quiet: bool) -> None:
    from mezzotint.terminal import timing

    if json:
        o.emit(
            {
                "text": result.text,
                "tokens": list(result.tokens),
                "written": result.written,
                "forced": result.forced,
                "passes": result.passes,
                "tokens_per_pass": round(result.tokens_per_pass, 4),
                "prefill_ms": round(result.prefill_seconds * 1e3, 3),
                "decode_ms": round(result.decode_seconds * 1e3, 3),
                "stop": result.stop,
                "family": model.family.name,
                "policy": how.policy or model.family.policy,
                "seed": how.seed,
            }
        )
    elif not quiet:
        print(timing(result), file=sys.stderr)
