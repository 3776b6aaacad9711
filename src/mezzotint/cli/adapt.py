"""Commands that train, and build what is trained on: adapt train, merge, data and chat."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mezzotint.cli import options as o
from mezzotint.errors import UsageError


class Mode(StrEnum):
    hybrid = "hybrid"
    twin = "twin"
    frozen = "frozen"


def train(
    model: o.ModelName,
    data: Annotated[Path, typer.Argument(help="Samples, one JSON object a line.")],
    out: Annotated[Path, typer.Argument(help="Folder of the run; an unfinished one goes on.")],
    mode: Annotated[
        Mode, typer.Option(help="hybrid; twin: next-token loss alone; frozen: AR untouched.")
    ] = Mode.hybrid,
    held_out: Annotated[Path | None, typer.Option(help="Samples for evaluation.")] = None,
    begin: Annotated[
        Path | None, typer.Option("--from", help="A run whose weights a new one begins with.")
    ] = None,
    tokens: Annotated[int, typer.Option(help="Rows to train on.")] = 3_000_000,
    steps: Annotated[
        int, typer.Option(min=0, help="Pause at this step (0: never); the same command goes on.")
    ] = 0,
    lora_rank: Annotated[int, typer.Option(help="Rank of the adapter; 0 trains it all.")] = 32,
    lora_alpha: Annotated[float | None, typer.Option(help="Default: the rank.")] = None,
    dora: Annotated[bool, typer.Option(help="Learn the rows' lengths apart (DoRA).")] = False,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = 1e-3,
    rows: Annotated[int, typer.Option(help="Rows of one batch.")] = 2560,
    accumulate: Annotated[int, typer.Option(help="Batches of one step.")] = 1,
    longest: Annotated[int, typer.Option(help="Longer samples are left out.")] = 1024,
    infill: Annotated[float, typer.Option(help="Share of windows with text after them.")] = 0.1,
    masked_weight: Annotated[float, typer.Option(help="Weight of the masked loss.")] = 1.0,
    mask: Annotated[str | None, typer.Option(help="Control token to be the mask.")] = None,
    seed: o.Seed = 0,
    threads: o.Threads = 0,
    fp32: Annotated[bool, typer.Option(help="Compute in float32, not bfloat16.")] = False,
) -> None:
    """Adapt an AR model so that it also drafts by denoising (extra: torch)."""
    from mezzotint.model import open_named

    try:
        import torch

        from mezzotint.adapt.recipe import Recipe
        from mezzotint.adapt.run import prepare
    except ImportError as e:
        from mezzotint.errors import BackendError

        raise BackendError("training needs PyTorch", "pip install 'mezzotint[torch]'") from e
    if threads:
        torch.set_num_threads(threads)
    recipe = Recipe(
        mode=mode.value,
        rank=lora_rank,
        alpha=lora_rank if lora_alpha is None else lora_alpha,
        dora=dora,
        tokens=tokens,
        lr=lr,
        rows=rows,
        accumulate=accumulate,
        longest=longest,
        infill=infill,
        masked_weight=masked_weight,
        seed=seed,
        dtype="float32" if fp32 else "bfloat16",
    )
    prepare(open_named(model), data, out, recipe, held_out, mask, begin).train(steps)


def evaluate(
    model: o.ModelName,
    prompts: Annotated[list[Path], typer.Argument(help="Sets that `adapt data` made.")],
    arm: Annotated[
        list[str] | None,
        typer.Option(help="A mode or policy; may be repeated. Default: all modes."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Prompts of each set; 0 is all.")] = 0,
    block: o.Block = None,
    weights: o.WeightsOption = None,
    adapter: o.Adapter = None,
    threads: o.Threads = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Grade answers to held-out prompts, decoded in several ways side by side."""
    from mezzotint.adapt.score import ARMS, read_prompts, score, summary, table
    from mezzotint.model import load, trained
    from mezzotint.progress import bar

    rows = read_prompts(prompts, limit)
    loaded = trained(
        load(model, weights=weights, threads=threads, quiet=quiet, adapter=adapter),
        f"{model} has no text to grade",
    )
    arms = arm or (ARMS if loaded.family.diffusion else ARMS[:1])
    with bar("grading", quiet, of_bytes=False) as report:
        found = summary(list(score(loaded, rows, arms, block, report)))
    if json:
        o.emit(found)
    else:
        print(table(found))


