"""The report: whole, escaped, without a request to the outside, and with the right numbers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny_matrix import filled, tiny

from turngym.algos.recipes import ONE_GRADIENT
from turngym.benchmarks.matrix.cell import Cell, CellResult, TriedRate, Used
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.matrix_files import read_folder, read_packed, write_packed
from turngym.benchmarks.matrix.rate_search import make_search
from turngym.benchmarks.matrix.report import (
    TEMPLATES,
    Shade,
    count_steps,
    count_tokens,
    interval,
    one_line,
    split_words,
    write_report,
)
from turngym.benchmarks.matrix.results import Place, Spread, over_seeds
from turngym.benchmarks.matrix.suite import RateSearch
from turngym.benchmarks.matrix.train_cell import make_result
from turngym.envs.core.errors import DataError

EVIL = '<script>alert("x")</script> | `a` [b](http://evil)'
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
VOID = {"meta", "input", "br", "wbr", "link", "img", "hr"}


class Checker(HTMLParser):
    """Tags that are closed as they were opened, texts, and what would be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.loads += [v or "" for k, v in attrs if k in ("src", "href", "data", "action")]
        if tag not in VOID and tag != "path":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "path":
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def reported(folder: Path, **options: str) -> tuple[str, str]:
    html, md = write_report([folder], **options)
    return html.read_text(encoding="utf-8"), md.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("matrix")
    suite = tiny(("grpo", "ppo", "rloo"), ("Bandit-v0", "Password-v0"))

    def returns(cell: Cell) -> object:
        if cell.recipe == "rloo" and cell.column == "Password-v0":
            return make_result(suite, cell, "failed", EVIL, f"Traceback\n{EVIL}")
        return [[1.0, 1.0, 1.0, 0.0]] if cell.recipe == "ppo" else [[0.0, 0.0, 1.0, 0.0]]

    filled(folder, suite, returns)
    return reported(folder)


def test_the_page_is_whole_and_loads_nothing(pages: tuple[str, str]) -> None:
    page = Checker()
    page.feed(pages[0])
    assert page.open == []
    assert all(link.startswith("#") for link in page.loads)
    assert "script" not in page.seen
    assert "@import" not in pages[0]
    assert "url(" not in pages[0]
    assert "default-src 'none'" in pages[0]
    targets = set(re.findall(r'id="([^"]+)"', pages[0]))
    assert {link[1:] for link in page.loads} <= targets


def test_what_results_say_is_escaped(pages: tuple[str, str]) -> None:
    html, md = pages
    assert "<script>" not in html
    assert "&lt;script&gt;alert(" in html
    assert "a &lt;processor&gt;" in html
    row = next(line for line in md.splitlines() if "alert" in line)
    assert "\\<script\\>" in row
    assert len(re.findall(r"(?<!\\)\|", row)) == 5  # four fields
    assert one_line("a\n| *b*") == "a \\| \\*b\\*"


def test_numbers_stand_in_both(pages: tuple[str, str]) -> None:
    html, md = pages
    page = Checker()
    page.feed(html)
    assert "| ppo | 75 | 75 |" in md
    assert "| grpo | 25 | 25 |" in md
    assert "| rloo | 25 | failed |" in md
    assert "5 cells finished, 1 cell failed" in md
    assert "ppo on Bandit-v0: 75.0, 1 seed" in html
    assert "One seed decides nothing" in html
    assert "<b>no leader</b>" in html  # the headline claims nothing either
    assert "one seed decides nothing" in md
    assert "| ppo | 46.9 | – | – | not decided: one seed decides nothing" in md
    assert 'style="--v:0.75"' in html
    assert "75.0" in page.text
    assert html.count("<figure>") == 2 + 2  # two budgets, two worlds


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("does it sort sooner?", "Does it sort sooner?"),
        ("SmolLM2 on Retail", "SmolLM2 on Retail."),
        ("All of it.", "All of it."),
    ],
)
def test_the_purpose_is_a_sentence_with_one_mark(about: str, said: str, tmp_path: Path) -> None:
    suite = tiny(("grpo",), ("Bandit-v0",)).model_copy(update={"about": about})
    filled(tmp_path, suite, lambda _: [[1.0, 0.0]])
    html, md = reported(tmp_path)
    assert f"{said} Digest" in md
    assert f"{said} Version" in html


def test_gains_may_be_negative(tmp_path: Path) -> None:
    from helpers.tiny_matrix import finished

    suite = tiny()
    filled(
        tmp_path,
        suite,
        lambda cell: finished(suite, cell, [[1.0, 0.0, 0.0, 0.0]], before=0.75, greedy=0.5),
        before=0.75,
    )
    html, md = reported(tmp_path)
    assert "| ppo | -25 |" in md  # sampled fell by 50, greedy by 25
    assert re.search(r'class="minus\s+strong"\s+style="--v:1.0"', html)


