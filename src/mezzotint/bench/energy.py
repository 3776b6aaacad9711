"""Energy of a stretch of work, from the machine's own counters through `zeus`, if there are any.

RAPL (Intel, AMD) and NVML are read by that package (extra: energy); what is told is the sum of
all packages and GPUs of the machine, whoever used them. Where it finds none, nothing is
estimated: the words are "not measurable here".
"""

from __future__ import annotations

from typing import Any

NONE = "not measurable here"


class Meter:
    """`with meter:` and then `meter.joules`; None without counters. source: what is read."""

    def __init__(self) -> None:
        self.joules: float | None = None
        self._monitor, self.source = _monitor()

    def __enter__(self) -> Meter:
        if self._monitor is not None:
            self._monitor.begin_window("turn", sync_execution=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._monitor is not None:
            found = self._monitor.end_window("turn", sync_execution=False)
            self.joules = sum([*found.gpu_energy.values(), *(found.cpu_energy or {}).values()])


def _monitor() -> tuple[Any, str]:
    try:
        from zeus.monitor import ZeusMonitor
    except ImportError:
        return None, f"{NONE} (no counters are read without `pip install 'mezzotint[energy]'`)"
    try:
        monitor = ZeusMonitor()
    except Exception as error:  # it raises what the driver of each vendor raises
        return None, f"{NONE} ({error})"
    parts = {"GPU": monitor.gpu_indices, "CPU": monitor.cpu_indices}
    found = [name for name, indices in parts.items() if indices]
    return (monitor, f"zeus: {', '.join(found)}") if found else (None, NONE)
