"""What the documentation tells people to type exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from mezzotint.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md", "CONTRIBUTING.md", "docs/LOG.md", "docs/adapt.md", "docs/agent.md",
    "docs/bench.md", "docs/cli.md", "docs/model-card.md", "docs/page.md", "docs/revise.md",
    "docs/tasks.md",
)  # fmt: skip
SPAN = re.compile(r"```\w*\n(.*?)```|`([^`]+)`", re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """(page, command line) of everything in code that begins with `mezzotint`."""
    found = []
    for page in PAGES:
        for block, span in SPAN.findall((ROOT / page).read_text("utf-8")):
            for line in re.split(r"\n|&&", block or span.replace("\n", " ")):
                if match := re.match(r"\s*(?:\.venv/bin/)?(mezzotint .*)", line):
                    found.append((page, match[1]))
    return found


def test_documentation_has_commands() -> None:
    assert len([page for page, _ in commands() if page == "README.md"]) > 8


@pytest.mark.parametrize(("page", "line"), commands())
def test_command_and_its_options_exist(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = get_command(app)
    while words and hasattr(command, "commands") and words[0] != "COMMAND":
        assert words[0] in command.commands, f"{page}: {line}"
        command = command.commands[words.pop(0)]
    if not hasattr(command, "commands"):
        options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        assert {word for word in words if word.startswith("-")} <= options, f"{page}: {line}"


def test_ci_runs_the_command_that_the_readme_gives() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    (command,) = re.findall(r"^<!-- tests -->\n```sh\n(.+)\n```$", readme, re.MULTILINE)
    assert command.endswith("pytest")
    assert "<!-- tests -->" in (ROOT / ".ci/run").read_text("utf-8")
