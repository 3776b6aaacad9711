"""The inside of the sandbox: a process that limits itself for good, then runs a program.

Run as a script by `sandbox`, with one JSON object on standard input; it imports nothing of
the project. The filter (seccomp, through libseccomp) is a list of what is allowed: to
compute, to have threads, to read files. What is not on it fails with EPERM: sockets, new
processes, signals to others, and every way to make, change or remove a file.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

SECCOMP = "libseccomp.so.2"
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_MASKED_EQUAL = 7
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_THREAD = 0x00010000  # CLONE_THREAD
_ALLOWED = """
access arch_prctl brk clock_getres clock_gettime clock_nanosleep close dup dup2 dup3
epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 exit exit_group faccessat faccessat2
fadvise64 fcntl fstat fstatfs futex getcpu getcwd getdents64 getegid geteuid getgid getpgrp
getpid getppid getrandom getrusage gettid gettimeofday getuid lseek lstat madvise membarrier
mmap mprotect mremap munmap nanosleep newfstatat pipe pipe2 poll ppoll pread64 pselect6 read
readlink readlinkat readv restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn
sched_getaffinity sched_yield select set_robust_list set_tid_address sigaltstack stat statfs
statx sysinfo time times uname write writev
"""
# Allowed while an argument, by its place, has none of some bits, or all of them: (mask, value).
_CONDITIONAL = {
    "open": (1, _WRITING, 0),
    "openat": (2, _WRITING, 0),
    "clone": (0, _THREAD, _THREAD),
    "prlimit64": (2, 2**64 - 1, 0),  # to read limits, not to raise them
    "ioctl": (1, 2**32 - 1, 0x5401),  # to ask whether a file is a terminal
}


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint), ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64), ("value", ctypes.c_uint64),
    )  # fmt: skip


def limit(seconds: int, memory: int) -> None:
    """Hard limits of CPU seconds and bytes of address space; no core dump, few files."""
    import resource  # not on every system

    for what, most in (
        (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 64),
    ):  # fmt: skip
        resource.setrlimit(what, (most, most))


def confine() -> None:
    """Install the filter; it cannot be taken off again. Raises OSError if that fails."""
    library = ctypes.CDLL(SECCOMP)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_EPERM))
    failed = 0 if context else 1
    for name in _ALLOWED.split():
        failed |= _rule(library, context, _ALLOW, name)
    for name, (place, mask, value) in _CONDITIONAL.items():
        only = _Comparison(place, _MASKED_EQUAL, mask, value)
        failed |= _rule(library, context, _ALLOW, name, only)
    for name in ("clone3", "openat2"):  # their flags are out of sight: the C library falls back
        failed |= _rule(library, context, _ENOSYS, name)
    if failed or library.seccomp_load(context):
        raise OSError("the kernel took no seccomp filter")


def _rule(library: Any, context: Any, action: int, name: str, *only: _Comparison) -> int:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number < 0:  # this processor has no such call
        return 0
    table = (_Comparison * len(only))(*only)
    failed: int = library.seccomp_rule_add_array(context, action, number, len(only), table)
    return failed


def run(program: str, checks: str) -> str:
    """What became of them: "" if both ran to their end, or the error's name."""
    space: dict[str, Any] = {"__name__": "program"}
    for text in (program, checks):
        try:
            exec(compile(text, "program", "exec"), space)
        except BaseException as error:  # SystemExit too: leaving early is no success
            return type(error).__name__ or "Exception"  # a class may be called nothing
    return ""


def main() -> None:
    job = json.load(sys.stdin)
    report, nowhere = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    limit(job["seconds"], job["memory"])
    confine()
    fault = run(job["program"], job["checks"])
    os.write(report, f"{job['secret']}{fault}".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
