"""The page in a real browser, on a real server: used as people do, by mouse and by keyboard.

Whatever a test does, the console stays empty and no request leaves the origin.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from page_browser import PATIENCE, Watched, browser, chromium, watched
from page_server import running, served

VIEWS = ("chat", "canvas", "race", "revise", "agent")
PROMPT, LONG = "Hello", "What is light"  # answers of 53 and 145 tokens


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with served(home) as (address, _):
        yield address


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="needs `pip install playwright`")
    if not chromium():
        pytest.skip("needs a browser: `apt-get install chromium`, or set MEZZOTINT_CHROMIUM")
    with browser() as started:
        yield started


Open = Callable[..., Any]


@pytest.fixture
def visit(chrome: Any) -> Iterator[Open]:
    """visit(url, view, **context): a fresh browser's page; what it saw is judged at the end."""
    seen: list[Watched] = []

    def open_(
        url: str, view: str = "chat", ready: str = "#status[data-state=here]", **options: Any
    ) -> Any:
        context = chrome.new_context(**({"locale": "en-US"} | options))
        seen.append(watched(context, url))
        seen[-1].page.goto(f"{url}#{view}")
        seen[-1].page.locator(ready).wait_for()
        return seen[-1].page

    yield open_
    for one in seen:
        one.page.context.close()
        # A server that is away is an error to the console too; the page says so itself.
        assert [e for e in one.errors if "Failed to load resource" not in e] == []
        assert one.foreign == []


def expect(thing: Any) -> Any:
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    return expect(thing)


def text_of(page: Any, selector: str) -> str:
    return str(page.locator(selector).last.inner_text())


# ---- what the server sends -------------------------------------------------------------