def test_five_seeds_are_tested_and_the_a_a_row_stands_apart(tmp_path: Path) -> None:
    suite = tiny(("grpo", "ppo"), seeds=range(5))
    rows = (*suite.recipes, suite.recipes[0].again())
    suite = suite.model_copy(update={"recipes": rows})

    def returns(cell: Cell) -> list[list[float]]:
        if cell.recipe == "ppo":
            return [[1.0, 1.0, 1.0, float(cell.seed > 2)]]
        return [[float(cell.seed > 1), 0.0, 0.0, 0.0]]

    filled(tmp_path, suite, returns)
    html, md = reported(tmp_path)
    again = [line for line in md.splitlines() if line.startswith("| grpo again (A/A)")]
    assert len(again) == 2  # in the ranking and in the column's table
    assert "+0.0 (-12.5 to +12.5)" in again[0]
    assert "above: the interval lies above 0" in md
    assert html.index('<th scope="row">grpo<') < html.index('<th scope="row">grpo again')
    assert "with other seeds" in html
    assert html.count('class="band') == 3 * 2  # two budgets, one column; both rows with a colour


def test_rows_of_one_gradient_are_marked(tmp_path: Path) -> None:
    suite = tiny(("grpo", "arpo"))
    filled(tmp_path, suite, lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    html, md = reported(tmp_path)
    assert f"| arpo ≡ {ONE_GRADIENT['arpo'].equals} |" in md
    assert "arpo is grpo" in html
    papers = suite.model_copy(update={"small": False})  # known of the small settings alone
    filled(tmp_path / "papers", papers, lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    assert "≡" not in reported(tmp_path / "papers")[1]


def test_nothing_finished_is_a_report_too(tmp_path: Path) -> None:
    suite = tiny()
    filled(tmp_path, suite, lambda cell: make_result(suite, cell, "interrupted", "stopped"))
    html, md = reported(tmp_path)
    assert "No cell is finished yet" in html
    assert "Ranking" not in md
    assert "| ppo | interrupted |" in md


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"suite\.json"):
        write_report([tmp_path])
    assert not (tmp_path / "report.html").exists()


def test_steps_that_differ_from_the_baselines_by_more_than_a_twentieth_are_marked() -> None:
    assert [count_steps(n, 100.0) for n in (94.0, 95.0, 105.0, 106.0)] == [
        "94 ≠",
        "95",
        "105",
        "106 ≠",
    ]
    assert count_steps(7.0, None) == "7"
    assert [count_tokens(n, 2000.0) for n in (1890.0, 1910.0)] == ["1.89k ≠", "1.91k"]
    assert count_tokens(7.0, None) == "7"


def test_the_interval_of_a_share_ends_at_its_bounds() -> None:
    wide = over_seeds([0.9, 1.0, 0.2, 1.0, 0.5])
    assert wide is not None
    assert interval(wide) == "72.0 (27.8 to 116.2)"
    assert interval(wide.of_share()) == "72.0 (27.8 to 100.0)"
    assert Spread(0.5, 1, None, None).of_share() == Spread(0.5, 1, None, None)


def test_rows_with_other_steps_are_marked_in_both_pages(tmp_path: Path) -> None:
    suite = tiny(("grpo", "ppo", "rloo"), ("Bandit-v0",))
    filled(tmp_path, suite, lambda cell: [[1.0, 0.0, 1.0, 0.0]])
    cell = next(cell for cell in suite.cells if cell.recipe == "ppo")
    file = Layout(tmp_path).cell_file(cell)
    result = CellResult.read(file)
    steps = 2 * result.used.optimizer_steps + 9
    used = result.used.model_copy(update={"optimizer_steps": steps})
    result.model_copy(update={"used": used}).write(file)
    for page in reported(tmp_path):
        assert page.count(f"{steps} ≠") == 2  # in the ranking and in its column
        assert page.count("≠") == 3  # and where the sign is explained
    # a run that the limit of calls ended has fewer tokens, and an area that goes on with its last
    # value
    used = result.used.model_copy(update={"tokens": result.used.tokens // 2})
    result.model_copy(update={"used": used}).write(file)
    for page in reported(tmp_path):
        assert page.count(f"{used.tokens} ≠") == 2
        assert page.count("≠") == 3


@pytest.mark.parametrize(
    ("chosen", "said"),
    [(2, " (the largest tried)"), (0.5, " (the smallest tried)"), (1, ""), (1.5, "")],
)
def test_a_rate_at_the_end_of_those_tried_is_marked(
    tmp_path: Path, chosen: float, said: str
) -> None:
    plan = RateSearch(scales=(1, 0.5, 1.5, 2), seeds=(50,), share=0.5)
    suite = tiny(("grpo", "ppo"), lr_search=plan)
    filled(tmp_path, suite, lambda cell: [[1.0, 0.0, 1.0, 0.0]])
    tried = tuple(TriedRate(rate=s, seed=50, area=0.5, used=Used()) for s in plan.scales)
    search = make_search(suite, "ppo", "Bandit-v0", "finished")
    search.model_copy(update={"tried": tried, "rate": chosen}).write(
        Layout(tmp_path).search_file("ppo", "Bandit-v0")
    )
    for page in reported(tmp_path):
        assert page.count("tried)") == bool(said)
        assert said in page


def test_names_break_between_words() -> None:
    assert split_words("PaperCrawler-v0") == ["Paper", "Crawler"]
    assert split_words("SearchQA-v0") == ["Search", "QA"]
    assert split_words("Game24-v0") == ["Game24"]


def test_what_was_left_out_on_purpose_is_not_missing(tmp_path: Path) -> None:
    """A part chosen by --only is ranked over its own seeds, and what it is stands above it."""
    suite = tiny(("grpo", "ppo", "rloo"), ("Bandit-v0", "Password-v0"), seeds=range(3))
    layout = filled(
        tmp_path, suite, lambda cell: [[1.0, 0.0, 0.0, 0.0]] if cell.column[0] == "B" else None
    )
    page, table = reported(tmp_path)
    assert "9 cells finished, 9 cells not computed" in table  # everything was asked for
    for cell in suite.cells:
        if cell.seed == 2 or cell.recipe == "rloo":
            layout.cell_file(cell).unlink(missing_ok=True)
    layout.choose(["column=Bandit-v0", "seed=0", "seed=1", "row=ppo"])
    layout.choose(["row=grpo", "env=Bandit-v0", "seed=0", "seed=1"])
    page, table = reported(tmp_path)
    assert "not computed" not in page + table
    assert "4 of the suite's 18 cells" in table
    assert "column=Bandit-v0, seed=0, seed=1, row=ppo" in page
    assert "## Ranking" in table
    assert "2 × 1" in page
    assert "rows × columns, 2 seeds" in page
    assert "*</td>" not in page  # no field lacks a seed
    layout.choose([])
    assert "cells not computed" in reported(tmp_path)[0]


def test_a_part_that_is_more_than_its_last_run_chose_says_so(tmp_path: Path) -> None:
    """Its head said that only what the last run had chosen was there, beside all the rest."""
    suite = tiny(("grpo", "ppo"), ("Bandit-v0", "Password-v0"), seeds=range(2))
    layout = filled(tmp_path, suite, lambda cell: [[1.0] * 4] if cell.column[0] == "B" else None)
    for cell in suite.cells:
        if cell.column[0] == "P":
            layout.cell_file(cell).unlink(missing_ok=True)
    layout.choose(["row=ppo", "env=Bandit-v0"])
    for text in reported(tmp_path):
        assert "A part that was chosen" not in text
        assert "4 of the suite's 8 cells are here" in text.replace("&#39;", "'")
        assert "row=ppo, env=Bandit-v0 (2 cells)" in text.replace("\\", "")
    assert "mean of 1 columns" not in reported(tmp_path)[0]


def oklab(colour: str) -> np.ndarray:
    """A colour such as ``#0b6e6e`` as CSS mixes it (oklab, of the CSS Color Module, level 4)."""
    light = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    light = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    return TO_LAB @ np.cbrt(TO_LMS @ light)


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """The contrast of two colours as WCAG defines it."""
    inverse = [np.linalg.inv(TO_LMS) @ (np.linalg.inv(TO_LAB) @ lab) ** 3 for lab in (one, other)]
    low, high = sorted(float(rgb @ [0.2126, 0.7152, 0.0722]) for rgb in inverse)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("end", ["hot", "minus"])
def test_numbers_stand_out_from_the_colour_of_their_field(dark: bool, end: str) -> None:
    """White digits on teal of middle strength had a contrast of 2.6 to 1."""
    text = (TEMPLATES / "style.css.j2").read_text(encoding="utf-8")
    theme = [dict(re.findall(r"--([\w-]+): (#\w{6});", part)) for part in text.split("@media")[:2]]
    colours = {name: oklab(found) for name, found in theme[dark].items()}
    for strength in np.linspace(-1.0, 1.0, 81):
        shade = Shade(Place("", "", (), (), "", *[None] * 5, (), ()), "", float(strength), "")
        field = abs(strength) * colours[end] + (1 - abs(strength)) * colours["cold"]
        turned = shade.ink in (("middling", "strong") if dark else ("strong",))
        inks = {name: contrast(colours[name], field) for name in ("ink", "on-hot")}
        assert inks["on-hot" if turned else "ink"] >= 3.4, (strength, inks)


def test_fields_without_a_result_are_hatched(tmp_path: Path) -> None:
    suite = tiny(("grpo", "ppo"), ("Bandit-v0", "Password-v0"))
    layout = filled(
        tmp_path,
        suite,
        lambda cell: None if (cell.recipe, cell.column[0]) == ("ppo", "P") else [[1.0] * 4],
    )
    assert 'class="none waiting" title="ppo on Password-v0: not computed"' in reported(tmp_path)[0]
    layout.choose(["row=grpo"])
    layout.choose(["env=Bandit-v0"])
    page = reported(tmp_path)[0]
    assert 'class="none waiting" title="ppo on Password-v0: not asked for"' in page
    packed = write_packed(read_folder(tmp_path), tmp_path / "one.jsonl")
    again = read_packed(packed)
    assert again.only == (("row=grpo",), ("env=Bandit-v0",))
    assert again.chosen() == read_folder(tmp_path).chosen()
    packed.write_text(packed.read_text().replace('["row=grpo"]', '["row=none"]'))
    with pytest.raises(DataError, match="only"):
        read_packed(packed)
