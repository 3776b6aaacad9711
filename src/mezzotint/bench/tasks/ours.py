"""Tool calls from the project's own grammar, and Home Assistant's test sentences.

The first are kept in the package (`adapt/data/held_out.py` says what training lacks of them);
the second are made from their shared file, each with its own home and the tools drawn with it,
and nothing trained on is drawn from that file.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mezzotint.adapt.data import build, held_out, home_assistant
from mezzotint.bench.tasks.calls import call_task
from mezzotint.bench.tasks.task import Suite, Task, shared

_GROUPS = {"": "seen", "arguments": "unseen-arguments", "tool": "unseen-tools"}
_NAMES = {"en": "English", "zh": "Chinese"}


def suites() -> list[Suite]:
    ours = [
        Suite(
            f"held-out-{language}", f"Held-out tool calls, {_NAMES[language]}",
            "the project's own grammar", "Apache-2.0", "in the package", size, 60,
            partial(_held_out, language),
        )
        for language, size in held_out.EVALUATED.items()
    ]  # fmt: skip
    home = [
        Suite(
            f"home-{language}", f"Home Assistant sentences, {_NAMES[language]}",
            "tests of OHF-Voice/intents @ 3e74ab7", "CC BY 4.0; templates Apache-2.0",
            "shared data; home-assistant-intents", size, 60, partial(_home, language),
        )
        for language, size in {"en": 1100, "zh": 784}.items()
    ]  # fmt: skip
    return ours + home


def _held_out(language: str, data: Path) -> list[Task]:
    name = f"held-out-{language}"
    return [
        call_task(name, n, _GROUPS[one.unseen], one.messages, one.tools, one.target)
        for n, one in enumerate(held_out.read(language))
    ]


def _home(language: str, data: Path) -> list[Task]:
    """Without 10 English and 33 Chinese sentences: small talk, or an area only the room tells."""
    file = shared(data, f"eval/{build.HOME_TESTS}")
    samples = [one for one in home_assistant.tests(file, seed=0) if one.language == language]
    return [
        call_task(f"home-{language}", n, "sentences", one.messages, one.tools, one.target)
        for n, one in enumerate(samples)
    ]
