"""The static site: complete, escaped, closed to the outside, and rebuilt only where needed."""

from __future__ import annotations

import html.parser
import itertools
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("jinja2")

from helpers.board_helpers import verdict_of
from helpers.processes import ends
from helpers.site_helpers import EVIL, index_of, make_demo

from turngym.envs.utils.statistics import Estimate
from turngym.envs.utils.untrusted_text import plain
from turngym.envs.wrappers.record import RecordEpisodes
from turngym.leaderboard.entries_io.files import EntryFiles
from turngym.leaderboard.ranking.board import make_boards
from turngym.leaderboard.schema.board import Board
from turngym.leaderboard.schema.suite import Suite
from turngym.leaderboard.site import SiteSettings, build_site, formatting
from turngym.leaderboard.site.board_pages import write_board
from turngym.leaderboard.site.build import still_there
from turngym.leaderboard.site.charts import curves_of
from turngym.leaderboard.site.entry_pages import ShownEpisode, pack_episodes, unpack_episodes
from turngym.leaderboard.site.env_pages import about_parts
from turngym.leaderboard.site.rendering import Folder, Renderer
from turngym.leaderboard.suites.digests import make_cell_env
from turngym.leaderboard.suites.files import load_suite


class Links(html.parser.HTMLParser):
    """Addresses, scripts and handlers of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.inline: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.targets += [given[name] or "" for name in ("href", "src") if name in given]
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        if tag == "script" and "src" not in given:
            self.inline.append("script")
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.inline.append(tag)
        if given.get("id"):
            self.ids.append(given["id"] or "")


def parsed(path: Path) -> Links:
    links = Links()
    links.feed(path.read_text())
    return links


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, suite: Suite) -> SiteSettings:
    root = tmp_path_factory.mktemp("site")
    make_demo(root / "entries", suite)
    settings = SiteSettings(entries=root / "entries", suites={suite.id: suite}, out=root / "out")
    assert build_site(index_of(root, suite), settings) > 30
    return settings


def pages(settings: SiteSettings) -> Iterator[Path]:
    yield from sorted(settings.out.rglob("*.html"))


def test_every_page_is_closed_and_every_link_leads_somewhere(demo: SiteSettings) -> None:
    outside = set()
    for page in pages(demo):
        links = parsed(page)
        assert links.inline == [], page
        assert len(links.ids) == len(set(links.ids)), page
        assert "Content-Security-Policy" in page.read_text()
        for target in links.targets:
            if target.startswith(("http", "data:")):
                outside.add(target.split(",")[0])
            elif not target.startswith("#"):
                file, _, place = unquote(target).partition("#")
                assert (page.parent / file).resolve().is_file(), (page, target)
                assert not place or f"<option>{place}</option>" in (page.parent / file).read_text()
    assert outside == {"data:image/svg+xml", "https://example.org/x?a=1&b=2"}


def test_an_entry_that_was_deleted_is_left_out(
    demo: SiteSettings, suite: Suite, tmp_path: Path
) -> None:
    """The index keeps its verdict, and its pages would need its files."""
    index = index_of(demo.entries.parent, suite)
    gone = replace(index[0], entry_id=f"{suite.id}/gone")
    assert still_there([gone, *index], demo.entries) == index
    made = build_site([gone, *index], replace(demo, out=tmp_path / "out"))
    assert made == build_site(index, replace(demo, out=tmp_path / "again"))


def test_strangers_texts_are_escaped_everywhere(demo: SiteSettings) -> None:
    seen = 0
    for page in pages(demo):
        text = page.read_text()
        assert "<script>alert" not in text, page
        assert "<img" not in text, page
        assert "\u202e" not in text, page
        seen += "&lt;script&gt;alert" in text
    assert seen > 5
    entry = demo.out / "entries" / "tiny-v1" / "evil"
    about = (entry / "index.html").read_text()
    assert "{{ 7*7 }}" in about
    packed = (entry / "Password-v0" / "episodes.js").read_text()
    assert re.fullmatch(r'globalThis\.packedEpisodes = "[A-Za-z0-9+/=]+";\n', packed)
    found = unpack_episodes(packed)
    assert "</pre><script>alert(3)</script>" in found["texts"]


def test_the_board_shows_what_was_computed(demo: SiteSettings, suite: Suite) -> None:
    board = (demo.out / "boards" / "tiny-v1-agents.html").read_text()
    rows = index_of(demo.entries.parent, suite)
    expert = next(one for one in rows if one.entry_id == "tiny-v1/expert").verdict.scores
    assert expert is not None
    assert formatting.percent(expert.score.mean) in board
    for word in ("pass@2", "pass^2", "Tool calls", "✓ replayed", "data-reference", "Matrix"):
        assert word in board
    assert "<bdi>greedy, at most 64 tokens</bdi>" in board  # how each entry's actions were chosen
    assert "The score is in per cent: of each task the mean over its trials" in board
    heads = re.findall(r"<th[^>]*>(?:<button[^>]*>)?([^<]+)", board)
    assert [h.strip() for h in heads][:6] == list(HEADS)  # who it is stands in sight
    algorithms = (demo.out / "boards" / "tiny-v1-algorithms-1.html").read_text()
    assert "Score against budget" in algorithms
    assert algorithms.count("<polyline") == 2
    references = [
        round(one.scores.score.mean, 2) for one in rows if one.entry_id.endswith(REFERENCES)
    ]
    compared = algorithms[algorithms.index('id="comparison-table"') :]
    assert compared.count('<span class="chip">A/A</span> its other runs') == 2
    assert "at least 5 are needed to decide" in compared
    assert algorithms.count('class="level"') == len(set(references))
    assert "comparison-table" not in board


REFERENCES = ("/expert", "/random", "/null")
HEADS = ("#", "Entry", "Score", "Model", "Parameters", "Accepted")


def test_an_environment_is_explained_before_its_table(demo: SiteSettings) -> None:
    (page, *_) = (demo.out / "environments" / "tiny-v1").glob("*.html")
    text = page.read_text()
    assert "<details open><summary>About this environment" in text
    assert text.index("About this environment") < text.index("<table")


def test_an_environment_is_described_without_its_docstrings_marks() -> None:
    (cell,) = (c for c in load_suite("micro-v3").cells if c.key == "PaperCrawler-v0")
    parts = about_parts(make_cell_env(cell))
    assert [part.heading for part in parts] == ["", "Description", "Actions", "Rewards"]
    _, description, _, rewards = parts
    assert len(description.paragraphs) == 2
    assert [p[0].text for p in rewards.paragraphs] == ["found", "cost"]
    pieces = [piece for part in parts for paragraph in part.paragraphs for piece in paragraph]
    assert all("`" not in piece.text and "\n" not in piece.text for piece in pieces)
    assert "[StopSearch]" in {piece.text for piece in pieces if piece.code}


def test_what_the_environments_pages_count_and_shorten(demo: SiteSettings, suite: Suite) -> None:
    listed = (demo.out / "environments" / "index.html").read_text()
    counts = [
        f"{'up to ' if cell.max_turns > 1 else ''}{formatting.counted(cell.max_turns, 'turn')}</p>"
        for cell in suite.cells
    ]
    assert all(f"3 tasks × 2, test, {count}" in listed for count in counts)
    assert " 1 turns" not in listed
    page = (demo.out / "environments" / "tiny-v1" / "Fork-v0.html").read_text()
    assert "``" not in page
    for opening in re.findall(r"<summary>([^<]*)</summary><pre", page.split("<table")[-1]):
        assert len(opening) <= 90 or opening.endswith("…")


def test_solved_stands_beside_the_score_where_it_differs(
    demo: SiteSettings, suite: Suite, tmp_path: Path
) -> None:
    page = tmp_path / "boards" / "some.html"
    boards = make_boards(index_of(demo.entries.parent, suite))
    agents = next(board for board in boards if board.track is None)
    for rows, there in (
        (agents.rows, False),
        ([row.model_copy(update={"success": agents.rows[-1].score}) for row in agents.rows], True),
    ):
        board = agents.model_copy(update={"rows": tuple(rows)})
        write_board(Renderer(), Folder(tmp_path), ("boards/some.html", board), [board], True)
        assert (">Solved</th>" in page.read_text()) == there
        said = "The score is the share of episodes that solve their task." in page.read_text()
        assert said != there


def test_methods_of_one_budget_stand_side_by_side(demo: SiteSettings, suite: Suite) -> None:
    boards = make_boards(index_of(demo.entries.parent, suite))
    small = next(board for board in boards if board.track and board.track.budget.tool_calls)
    both = curves_of(small, boards)
    assert both is not None
    assert not both.one_budget
    alone = curves_of(small, [small])
    assert alone is not None
    assert alone.one_budget
    assert alone.across == ()
    for curves in (both, alone):
        assert curves.side_by_side
        marks = sorted(mark.x for line in curves.lines for mark in line.marks)
        assert min(b - a for a, b in itertools.pairwise(marks)) >= 10
        assert curves.left < marks[0] < marks[-1] < curves.right


def test_many_marks_of_one_budget_keep_inside_the_chart(demo: SiteSettings, suite: Suite) -> None:
    boards = make_boards(index_of(demo.entries.parent, suite))
    small = next(board for board in boards if board.track)
    row = next(row for row in small.rows if row.reference is None)
    rows = [row.model_copy(update={"entry_id": f"x/{i}", "name": str(i)}) for i in range(60)]
    curves = curves_of(small, [small.model_copy(update={"rows": tuple(rows)})])
    assert curves is not None
    marks = [mark.x for line in curves.lines for mark in line.marks]
    assert len(set(marks)) == 60
    assert curves.left < min(marks) < max(marks) < curves.right


def test_methods_and_reference_rows_of_a_chart_can_be_told_apart(
    demo: SiteSettings, suite: Suite
) -> None:
    """The ninth, then the seventeenth looked like the first; names of near reference rows met."""
    boards = make_boards(index_of(demo.entries.parent, suite))
    small = next(board for board in boards if board.track)
    row = next(row for row in small.rows if row.reference is None)
    rows = [row.model_copy(update={"entry_id": f"x/{i}", "name": str(i)}) for i in range(32)]
    for means in ((0.0, 0.02, 0.5), (0.98, 0.99, 1.0)):
        at = [row.score.model_copy(update={"mean": mean}) for mean in means]
        known = [
            row.model_copy(update={"entry_id": f"x/{name}", "reference": name, "score": score})
            for name, score in zip(("null", "random", "heuristic"), at, strict=True)
        ]
        board = small.model_copy(update={"rows": (*rows, *known)})
        curves = curves_of(board, [board])
        assert curves is not None
        assert len({(line.colour, line.look) for line in curves.lines}) == 32
        names = sorted(above for _, _, above in curves.references)
        assert min(b - a for a, b in itertools.pairwise(names)) >= 12
        assert names[0] >= 12


def test_every_page_says_what_open_suites_are_for(demo: SiteSettings) -> None:
    pages = list(demo.out.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        assert "Open suites are for reproduction and development" in page.read_text(), page
    board = (demo.out / "boards" / "tiny-v1-agents.html").read_text()
    assert "<b>Reproduction and development.</b>" in board
    assert board.count(">not ranked</span>") == 2
    assert ">rerun</span>" not in board
    assert 'class="open"' in board


def test_entry_pages_tell_all(demo: SiteSettings) -> None:
    text = (demo.out / "entries" / "tiny-v1" / "broken" / "index.html").read_text()
    assert "agent_error" in text
    cell = demo.out / "entries" / "tiny-v1" / "broken" / "Password-v0"
    (first, *_) = unpack_episodes((cell / "episodes.js").read_text())["tasks"]["0"]
    assert first["error"] == first["status"] == "agent_error"
    assert first["why"] == "the agent gave up"
    assert "<option>0</option>" in (cell / "index.html").read_text()
    evil = (demo.out / "entries" / "tiny-v1" / "evil" / "index.html").read_text()
    assert "https://example.org/x?a=1&amp;b=2" in evil
    assert (demo.out / "environments" / "tiny-v1" / "Fork-v0.html").is_file()


def test_an_entry_costs_few_files_and_bytes(demo: SiteSettings, suite: Suite) -> None:
    """Two files for each environment, however many episodes, and a small part of their bytes."""
    home = demo.out / "entries" / "tiny-v1" / "expert"
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) == 2 + 2 * len(suite.cells)
    cell = next(cell for cell in suite.cells if cell.key == "Password-v0")
    recorder = RecordEpisodes(make_cell_env(cell), None)
    recorder.reset(seed=0, options={"split": cell.split, "task": 0})
    recorder.step("never\x1b that")
    episode = next(EntryFiles(demo.entries / "tiny-v1" / "expert").episodes())
    shown = {i: [ShownEpisode(episode, recorder.transcript, 0.5)] * 3 for i in range(1000)}
    packed = pack_episodes(shown)
    assert len(packed) < 30 * 1000  # ten bytes an episode, and its page took 3,000
    assert packed == pack_episodes(shown)
    data = unpack_episodes(packed)
    assert len(data["texts"]) == len(set(data["texts"])) <= 3
    assert "never␚ that" in data["texts"]  # as it is shown: controls are named
    (one, *_) = data["tasks"]["999"]
    (step,) = recorder.transcript.steps
    assert data["texts"][one["turns"][0][0]] == plain(step.observation)
    assert one["turns"][0][2:5] == [0, int(step.valid), step.reward]
    assert one["return"] == 0.5


def test_refused_entries_are_listed(tmp_path: Path, suite: Suite, good: Path) -> None:
    shutil.copytree(good, tmp_path / "entries" / "tiny-v1" / "<b>")
    (tmp_path / "entries" / "tiny-v1" / "<b>" / "episodes" / "Fork-v0.jsonl").unlink()
    settings = SiteSettings(
        entries=tmp_path / "entries", suites={suite.id: suite}, out=tmp_path / "out"
    )
    build_site(index_of(tmp_path, suite), settings)
    text = (settings.out / "index.html").read_text()
    assert "missing_episode" in text
    assert "tiny-v1/&lt;b&gt;" in text
    assert "No entry is on a board yet" in text


def test_a_second_build_replays_nothing_and_sweeps(
    tmp_path: Path, suite: Suite, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        shutil.copytree(good, tmp_path / "entries" / "tiny-v1" / name)
    settings = SiteSettings(
        entries=tmp_path / "entries", suites={suite.id: suite}, out=tmp_path / "out"
    )
    index = index_of(tmp_path, suite)
    count = build_site(index, settings)
    page = settings.out / "entries" / "tiny-v1" / "two" / "Fork-v0" / "episodes.js"
    before = page.stat().st_mtime_ns
    monkeypatch.setattr("turngym.leaderboard.site.entry_pages._replay", None)
    assert build_site(index, settings) == count
    assert page.stat().st_mtime_ns == before
    build_site(index[:1], settings)
    assert not page.exists()
    assert (settings.out / "entries" / "tiny-v1" / "one" / "index.html").exists()


def test_a_build_waits_for_another_one_of_the_same_site(
    tmp_path: Path, suite: Suite, good: Path
) -> None:
    shutil.copytree(good, tmp_path / "entries" / "tiny-v1" / "one")
    settings = SiteSettings(
        entries=tmp_path / "entries", suites={suite.id: suite}, out=tmp_path / "out"
    )
    index, waits = index_of(tmp_path, suite), threading.Event()
    other = Folder(settings.out)

    def note(what: str, place: int, count: int) -> None:
        if what == "another process writes it":
            waits.set()

    with ThreadPoolExecutor() as pool:
        with other.alone(lambda: None):
            second = pool.submit(build_site, index, settings, note)
            assert waits.wait(60)
            assert {path.name for path in settings.out.iterdir()} == {".lock"}
            other.write("index.html", "the first one's")
        assert second.result(60) > 5
    assert "the first one's" not in (settings.out / "index.html").read_text()


def test_a_sealed_suite_tells_no_task(tmp_path: Path, suite: Suite, good: Path) -> None:
    shutil.copytree(good, tmp_path / "entries" / "tiny-v1" / "one")
    settings = SiteSettings(entries=tmp_path / "entries", suites={}, out=tmp_path / "out")
    build_site(index_of(tmp_path, suite), settings)
    verdict = verdict_of(good, suite)
    names = {episode.task_id for episode in verdict.episodes}
    for page in pages(settings):
        assert not any(name in page.read_text() for name in names), page
    assert not (settings.out / "environments" / "tiny-v1").exists()


WRITER = """
import time
from turngym.leaderboard.site import build
def wait(files):
    print("begun", flush=True)
    time.sleep(60)
