"""The command line: arguments in, exit code out. What is done lies in the library.

Data goes to stdout and everything else to stderr. Exit codes are those of `errors`, 70
for a fault of ours and 130 for Ctrl-C. MEZZOTINT_DEBUG=1 shows tracebacks.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

from mezzotint.errors import MezzotintError


def main() -> NoReturn:
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    try:
        code = _invoke(arguments or ["--help"])
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_stdout()
        return 141  # as if SIGPIPE had ended us
    except MezzotintError as e:
        _debug()
        return _complain(str(e), e.hint, e.exit_code)
    except Exception as e:
        if hasattr(e, "format_message"):  # the option parser's own errors
            return _complain(e.format_message(), "see `mezzotint COMMAND --help`", 2)
        _debug()
        hint = "a bug: report it on the issue tracker, with what MEZZOTINT_DEBUG=1 prints"
        return _complain(f"unexpected {type(e).__name__}: {e}", hint, 70)


def _invoke(arguments: list[str]) -> int:
    import typer
    from typer.main import get_command

    from mezzotint.cli.app import app

    command = get_command(app)
    try:
        # Not command.main(): it turns Ctrl-C and a broken pipe into messages of its own.
        with command.make_context("mezzotint", arguments) as context:
            command.invoke(context)
    except typer.Exit as e:
        return e.exit_code
    return 0


def _complain(message: str, hint: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    if hint:
        print(f"\nhint: {hint}", file=sys.stderr)
    return code


def _debug() -> None:
    if os.environ.get("MEZZOTINT_DEBUG"):
        traceback.print_exc()


def _discard_stdout() -> None:
    """Nobody reads stdout: let the flush at exit go nowhere, and say nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
