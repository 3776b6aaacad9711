"""The command line as its users meet it: real processes, pipes and signals; toy models."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mezzotint.agent.events import Said
from mezzotint.backend import toy
from mezzotint.cli.agent_show import Show
from mezzotint.cli.holes import parse
from mezzotint.errors import UsageError
from mezzotint.generate import Options, stream

MEZZOTINT = (sys.executable, "-m", "mezzotint.cli")
SLOW = """
import sys, time
from mezzotint.backend.toy import ToySession
score = ToySession.score
def slow(self, rows, want):
    time.sleep(0.05)
    return score(self, rows, want)
ToySession.score = slow
from mezzotint.cli import main
main()
"""  # a toy that takes its time, so that a signal comes in the middle


def run(*args: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MEZZOTINT, *args], input=text, capture_output=True, text=True, timeout=60,
        env=os.environ | env,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEZZOTINT_HOME", str(tmp_path))


def test_text_on_stdout_and_timing_on_stderr() -> None:
    ran = run("run", "toy", "hello", "--max-tokens", "12")
    assert ran.returncode == 0
    assert 1 <= len(ran.stdout.removesuffix("\n")) <= 12
    assert ran.stdout.isprintable() or ran.stdout.endswith("\n")
    assert re.fullmatch(
        r"prefill \d+ ms · decode \d+ ms · \d+ passes · [\d.]+ tokens/pass · \d+ tokens/s · "
        r"stopped by (length|stop)\n",
        ran.stderr,
    )


def test_quiet_says_nothing_but_the_text() -> None:
    assert run("run", "toy", "hello", "--quiet").stderr == ""


def test_json_has_what_a_script_wants_and_the_same_text() -> None:
    args = ("generate", "toy", "hello", "--max-tokens", "9", "--seed", "3", "--temperature", "1")
    result = json.loads(run(*args, "--json").stdout)
    assert result["text"] == run(*args, "--quiet").stdout.removesuffix("\n")
    assert result["tokens_per_pass"] == pytest.approx(
        result["written"] / result["passes"], abs=1e-4
    )
    assert (result["family"], result["seed"]) == ("toy", 3)
    assert result["stop"] in ("stop", "length")


def test_prompt_from_a_pipe_is_the_prompt() -> None:
    piped = run("generate", "toy", "--quiet", text="hello\n").stdout
    assert piped == run("generate", "toy", "hello", "--quiet").stdout
    assert piped == run("generate", "toy", "-", "--quiet", text="hello").stdout
    assert piped != run("generate", "toy", "hullo", "--quiet").stdout


def test_infill_keeps_the_text_around_its_holes() -> None:
    ran = run("infill", "toy", r"a{} [[4]] b \[[1]] [[?]] end", "--quiet")
    assert re.fullmatch(r"a\{\} .{4} b \[\[1\]\] .{4,32} end\n", ran.stdout)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[[3]]", [3]),
        ("x[[3]][[?]]y", ["x", 3, None, "y"]),
        (r"\[[3]] [[1]]", ["[[3]] ", 1]),
        ("[[link]] {} [[ 8 ]] [[2]]", ["[[link]] {} [[ 8 ]] ", 2]),
        (r"C:\dir [[1]]", [r"C:\dir ", 1]),
    ],
)
def test_holes(text: str, parts: list[str | int | None]) -> None:
    assert parse(text) == parts


@pytest.mark.parametrize("text", ["none", r"\[[3]]", "[[0]]", "[[99999]]", "[[5000]]"])
def test_bad_holes(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["run", "nothing", "hi"], 2, "no model 'nothing'"),
        (["run", "toy-nothing", "hi"], 2, "toy-nothing"),
        (["run", "toy", "hi", "--polcy", "x"], 2, "--polcy"),
        (["run", "toy", "hi", "--policy", "best"], 2, "no policy 'best'"),
        (["run", "toy", "hi", "--max-tokens", "0"], 2, "max_tokens is 0"),
        (["run", "toy", "hi", "--max-tokens", "ten"], 2, "--max-tokens"),
        (["run", "toy", "hi", "--temperature", "-1"], 2, "temperature"),
        (["run", "toy", "hi", "--top-p", "7"], 2, "top_p"),
        (["run", "toy", "hi", "--cache", "some"], 2, "no cache 'some'"),
        (["run", "toy", "hi", "--weights", "int3"], 2, "int3"),
        (["run", "toy", "hi", "--max-tokens", "5000"], 3, "context is 4096"),
        (["run", "toy", ""], 2, "prompt is empty"),
        (["infill", "toy", "no hole"], 2, "no hole"),
        (["infill", "toy-ar", "a [[2]] b"], 2, "cannot infill"),
        (["info", "pyproject.toml"], 2, "neither a .gguf file"),
        (["rm", "nothing", "--yes"], 2, "no model 'nothing'"),
        (["rm", "nothing"], 2, "asks first"),
        (["rm", "../..", "--yes"], 2, "not usable"),
        (["pull", "hf:nobody"], 2, "hf:ORG/REPO"),
        (["pull", "pypi:thing"], 2, "pypi:PACKAGE==VERSION"),
        (["sing"], 2, "sing"),
    ],
)
def test_a_mistake_is_a_sentence_and_a_hint(args: list[str], code: int, says: str) -> None:
    ran = run(*args)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    assert re.fullmatch(r"error: [^\n]+(\n\nhint: [^\n]+)?\n", ran.stderr)


def test_invalid_utf8_on_stdin_names_the_byte() -> None:
    ran = subprocess.run([*MEZZOTINT, "run", "toy"], input=b"caf\xe9", capture_output=True)
    assert ran.returncode == 2
    assert b"byte 0xe9 at offset 3" in ran.stderr


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in run("run", "nothing", "hi", MEZZOTINT_DEBUG="1").stderr


def test_a_fault_of_ours_is_one_sentence_and_70() -> None:
    code = (
        "import mezzotint.store\n"
        "mezzotint.store.models = lambda: 1 / 0\n"
        "from mezzotint.cli import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code, "list"], capture_output=True, text=True)
    assert ran.returncode == 70
    assert ran.stderr.startswith("error: unexpected ZeroDivisionError: division by zero\n\nhint: ")
    assert "Traceback" not in ran.stderr


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [*MEZZOTINT, "generate", "toy", "x", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(30) == 141


def test_ctrl_c_in_the_middle_of_decoding() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "run", "toy-ar", "hello", "--max-tokens", "2000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert out, "what was settled is shown"
    assert (err, process.returncode) == ("", 130)


def terminal(*command: str, stop_after: bytes = b"", **env: str) -> tuple[int, bytes]:
    """Run on a terminal of 80 columns; exit code and what it showed. Ctrl-C at `stop_after`."""
    pid, screen = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm", "COLUMNS": "80", "LINES": "24"} | env)
        os.execv(command[0], command)
    shown = b""
    while select.select([screen], [], [], 30)[0]:
        try:
            block = os.read(screen, 4096)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        shown += block
        if stop_after and stop_after in shown:
            os.write(screen, b"\x03")
            stop_after = b""
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def test_terminal_shows_holes_and_then_the_text() -> None:
    code, shown = terminal(*MEZZOTINT, "run", "toy", "hello", "--max-tokens", "12", NO_COLOR="")
    plain = run("run", "toy", "hello", "--max-tokens", "12", "--quiet").stdout.strip()
    assert code == 0
    assert "·".encode() not in shown.splitlines()[-2]
    assert plain.encode() in shown
    os.environ.pop("NO_COLOR", None)
    _, shown = terminal(*MEZZOTINT, "run", "toy", "hello", "--max-tokens", "12")
    assert "···".encode() in shown
    assert shown.rstrip().splitlines()[-2].endswith(plain.encode())


def test_ctrl_c_on_a_terminal_gives_the_cursor_back() -> None:
    code, shown = terminal(
        sys.executable, "-c", SLOW, "run", "toy", "hello", stop_after="···".encode()
    )
    assert code == 130
    assert b"Traceback" not in shown
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") > -1


def test_chat_remembers_and_ends_at_ctrl_d() -> None:
    pid, screen = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execv(MEZZOTINT[0], [*MEZZOTINT, "run", "toy", "--max-tokens", "8", "-q"])
    shown = b""
    for line in (b"one\n", b"one\n", b"\x04"):
        count = shown.count(b"> ")
        while shown.count(b"> ") == count:
            assert select.select([screen], [], [], 30)[0], shown
            shown += os.read(screen, 4096)
        os.write(screen, line)
    _, status = os.waitpid(pid, 0)
    os.close(screen)
    assert os.waitstatus_to_exitcode(status) == 0


def test_ctrl_c_in_a_chat_stops_the_answer_alone() -> None:
    pid, screen = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execv(sys.executable, [sys.executable, "-c", SLOW, "run", "toy-ar", "-q"])
    shown = b""
    for line, pause in ((b"one\n", 1.5), (b"\x03", 0), (b"\x04", 0)):
        count = shown.count(b"> ")
        while line != b"\x03" and shown.count(b"> ") == count:
            assert select.select([screen], [], [], 30)[0], shown
            shown += os.read(screen, 4096)
        os.write(screen, line)
        time.sleep(pause)
    _, status = os.waitpid(pid, 0)
    os.close(screen)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "…".encode() in shown


def test_list_and_info_as_json(tmp_path: Path) -> None:
    assert json.loads(run("list", "--json").stdout) == []
    file = tmp_path / "some.gguf"
    file.write_bytes(b"GGUF")
    assert json.loads(run("pull", str(file), "--json").stdout)["linked"] is True
    (entry,) = json.loads(run("list", "--json").stdout)
    assert (entry["name"], entry["size"]) == ("some", 4)
    assert run("info", "some").returncode == 3
    assert run("rm", "some", "--yes").returncode == 0
    assert file.exists()


def test_doctor_reports_engine_and_advice() -> None:
    report = json.loads(run("doctor", "--json", "--threads", "1").stdout)
    assert report["engine"]["kernels"] in report["engine"]["available"]
    assert report["engine"]["int8_ops"] > 1e8
    assert report["engine"]["bandwidth"] > 1e8
    assert any("smollm2-135m" in line for line in report["advice"])


def test_help_is_fast_because_it_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom mezzotint.cli import run\nrun(['run', '--help'])\n"
        "print(sorted({'numpy', 'rich', 'torch', 'tokenizers', 'huggingface_hub'} "
        "& sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"
    assert "Example: mezzotint run" in ran.stdout


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_calls_are_seen_filling_and_gone_when_events_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("mezzotint.terminal.FRAME", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show, model = Show(as_json=False, quiet=False, trace=None), toy.load("toy-window")
    for step in (run := stream(model, [1, 2, 3], Options(max_tokens=12))):
        show.watch(run, step)
    assert "··" in screen.getvalue()
    filling = len(screen.getvalue())
    show.follow(iter([Said("done", question=False)]))
    after = screen.getvalue()[filling:]
    assert "\x1b[2K" in after, "the canvas is wiped away"
    assert "\x1b[?25h" in after, "the cursor is back"
    assert "model 0 ms" in after
