"""The pages as a visitor sees them: desktop and phone, keyboard alone, hostile entries."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra web is missing")
pytest.importorskip("jinja2", reason="the extra web is missing")

from helpers.board_helpers import edit_episodes, make_entry, tiny_suite
from helpers.browser import OpenPage
from helpers.http_servers import serve_app
from helpers.server_helpers import Place
from helpers.site_helpers import EVIL, index_of, make_demo

from turngym.leaderboard.schema.suite import Suite
from turngym.leaderboard.server import ServerSettings, new_token
from turngym.leaderboard.server.app import make_app
from turngym.leaderboard.site import SiteSettings, build_site
from turngym.leaderboard.suites.files import write_suite

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def small() -> Suite:
    return tiny_suite()


@pytest.fixture(scope="module")
def expect() -> Any:
    """Asks again until it is so; ``wait_for_function`` needs eval, which the pages forbid."""
    return pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def site(small: Suite, tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("site")
    make_demo(root / "entries", small)
    build_site(
        index_of(root, small),
        SiteSettings(entries=root / "entries", suites={small.id: small}, out=root / "out"),
    )
    return (root / "out").as_uri()


PAGES = (
    "index.html",
    "boards/tiny-v1-agents.html",
    "boards/tiny-v1-algorithms-1.html",
    "entries/tiny-v1/evil/index.html",
    "entries/tiny-v1/evil/Password-v0/index.html",
    "environments/index.html",
    "environments/tiny-v1/Fork-v0.html",
)


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_no_page_overflows_or_complains(site: str, open_page: OpenPage, width: str) -> None:
    page = open_page(f"{site}/{PAGES[0]}", width=width, dark=width == "phone")
    for path in PAGES:
        page.goto(f"{site}/{path}")
        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert over <= 0, path
        assert page.locator("h1").count() == 1
        unnamed = page.evaluate(
            "[...document.querySelectorAll('a,button,input')]"
            ".filter(e => !(e.textContent.trim() || e.labels?.length || e.ariaLabel)).length"
        )
        assert unnamed == 0, path


@pytest.mark.parametrize("dark", [False, True])
def test_a_wide_table_shows_at_which_edges_it_goes_on(
    site: str, open_page: OpenPage, expect: Any, dark: bool
) -> None:
    page = open_page(f"{site}/boards/tiny-v1-agents.html", width="phone", dark=dark)
    box = page.locator(".scroll").first
    shades = (
        "e => ['::before', '::after'].map(s => getComputedStyle(e, s).visibility === 'visible')"
    )
    expect(box).to_have_attribute("data-more", "right")
    assert box.evaluate(shades) == [False, True]
    edge = box.evaluate(
        "e => { const s = getComputedStyle(e, '::after'); return [s.backgroundImage, s.zIndex]; }"
    )
    assert edge[0].startswith("linear-gradient")
    assert int(edge[1]) > 1  # above the header and the names, which are opaque
    box.evaluate("e => { e.scrollLeft = 200; }")
    expect(box).to_have_attribute("data-more", "left right")
    name = box.locator("tbody th").first
    assert abs(name.bounding_box()["x"] - box.bounding_box()["x"]) < 2  # names stay in sight
    assert name.evaluate("e => getComputedStyle(e).boxShadow") != "none"
    box.evaluate("e => { e.scrollLeft = 10000; }")
    expect(box).to_have_attribute("data-more", "left")
    assert box.evaluate(shades)[1] is False
    page.set_viewport_size({"width": 2400, "height": 900})
    expect(box).to_have_attribute("data-more", "")
    assert box.evaluate(shades) == [False, False]


def test_words_of_comparisons_are_not_squeezed_on_a_phone(site: str, open_page: OpenPage) -> None:
    """A verdict's reason stood in a column of one word, and its row was a screen high."""
    page = open_page(f"{site}/boards/tiny-v1-algorithms-1.html", width="phone")
    for name, least in (("verdict", 200), ("against", 110)):
        widths = page.locator(f"td.{name}").evaluate_all("all => all.map(e => e.offsetWidth)")
        assert min(widths) > least


def test_what_the_filter_looks_at_can_be_read(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}/boards/tiny-v1-agents.html")
    text, room = page.locator("[data-filter-text]").evaluate(
        "e => { const s = getComputedStyle(e), pen = document.createElement('canvas')"
        ".getContext('2d'); pen.font = s.font; return [pen.measureText(e.placeholder).width,"
        " e.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight)]; }"
    )
    assert text <= room


def names(page: Any) -> list[str]:
    return page.locator("#board tbody tr:visible th bdi:first-of-type").all_inner_texts()


