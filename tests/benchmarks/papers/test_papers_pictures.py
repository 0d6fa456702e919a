"""Traces, trees and pictures of crawls, and the commands that make them."""

import io
import json

import gymnasium as gym
import pytest

import turngym.envs  # noqa: F401 - registers the worlds
from turngym.agents.scripted import scripted
from turngym.algos.runs.console import PlainConsole
from turngym.benchmarks.cli.main import main
from turngym.benchmarks.papers.crawl_figures import crawl_tree, draw_crawl, draw_recall, tree_rows
from turngym.benchmarks.papers.crawl_trace import CrawlAction, FoundPaper, Trace, trace
from turngym.envs.core.errors import BadValueError

PNG = b"\x89PNG"


def seen(number, answer=False, score=0.1):
    return FoundPaper(f"p{number}", f"Paper {number}", score, answer)


def small_crawl():
    deeds = [
        CrawlAction("search", "gold [1]", "", 0.1, 1, (seen(1), seen(2, score=0.9))),
        CrawlAction("search", "iron", "", 0.1, 0, ()),
        CrawlAction("expand", "A", "p2", 0.1, 1, (seen(3, answer=True),)),
        CrawlAction("expand", "B", "p3", 0.1, 1, (seen(4, answer=True),)),
        CrawlAction("expand", "C", "p1", 0.1, 0, ()),
    ]
    return Trace("dev/0", "gold?", 4, deeds)


def test_recall_after_each_action():
    assert small_crawl().recall() == [0.0, 0.0, 0.0, 0.25, 0.5, 0.5]


def test_rows_follow_the_tree():
    rows = [(row.action.arg, row.depth, row.parent, row.place) for row in tree_rows(small_crawl())]
    assert rows == [
        ("gold [1]", 0, None, 0),
        ("C", 1, 0, 0),
        ("A", 1, 0, 1),
        ("B", 2, 2, 0),
        ("iron", 0, None, 0),
    ]


def test_requests_and_agents_are_shown_as_they_are(tmp_path):
    formula = "bounds of $\\frac{$ on \\[b] [b]"
    crawl = Trace("dev/0", formula, 4, small_crawl().actions)
    draw_crawl(crawl, tmp_path / "crawl.png")
    draw_recall({"$\\frac{$": [crawl]}, tmp_path / "recall.png", title=formula)
    out = io.StringIO()
    PlainConsole(file=out, width=200).print(crawl_tree(crawl))
    assert out.getvalue().startswith(formula)


def test_pictures_and_the_tree_in_words(tmp_path):
    draw_crawl(small_crawl(), tmp_path / "crawl.png")
    draw_recall({"a": [small_crawl()], "b": [small_crawl()] * 3}, tmp_path / "recall.png")
    for name in ("crawl.png", "recall.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
    tree = crawl_tree(small_crawl())
    assert [len(child.children) for child in tree.children] == [2, 0]


def test_nothing_to_draw_is_refused(tmp_path):
    with pytest.raises(BadValueError, match="no action"):
        draw_crawl(Trace("dev/0", "x", 1, []), tmp_path / "c.png")
    with pytest.raises(BadValueError, match="a: there are no crawls"):
        draw_recall({"a": []}, tmp_path / "r.png")


def test_a_trace_agrees_with_the_environments_measures():
    env = gym.make("PaperCrawler-v0", size="micro")
    for task in range(5):
        policy = scripted("heuristic", 0, env.unwrapped)
        crawl = trace(env, policy, task, {"split": "dev", "task": task})
        assert crawl.recall()[-1] == pytest.approx(crawl.metrics["crawler_recall"])
        assert len(crawl.actions) == crawl.metrics["all_actions"]


def test_another_world_is_refused():
    env = gym.make("Bandit-v0")
    with pytest.raises(BadValueError, match="no PaperCrawler"):
        trace(env, scripted("null"), 0, {})


def test_commands_draw(tmp_path, capsys):
    out = tmp_path / "d" / "crawl.png"
    assert main(["papers", "draw", "--size", "micro", "--task", "2", "--out", str(out)]) == 0
    assert out.read_bytes().startswith(PNG)
    curve = tmp_path / "recall.svg"
    words = ["papers", "curve", "--size", "micro", "--n", "4", "--agent", "expert", "expand-all"]
    assert main([*words, "--out", str(curve), "--env.layer_cap", "3"]) == 0
    assert "<svg" in curve.read_text()
    told = capsys.readouterr().out
    assert "annotated answers" in told
    assert "expand-all: recall" in told


def test_imitation_rows_are_whole_sessions(tmp_path):
    out = tmp_path / "rows.jsonl"
    words = ["papers", "imitation", "--size", "micro", "--n", "23", "--out", str(out)]
    assert main(words) == 0
    rows = [json.loads(line)["messages"] for line in out.read_text().splitlines()]
    assert len(rows) == 23
    assert all([m["role"] for m in row] == ["user", "assistant"] for row in rows)
    stops = {row[1]["content"].rpartition("[")[2] for row in rows}
    assert stops == {"StopSearch]", "StopExpand]"}
    assert main(words) == 2  # never overwritten


def test_imitation_rows_of_another_schedule(tmp_path, capsys):
    words = ["papers", "imitation", "--size", "micro", "--n", "3", "--out", str(tmp_path / "a")]
    assert main([*words, "--env.schedule", "layered"]) == 0, capsys.readouterr().err
    words = [*words[:-1], str(tmp_path / "b"), "--per-layer", "1"]
    assert main([*words, "--env.schedule", "layered"]) == 2
    assert "--per-layer" in capsys.readouterr().err
    assert main(words) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["draw", "--out", "crawl.txt"],
        ["draw", "--agent", "heuristics", "--size", "micro"],
        ["draw", "--task", "100000", "--size", "micro"],
        ["curve", "--n", "0", "--size", "micro"],
        ["stats", "--n", "0"],
        ["stats", "--preset", "odd"],
        ["imitation", "--n", "0", "--out", "x.jsonl"],
    ],
)
def test_bad_words_are_refused(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["papers", *words]) == 2
    assert "error:" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
