"""What a run ran on and with, as far as the system tells: for whoever repeats it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("mezzotint", "numpy", "llama-cpp-python", "gguf", "llguidance", "tokenizers", "openai")


def machine(threads: int) -> dict[str, Any]:
    """Plain JSON values; what cannot be read is None or missing."""
    from mezzotint.backend.native import machine as engine
    from mezzotint.backend.native import measure_peaks, physical_cores

    return {
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "cores": physical_cores(),
        "logical_cores": os.cpu_count(),
        "frequency_mhz": _frequencies(),
        "memory_bytes": psutil.virtual_memory().total,
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "engine": engine(threads),
        "peaks": measure_peaks(threads),
        "packages": {name: _version(name) for name in PACKAGES},
        "llama_cpp": _llama(),
    }


def _processor() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _frequencies() -> list[float]:
    try:
        return [round(one.current) for one in psutil.cpu_freq(percpu=True)]
    except (AttributeError, NotImplementedError, OSError):
        return []


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _llama() -> str | None:
    from mezzotint.bench.llama import version
    from mezzotint.errors import BackendError

    try:
        return version()
    except BackendError:
        return None


def _text(place: str) -> str:
    """Empty where there is no such file."""
    try:
        return Path(place).read_text("utf-8").strip()
    except OSError:
        return ""