build.known_suites = wait
build.main()
"""
SERVER = """
import subprocess, sys, time
words = ["--entries", "entries", "--index", "index.sqlite", "--out", "site"]
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], *words])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_the_process_that_writes_dies_with_its_server() -> None:
    command = [sys.executable, "-c", SERVER, WRITER]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    child = int(server.stdout.readline())
    assert server.stdout.readline() == "begun\n"
    server.kill()
    server.wait()
    server.stdout.close()
    assert ends(child)


def test_formatting() -> None:
    assert plain("a\u202eb\x1b\x00c\td\n") == "a␚b␚␚c\td\n"
    assert [formatting.amount(n) for n in (0, 950, 1500, 1_000_000, 7.6e9, 123_456)] == [
        "0",
        "950",
        "1.5k",
        "1M",
        "7.6B",
        "123k",
    ]
    assert formatting.interval(Estimate(mean=0.5, low95=0.25, high95=0.75)) == "25.0 to 75.0"
    assert [formatting.heat(x) for x in (-1, 0, 0.5, 1, 2)] == [0, 0, 10, 20, 20]
    assert formatting.place("a b/<c>") == "a%20b/%3Cc%3E"
    assert [formatting.probability(p) for p in (0.0001, 0.05)] == ["< 0.001", "0.050"]


def test_a_board_of_agents_has_no_curve() -> None:
    board = Board(board="agents", suite="tiny-v1", track=None, rows=())
    assert curves_of(board, [board]) is None
    assert EVIL.startswith("<script>")
