"""Every error a caller may see, and the exit code the command line gives it.

    MezzotintError            1
    ├── UsageError            2   a bad option, a bad value, an impossible request
    ├── ModelError            3   the checkpoint cannot be used
    │   ├── UnknownFamily         nothing here decodes it rightly
    │   ├── DamagedModel          truncated, bit-flipped, or of the wrong shape
    │   └── TooLarge              does not fit in memory, on disk, or in the context
    ├── PullError             4   a download or its check failed; nothing was kept
    ├── BackendError          5   an extra is missing, or the engine failed
    └── NoProgress            6   a decoding pass committed nothing (a bug in a policy)

A message names the value and the valid range; `hint` says what to do next:

    try:
        model = load("no-such-model")
    except MezzotintError as e:
        print(e, e.hint, file=sys.stderr)
        sys.exit(e.exit_code)
"""


class MezzotintError(Exception):
    """Base of the tree. `hint` is one sentence for the person at the keyboard, or empty."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(MezzotintError, ValueError):
    exit_code = 2


class ModelError(MezzotintError):
    exit_code = 3


class UnknownFamily(ModelError):
    pass


class DamagedModel(ModelError):
    pass


class TooLarge(ModelError):
    pass


class PullError(MezzotintError):
    exit_code = 4


class BackendError(MezzotintError):
    exit_code = 5


class NoProgress(MezzotintError):
    exit_code = 6
