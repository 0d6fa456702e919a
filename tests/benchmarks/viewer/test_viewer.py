"""`turngym view`: what it reads, what it refuses, what the page holds."""

from __future__ import annotations

import json
import re
import resource
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.viewer_runs import HOSTILE, write_evaluations, write_run

import turngym.envs
from turngym.agents.scripted import scripted, text_env
from turngym.algos.core.forest import Forest
from turngym.algos.training.rollout_dump import RolloutDump, read_dump
from turngym.benchmarks.cli.main import main
from turngym.benchmarks.viewer import sources
from turngym.benchmarks.viewer.page import (
    _order,
    embed_json,
    page_data,
    render_page,
    source_hash,
    tool_calls,
)
from turngym.benchmarks.viewer.sources import read_source
from turngym.envs.core.errors import BadValueError, DataError


class Parts(HTMLParser):
    """Scripts, styles and everything that would be fetched."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style", "title"):
            self.texts.setdefault(self._open, []).append(data)


def data_of(page: str) -> dict[str, Any]:
    return json.loads(Parts(page).texts["script"][0])


def test_the_page_is_one_file_with_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_run(tmp_path / "run")
    assert main(["view", str(root)]) == 0
    assert "6 groups of 2 steps" in capsys.readouterr().out
    page = (root / "view.html").read_text(encoding="utf-8")
    data = data_of(page)
    assert [step["step"] for step in data["steps"]] == [1, 10]
    assert data["title"] == "treegrpo on SearchQA-v0"
    assert data["about"] == {"seed": "3", "rollout": "Expand"}
    assert len(data["curve"]) == 10
    group = data["steps"][0]["groups"][0]
    assert [path["trained"] for path in group["paths"]] == [True, True, True, False]
    first = group["paths"][0]
    assert first["turns"] == [0, 1]
    assert len(first["streams"]["advantages"]) == 40
    assert first["streams"]["advantages"][0] == -1.5
    turn = group["trees"][0][0]
    assert turn["calls"] == [{"tool": "search", "args": "a"}]
    assert "".join(data["words"][n] for n in turn["obs"]) == "Question: who?\n"
    assert turn["n"] == [15, 20]


def test_nothing_is_fetched_and_only_the_own_script_may_run(tmp_path: Path) -> None:
    page = render_page(page_data(read_source(str(write_run(tmp_path / "run"))), 1e7))
    parts = Parts(page)
    for tag, attrs in parts.tags:
        assert not attrs.get("src")
        assert attrs.get("href", "data:,") == "data:,"
        assert tag not in ("iframe", "object", "embed", "base")
    policy = next(a["content"] for t, a in parts.tags if a.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy
    assert source_hash(parts.texts["script"][1]) in policy
    assert source_hash(parts.texts["style"][0]) in policy


def test_hostile_texts_cannot_leave_the_data(tmp_path: Path) -> None:
    page = render_page(page_data(read_source(str(write_run(tmp_path / "run"))), 1e7))
    parts = Parts(page)
    assert len(parts.texts["script"]) == 2
    assert [t for t, _ in parts.tags if t == "img"] == []
    raw = parts.texts["script"][0]
    assert not set("<>&\u2028\u2029") & set(raw)
    words = "".join(json.loads(raw)["words"])
    assert {"<", ">", "\u2028", "\u202e"} <= set(words)


@pytest.mark.parametrize("text", [*HOSTILE, "]]>", "\\u003c/script>", "a\x00b"])
def test_embedded_texts_come_back_whole(text: str) -> None:
    made = embed_json({"t": text})
    assert json.loads(made) == {"t": text}
    assert "<" not in made


def test_a_hostile_title_is_escaped(tmp_path: Path) -> None:
    data = page_data(read_source(str(write_run(tmp_path / "run"))), 1e7)
    page = render_page({**data, "title": HOSTILE[0]})
    assert Parts(page).texts["title"] == [HOSTILE[0] + " · turngym"]


def test_half_a_character_does_not_stop_the_page(tmp_path: Path) -> None:
    source = read_source(str(write_run(tmp_path / "run")))
    source.steps[0].dump.forest.groups[0].task_id = "half \ud83d"
    data = page_data(source, 1e7)
    assert data["steps"][0]["groups"][0]["task"] == "half \ufffd"
    render_page(data).encode()


def test_groups_are_left_out_evenly_and_the_page_says_so(tmp_path: Path) -> None:
    root = write_run(tmp_path / "run", steps=(1, 2, 3, 4, 5))
    source = read_source(str(root))
    whole = page_data(source, 1e9)
    assert whole["notes"] == []
    size = len(json.dumps(whole["steps"][0]["groups"][0]))
    some = page_data(source, size * 2.5)
    assert (some["steps"][0]["step"], some["steps"][-1]["step"]) == (1, 5)
    assert "of 15 groups" in some["notes"][0]
    with pytest.raises(BadValueError, match="larger --limit"):
        page_data(source, 10)


def test_the_returns_of_a_step_are_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = read_source(str(write_run(tmp_path / "run", steps=(1, 2))))
    asked, returns = [], Forest.returns

    def counted(forest: Forest) -> Any:
        asked.append(forest)
        return returns(forest)

    monkeypatch.setattr(Forest, "returns", counted)
    data = page_data(source, 1e9)
    assert [len(step["groups"]) for step in data["steps"]] == [3, 3]
    assert len(asked) == 2


def test_steps_beyond_the_limit_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_run(tmp_path / "run", steps=tuple(range(1, 10)))
    group = page_data(read_source(str(root), [1]), 1e9)["steps"][0]["groups"][0]
    read: list[str] = []

    def counted(path: Path) -> RolloutDump:
        read.append(path.name)
        return read_dump(path)

    monkeypatch.setattr(sources, "read_dump", counted)
    data = page_data(read_source(str(root)), len(json.dumps(group)) * 2.5)
    assert [step["step"] for step in data["steps"]] == [1, 9]
    assert "2 of 27 groups" in data["notes"][0]
    assert len(read) == 3  # the third is too large


def test_the_order_of_taking_has_every_group_once() -> None:
    order = _order([2, 1, 3, 2])
    assert order[:4] == [(0, 0), (3, 0), (1, 0), (2, 0)]
    assert sorted(order) == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]


def test_chosen_steps_alone_are_shown(tmp_path: Path) -> None:
    root = write_run(tmp_path / "run")
    assert [kept.step for kept in read_source(str(root), [10]).steps] == [10]
    with pytest.raises(BadValueError, match="no rollouts of step 7; expected one of 1, 10"):
        read_source(str(root), [7])


def test_forests_without_numbers_are_shown_with_a_note(tmp_path: Path) -> None:
    root = write_run(tmp_path / "run", steps=(1,))
    for file in (root / "trajectories").glob("*-tokens.jsonl"):
        file.unlink()
    data = page_data(read_source(str(root)), 1e7)
    assert "keep-rollouts" in data["notes"][0]
    turn = data["steps"][0]["groups"][0]["trees"][0][0]
    assert turn["obs"] is None
    assert [data["words"][n] for n in turn["act"]] == ["<search> a </search>"]


@pytest.mark.parametrize(
    ("action", "calls"),
    [
        ("<think> a </think><search> b </search>", [("search", "b")]),
        (
            '<tool_call>{"name": "find", "arguments": {"id": "x"}}</tool_call>',
            [("find", 'id: "x"')],
        ),
        ("<tool_call>{broken</tool_call>", [("tool_call", "{broken")]),
        ("<tool_call>[1]</tool_call>", [("tool_call", "[1]")]),
        (f"<tool_call>{'[' * 9999}</tool_call>", [("tool_call", "[" * 9999)]),
        ("[Search] a\n[Expand] 2 b[StopExpand]", [("Search", "a"), ("Expand", "2 b")]),
        ("click[buy now]", [("click", "buy now")]),
        ("<python> print(1)", [("python", "print(1)")]),
        ("no call, only [brackets] and a < b", []),
    ],
)
def test_calls_are_found(action: str, calls: list[tuple[str, str]]) -> None:
    found = [(call["tool"], call["args"]) for call in tool_calls(action)]
    assert [call for call in found if call[0] != "StopExpand"] == calls


def recorded(folder: Path, env_id: str, agent: str, **settings: Any) -> Path:
    file = folder / "episodes.jsonl"
    env = turngym.envs.RecordEpisodes(gym.make(env_id, **settings), file)
    observation, info = env.reset(seed=3)
    policy = scripted(agent, 0, text_env(env))
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation, info))
    env.close()
    return file


def test_recorded_episodes_are_shown_without_tokens(tmp_path: Path) -> None:
    file = recorded(tmp_path, "SearchQA-v0", "expert", size="micro")
    assert main(["view", str(file)]) == 0
    data = data_of((tmp_path / "episodes.html").read_text(encoding="utf-8"))
    assert data["title"] == "episodes of SearchQA-v0"
    assert data["steps"][0]["tokens"] is False
    turns = data["steps"][0]["groups"][0]["trees"][0]
    assert turns[-1]["status"] == "solved"
    assert turns[0]["calls"][0]["tool"] == "search"


def test_tasks_of_one_name_in_other_settings_are_other_groups(tmp_path: Path) -> None:
    for hops in (1, 1, 2):
        file = recorded(tmp_path, "SearchQA-v0", "null", size="micro", hops=hops)
    groups = read_source(str(file)).steps[0].dump.forest.groups
    assert [len(group.trees) for group in groups] == [2, 1]
    assert len({group.task_id for group in groups}) == 1


def test_an_episode_without_a_turn_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its page showed nothing: it began with the turn that there is not."""
    file = recorded(tmp_path, "SearchQA-v0", "expert", size="micro")
    line = json.loads(file.read_text(encoding="utf-8"))
    bare = json.dumps({**line, "task_id": "train/1", "steps": [], "status": "running"})
    file.write_text(f"{bare}\n{json.dumps(line)}\n", encoding="utf-8")
    source = read_source(str(file))
    assert [group.task_id for group in source.steps[0].dump.forest.groups] == [line["task_id"]]
    assert source.notes == ["1 episode without a turn left out."]
    file.write_text(bare + "\n", encoding="utf-8")
    assert "contains no episode with a turn" in refused(["view", str(file)], capsys)


