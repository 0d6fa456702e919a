"""Rows of `turngym eval --out`: they come back from files, old ones too, and contradict nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.agents.scripted import scripted
from turngym.algos.evaluation.evaluate import EpisodeScore, EvalSet, Evaluation, evaluate_policy
from turngym.algos.evaluation.score_rows import (
    Played,
    ScoreRow,
    TaskOutcome,
    outcomes_of,
    read_score_rows,
    score_rows,
    write_score_rows,
)
from turngym.algos.evaluation.set_content import SetContent, content_of
from turngym.envs.core.errors import DataError
from turngym.envs.utils import disk_errors

STATUSES = ("solved", "failed", "truncated", "env_error", "agent_error")


def evaluation(statuses: list[str], greedy: list[str] | None = None) -> Evaluation:
    def episodes(statuses: list[str]) -> list[EpisodeScore]:
        return [
            EpisodeScore(
                task_id=f"dev/{i}",
                status=status,
                return_=0.25 + (status == "solved"),
                tokens=3,
                metrics={},
                dataset="even" if i % 2 == 0 else "odd",
            )
            for i, status in enumerate(statuses)
        ]

    made = Evaluation(name="dev", env_id="E-v0", split="dev", episodes=episodes(statuses))
    if greedy is None:
        return made
    cold = replace(made, episodes=episodes(greedy), temperature=0.0)
    return replace(made, temperature=1.0, greedy=cold)


def rows_of_agent(done: Evaluation) -> list[ScoreRow]:
    played = Played(agent="a", seed=3, max_tokens=None, model="m", dialect="tags")
    content = SetContent(settings={"size": "micro"}, tasks_digest="abc", files={"corpus": "def"})
    return score_rows(played, done, content)


def through_a_file(rows: list[ScoreRow], folder: Path) -> list[ScoreRow]:
    file = folder / "scores.json"
    file.write_text(json.dumps([row.to_json() for row in rows]), encoding="utf-8")
    return read_score_rows(file)


TWO = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*[st.lists(st.sampled_from(STATUSES), min_size=n, max_size=n)] * 2)
)


@given(TWO)
def test_rows_come_back_from_json(statuses: tuple[list[str], list[str]]) -> None:
    for done in (evaluation(*statuses), evaluation(statuses[0])):
        for row in rows_of_agent(done):
            back = json.loads(json.dumps(row.to_json()))
            assert ScoreRow.from_json(back, "here") == row


def test_every_task_is_kept_in_its_place(tmp_path: Path) -> None:
    whole, *parts = rows_of_agent(evaluation([*STATUSES], ["failed", *STATUSES[1:]]))
    written = whole.to_json()
    assert written["episodes"] == [
        {"task": "dev/0", "status": "solved", "success": True, "return": 1.25},
        {"task": "dev/1", "status": "failed", "success": False, "return": 0.25},
        {"task": "dev/2", "status": "truncated", "success": False, "return": 0.25},
        {"task": "dev/3", "status": "env_error", "success": None, "return": None},
        {"task": "dev/4", "status": "agent_error", "success": None, "return": None},
    ]
    assert written["greedy"]["episodes"][0]["success"] is False
    assert (written["seed"], written["max_tokens"], written["n"]) == (3, None, 3)
    assert (written["settings"], written["tasks_digest"]) == ({"size": "micro"}, "abc")
    assert written["files"] == {"corpus": "def"}
    assert [part.score.name for part in parts] == ["dev, even", "dev, odd", "dev, mean of sets"]
    for part in parts:
        row = part.to_json()
        assert not {"episodes", "tasks_digest", "files"} & row.keys()
        assert "episodes" not in row["greedy"]
        assert row["seed"] == 3
    assert through_a_file([whole, *parts], tmp_path) == [whole, *parts]


def test_scores_that_find_no_room_leave_the_old_ones(tmp_path: Path) -> None:
    """The file was cut first: neither evaluation was left, and a raw error told it."""
    resource = pytest.importorskip("resource")
    file = tmp_path / "scores.json"
    rows = rows_of_agent(evaluation(["solved", "failed"]))
    write_score_rows(file, rows)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    was, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(DataError, match=r"link\.json: a file grew larger"):
            write_score_rows(link, rows[:1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (was, hard))
    assert read_score_rows(file) == rows
    write_score_rows(link, rows[:1])
    assert read_score_rows(file) == rows[:1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "scores.json"]


def test_two_evaluations_that_end_at_once_both_write_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One ended with an error, behind hours of play: the other had taken its file away."""
    file, row = tmp_path / "scores.json", rows_of_agent(evaluation(["solved"]))[0]
    real, begun = disk_errors.whole_file, []

    @contextmanager
    def beside(path: Path, **how: bool) -> Iterator[Any]:
        with real(path, **how) as opened:
            if not begun:
                begun.append(path)
                write_score_rows(file, [row, row])
            yield opened

    monkeypatch.setattr(disk_errors, "whole_file", beside)
    write_score_rows(file, [row])
    assert len(read_score_rows(file)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]


