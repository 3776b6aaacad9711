"""Every error a caller may see, and the exit code the command line gives it.

    MezzotintError            1
    ├── UsageError            2   a bad option, a bad value, an impossible request
    ├── ModelError            3   the checkpoint cannot be used
    │   ├── UnknownFamily         nothing here decodes it rightly
    │   ├── DamagedModel          truncated, bit-flipped, or of the wrong shape
    │   └── TooLarge              does not fit in memory, on disk, or in the context
    ├── PullError             4   a download or its check failed; nothing was kept
    ├── BackendError          5   an extra is missing, or the engine failed
    ├── NoProgress            6   a decoding pass committed nothing (a bug in a policy)
    └── Unfinished            7   work for a server that did not come to its end
        ├── Busy                  no room in its queue; `retry_after` says when there may be
        ├── Deadline              its time was over
        └── Cancelled             its caller took it back, or the server closed

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


class Unfinished(MezzotintError):
    exit_code = 7


class Busy(Unfinished):
    """retry_after: seconds until there is likely room."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message, f"try again in {retry_after} s")
        self.retry_after = retry_after


class Deadline(Unfinished):
    pass


class Cancelled(Unfinished):
    pass
