"""An arm in a process of its own that answers one prompt: what it takes to be there.

Seconds to load are from the asking to an arm that can be asked: files in the system's cache,
imports of the engine included. Peak is VmHWM: all that was ever resident, mapped files too,
and the interpreter with the libraries that every arm shares.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from mezzotint.bench.arms import Asked, Bench, Spec, checked
from mezzotint.bench.memory import peak
from mezzotint.bench.tasks import Grade, Task
from mezzotint.errors import BackendError


def alone(spec: Spec, asked: Asked, threads: int) -> dict[str, Any]:
    """seconds: to load. loaded, peak: bytes. Raises BackendError if the process fails."""
    task = asked.task
    told = {
        "spec": spec.model_dump(mode="json"),
        "threads": threads,
        "ids": asked.ids,
        "messages": task.messages,
        "tools": task.tools,
        "max_tokens": task.max_tokens,
    }
    command = [sys.executable, "-m", __name__]
    ran = subprocess.run(
        command, input=json.dumps(told), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        why = ran.stderr.strip().splitlines()[-1:]
        raise BackendError(f"{spec.name} failed in a process of its own: {why}")
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _answer(told: dict[str, Any]) -> dict[str, Any]:
    """What the process does."""
    task = Task(
        "alone", "", "", tuple(told["messages"]), tuple(told["tools"]), "",
        told["max_tokens"], lambda text: False, lambda text: Grade(True, True),
    )  # fmt: skip
    began = time.perf_counter()
    arm = Bench(told["threads"], quiet=True).open(checked(told["spec"]))
    loaded = {"seconds": time.perf_counter() - began, "loaded": peak()}
    asked = Asked(task, tuple(told["ids"]))
    arm.ready(asked)
    arm.run(asked)
    return loaded | {"peak": peak()}


if __name__ == "__main__":
    print(json.dumps(_answer(json.load(sys.stdin))))