def test_a_recorded_crawl_is_played_again_for_its_papers(tmp_path: Path) -> None:
    file = recorded(tmp_path, "PaperCrawler-v0", "heuristic", size="micro")
    group = page_data(read_source(str(file)), 1e7)["steps"][0]["groups"][0]
    turns = group["trees"][0]
    found = [p["id"] for t in turns for d in t["crawl"]["actions"] for p in d["found"]]
    assert len(found) == len(set(found)) == turns[-1]["crawl"]["queue"]
    for turn in turns:
        if turn.get("spawn"):  # hangs on the turn that found its paper
            asker = turns[turn["parent"]]["crawl"]
            assert turn["crawl"]["paper"] in [p["id"] for d in asker["actions"] for p in d["found"]]


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 2
    return re.sub(r"\s+", " ", capsys.readouterr().err)


def test_bad_input_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "new" / "trajectories").mkdir(parents=True)
    (tmp_path / "song.jsonl").write_text('{"title": "la"}\n')
    (tmp_path / "noise.jsonl").write_text("la la\n")
    (tmp_path / "old.jsonl").write_text('{"format": 0, "env_id": "x"}\n')
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    (tmp_path / "nothing.jsonl").touch()
    root = write_run(tmp_path / "run", steps=(1,))
    for words, message in (
        (["view", str(tmp_path / "nothing.jsonl")], "is empty; was the recording interrupted?"),
        (["view", str(tmp_path / "none")], "does not exist; expected a run directory"),
        (["view", str(tmp_path / "empty")], "is not a run directory"),
        (["view", str(tmp_path / "new")], "has no rollouts"),
        (["view", str(tmp_path / "song.jsonl")], "line 1: neither rollouts nor a forest"),
        (["view", str(tmp_path / "noise.jsonl")], "line 1: not a JSON object"),
        (["view", str(tmp_path / "deep.jsonl")], "line 1: not a JSON object"),
        (["view", str(tmp_path / "old.jsonl")], "not a transcript of format 1 (found 0)"),
        (["view", str(root), "--limit", "0"], "--limit is 0"),
        (["view", str(root), "--limit", "0.0001"], "larger --limit"),
        (["view", str(root), "--out", str(root / "config.json" / "x.html")], "cannot be written"),
    ):
        assert message in refused(words, capsys)


