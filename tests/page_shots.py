"""The README's pictures, made by a browser on a running server with the built-in model:

mezzotint serve hybrid &
python tests/page_shots.py http://127.0.0.1:8383/ docs/images
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from page_browser import browser, watched

VIEW = {"width": 960, "height": 560}


def chat(page: Any) -> None:
    page.locator("#chat-tools").check()
    page.locator("#chat-text").fill(
        "Start a timer for 25 minutes and dim the desk lamp to 40 percent"
    )
    page.keyboard.press("Enter")
    page.locator(".call").first.wait_for()


def canvas(page: Any) -> None:
    page.locator("#canvas-form [type=submit]").click()
    page.locator("#canvas-play:enabled").wait_for()
    middle = int(page.locator("#canvas-scrub").get_attribute("max") or 0) // 2
    page.locator("#canvas-scrub").fill(str(middle))


def race(page: Any) -> None:
    page.locator("#race-form [type=submit]").click()
    page.locator("#race-play:enabled").wait_for()


def revise(page: Any) -> None:
    page.locator("#revise-source [type=submit]").click()
    page.locator(".part-of", has_text="brother").first.click()
    page.locator("#revise-new").fill("sister")
    page.keyboard.press("Enter")
    page.locator("#revise-form [type=submit]").click()
    page.locator("#revise-diff").wait_for()


def agent(page: Any) -> None:
    page.locator(".idea").first.click()
    page.keyboard.press("Enter")
    page.locator(".consent, .answer").first.wait_for()


VIEWS = {"chat": chat, "canvas": canvas, "race": race, "revise": revise, "agent": agent}


def main(url: str, folder: str, *names: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    with browser() as running:
        for i, name in enumerate(names or VIEWS):
            scheme = "dark" if i % 2 else "light"
            context = running.new_context(
                viewport=VIEW, color_scheme=scheme, reduced_motion="reduce", locale="en-US"
            )
            page = watched(context, url).page
            page.goto(f"{url}#{name}")
            page.locator("#status[data-state=here]").wait_for()
            VIEWS[name](page)
            page.locator("main").click(position={"x": 2, "y": 2})
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": VIEW["width"], "height": height})
            save(page.screenshot(), Path(folder, f"{name}.png"))
            context.close()


def save(picture: bytes, file: Path) -> None:
    """Write a PNG of few colours, which is a quarter of the size."""
    from PIL import Image

    image = Image.open(BytesIO(picture)).convert("RGB")
    image.quantize(128, Image.Quantize.FASTOCTREE).save(file, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
