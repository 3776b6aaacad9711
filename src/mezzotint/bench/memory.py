"""Peak memory of a whole run, measured in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from mezzotint.errors import BackendError

TOKENS = 256  # read by the run, and again written by it

_RUN = """
import json, sys
from mezzotint.bench.memory import peak
from mezzotint.generate import Options, generate
from mezzotint.model import load

name, weights, threads, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
model = load(name, weights=weights, threads=threads, quiet=True)
generate(model, [1] * count, Options(max_tokens=count))
engine = model.engine
kv = engine.kv_bytes_per_token * 2 * count
print(json.dumps({"peak": peak(), "weights": engine.packed_bytes, "kv": kv}))
"""


def peak() -> int:
    """Bytes: the largest resident size that this process ever had."""
    if sys.platform == "linux":  # not ru_maxrss, which counts the process that started this one
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text("utf-8"))
        assert found is not None
        return int(found[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def peak_memory(name: str, weights: str, threads: int = 0) -> dict[str, int]:
    """Bytes: peak resident size of loading and writing TOKENS after TOKENS; its parts.

    overhead is what is neither packed weights nor KV: the interpreter, the libraries, the
    tokenizer, scratch. The packed cache must exist, as it does after any earlier load.
    """
    command = [sys.executable, "-c", _RUN, name, weights, str(threads), str(TOKENS)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise BackendError(f"the memory run failed: {ran.stderr.strip().splitlines()[-1:]}")
    parts: dict[str, int] = json.loads(ran.stdout)
    return parts | {"overhead": parts["peak"] - parts["weights"] - parts["kv"]}