@pytest.mark.parametrize("out", [["--out", "episodes.html"], []])
def test_a_page_never_replaces_what_it_shows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    out: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("episodes.html").write_text("episodes")
    assert "episodes.html is what is viewed" in refused(["view", "episodes.html", *out], capsys)
    assert Path("episodes.html").read_text() == "episodes"


def test_a_page_that_cannot_be_written_whole_leaves_the_old_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, limit = write_run(tmp_path / "run", steps=(1,)), resource.getrlimit(resource.RLIMIT_FSIZE)
    page = root / "view.html"
    page.write_text("an older page")
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
    try:
        assert "cannot be written" in refused(["view", str(root)], capsys)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert page.read_text() == "an older page"
    assert [path.name for path in root.glob("view*")] == ["view.html"]


def test_a_broken_line_of_a_run_names_file_and_line(tmp_path: Path) -> None:
    root = write_run(tmp_path / "run", steps=(1,))
    file = next((root / "trajectories").glob("*-tokens.jsonl"))
    lines = file.read_text(encoding="utf-8").split("\n")
    file.write_text("\n".join([lines[0], lines[1][:50], *lines[2:]]), encoding="utf-8")
    with pytest.raises(DataError, match=r"train-tokens\.jsonl, line 2"):
        page_data(read_source(str(root)), 1e7)


