"""What this machine is, what it can do at most, and advice in sentences.

Measures for about a second. Of models it loads the built-in one, if its base is here.
"""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mezzotint.builtin import BUILTIN, DEFAULT
from mezzotint.checkpoint.memory import BITS, available_memory
from mezzotint.errors import MezzotintError
from mezzotint.model import Model, load
from mezzotint.store import KNOWN, home, models, stored

SMALL = 135e6  # parameters of the built-in model, for the example in the advice


def examine(threads: int = 0) -> dict[str, Any]:
    """Facts about the machine, the engine and the store, as plain JSON values.

    `engine` is {"error": …} where the native core cannot be loaded.
    """
    report = {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "processor": _processor(),
        "logical_cores": os.cpu_count(),
        "memory_available": available_memory(),
        "store": str(home()),
        "disk_free": shutil.disk_usage(_existing(home())).free,
        "models": [entry.name for entry in models()],
        "engine": _engine(threads),
        "decoding": _decoding(threads),
    }
    return report | {"advice": advice(report)}


def advice(report: dict[str, Any]) -> list[str]:
    """What follows from the facts, one sentence each."""
    engine, said = report["engine"], []
    if "error" in engine:
        said.append(
            f"The native engine does not load ({engine['error']}); install the package again, "
            "or use --backend reference."
        )
    else:
        said += _engine_advice(engine)
    if memory := report["memory_available"]:
        most = memory * 0.8 * 8 / BITS["int4"]
        said.append(f"A model of up to about {most / 1e9:.1f}B parameters fits in memory as int4.")
    if not report["models"]:
        said.append(f"The store is empty: `mezzotint pull {next(iter(KNOWN))}` gets a first model.")
    if report["disk_free"] < 1 << 30:
        said.append("Less than 1 GiB is free for models; set MEZZOTINT_HOME to another disk.")
    return said


def _engine_advice(engine: dict[str, Any]) -> list[str]:
    said = []
    if engine["kernels"] in ("portable", "scalar"):
        said.append("No vector kernel runs here, so expect a tenth of the usual speed.")
    floor = SMALL * BITS["int4"] / 8 / engine["bandwidth"]
    width = engine["int8_ops"] * floor / (2 * SMALL)
    said.append(
        f"Reading a 135M int4 model takes {floor * 1e3:.1f} ms, the least a pass can cost; "
        f"up to about {max(round(width), 1)} tokens a pass the arithmetic hides behind it."
    )
    if engine["threads"] > engine["physical_cores"]:
        said.append(
            f"{engine['threads']} threads share {engine['physical_cores']} cores: "
            "leave --threads at 0."
        )
    return said


def tell(report: dict[str, Any]) -> str:
    """The report for a reader."""
    engine, memory = report["engine"], report["memory_available"]
    lines = [
        f"system     {report['system']}, Python {report['python']}",
        f"processor  {report['processor']}, {report['logical_cores']} logical cores",
        f"memory     {memory / 2**30:.1f} GiB available" if memory else "memory     unknown",
        f"store      {report['store']}, {report['disk_free'] / 2**30:.1f} GiB free",
        f"models     {', '.join(report['models']) or 'none'}",
    ]
    if "error" not in engine:
        lines += [
            f"kernels    {engine['kernels']} (of {', '.join(engine['available'])}), "
            f"{engine['threads']} threads on {engine['physical_cores']} cores",
            f"peaks      {engine['int8_ops'] / 1e12:.2f} T int8 operations/s, "
            f"{engine['bandwidth'] / 1e9:.0f} GB/s read",
        ]
    lines += _told(report["decoding"])
    return "\n".join([*lines, "", *report["advice"]])


def _told(decoding: list[dict[str, Any]]) -> list[str]:
    return [
        f"{'decoding' if not i else '':10} {way['policy']:15} window {way['block'] or '-':>2}:"
        f" {way['ms_a_token']:.2f} ms a token ({way['tokens']:.2f} tokens, {way['rows']:.0f} rows"
        f" a pass; {way['right']:.1%} right)"
        for i, way in enumerate(decoding)
    ]


def _engine(threads: int) -> dict[str, Any]:
    try:
        from mezzotint.backend.native import machine, measure_peaks, physical_cores
    except ImportError as e:
        return {"error": str(e)}
    return machine(threads) | measure_peaks(threads) | {"physical_cores": physical_cores()}


def _decoding(threads: int) -> list[dict[str, Any]]:
    """The built-in model's ways of decoding, fastest first, with what a token costs here."""
    own = BUILTIN[DEFAULT]
    if stored(own.base) is None or not own.folder.is_dir():
        return []
    try:
        model = load(DEFAULT, threads=threads, quiet=True)
    except MezzotintError:  # told as `engine`
        return []
    assert isinstance(model, Model)
    if model.decoding is None:
        return []
    some, curve = model.decoding
    timed = [{**asdict(way), "ms_a_token": way.time(curve)} for way in some]
    return sorted(timed, key=lambda way: way["ms_a_token"])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(x.split(":")[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration, IndexError):
        return platform.processor() or platform.machine()


def _existing(place: Path) -> Path:
    return next(p for p in (place, *place.parents) if p.exists())
