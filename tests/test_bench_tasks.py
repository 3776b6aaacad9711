"""The bench's tasks: a right answer passes, near misses fail, and code can do no harm."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mezzotint import toolcall
from mezzotint.adapt.data import held_out, pool, requests
from mezzotint.bench import sandbox
from mezzotint.bench.tasks import Task, bfcl, code, load, picked, suites
from mezzotint.bench.tasks.calls import acted, call_task
from mezzotint.bench.tasks.survey import overlaps, survey, table, texts
from mezzotint.bench.tasks.task import shared, spread
from mezzotint.errors import UsageError
from mezzotint.toolcall import Call

SHARED = Path(os.environ.get("MEZZOTINT_SHARED", Path(__file__).parents[2] / "shared" / "data"))
CALLS = ["held-out-en", "held-out-zh", "home-en", "home-zh", "bfcl", "hammer-en", "hammer-zh"]

TIMER = {
    "name": "set_timer",
    "parameters": {
        "type": "object",
        "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}},
        "required": ["minutes"],
    },
}
LAMP = {
    "name": "lamp",
    "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
}
PASTA = '{"set_timer":{"minutes":5,"label":"pasta"}}'


def asked(gold: str) -> Task:
    return call_task("t", 0, "g", [{"role": "user", "content": "?"}], [TIMER, LAMP], gold)


def loaded(name: str, limit: int) -> list[Task]:
    """Tasks of a suite, or a skip where its source is not."""
    try:
        return load([name], SHARED, limit)
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture
def confined() -> None:
    try:
        sandbox.available()
    except UsageError as error:
        pytest.skip(str(error))


# Calls


@pytest.mark.parametrize(
    "answer",
    [
        PASTA,
        '{"set_timer":{"label":"pasta","minutes":5}}',
        ' {"set_timer": {"minutes": 5.0, "label": "Pasta."}}\n',
    ],
)
def test_the_same_call_otherwise_spelled_is_right(answer: str) -> None:
    assert asked(PASTA).grade(answer).right


@pytest.mark.parametrize(
    ("answer", "valid", "note"),
    [
        ('{"set_timer":{"minutes":6,"label":"pasta"}}', True, "a wrong value"),
        ('{"set_timer":{"minutes":5}}', True, "a missing argument"),
        ('{"set_timer":{"minutes":5,"label":"pasta","loud":true}}', False, "an extra argument"),
        ('{"set_timer":{"label":"pasta"}}', False, "a missing argument"),
        ('{"lamp":{"on":true}}', True, "another tool"),
        ('{"timer":{"minutes":5,"label":"pasta"}}', False, "another tool"),
        (PASTA + "\n" + '{"lamp":{"on":true}}', True, "an extra call"),
        (PASTA + "\n" + PASTA, True, "an extra call"),
        ("I set a timer of five minutes for the pasta.", False, "prose"),
        ("", False, "prose"),
        (PASTA[:-1], False, "not a tool call"),
        (PASTA + "\nDone.", False, "not a tool call"),
        (f"Sure: {PASTA}", False, "prose"),
    ],
)
def test_a_near_miss_is_wrong_and_says_why(answer: str, valid: bool, note: str) -> None:
    grade = asked(PASTA).grade(answer)
    assert not grade.right
    assert grade.valid == valid
    assert note in grade.note


def test_a_number_as_text_is_right_but_not_valid() -> None:
    grade = asked(PASTA).grade('{"set_timer":{"minutes":"5","label":"pasta"}}')
    assert (grade.right, grade.valid) == (True, False)


def test_several_calls_are_right_in_any_order_and_wrong_if_one_is_missing() -> None:
    lamp = '{"lamp":{"on":true}}'
    task = asked(f"{PASTA}\n{lamp}")
    assert task.grade(f"{lamp}\n{PASTA}").right
    assert task.grade(PASTA).note == "a missing call"


@pytest.mark.parametrize(
    ("answer", "right", "valid"),
    [
        ("None of my tools can do that.", True, True),
        ("I cannot.", True, True),
        (PASTA, False, True),
        ('{"set_timer":{}}', False, False),
        ("", False, False),
        ('{"set_timer"', False, False),
    ],
)
def test_where_no_tool_fits_any_prose_is_right_and_a_call_is_not(
    answer: str, right: bool, valid: bool
) -> None:
    grade = asked("None of my tools can do that.").grade(answer)
    assert (grade.right, grade.valid) == (right, valid)


def test_an_answer_is_an_action_as_soon_as_its_first_call_is_whole() -> None:
    assert acted([TIMER], PASTA)
    assert acted([TIMER], PASTA + '\n{"set')
    assert not acted([TIMER], '{"set_timer":{"label":"pasta"}}')
    assert not acted([LAMP], PASTA)
    assert not acted([TIMER], "Done.")
    for task in load(["held-out-en", "held-out-zh"], SHARED, 40):
        assert task.done(task.gold)
        assert not any(task.done(task.gold[:end]) for end in range(len(task.gold)))


DEGENERATE = [
    '{"' + "[" * 5000,
    '{"set_timer":' * 3000,
    '{"set_timer":{"minutes":' + "9" * 400 + "}}",
    '{"set_timer":{"minutes":' + "9" * 5000 + "}}",
    '{"set_timer":{"minutes":1e999,"label":NaN}}',
    '{"set_timer":{"minutes":"\\ud800"}}',
    '{"set_timer":{"minutes":{"a":[null]},"label":[[]]}}',
    "```python\n" + "(" * 5000,
    "x" + " = x" * 20000,
    "\ud800",
    "\0",
]


@pytest.mark.parametrize("answer", DEGENERATE, ids=range(len(DEGENERATE)))
def test_no_answer_breaks_a_grader(answer: str) -> None:
    tasks = [asked(PASTA), *load(["held-out-en", "revision"], SHARED, 1)]
    for name in ("bfcl", "edit", "infill"):
        with suppress(UsageError):
            tasks += load([name], SHARED, 1)
    for task in tasks:
        name = toolcall.function(task.tools[0])["name"] if task.tools else "x"
        assert not task.grade(answer.replace("set_timer", name)).right
        task.done(answer.replace("set_timer", name))


# Suites


@pytest.mark.parametrize("name", CALLS)
def test_gold_is_right_and_every_near_miss_of_it_is_wrong(name: str) -> None:
    for task in loaded(name, 25):
        assert task.grade(task.gold).right, task.id
        for miss in near_misses(task):
            assert not task.grade(miss).right, (task.id, miss)


def near_misses(task: Task) -> list[str]:
    calls = toolcall.parse(task.gold)
    if not calls:
        return ["", toolcall.write([Call(toolcall.function(task.tools[0])["name"], {})])]
    first, *rest = calls
    other = [Call(f"{first.name}x", first.arguments), *rest]
    extra = [Call(first.name, {**first.arguments, "surplus": 1}), *rest]
    misses = [rest, [*calls, first], other, extra]
    for key, value in first.arguments.items():
        wrong = not value if isinstance(value, bool) else f"{value} wrong"
        misses.append([Call(first.name, {**first.arguments, key: wrong}), *rest])
    return [*(toolcall.write(some) for some in misses), "I have done what you asked."]


def test_the_held_out_prompts_are_these_and_no_others() -> None:
    """They are a benchmark: another set of prompts is another benchmark, with another hash."""
    tasks = [task for name in CALLS[:2] for task in suites()[name].load(SHARED)]
    said = json.dumps([[t.id, t.messages, t.gold] for t in tasks], ensure_ascii=False)
    assert hashlib.sha256(said.encode()).hexdigest().startswith("9fd7ef82175b892c")
    thirds = {"unseen-tools", "unseen-arguments", "seen"}
    assert Counter((t.suite, t.group) for t in tasks) == {
        **{("held-out-en", third): 180 for third in thirds},
        **{("held-out-zh", third): 80 for third in thirds},
    }


def test_what_is_held_out_is_not_in_the_grammar_that_trains() -> None:
    seen = {name for spec in pool.specs() if not spec.held_out for name in spec.names}
    for sample in held_out.read("en"):
        if sample.unseen == "tool":
            assert next(iter(toolcall.parse(sample.target))).name.casefold() not in seen
    asked_for = {spec.name: spec for spec in pool.specs()}
    drawn = [s for s in held_out.read("en") if s.unseen == "arguments"]
    own = [(asked_for.get(c.name), c) for s in drawn for c in toolcall.parse(s.target)]
    plain = [(spec, c) for spec, c in own if spec and set(c.arguments) <= set(spec.args)]
    assert plain
    assert all(requests.held_set(spec, call.arguments) for spec, call in plain)


def test_suites_hold_as_many_tasks_as_they_say_with_ids_of_their_own() -> None:
    for suite in suites().values():
        try:
            tasks = suite.load(SHARED)
        except UsageError:
            continue
        assert len(tasks) == suite.size, suite.name
        assert len({task.id for task in tasks}) == len(tasks)
        assert {task.suite for task in tasks} == {suite.name}
        assert 0 < suite.quick <= suite.size


def test_the_system_message_shows_the_tools_in_the_one_format() -> None:
    for name in CALLS:
        for task in loaded(name, 5):
            lines = task.messages[0]["content"].split("\n")
            assert {toolcall.signature(tool) for tool in task.tools} <= set(lines)


def test_suites_are_interleaved_and_the_order_is_always_the_same() -> None:
    names = ["held-out-en", "held-out-zh"]
    some = load(names, SHARED, 20)
    assert [task.suite for task in some] == names * 20
    assert [task.id for task in some] == [task.id for task in load(names, SHARED, 20)]
    whole = [task.suite for task in load(names, SHARED)]
    assert Counter(whole[:78]) == {"held-out-en": 54, "held-out-zh": 24}


def test_a_part_of_a_suite_is_spread_over_it() -> None:
    tasks = loaded("held-out-en", 9)
    assert Counter(task.group for task in tasks) == {
        "unseen-tools": 3,
        "unseen-arguments": 3,
        "seen": 3,
    }
    assert spread(tasks, 0) == spread(tasks, 99) == tasks


def test_what_is_absent_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no suite 'held'"):
        load(["held"], SHARED)
    with pytest.raises(UsageError, match="is not there") as home:
        load(["home-en"], tmp_path)
    assert "--shared" in home.value.hint
    monkeypatch.setattr(bfcl, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="bfcl-eval") as package:
        load(["bfcl"], tmp_path)
    assert package.value.hint.startswith("pip install --no-deps bfcl-eval==")
    with pytest.raises(UsageError):
        shared(tmp_path, "eval/x")


def test_a_survey_grades_the_oracle_and_tells_of_what_is_absent(tmp_path: Path) -> None:
    some = picked(["held-out-zh", "home-zh", "revision"])
    rows = survey(
        some, tmp_path, lambda m: len(m[0]["content"]), True, 12, lambda done, total: None
    )
    assert [row.tasks for row in rows] == [12, 0, 12]
    assert (rows[0].right, rows[0].valid, rows[0].wrong) == (12, 12, ())
    assert "home-zh      absent" in table(rows)
    spoilt = [replace(t, gold="no") for t in some[0].load(tmp_path)]
    broken = replace(some[0], load=lambda data: spoilt)
    row = survey([broken], tmp_path, len, True, 3, lambda done, total: None)[0]
    assert row.right == 0
    assert len(row.wrong) == 3


def test_a_training_sample_with_a_tasks_request_is_found(tmp_path: Path) -> None:
    sets = texts(picked(["held-out-en", "home-en"]), tmp_path)
    assert set(sets) == {"held-out-en", "scenarios"}
    rows = [sets["held-out-en"][7].upper(), sets["scenarios"][3], "name a river of Peru"]
    turns = [[{"role": "user", "content": text}] for text in rows]
    lines = [json.dumps({"messages": turn, "target": "Done."}) for turn in turns]
    file = tmp_path / "train.jsonl"
    file.write_text("\n".join(lines), "utf-8")
    assert overlaps(file, sets) == {"held-out-en": 1, "scenarios": 1}


# Code


def test_missing_lines_may_come_bare_fenced_stripped_or_with_their_program() -> None:
    for task in loaded("infill", 4):
        before, _, after = task.parts or ()
        whole = f"{before}{task.gold}{after}"
        for answer in (task.gold, f"```python\n{task.gold}\n```", f"```\n{whole}```"):
            assert task.grade(answer).right, (task.id, answer)
        assert not task.grade(task.gold.replace(task.gold.strip(), "pass")).right
        assert not task.grade("I would write a loop here.").valid
        assert not task.grade("").right


PROBLEM = code.Problem(
    "p-1",
    "double it",
    "# double it\n",
    "def f(x):\n    y = x + x\n    return y",
    "assert f(3) == 6",
)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.usefixtures("confined")
def test_indentation_of_missing_lines_may_be_their_own(count: int) -> None:
    task = code._infill(PROBLEM, "line", 1) if count == 1 else _two_lines()
    assert task is not None
    dedented = "\n".join(line.strip() for line in task.gold.split("\n"))
    assert dedented != task.gold
    assert task.grade(dedented).right
    assert task.grade(task.gold.lstrip()).right


def _two_lines() -> Task | None:
    body = "def f(x):\n    y = x + x\n    y = y + 0\n    return y\n"
    return code._infill(replace(PROBLEM, body=body), "lines", 2)


@pytest.mark.usefixtures("confined")
def test_a_repair_must_pass_the_tests_and_a_rename_must_change_nothing_else() -> None:
    repair, rename = code._repair(PROBLEM), code._rename(PROBLEM)
    assert repair is not None
    assert rename is not None
    assert repair.grade(repair.gold).right
    wrong = repair.messages[0]["content"].split("\n", 1)[1]
    assert "x - x" in wrong
    assert repair.grade(wrong).note == "AssertionError"
    assert rename.grade(rename.gold).right
    assert not rename.grade(PROBLEM.body).right
    assert not rename.grade(rename.gold.replace("return y", "return y + 0")).right
    assert not rename.grade("Done, I renamed it.").valid


@pytest.mark.slow
@pytest.mark.parametrize("name", ["infill", "edit"])
def test_every_program_passes_with_its_gold_and_fails_without(name: str) -> None:
    for task in loaded(name, 10_000):
        assert task.grade(task.gold).right, task.id
        if task.parts is not None:
            indent = task.gold[: len(task.gold) - len(task.gold.lstrip())]
            assert not task.grade(f"{indent}pass").right, task.id
        else:
            assert not task.grade(task.messages[0]["content"].split("\n", 1)[1]).right, task.id


# The sandbox


@pytest.mark.usefixtures("confined")
def test_a_program_passes_only_if_its_checks_do() -> None:
    assert sandbox.execute("def f(x): return x + 1", "assert f(1) == 2").passed
    assert sandbox.execute("def f(x): return x", "assert f(1) == 2").fault == "AssertionError"
    assert sandbox.execute("def f(").fault == "SyntaxError"
    threads = "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()"
    assert sandbox.execute(threads).passed
    assert sandbox.execute("text = open('/etc/hostname').read()").fault in ("", "FileNotFoundError")


@pytest.mark.parametrize(
    "program",
    [
        "import os; os._exit(0)",
        "import sys; sys.exit(0)",
        "raise SystemExit(0)",
        "raise type('', (Exception,), {})()",
        "import os\nfor fd in range(1, 64):\n    try: os.write(fd, b'[]')\n    except OSError: 0\n"
        "os._exit(0)",
    ],
)
@pytest.mark.usefixtures("confined")
def test_leaving_early_is_not_passing(program: str) -> None:
    assert not sandbox.execute(program, "assert False").passed


@pytest.mark.usefixtures("confined")
def test_no_connection_is_made_not_even_to_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        call = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        assert sandbox.execute(call).fault == "PermissionError"
        with pytest.raises(TimeoutError):
            server.accept()
    for family in ("AF_INET6", "AF_UNIX", "AF_NETLINK"):
        program = f"import socket; socket.socket(socket.{family}, socket.SOCK_DGRAM)"
        assert sandbox.execute(program).fault == "PermissionError"


@pytest.mark.parametrize(
    "program",
    [
        "open({file!r}, 'w').write('x')",
        "open({file!r}, 'r+').write('x')",
        "import os; os.open({file!r}, os.O_RDONLY | os.O_TRUNC)",
        "import os; os.truncate({file!r}, 0)",
        "import os; os.unlink({file!r})",
        "import os; os.rename({file!r}, {file!r} + '2')",
        "import os; os.chmod({file!r}, 0)",
        "import os; os.link({file!r}, {file!r} + '2')",
        "import os; os.symlink({file!r}, {file!r} + '2')",
        "import os; os.mkdir({file!r} + '2')",
        "import os; os.utime({file!r}, (0, 0))",
        "import tempfile; tempfile.TemporaryFile(dir={folder!r})",
        "import os; os.execv('/bin/rm', ['rm', {file!r}])",
        "import subprocess; subprocess.run(['rm', {file!r}])",
    ],
)
@pytest.mark.usefixtures("confined")
def test_no_file_is_made_changed_or_removed(program: str, tmp_path: Path) -> None:
    file = tmp_path / "here"
    file.write_text("kept")
    before = file.stat()
    outcome = sandbox.execute(program.format(file=str(file), folder=str(tmp_path)))
    assert outcome.fault in ("PermissionError", "FileNotFoundError"), outcome
    assert file.read_text() == "kept"
    after = file.stat()
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)
    assert os.listdir(tmp_path) == ["here"]


@pytest.mark.parametrize(
    "program",
    [
        "import os\nwhile True: os.fork()",
        "import multiprocessing; multiprocessing.Process(target=print).start()",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.kill(-1, 9)",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
    ],
)
@pytest.mark.usefixtures("confined")
def test_no_process_is_started_or_hit(program: str) -> None:
    assert sandbox.execute(program).fault in ("PermissionError", "ProcessLookupError")


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import re; re.match('(a+)+$', 'a' * 64 + 'b')",
    ],
)
@pytest.mark.usefixtures("confined")
def test_an_endless_program_is_stopped(program: str) -> None:
    assert sandbox.execute(program, seconds=1).fault == sandbox.SLOW


@pytest.mark.usefixtures("confined")
def test_memory_is_limited_and_no_limit_can_be_raised() -> None:
    assert sandbox.execute("x = bytearray(4 << 30)").fault == "MemoryError"
    raised = "import resource as r; r.setrlimit(r.RLIMIT_AS, (1 << 40, 1 << 40))"
    assert not sandbox.execute(raised).passed


@pytest.mark.usefixtures("confined")
def test_a_flood_of_output_is_not_kept() -> None:
    write = "try: os.write(fd, b'x' * 65536)\n        except OSError: pass"
    flood = f"import os\nwhile True:\n    for fd in range(1, 8):\n        {write}"
    assert not sandbox.execute(flood, seconds=1).passed


def test_without_the_means_code_is_refused_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.confine, "SECCOMP", "libnone.so.0")
    sandbox.available.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"libnone\.so\.0") as error:
            sandbox.execute("pass")
        assert "libseccomp" in error.value.hint
    finally:
        sandbox.available.cache_clear()


# Revision


def test_a_revision_follows_its_edit_and_keeps_the_rest() -> None:
    for task in load(["revision"], SHARED):
        edit = task.edit
        assert edit is not None
        alone = edit.text[: edit.start] + edit.new + edit.text[edit.end :]
        assert task.grade(task.gold).right, task.id
        assert not task.grade(edit.text).right, task.id
        assert task.grade(alone).right == (task.group == "no consequence"), task.id
        assert not task.grade("").valid
        assert not task.grade("I have changed it.").valid


def test_a_revision_that_changes_what_must_stay_is_wrong() -> None:
    task = {t.id: t for t in load(["revision"], SHARED)}["revision/day-copied"]
    changed = task.gold.replace("insurance card", "passport")
    assert task.grade(changed).note == "changed 'bring the insurance card.'"