def test_sorting_and_filtering_by_keyboard_alone(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}/boards/tiny-v1-agents.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    before = page.locator("#board tbody tr").count()
    score = page.locator("#board thead button", has_text="Score")
    for _ in range(40):
        if score.evaluate("e => e === document.activeElement"):
            break
        page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    header = page.locator("#board thead th", has_text="Score")
    assert header.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    values = page.locator("#board tbody td:nth-child(3)").evaluate_all(
        "cells => cells.map(cell => Number(cell.dataset.value))"
    )
    assert values == sorted(values)
    search = page.locator("[data-filters=board] input[type=search]")
    search.focus()
    page.keyboard.type("broken")
    assert page.locator("#board tbody tr:visible").count() == 1
    assert "1 of" in page.locator("[data-filters=board] output").inner_text()
    search.fill("")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("#board tbody tr:visible").count() == before - 3
    assert page.locator("#board tbody tr.reference:visible").count() == 0


def test_hostile_texts_are_only_text(site: str, open_page: OpenPage, expect: Any) -> None:
    page = open_page(f"{site}/boards/tiny-v1-agents.html")
    link = page.locator("#board th a", has_text=EVIL)
    assert link.inner_text() == EVIL
    assert page.locator("img, svg[onload], b b").count() == 0
    link.press("Enter")
    page.wait_for_url("**/evil/index.html")
    assert page.locator("h1").inner_text().startswith(EVIL)
    assert page.title().startswith("<script>alert(1)")
    page.locator(".tiles a").first.press("Enter")
    page.wait_for_url("**/Password-v0/index.html#0")
    assert "</pre><script>alert(3)</script>" in page.locator(".agent pre").first.inner_text()
    assert "task 0" in page.locator("h1").inner_text()
    assert page.get_by_role("link", name="previous").is_hidden()
    page.get_by_role("link", name="next").press("Enter")
    page.wait_for_url("**/index.html#2")
    expect(page.locator("h1").first).to_contain_text("task 2")
    assert page.locator("#task").input_value() == "2"
    assert page.locator(".episode").count() == 2
    assert page.get_by_role("link", name="previous").is_visible()
    assert page.evaluate("window.name") == ""


@pytest.fixture
def served(small: Suite, tmp_path: Path) -> Iterator[tuple[str, Place]]:
    home = tmp_path / "home"
    (home / "entries").mkdir(parents=True)
    settings = ServerSettings(home=home, suite_files=(write_suite(small, tmp_path / "suites"),))
    place = Place(settings, new_token(settings, "alice"))
    with serve_app(make_app(settings)) as address:
        yield address, place


def archive(suite: Suite, root: Path, forged: bool = False) -> str:
    make_entry(suite, root, name=EVIL)
    if forged:
        edit_episodes(root, lambda episodes: episodes[0].update(seed=1))
    return shutil.make_archive(str(root), "zip", root)


def send(page: Any, address: str, token: str, file: str) -> None:
    page.goto(f"{address}/submit")
    page.locator("input[name=token]").fill(token)
    page.locator("input[name=archive]").set_input_files(file)
    page.locator("input[name=archive]").press("Tab")
    page.keyboard.press("Enter")


def test_upload_and_status(
    served: tuple[str, Place], small: Suite, open_page: OpenPage, tmp_path: Path
) -> None:
    address, place = served
    good, forged = archive(small, tmp_path / "a"), archive(small, tmp_path / "b", forged=True)
    page = open_page(f"{address}/submit", width="phone")
    send(page, address, place.token, good)
    page.wait_for_url("**/submissions/*")
    page.wait_for_selector("[data-state=accepted]", timeout=120_000)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    link = page.get_by_role("link", name="Its page")
    for _ in range(1200):
        if "tiny-v1" in page.request.get(f"{address}/").text():  # the page that is written last
            break
        time.sleep(0.1)
    link.press("Enter")
    page.wait_for_url("**/entries/**")
    assert page.locator("h1").inner_text().startswith(EVIL)
    assert page.get_by_role("link", name="Submit").is_visible()
    send(page, address, place.token, forged)
    page.wait_for_selector("[data-state=refused]", timeout=120_000)
    assert "seed" in page.locator(".chip.bad").all_inner_texts()


def test_a_wrong_file_is_told_on_the_page(
    served: tuple[str, Place], open_page: OpenPage, tmp_path: Path
) -> None:
    address, place = served
    page = open_page(f"{address}/season")
    assert "No season is open" in page.locator("main").inner_text()
    big = tmp_path / "big.zip"
    with big.open("wb") as file:
        file.truncate(place.settings.read.archive_bytes + 1)
    send(page, address, place.token, str(big))
    page.get_by_role("alert").wait_for()
    assert "at most" in page.get_by_role("alert").inner_text()
