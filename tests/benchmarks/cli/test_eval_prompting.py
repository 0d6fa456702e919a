"""`turngym eval` with prompting agents: a server, a tiny engine, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.model_server import completion, serving
from helpers.prompting_help import write_world

from turngym.agents.prompting import PROMPTING, React
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs import replay
from turngym.envs.core.errors import EnvFault
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.wrappers.record import read_transcripts


@pytest.fixture
def world(tmp_path: Path) -> list[str]:
    made = write_world(tmp_path)
    where = ["--data", made["data"], "--corpus", made["corpus"], "--split", "train", "--n", "5"]
    return [*where, "--env.prompt", "none"]


def oracle(request: dict[str, Any]) -> Any:
    """Reads the first passage that a prompt shows; knows nothing without one."""
    text = request.get("prompt") or request["messages"][-1]["content"]
    said = text.split("the river ", 1)[1].split(".", 1)[0] if "the river R" in text else "unknown"
    return completion(said, chat="messages" in request)


def eval_rows(out: Path) -> dict[str, dict[str, Any]]:
    return {row["agent"]: row for row in json.loads(out.read_text(encoding="utf-8"))}


def test_scores_stay_where_a_later_agent_is_stopped(
    world: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def interrupted(self: Any, episode: Any) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "scores.json"
    with serving(oracle) as server:
        words = ["--endpoint", server.url, "--model-name", "big", "--out", str(out)]
        assert main(["eval", "--agent", "react", "direct", "rag", *words, *world]) == 0
        before = eval_rows(out)
        monkeypatch.setattr(React, "__call__", interrupted)
        again = ["--seed", "1", *words, *world]
        assert main(["eval", "--agent", "rag", "react", *again]) == 130
        after = eval_rows(out)
        assert after["rag"]["seed"] == 1
        assert {name: after[name] for name in ("react", "direct")} == {
            name: before[name] for name in ("react", "direct")
        }
        out.unlink()
        assert main(["eval", "--agent", "react", *words, *world]) == 130
        assert not out.exists()
        out.write_text("no scores")
        assert main(["eval", "--agent", "rag", "react", *words, *world]) == 130
    assert list(eval_rows(out)) == ["rag"]
    assert eval_rows(out)["rag"]["success"]["mean"] == 1.0
    assert "100.0%" in capsys.readouterr().out


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_agents_are_scored_on_a_server(
    world: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    api: str,
) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    out = tmp_path / "scores.json"
    with serving(oracle) as server:
        words = ["--endpoint", server.url, "--model-name", "big", "--api-key-env", "MY_KEY"]
        words += ["--api", api, "--request-arg", "top_k=5", "--out", str(out)]
        assert main(["eval", "--agent", "direct", "rag", "expert", *words, *world]) == 0
    assert len(server.asked) == 10
    assert {h["Authorization"] for h in server.headers} == {"Bearer secret"}
    assert all(a["model"] == "big" and a["top_k"] == 5 for a in server.asked)
    assert server.asked[0]["max_tokens"] == (512 if api == "chat" else 64)
    rows = eval_rows(out)
    assert rows["direct"]["success"]["mean"] == 0.0
    assert rows["rag"]["success"]["mean"] == 1.0
    assert rows["rag"]["model"] == "big"
    assert rows["rag"]["dialect"] == ("chat" if api == "chat" else "tags")
    assert "model" not in rows["expert"]
    metrics = rows["rag"]["metrics"]
    assert metrics["em"] == metrics["tool_calls"] == metrics["model_calls"] == 1.0
    assert metrics["prompt_tokens"] == 7.0
    assert metrics["completion_tokens"] == 3.0
    played = list(read_transcripts(tmp_path / "scores-transcripts" / "rag" / "train.jsonl"))
    assert len(played) == 5
    assert replay(played[0]).same
    assert len(list((tmp_path / "scores-transcripts" / "rag" / "train").iterdir())) == 5
    assert "model_calls" in capsys.readouterr().out


def test_a_failing_server_is_told_and_the_run_goes_on(
    world: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_down(request: dict[str, Any]) -> Any:
        return 400 if "Doha?" in str(request) else oracle(request)

    out = tmp_path / "new" / "scores.json"
    with serving(one_down) as server:
        words = ["--endpoint", server.url, "--model-name", "m", "--out", str(out)]
        assert main(["eval", "--agent", "rag", *words, *world]) == 0
    row = eval_rows(out)["rag"]
    assert (row["n"], row["errors"], row["agent_errors"]) == (4, 0, 1)
    assert row["success"]["mean"] == 1.0
    said = capsys.readouterr()
    assert "1 of 5 episodes failed" in said.err
    assert "refuses the request (status 400" in said.err
    assert "agent errors" in said.out


def test_why_an_environment_broke_is_told(
    world: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SearchQA, *_: Any) -> Any:
        raise EnvFault("the disk is gone")

    monkeypatch.setattr(SearchQA, "begin", broken)
    assert main(["eval", "--agent", "expert", *world]) == 0
    said = capsys.readouterr()
    assert "the environment broke in 5 of 5 episodes, which are in no mean" in said.err
    assert "one of them, Aral: the disk is gone" in said.err
    assert "no score" in said.out


def test_a_server_that_refuses_everything_is_an_error(
    world: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(401) as server:
        words = ["--endpoint", server.url, "--model-name", "m"]
        assert main(["eval", "--agent", "rag", *words, *world]) == REFUSED
    said = capsys.readouterr().err
    assert "5 of 5 episodes failed" in said
    assert "401" in said
    assert "none was sent" in said


def test_agents_are_scored_with_a_local_model(
    tiny_model: Path, world: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "scores.json"
    words = ["--model", str(tiny_model), "--device", "cpu", "--max-tokens", "4"]
    words += ["--env.top_k", "1", "--env.max_turns", "3", "--n", "2", "--out", str(out)]
    assert main(["eval", "--agent", *PROMPTING, *world, *words]) == 0
    rows = eval_rows(out)
    assert rows.keys() == PROMPTING.keys()
    for row in rows.values():
        assert (row["n"], row["errors"], row["agent_errors"]) == (2, 0, 0)
        assert row["dialect"] == "tags"
        assert 0 < row["metrics"]["completion_tokens"] <= 4 * row["metrics"]["model_calls"]


def test_a_prompt_that_does_not_fit_counts_as_failed(
    tiny_model: Path, world: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores.json"
    words = ["--model", str(tiny_model), "--device", "cpu", "--dialect", "chat", "--n", "1"]
    assert main(["eval", "--agent", "react", *world, *words, "--out", str(out)]) == 0
    row = eval_rows(out)["react"]
    assert (row["n"], row["agent_errors"], row["context_full"]) == (1, 0, 1)
    assert row["success"]["mean"] == row["metrics"]["f1"] == 0.0
    said = capsys.readouterr()
    assert "1 of 1 episodes ended with a full context and count as failed" in said.err
    assert "max_context is 512" in said.err
    assert "context full" in said.out


def test_a_server_without_room_for_a_prompt_counts_as_failed(
    world: list[str], tmp_path: Path
) -> None:
    def short(request: dict[str, Any]) -> Any:
        if "Doha?" not in str(request):
            return oracle(request)
        error = {"message": "too many tokens", "code": "context_length_exceeded"}
        return {"raw": json.dumps({"error": error}).encode(), "status": 400}

    out = tmp_path / "scores.json"
    with serving(short) as server:
        words = ["--endpoint", server.url, "--model-name", "m", "--out", str(out)]
        assert main(["eval", "--agent", "rag", *words, *world]) == 0
    row = eval_rows(out)["rag"]
    assert (row["n"], row["agent_errors"], row["context_full"]) == (5, 0, 1)
    assert row["success"]["mean"] == 0.8


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--agent", "rag"], "--model starter"),
        (["--agent", "ircto", "--model", "x"], "--agent ircto: asks no model"),
        (["--agent", "rag", "ircto", "--model", "x/y"], "'ircot'"),
        (["--agent", "expert", "--model", "x"], "are asked by prompting agents"),
        (["--agent", "rag", "--model", "x", "--endpoint", "http://x"], "two models"),
        (["--agent", "rag", "--endpoint", "http://x"], "--model-name"),
        (
            ["--agent", "rag", "--model", "x", "--model-name", "y"],
            "--model-name: goes with --endpoint",
        ),
        (["--agent", "rag", "--model", "x", "--api", "completions"], "--api: goes with --endpoint"),
        (["--agent", "rag", "--model", "x", "--request-arg", "a=1"], "--request-arg: goes with"),
        (["--agent", "rag", "--model", "x", "--timeout", "3"], "--timeout: goes with --endpoint"),
        (["--agent", "expert", "--dialect", "tags"], "--dialect: goes with prompting agents"),
        (["--agent", "expert", "--concurrency", "3"], "--concurrency: goes with prompting"),
        (["--agent", "expert", "--temperature", ".5"], "--temperature: goes with an agent that is"),
        (
            ["--agent", "expert", "null", "--max-tokens", "9"],
            "--max-tokens: goes with an agent that is",
        ),
        (
            ["--agent", "greedy", "--model", "x", "--temperature", ".5"],
            "planners have --search-temperature",
        ),
        (["--agent", "expert", "--published", "paper"], "--published: goes with --per-task"),
        (["--agent", "rag", "--endpoint", "x", "--model-name", "y"], "the url is 'x'"),
        (["--agent", "rag", "--model", "/no/such"], "no such folder"),
        (["--agent", "rag", "--model", "nothing"], "unknown model 'nothing'"),
        (
            ["--agent", "rag", "--endpoint", "http://x", "--model-name", "y", "--dialect", "tags"],
            "dialect 'chat'",
        ),
        (
            *(["--agent", "rag", "--endpoint", "http://x", "--model-name", "y"],),
            "does not take <search>",
        ),
    ],
)
def test_bad_options_are_one_clear_line(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env = ["--env", "Letters-v0"] if "does not take" in reason else ["--size", "micro"]
    assert main(["eval", *words, *env]) == REFUSED
    said = capsys.readouterr().err
    assert reason in said.splitlines()[-1]


def test_an_environment_without_searches_is_refused_before_a_model_is_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.benchmarks.cli.eval.starter", lambda *_: pytest.fail("made"))
    monkeypatch.setattr("turngym.benchmarks.cli.eval._evaluate", lambda *_: pytest.fail("played"))
    words = ["--agent", "expert", "rag", "--model", "starter", "--env", "Letters-v0"]
    assert main(["eval", *words]) == REFUSED
    assert "does not take <search>" in capsys.readouterr().err


def test_a_misspelt_agent_is_the_first_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """What the model was made for stood before it, though no agent would have asked that model."""
    assert main(["eval", "--agent", "ircto", "--model", "starter"]) == REFUSED
    assert capsys.readouterr().err.startswith("error: --agent ircto: asks no model")


def test_a_key_that_is_not_there_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    words = ["--endpoint", "http://x", "--model-name", "m", "--api-key-env", "NO_KEY"]
    assert main(["eval", "--agent", "rag", "--size", "micro", *words]) == REFUSED
    assert "NO_KEY is not set" in capsys.readouterr().err