def test_files_from_before_are_read(tmp_path: Path) -> None:
    whole = rows_of_agent(evaluation(["solved", "failed"], ["solved", "solved"]))[0]
    old = {"agent": "a", **whole.score.model_dump(by_alias=True)}
    older = {name: x for name, x in old.items() if name not in ("temperature", "greedy", "tokens")}
    file = tmp_path / "old.json"
    file.write_text(json.dumps([old, older]), encoding="utf-8")
    one, two = read_score_rows(file)
    assert one.score == whole.score
    assert (one.episodes, one.greedy_episodes, one.seed, one.settings) == (None, None, None, None)
    assert (two.score.success, two.score.greedy, two.episodes) == (whole.score.success, None, None)


def test_a_set_has_a_digest_of_its_tasks_and_its_settings() -> None:
    def of(n: int, **settings: Any) -> EvalSet:
        return EvalSet(name="dev", env=gym.make("Bandit-v0", **settings), split="dev", n=n)

    assert of(4).tasks_digest() == of(4).tasks_digest() != of(5).tasks_digest()
    content = content_of(of(4, size="micro"))
    assert content.settings == {"size": "micro"}
    assert content.tasks_digest == of(4).tasks_digest()
    assert content_of(of(4, size="micro"), deep=False).tasks_digest is None
    what = of(4)
    done = evaluate_policy(what, lambda seed: scripted("expert", seed, what.base_env))
    assert [e.task for e in outcomes_of(done)] == [f"dev/{i}" for i in range(4)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "got an empty one"),
        ('{"agent": "a"}', "got a dict"),
        ("[3]", "row 1: is a int"),
        ('[{"agent": "a"}]', "row 1: score.n: Field required"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "scores.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="turngym eval --out") as refused:
        read_score_rows(file)
    assert said in str(refused.value)
    with pytest.raises(DataError, match="cannot be read"):
        read_score_rows(tmp_path / "none.json")


def edit_success(row: dict[str, Any]) -> None:
    row["episodes"][0] |= {"status": "failed", "success": False}


def edit_status(row: dict[str, Any]) -> None:
    row["episodes"][0]["status"] = "env_error"


def edit_order(row: dict[str, Any]) -> None:
    row["greedy"]["episodes"].reverse()


def drop_sampled(row: dict[str, Any]) -> None:
    del row["episodes"]


def drop_greedy(row: dict[str, Any]) -> None:
    row["temperature"], row["episodes"] = None, row["greedy"].pop("episodes")[:1]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (edit_success, "0 of 2 are solved; the means beside them say 0.500 of 2"),
        (edit_status, "task dev/0 with status env_error: success is True"),
        (edit_order, "greedy.episodes: are not of the tasks of the sampled ones"),
        (drop_sampled, "greedy.episodes: stand without the score"),
        (drop_greedy, "1 of 1 are solved"),
    ],
)
def test_episodes_must_fit_the_means(edit: Any, said: str) -> None:
    row = rows_of_agent(evaluation(["solved", "failed"], ["solved", "solved"]))[0].to_json()
    row = json.loads(json.dumps(row))
    edit(row)
    with pytest.raises(DataError) as refused:
        ScoreRow.from_json(row, "scores.json, row 1")
    assert said in str(refused.value)


def test_an_outcome_without_a_score_has_neither() -> None:
    lost = {"task": "t", "status": "agent_error", "success": None, "return": None}
    assert TaskOutcome.model_validate(lost).return_ is None
    with pytest.raises(ValueError, match="expected success None with no return"):
        TaskOutcome.model_validate({**lost, "return": 0.0})
