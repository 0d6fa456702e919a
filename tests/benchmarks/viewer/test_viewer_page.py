"""The viewer in a browser: what it shows, by mouse and by keys, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.browser import OpenPage
from helpers.viewer_runs import write_evaluations, write_run

from turngym.benchmarks.viewer.page import page_data, render_page
from turngym.benchmarks.viewer.sources import read_source
from turngym.envs.wrappers.record import RecordEpisodes

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_run(tmp_path_factory.mktemp("viewer") / "run")
    out = root / "view.html"
    out.write_text(render_page(page_data(read_source(str(root)), 1e7)), encoding="utf-8")
    return out


def fits(page: Any) -> bool:
    """Nothing hangs over the right border."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def where(page: Any) -> dict[str, str]:
    hash_ = page.evaluate("location.hash.slice(1)")
    return dict(part.split("=") for part in hash_.split("&") if part)


@pytest.mark.parametrize("width", ["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True])
def test_turns_masks_credit_and_tree_are_there(
    open_page: OpenPage, page_file: Path, width: str, dark: bool
) -> None:
    page = open_page(page_file, width=width, dark=dark)
    assert fits(page)
    assert page.locator("#title").inner_text() == "treegrpo on SearchQA-v0"
    assert page.locator(".turn").count() == 2
    first = page.locator(".turn").first
    assert "masked · 15 tokens" in first.inner_text()
    assert "trained · 20 tokens" in first.inner_text()
    assert first.locator(".call").inner_text() == "search a"
    assert first.locator(".block.obs .t.off").count() == 15
    assert first.locator(".block.act .t.neg").count() == 20
    assert page.locator("[data-node]").count() == 5
    assert page.locator("[data-leaf]").count() == 4
    assert page.locator(".ribbon rect.on").count() == 40
    assert "outcome\n+1" in page.locator(".turn footer .terms").inner_text().replace(" ", "\n")
    page.locator(".turn").nth(1).locator(".t.on").nth(2).hover()
    assert page.locator("#tip").inner_text().startswith("Advantage −")
    assert page.locator("#tip").is_visible()


def test_a_node_leads_to_its_path_and_a_broken_one_is_masked(
    open_page: OpenPage, page_file: Path
) -> None:
    page = open_page(page_file)
    page.locator('[data-node="0:2"]').click()
    assert page.locator(".turn").nth(1).locator(".block.act .text").inner_text() == (
        "<answer> c </answer>"
    )
    assert where(page)["path"] == "2"
    page.locator('[data-leaf="3"]').click()
    assert "all masked" in page.locator("#head").inner_text()
    assert "environment error" in page.locator("#head").inner_text()


def test_colourings_change_tokens_and_legend(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(page_file)
    names = page.locator("#colours label").all_inner_texts()
    assert names == ["Advantage", "Mask", "Entropy", "Log-prob", "Ratio", "Reward"]
    for name, cls in (("Mask", "trained"), ("Entropy", "seq"), ("Ratio", "pos")):
        page.get_by_label(name, exact=True).check()
        assert page.locator("#legend-title").inner_text() == name
        assert page.locator(f".block.act .t.{cls}").count() > 0
    assert where(page)["colour"] == "ratio"


def test_everything_works_by_keys_alone(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(page_file)
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    press("Enter")
    press("j")
    assert where(page)["turn"] == "2"
    press("ArrowRight")
    press("ArrowRight")
    assert where(page)["token"] == "2"
    assert page.locator("#tip").is_visible()
    assert "turn 2, token 2 of 20" in page.locator("#token").inner_text()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press("ArrowUp")
    assert (where(page)["turn"], where(page)["token"]) == ("1", "2")
    assert "Shared by 2 paths" in page.locator("#token").inner_text()
    press("c")
    assert where(page)["colour"] == "mask"
    press("]")
    assert where(page)["path"] == "2"
    press("}")
    assert where(page)["group"] == "2"
    press(".")
    assert where(page)["step"] == "10"
    press("/")
    page.keyboard.type("answer> c")
    press("Enter")
    assert (where(page)["step"], where(page)["path"], where(page)["turn"]) == ("1", "2", "2")
    press("n")
    assert where(page)["group"] == "3"
    press("?")
    assert page.locator("#keys").is_visible()
    press("Escape")
    assert not page.locator("#keys").is_visible()


def test_the_tree_is_walked_with_arrows(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(page_file)
    page.locator('[data-node="0:0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert (where(page)["path"], where(page)["turn"]) == ("2", "2")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.node") == "0:0"


def test_a_link_leads_to_its_token_and_a_wrong_one_to_the_nearest(
    open_page: OpenPage, page_file: Path
) -> None:
    link = page_file.resolve().as_uri()
    page = open_page(f"{link}#step=10&group=1&path=2&turn=2&token=3&colour=entropies")
    assert "turn 2, token 3 of 20" in page.locator("#token").inner_text()
    assert page.locator("#legend-title").inner_text() == "Entropy"
    page.evaluate("location.hash = 'step=77&path=99&turn=x&colour=__proto__'")
    page.wait_for_function("location.hash.includes('path=4')")
    assert where(page)["step"] == "1"


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_a_crawl_shows_papers_found_selected_and_read(
    open_page: OpenPage, page_file: Path, width: str
) -> None:
    page = open_page(f"{page_file.resolve().as_uri()}#group=2", width=width)
    page.locator("#tab-crawl").click()
    crawl = page.locator("#crawl")
    assert "2 of 2 answers" in crawl.inner_text()
    assert crawl.locator(".session").count() == 2
    assert crawl.locator(".session .paper.answer .name").all_inner_texts() == [
        "The oak paper",
        "The ash paper",
    ]
    assert crawl.locator(".session .paper:not(.selected)").count() == 1
    assert fits(page)
    crawl.locator(".read").first.click()
    assert where(page)["path"] == "2"
    assert "Prompt of a new session" in page.locator("#turns").inner_text()


def test_turns_are_filtered_by_kind(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(page_file, width="phone")
    page.locator("#find-kind").select_option("invalid")
    assert page.locator(".found").count() == 4
    page.locator("#find-kind").select_option("tool:Expand")
    assert page.locator(".found").count() == 2
    page.locator(".found").nth(1).click()
    assert where(page)["step"] == "10"
    assert fits(page)


def test_hostile_texts_stay_texts(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(f"{page_file.resolve().as_uri()}#group=3")
    shown = page.locator(".turn .block.obs .text").first.inner_text()
    assert "</script><script>window.hacked = 1</script>" in shown
    assert "<img src=x onerror='window.hacked = 1'>" in shown
    assert "⟨202E⟩" in shown
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    page.locator("#find-text").fill("onerror")
    page.locator(".found mark").first.wait_for()
    assert page.locator("img").count() == 0


def test_the_theme_can_be_chosen(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(page_file)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.keyboard.press("t")
    assert page.evaluate(ground) != light


@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_a_task_before_and_after_stands_first(
    open_page: OpenPage, tmp_path: Path, width: str
) -> None:
    root = write_run(tmp_path / "run")
    write_evaluations(root)
    out = root / "view.html"
    out.write_text(render_page(page_data(read_source(str(root)), 1e7)), encoding="utf-8")
    page = open_page(out, width=width)
    assert fits(page)
    pair = page.locator("#pair")
    assert pair.locator(".side-by-side").count() == 2
    heads = pair.locator(".side-by-side header").all_inner_texts()
    assert "Before: step 0" in heads[0]
    assert "✕ failed" in heads[0]
    assert "✓ solved" in heads[1]
    assert page.evaluate("window.hacked") is None
    boxes = [one.bounding_box() for one in pair.locator(".side-by-side").all()]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width == "desktop")
    pair.get_by_role("button").click()
    assert pair.locator(".sides").is_hidden()


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An episode of long actions: many characters, many lines, and a short one."""
    root = tmp_path_factory.mktemp("long")
    recorder = RecordEpisodes(gym.make("SearchQA-v0", size="micro"), root / "long.jsonl")
    recorder.reset(seed=0, options={"split": "dev", "task": 0})
    for action in (f"<search> {'word ' * 6000}</search>", "line\n" * 100, "short"):
        recorder.step(action)
    recorder.close()
    out = root / "view.html"
    source = read_source(str(root / "long.jsonl"))
    out.write_text(render_page(page_data(source, 1e7)), encoding="utf-8")
    return out


def test_long_texts_are_folded_and_open_by_keys(open_page: OpenPage, long_file: Path) -> None:
    page = open_page(long_file)
    height = "document.documentElement.scrollHeight"
    folded = page.evaluate(height)
    assert folded < 2500
    assert len(page.locator(".call").first.inner_text()) < 500
    buttons = page.locator(".block.act .more")
    assert buttons.all_inner_texts() == ["Show all 30,018 characters", "Show all 500 characters"]
    more = buttons.first
    more.focus()
    page.keyboard.press("Enter")
    assert (more.inner_text(), more.get_attribute("aria-expanded")) == ("Show less", "true")
    assert page.evaluate(height) > folded + 3000
    page.keyboard.press("Space")
    assert more.get_attribute("aria-expanded") == "false"
    assert page.evaluate(height) == folded


def test_a_token_below_the_fold_is_shown(open_page: OpenPage, tmp_path: Path) -> None:
    root = write_run(tmp_path / "run", groups=1, answer="x " * 3000)
    out = root / "view.html"
    out.write_text(render_page(page_data(read_source(str(root)), 1e7)), encoding="utf-8")
    page = open_page(f"{out.resolve().as_uri()}#turn=2&token=5000")
    assert "token 5000 of 6000" in page.locator("#token").inner_text()
    block = page.locator('[data-turn="1"] .block.act')
    assert block.locator(".more").inner_text() == "Show less"
    assert block.locator(".t.now").is_visible()


def test_pickers_keep_their_arrow_free_and_all_colourings_are_in_sight(
    open_page: OpenPage, page_file: Path
) -> None:
    page = open_page(page_file, width="phone")
    for name in ("step", "group", "path", "find-kind"):
        style = (
            "e => [getComputedStyle(e).appearance, parseFloat(getComputedStyle(e).paddingRight)]"
        )
        appearance, room = page.locator(f"#{name}").evaluate(style)
        assert appearance == "none"
        assert room >= 20  # where the arrow is drawn
    colours = page.locator("#colours")
    assert colours.evaluate("e => e.scrollWidth <= e.clientWidth")
    right = colours.bounding_box()["x"] + colours.bounding_box()["width"]
    for label in colours.locator("label").all():
        assert label.bounding_box()["x"] + label.bounding_box()["width"] <= right + 1


def test_without_scripts_the_page_says_so_and_nothing_else(browser: Any, page_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(page_file.resolve().as_uri())
        assert "This page needs JavaScript" in page.locator("body").inner_text()
        assert page.locator("h1").inner_text() == "treegrpo on SearchQA-v0"
        assert page.locator("select:visible, button:visible, .card:visible").count() == 0
    finally:
        context.close()