def get(url: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, {k.lower(): v for k, v in response.getheaders()}, body


def test_the_page_is_served_with_its_policy_and_kept_by_its_tag(url: str) -> None:
    status, headers, body = get(url, "/")
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert get(url, "/", **{"If-None-Match": headers["etag"]})[0] == 304
    for name in re.findall(rb'(?:src|href)="(/page/[^"]+)"', body):
        assert get(url, name.decode())[0] == 200
    assert get(url, "/page/app.js")[1]["content-type"] == "text/javascript; charset=utf-8"
    assert b"http:" not in body
    assert b"https:" not in body


@pytest.mark.parametrize("name", ["../page.py", "..%2fpage.py", "none.js", "%00", "style.css%00"])
def test_nothing_else_is_served(url: str, name: str) -> None:
    status, _, body = get(url, f"/page/{name}")
    assert status == 404
    assert b"import" not in body


# ---- chat ------------------------------------------------------------------------------


def test_an_answer_comes_out_of_its_plate(url: str, visit: Open) -> None:
    page = visit(url)
    page.locator("#chat-text").fill(PROMPT)
    page.keyboard.press("Enter")
    page.locator(".cell.masked").first.wait_for()
    expect(page.locator(".took")).to_contain_text("passes")
    assert len(text_of(page, ".said.assistant .plate")) > 20
    assert page.locator(".talk .masked").count() == 0
    assert text_of(page, "#live").startswith("The model answered:")


def test_an_answer_is_stopped_and_tried_again(url: str, visit: Open) -> None:
    page = visit(url)
    page.locator("#chat-text").fill(LONG)
    page.keyboard.press("Enter")
    page.locator(".cell.written").first.wait_for()
    page.locator("#chat-form .stop").click()
    expect(page.locator(".said.assistant .took")).to_have_text("Stopped here.")
    part = text_of(page, ".said.assistant .plate")
    page.locator(".again").click()
    expect(page.locator(".took")).to_contain_text("passes")
    assert text_of(page, ".said.assistant .plate").startswith(part)
    assert page.locator(".said").count() == 2


def test_a_reload_in_mid_stream_loses_no_more_than_the_rest(url: str, visit: Open) -> None:
    page = visit(url)
    page.locator("#chat-text").fill(LONG)
    page.keyboard.press("Enter")
    page.locator(".cell.written").nth(5).wait_for()
    page.reload()
    expect(page.locator(".said.user")).to_contain_text(LONG)
    expect(page.locator(".said.assistant .took")).to_have_text("Stopped here.")
    assert text_of(page, ".said.assistant .plate")
    page.locator(".again").click()
    expect(page.locator(".took")).to_contain_text("passes")


def test_a_server_that_goes_and_comes_back(tmp_path: Path, visit: Open) -> None:
    with served(tmp_path) as (address, process):
        page = visit(address)
        page.locator("#chat-text").fill(LONG)
        page.keyboard.press("Enter")
        page.locator(".cell.written").first.wait_for()
        process.kill()
        expect(page.locator(".failure:visible")).to_have_text("The connection broke off.")
        expect(page.locator("#status")).to_contain_text("away")
        page.locator(".again").click()
        expect(page.locator(".failure:visible")).to_have_text("The server cannot be reached.")
    with served(tmp_path, urlsplit(address).port or 0):
        expect(page.locator("#status")).to_have_text("toy is ready")
        page.locator(".again").click()
        expect(page.locator(".took")).to_contain_text("passes")


def test_a_server_with_a_key_is_given_it(tmp_path: Path, visit: Open) -> None:
    with served(tmp_path, MEZZOTINT_API_KEY="a key of the test") as (address, _):
        page = visit(address, ready="#key-value")
        page.locator("#key-value").fill("a key of the test")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("toy is ready")
        page.reload()
        expect(page.locator("#status")).to_have_text("toy is ready")


# ---- canvas and race -------------------------------------------------------------------


def test_the_passes_of_a_canvas_are_scrubbed_and_played(url: str, visit: Open) -> None:
    page = visit(url, "canvas")
    page.locator("#canvas-tools").uncheck()
    page.locator("#canvas-text").fill(PROMPT)
    page.locator("#canvas-length").fill("40")
    page.locator("#canvas-form [type=submit]").click()
    page.locator("#canvas-play:enabled").wait_for()
    scrub = page.locator("#canvas-scrub")
    last = int(scrub.get_attribute("max"))
    whole = text_of(page, "#canvas-plate")
    assert last > 5
    assert page.locator("#canvas-plate .masked").count() == 0
    scrub.focus()
    page.keyboard.press("Home")
    expect(page.locator("#canvas-plate .written")).to_have_count(0)
    assert page.locator("#canvas-plate .masked").count() > 3
    page.keyboard.press("ArrowRight")
    expect(scrub).to_have_attribute("aria-valuetext", f"Pass 1 of {last}")
    expect(page.locator("#canvas-plate .written").first).to_be_visible()
    page.locator("#canvas-speed").select_option("1")
    page.locator("#canvas-play").click()
    expect(scrub).to_have_attribute("aria-valuetext", f"Pass {last} of {last}")
    expect(page.locator("#canvas-play")).to_have_text("Play")
    assert text_of(page, "#canvas-plate") == whole


def test_a_race_is_run_by_turns_and_replayed_together(url: str, visit: Open) -> None:
    page = visit(url, "race")
    page.locator("#race-tools").uncheck()
    page.locator("#race-text").fill(PROMPT)
    page.locator("#race-rounds").select_option("1")
    page.locator("#race-form [type=submit]").click()
    expect(page.locator("#verdict")).to_contain_text("runs alone")
    page.locator("#race-play:enabled").wait_for()
    expect(page.locator("#verdict")).to_contain_text("the same, character for character")
    clocks = page.locator(".clock").all_inner_texts()
    assert all(float(clock.removesuffix(" ms").replace(",", "")) > 0 for clock in clocks)
    plates = page.locator(".lane .plate")
    assert plates.nth(0).inner_text() == plates.nth(1).inner_text()
    page.locator("#race-scrub").fill("0")
    assert plates.all_inner_texts() == ["", ""]
    page.locator("#race-speed").select_option("1")
    page.locator("#race-play").click()
    expect(page.locator("#race-play")).to_have_text("Replay side by side")
    expect(page.locator(".clock").nth(0)).to_have_text(clocks[0])


# ---- revise ----------------------------------------------------------------------------


def without(diff: Any, kind: str) -> str:
    """The text of a diff but for its insertions or deletions: the old text, or the new."""
    parts = diff.evaluate("d => [...d.childNodes].map(n => [n.nodeName, n.textContent])")
    return "".join(text for name, text in parts if name != kind)


def test_a_word_is_revised_by_keyboard_alone(url: str, visit: Open) -> None:
    page = visit(url, "revise")
    page.locator("#revise-text").fill("Anna has two cats. Her cats like fish.")
    page.locator("#revise-source [type=submit]").focus()
    page.keyboard.press("Enter")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#revise-new")).to_have_value("cats")
    page.keyboard.type("dogs")
    page.keyboard.press("Enter")
    expect(page.locator(".part-of.edited")).to_have_text("dogs")
    expect(page.locator(".part-of.edited")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.locator("#revise-form [type=submit]").focus()
    page.keyboard.press("Enter")
    diff = page.locator("#revise-diff")
    expect(diff.locator("ins.own")).to_have_text("dogs")
    expect(diff.locator("del.own")).to_have_text("cats")
    expect(page.locator("#revise-meter")).to_contain_text("tokens")
    assert without(diff, "INS") == "Anna has two cats. Her cats like fish."
    new = without(diff, "DEL")
    page.locator("#revise-accept").click()
    expect(page.locator("#revise-plate")).to_have_text(new)
    expect(page.locator(".part-of.edited")).to_have_count(0)


def test_a_sentence_beyond_the_first_plane_is_edited_by_code_points(url: str, visit: Open) -> None:
    page = visit(url, "revise")
    page.locator("#revise-text").fill("𝔘nder 🐟🐟 it swims. It is fast.")
    page.locator("#revise-source [type=submit]").click()
    page.locator("[name=unit][value=sentence]").check()
    page.locator(".part-of", has_text="fast").click()
    expect(page.locator("#revise-new")).to_have_value("It is fast.")
    page.locator("#revise-new").fill("It is slow.")
    page.keyboard.press("Enter")
    with page.expect_request("**/v1/revise") as sent:
        page.locator("#revise-form [type=submit]").click()
    assert sent.value.post_data_json["edits"] == [{"start": 25, "end": 29, "text": "slow"}]
    expect(page.locator("#revise-diff ins.own")).to_contain_text("slow")


def test_a_revision_without_a_change_is_not_asked_for(url: str, visit: Open) -> None:
    page = visit(url, "revise")
    page.locator("#revise-source [type=submit]").click()
    page.locator("#revise-form [type=submit]").click()
    expect(page.locator("#revise-failure")).to_contain_text("Change a part first")


# ---- agent -----------------------------------------------------------------------------


def mails(home: Path) -> set[str]:
    return {file.name for file in (home / "demo/mail").rglob("*") if file.is_file()}


@pytest.mark.parametrize("reply", ["Approve", "Deny"])
def test_the_agent_asks_first_and_does_as_it_is_told(
    url: str, home: Path, visit: Open, reply: str
) -> None:
    page = visit(url, "agent")
    page.locator("#agent-text").fill("Send Anna a mail: I am late")
    page.keyboard.press("Enter")
    consent = page.locator(".consent")
    expect(consent).to_contain_text("This cannot be undone")
    expect(consent).to_contain_text("anna.berg@example.com")
    expect(page.get_by_role("button", name="Deny")).to_be_focused()
    before = mails(home)
    page.get_by_role("button", name=reply).click()
    page.locator(".answer").wait_for()
    assert bool(mails(home) - before) == (reply == "Approve")
    expect(page.locator(".event.refused")).to_have_count(0 if reply == "Approve" else 1)


def test_leaving_the_page_denies(url: str, home: Path, visit: Open) -> None:
    page = visit(url, "agent")
    page.locator("#agent-text").fill("Send Anna a mail: I am late")
    page.keyboard.press("Enter")
    page.locator(".consent").wait_for()
    before = mails(home)
    page.reload()
    page.locator("#agent-text").fill("Add a note: bring the card")
    page.keyboard.press("Enter")
    page.locator(".answer").wait_for()
    assert mails(home) == before


def test_the_agent_takes_back_what_it_did(url: str, home: Path, visit: Open) -> None:
    page = visit(url, "agent")
    page.locator("#agent-text").fill("Add a note: bring the card")
    page.keyboard.press("Enter")
    page.locator(".event.writing .cell").first.wait_for()
    expect(page.locator(".planned .hole")).to_contain_text("bring the card")
    page.locator(".answer").wait_for()
    notes = set((home / "demo/notes").iterdir())
    page.locator("#agent-undo").click()
    expect(page.locator(".turn").first).to_contain_text("Taken back: Add a note")
    assert set((home / "demo/notes").iterdir()) < notes


def test_the_agent_is_stopped(url: str, visit: Open) -> None:
    page = visit(url, "agent")
    page.locator("#agent-text").fill("Write a note slowly")
    page.keyboard.press("Enter")
    page.locator(".event.writing .cell").first.wait_for()
    page.locator("#agent-form .stop").click()
    expect(page.locator(".event.stopped")).to_have_text("Stopped here.")


# ---- languages, colours, keys, ears ----------------------------------------------------


def test_it_follows_the_browser_and_then_the_reader(url: str, visit: Open) -> None:
    page = visit(url, locale="zh-CN", color_scheme="dark")
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    expect(page.locator("h1:visible")).to_have_text("对话")
    colour = "getComputedStyle(document.body.parentElement).backgroundColor"
    dark = page.evaluate(colour)
    page.locator("#language").click()
    page.locator("#theme").click()
    expect(page.locator("h1:visible")).to_have_text("Chat")
    light = page.evaluate(colour)
    assert _light(light) > 200 > 60 > _light(dark)
    page.reload()
    expect(page.locator("h1:visible")).to_have_text("Chat")
    assert page.evaluate(colour) == light


def _light(colour: str) -> float:
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_every_phrase_is_there_in_both_languages(url: str, visit: Open, locale: str) -> None:
    page = visit(url, locale=locale)
    empty = page.evaluate(
        "async () => Object.entries((await import('/page/words.js')).WORDS)"
        ".filter(([, pair]) => pair.length !== 2 || !pair.every((text) => text.trim())"
        " || /{(\\w+)}/.test(pair[0]) !== /{(\\w+)}/.test(pair[1])).map(([key]) => key)"
    )
    assert empty == []
    chinese = re.compile("[\u4e00-\u9fff]")
    for view in VIEWS:
        page.locator(f'nav a[href="#{view}"]').click()
        assert bool(chinese.search(text_of(page, "main section:visible"))) == (locale == "zh-CN")


def test_the_keyboard_reaches_everything(url: str, visit: Open) -> None:
    page = visit(url)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.type"))
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid"
    assert reached == ["chat-text", "submit", "chat-mode", "chat-tools", "chat-new"]
    page.locator('nav a[href="#race"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator("#title-race")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(url: str, visit: Open, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(url, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    page.locator("#chat-text").fill(PROMPT)
    page.keyboard.press("Enter")
    page.locator(".took").wait_for()
    for view in VIEWS:
        page.locator(f'nav a[href="#{view}"]').click()
        if view == "revise":
            page.locator("#revise-source [type=submit]").click()
            page.locator(".part-of").first.click()
        if view == "agent":
            page.locator("#agent-text").fill("Send Anna a mail: I am late")
            page.keyboard.press("Enter")
            page.locator(".consent").wait_for()
        found = axe.run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_a_narrow_window_needs_no_sideways_scrolling(url: str, visit: Open) -> None:
    page = visit(url, viewport={"width": 360, "height": 640})
    for view in VIEWS:
        page.locator(f'nav a[href="#{view}"]').click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


# ---- the built-in model ----------------------------------------------------------------


def test_smollm2_calls_races_and_acts(smollm2_path: Path, visit: Open, tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(smollm2_path.parent.parent)
    command = [sys.executable, "-m", "mezzotint.cli", "serve", "hybrid", "--port", "0"]
    with running(command, tmp_path) as (address, _):
        page = visit(address)
        page.locator("#chat-tools").check()
        page.locator("#chat-text").fill("Set a timer for 5 minutes")
        page.keyboard.press("Enter")
        expect(page.locator(".call")).to_contain_text("minutes")
        page.locator('nav a[href="#race"]').click()
        page.locator("#race-rounds").select_option("1")
        page.locator("#race-form [type=submit]").click()
        expect(page.locator("#verdict")).to_contain_text("the same, character for character")
        page.locator('nav a[href="#agent"]').click()
        page.locator("#agent-text").fill("Play some jazz")  # which of song and genre, it writes
        page.keyboard.press("Enter")
        page.locator(".event.writing .cell").first.wait_for()
        expect(page.locator(".answer")).to_contain_text("jazz")
