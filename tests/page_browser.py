"""Debian's Chromium on the page, watched: what the tests and the screenshots share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 120_000  # milliseconds for the slowest step, on a busy machine


def chromium() -> str | None:
    """The browser to use: $MEZZOTINT_CHROMIUM, or what Debian installs."""
    return os.environ.get("MEZZOTINT_CHROMIUM") or shutil.which("chromium")


@contextmanager
def browser() -> Iterator[Any]:
    """Raises ImportError without playwright, whose own browsers are not needed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without a sandbox: containers have none, and it opens nothing but our own page.
        running = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield running
        running.close()


@dataclass
class Watched:
    """A page, what it wrote to the console as errors, and whom it asked but its own origin."""

    page: Any
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


def watched(context: Any, url: str) -> Watched:
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    seen = Watched(page)
    page.on("console", lambda m: m.type in ("error", "warning") and seen.errors.append(m.text))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    own = urlsplit(url).netloc
    page.on("request", lambda r: urlsplit(r.url).netloc != own and seen.foreign.append(r.url))
    return seen
