"""Every command, by name. Modules of commands import typer and nothing heavy."""

from __future__ import annotations

from typing import Annotated

import typer

from mezzotint.cli import adapt, agent, export, measure, models, revise, serve, tasks, write
from mezzotint.cli import bench as benchmark

app = typer.Typer(
    help="Run diffusion language models on the device in front of you.",
    epilog='Start with: mezzotint run smollm2-135m "Why is the sky blue?"',
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"mezzotint {version('mezzotint')}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _add(function: object, name: str, example: str, to: typer.Typer = app) -> None:
    to.command(name, epilog=f"Example: {example}")(function)  # type: ignore[type-var]


_add(agent.agent, "agent", 'mezzotint agent "Move the dentist to 4 pm and email Anna about it"')
_add(write.run, "run", 'mezzotint run smollm2-135m "Name three rivers."')
_add(write.generate, "generate", 'mezzotint generate smollm2-135m "Once upon a time"')
_add(write.infill, "infill", 'mezzotint infill ./dream-7b "The capital of [[?]] is Lima."')
_add(revise.revise, "revise", 'mezzotint revise letter.txt --replace "Monday=Thursday"')
_add(serve.serve, "serve", "mezzotint serve --open")
_add(models.info, "info", "mezzotint info smollm2-135m --json")
_add(models.pull, "pull", "mezzotint pull hf:Dream-org/Dream-v0-Instruct-7B --name dream")
_add(models.list_, "list", "mezzotint list")
_add(models.rm, "rm", "mezzotint rm smollm2-135m --yes")
_add(measure.doctor, "doctor", "mezzotint doctor --json")

bench = typer.Typer(
    help="Measure: each quoted number comes from one of these.", rich_markup_mode=None
)
app.add_typer(bench, name="bench")
_add(benchmark.run, "run", "mezzotint bench run --quick --out run1", bench)
_add(benchmark.report, "report", "mezzotint bench report run1", bench)
_add(benchmark.compare, "compare", "mezzotint bench compare run1 run2", bench)
_add(measure.engine, "engine", "mezzotint bench engine --quick", bench)
_add(measure.quality, "quality", "mezzotint bench quality", bench)
_add(measure.agent, "agent", "mezzotint bench agent --limit 6 --verbose", bench)
_add(tasks.tasks, "tasks", "mezzotint bench tasks held-out-en bfcl --oracle", bench)
_add(serve.bench, "serve", "mezzotint bench serve --requests 200", bench)

exporting = typer.Typer(help="Write a model for other programs.", rich_markup_mode=None)
app.add_typer(exporting, name="export")
_add(export.gguf, "gguf", "mezzotint export gguf hybrid hybrid.gguf --type q8_0", exporting)

adapting = typer.Typer(help="Turn an AR model into one that also denoises.", rich_markup_mode=None)
app.add_typer(adapting, name="adapt")
_add(adapt.data, "data", "mezzotint adapt data data/ --shared shared/data", adapting)
_add(adapt.practice, "practice", "mezzotint adapt practice data/ data2/", adapting)
_add(adapt.tools, "tools", "mezzotint adapt tools data2/train.jsonl retrieve.npz", adapting)
_add(adapt.chat, "chat", "mezzotint adapt chat smollm2-135m chat.jsonl", adapting)
_add(adapt.train, "train", "mezzotint adapt train smollm2-135m data/train.jsonl run/", adapting)
_add(adapt.evaluate, "eval", "mezzotint adapt eval hybrid data/eval_en.jsonl --limit 60", adapting)
_add(adapt.tune, "tune", "mezzotint adapt tune run/adapter data/validation.jsonl", adapting)
_add(adapt.average, "average", "mezzotint adapt average run1/adapter run2/adapter mean/", adapting)
_add(adapt.merge, "merge", "mezzotint adapt merge ./Qwen3-0.6B run/adapter merged/", adapting)