def tune(
    adapter: Annotated[Path, typer.Argument(help="The adapter's folder; its note is rewritten.")],
    prompts: Annotated[list[Path], typer.Argument(help="Validation samples.")],
    model: Annotated[str, typer.Option(help="The base.")] = "smollm2-135m",
    limit: Annotated[int, typer.Option(min=1, help="Prompts of each file.")] = 150,
    weights: o.WeightsOption = None,
    threads: o.Threads = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Try window lengths and thresholds, and note what each reaches, for --policy auto."""
    from mezzotint.adapt.score import read_prompts
    from mezzotint.adapt.tune import note, table, try_ways
    from mezzotint.model import Model, load
    from mezzotint.progress import bar

    rows = read_prompts(prompts, limit)
    loaded = load(model, weights=weights, threads=threads, quiet=quiet, adapter=adapter)
    if not isinstance(loaded, Model) or not loaded.family.diffusion:
        raise UsageError(f"{adapter} is no hybrid: it has one way to write")
    with bar("trying", quiet, of_bytes=False) as report:
        found = try_ways(loaded, rows, report)
    note(adapter, found)
    if json:
        o.emit([asdict(way) for way in found])
    else:
        print(table(found))


def merge(
    model: o.ModelName,
    adapter: Annotated[Path, typer.Argument(help="The adapter's folder.")],
    out: Annotated[Path, typer.Argument(help="Folder to write the merged model to.")],
) -> None:
    """Write a model with an adapter in its weights, as a Hugging Face folder."""
    from mezzotint.adapt.export import write_folder
    from mezzotint.checkpoint.adapter import adapted
    from mezzotint.model import open_named

    write_folder(adapted(open_named(model), adapter), adapter, out)


def data(
    out: Annotated[Path, typer.Argument(help="Folder to write the samples and prompts to.")],
    shared: Annotated[
        Path, typer.Option(envvar="MEZZOTINT_SHARED", help="Folder with train/ and eval/.")
    ] = Path("shared/data"),
    size: Annotated[int, typer.Option(min=100, help="Training samples.")] = 60_000,
    chat: Annotated[
        Path | None, typer.Option(help="More samples, one JSON object a line, added as they are.")
    ] = None,
    seed: o.Seed = 0,
) -> None:
    """Build the training mix and the held-out prompts (needs home-assistant-intents)."""
    from mezzotint.adapt.data.build import build
    from mezzotint.bench.tasks import picked
    from mezzotint.bench.tasks.survey import texts

    build(shared, out, seed, size, chat, texts(picked([]), shared))


def practice(
    first: Annotated[Path, typer.Argument(help="Folder that `adapt data` made.")],
    out: Annotated[Path, typer.Argument(help="Folder to write to.")],
    shared: Annotated[
        Path, typer.Option(envvar="MEZZOTINT_SHARED", help="Folder with train/ and eval/.")
    ] = Path("shared/data"),
    size: Annotated[int, typer.Option(min=100, help="New samples, 60% of the mix.")] = 36_000,
    seed: o.Seed = 0,
) -> None:
    """Mix what `adapt data` made with the agent's own situations (extra: agent)."""
    from mezzotint.adapt.data.practice import build
    from mezzotint.bench.tasks import picked
    from mezzotint.bench.tasks.survey import texts

    build(first, shared, out, seed, size, texts(picked([]), shared))


def average(
    first: Annotated[Path, typer.Argument(help="An adapter's folder.")],
    second: Annotated[Path, typer.Argument(help="One that was trained on from it, or beside it.")],
    out: Annotated[Path, typer.Argument(help="Folder to write their mean to.")],
    share: Annotated[float, typer.Option(min=0, max=1, help="Of the second.")] = 0.5,
) -> None:
    """Average two adapters that come from one: what each has learnt since, in one."""
    from mezzotint.adapt.average import average as averaged

    averaged(first, second, out, share)


def tools(
    samples: Annotated[list[Path], typer.Argument(help="What `adapt practice` made: train.jsonl.")],
    out: Annotated[Path, typer.Argument(help="File to write: retrieve.npz of the agent.")],
    held: Annotated[int, typer.Option(min=1, help="Requests kept apart to test on.")] = 500,
    seed: o.Seed = 0,
) -> None:
    """Learn which tools a request needs, for what the agent shows its model (extra: torch)."""
    try:
        from mezzotint.adapt.retriever import fit, read, recalled, write
    except ImportError as e:
        from mezzotint.errors import BackendError

        raise BackendError("training needs PyTorch", "pip install 'mezzotint[torch]'") from e
    from mezzotint.agent.choose import SHOWN, hints

    names = sorted(hints())
    found = read(samples, names)
    learnt = fit(found[held:], names, seed)
    write(learnt, out)
    share = recalled(learnt, found[:held], SHOWN)
    print(
        f"{len(found)} requests, {len(learnt.index)} features: of {min(held, len(found))} kept"
        f" apart, {share:.1%} have all of their tools among the {SHOWN} likeliest"
    )


def chat(
    model: o.ModelName,
    out: Annotated[Path, typer.Argument(help="File of samples to write, for data --chat.")],
    count: Annotated[int, typer.Option(min=1, help="Questions to ask.")] = 600,
    threads: o.Threads = 0,
    seed: o.Seed = 0,
) -> None:
    """Let a model answer questions of everyday, to keep its talk while it is adapted."""
    from mezzotint.adapt.data.chat import distil
    from mezzotint.atomic import replacing
    from mezzotint.model import load, trained
    from mezzotint.progress import bar

    loaded = trained(load(model, weights="int8", threads=threads), f"{model} has nothing to say")
    with (
        replacing(out) as partial,
        open(partial, "w", encoding="utf-8") as lines,
        bar("asking", False, False) as report,
    ):
        found = sum(1 for line in distil(loaded, count, seed, report) if lines.write(line + "\n"))
    print(f"{found} of {count} answers were finished: {out}")
