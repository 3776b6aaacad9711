"""Runs a program a model wrote, where it can do no harm: seconds, megabytes, nothing else.

Enforced by the kernel for a process of its own (`confine`): no network, no other process, no
signal to another, no file made, changed or removed anywhere, CPU time and address space
limited; by its parent: the time on the wall. It may read what its user may read, and nothing
of it leaves but whether the checks passed. A program that ends early proves nothing: success
is a secret said after the last check. Needs Linux with libseccomp; elsewhere it refuses.
"""

from __future__ import annotations

import ctypes
import json
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from mezzotint.bench import confine
from mezzotint.errors import UsageError

SECONDS = 5
MEMORY = 512 << 20
_PATIENCE = 6  # seconds on the wall for one of the processor: a busy machine changes no grade
SLOW = "too slow"
_REPORT = 4096  # bytes that are read; a pipe holds more, and a flood of it stands still


@dataclass(frozen=True, slots=True)
class Outcome:
    """passed: program and checks ran to their end. fault: the error's name, or what happened."""

    passed: bool
    fault: str


def execute(
    program: str, checks: str = "", seconds: int = SECONDS, memory: int = MEMORY
) -> Outcome:
    """Run `program`, then `checks` in the same module. memory: bytes of address space.

    Raises UsageError where nothing could hold it.
    """
    available()
    return _execute(program, checks, seconds, memory)


def _execute(program: str, checks: str, seconds: int, memory: int) -> Outcome:
    secret = secrets.token_hex()
    job = {
        "program": program, "checks": checks, "secret": secret,
        "seconds": seconds, "memory": memory,
    }  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-I", "-B", confine.__file__], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", env={}, start_new_session=True,
    )  # fmt: skip
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with suppress(BrokenPipeError), child.stdin as pipe:
                pipe.write(json.dumps(job).encode())
            child.wait(_PATIENCE * seconds)
        except subprocess.TimeoutExpired:
            return Outcome(False, SLOW)
        finally:
            child.kill()
        return _outcome(child.stdout.read1(_REPORT), secret, child.returncode)  # type: ignore[attr-defined]


def _outcome(report: bytes, secret: str, code: int) -> Outcome:
    said = report.decode(errors="replace")
    if said.startswith(secret):
        fault = said.removeprefix(secret)
        return Outcome(not fault, fault)
    return Outcome(False, SLOW if code == -signal.SIGKILL else f"ended early ({code})")


@cache
def available() -> None:
    """Raises UsageError, with what to install, if programs cannot be confined here."""
    if sys.platform != "linux":
        raise UsageError(f"code is run in a sandbox of Linux, not on {sys.platform}")
    try:
        ctypes.CDLL(confine.SECCOMP)
    except OSError:
        hint = "apt install libseccomp2 (or your system's libseccomp)"
        raise UsageError(f"the sandbox for code needs {confine.SECCOMP}", hint) from None
    if not _execute("", "", SECONDS, MEMORY).passed:
        raise UsageError("this system's kernel takes no seccomp filter: code cannot be run safely")