def test_the_page_opens_on_a_task_failed_before_and_solved_after(tmp_path: Path) -> None:
    root = write_run(tmp_path / "run")
    (root / "trajectories" / "step-000010-train.txt").write_text("the first group of the step")
    assert page_data(read_source(str(root)), 1e7)["pair"] is None  # no evaluation was kept
    write_evaluations(root)
    data = page_data(read_source(str(root)), 1e7)
    pair = data["pair"]
    assert (pair["set"], pair["task"], pair["decoding"]) == ("dev", "dev/1", "greedy")
    assert [(e["step"], e["status"], e["return"]) for e in pair["episodes"]] == [
        (0, "failed", 0),
        (10, "solved", 1),
    ]
    assert pair["episodes"][0]["turns"] == [["Where?", "look"], ["There.", "b\nnow"]]
    assert pair["episodes"][1]["turns"][1] == ["There.", HOSTILE[0] + "\nnow"]
    assert "<img" not in render_page(data)
    (root / "trajectories" / "step-000000-dev.txt").unlink()
    (root / "trajectories" / "step-000004-dev.txt").unlink()
    assert page_data(read_source(str(root)), 1e7)["pair"] is None  # one evaluation is no pair


def test_the_last_evaluation_is_that_of_the_highest_step(tmp_path: Path) -> None:
    root = write_run(tmp_path / "run", steps=(1,))
    write_evaluations(root)
    folder = root / "trajectories"
    (folder / "step-000004-dev.txt").rename(folder / "step-999999-dev.txt")
    (folder / "step-000010-dev.txt").rename(folder / "step-1000000-dev.txt")
    pair = page_data(read_source(str(root)), 1e7)["pair"]
    assert [e["step"] for e in pair["episodes"]] == [0, 1_000_000]


def test_every_sign_of_the_page_is_explained_on_it(tmp_path: Path) -> None:
    """What the scripts draw beside words stands in the list of symbols."""
    page = render_page(page_data(read_source(str(write_run(tmp_path / "run"))), 1e7))
    explained = page[page.index('id="symbols"') : page.index('id="token-card"')]
    script = Parts(page).texts["script"][1]
    signs = set(re.findall(r"[\u2190-\u2bff]", re.sub(r"//[^\n]*|/\*.*?\*/", "", script)))
    signs -= set("−")  # the minus sign of numbers
    assert signs
    assert {sign for sign in signs if sign not in explained} == set()
