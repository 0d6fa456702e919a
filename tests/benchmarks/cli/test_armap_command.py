"""`turngym armap pairs | train` and planners in `turngym eval`, and what is refused."""

from __future__ import annotations

import json
import shutil
from asyncio import Semaphore
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.maze import Arms
from helpers.model_server import completion, serving

from turngym.agents.planning.actors import EngineActor
from turngym.agents.planning.generation import PairMaker
from turngym.agents.planning.pair_scores import pair_scores
from turngym.agents.planning.records import Pair, read_pairs, write_pairs
from turngym.agents.planning.settings import REWARD_FILE, ReadingSettings
from turngym.agents.planning.trajectory import Trajectory
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs import replay
from turngym.envs.wrappers.record import read_transcripts

assert Arms
ENV = ["--env", "Arms-v0"]


def told(capsys: pytest.CaptureFixture[str]) -> str:
    seen = capsys.readouterr()
    return " ".join((seen.out + seen.err).split())


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("pairs") / "pairs.jsonl")
    words = ["--out", path, "--player", "random", "expert", "--n", "40", "--edits", "3"]
    assert main(["armap", "pairs", *ENV, *words]) == 0
    return path


def test_from_pairs_to_planners(
    tmp_path: Path, tiny_model: Path, pairs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = read_pairs(pairs)
    assert len(made) > 60
    out = str(tmp_path / "rm")
    how = ["--model", str(tiny_model), "--lr", "3e-3", "--epochs", "4", "--max-length", "64"]
    assert main(["armap", "train", "--pairs", pairs, "--out", out, *how]) == 0
    assert "held-out pairs" in told(capsys)
    kept = json.loads((tmp_path / "rm" / "reward.json").read_text())
    assert kept["reading"]["max_tokens"] == 64
    assert kept["training"]["held_out"]["accuracy"] > 0.7
    assert kept["training"]["pairs"] + kept["training"]["held_out"]["n"] == len(made)

    scores = tmp_path / "scores.json"
    names = ["greedy", "sampling", "best-of-n", "reflexion", "mcts", "expert"]
    words = ["--model", str(tiny_model), "--reward-model", out, "--max-tokens", "3"]
    words += ["--token-budget", "90", "--rollouts", "3", "--candidates", "3", "--samples", "3"]
    words += ["--length-penalty", "0.1", "--price-penalty", "0.1", "--split", "dev", "--n", "4"]
    words += ["--tries", "3", "--out", str(scores)]
    assert main(["eval", "--agent", *names, *words, *ENV]) == 0
    rows = {row["agent"]: row for row in json.loads(scores.read_text(encoding="utf-8"))}
    assert list(rows) == names
    assert rows["mcts"]["model"] == str(tiny_model)
    assert 0 < rows["mcts"]["metrics"]["sampled_tokens"] <= 90
    assert rows["best-of-n"]["metrics"]["trajectories"] == 3.0
    assert rows["greedy"]["metrics"]["forks"] == 1.0
    assert "reward_of_answer" not in rows["greedy"]["metrics"]
    for name in names[:5]:
        file = tmp_path / "scores-transcripts" / name / "dev.jsonl"
        lines = list(read_transcripts(file))
        assert len(lines) == 4
        assert all(replay(line).same for line in lines)
    assert main(["armap", "train", "--pairs", pairs, "--out", out]) == REFUSED
    assert "holds files" in told(capsys)


def test_pairs_of_tasks_that_were_over_stay_where_the_others_are_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--player", "random", "expert", "--edits", "3"]
    whole, out = tmp_path / "whole.jsonl", tmp_path / "pairs.jsonl"
    assert main(["armap", "pairs", *ENV, *words, "--n", "4", "--out", str(whole)]) == 0
    out.write_text("as it was")
    of_task = PairMaker._of_task

    last = 4

    async def stopped(self: PairMaker, split: str, task: int) -> list[Pair]:
        if task == last:
            raise KeyboardInterrupt
        return await of_task(self, split, task)

    monkeypatch.setattr(PairMaker, "_of_task", stopped)
    monkeypatch.setattr("asyncio.Semaphore", lambda _: Semaphore(1))
    assert main(["armap", "pairs", *ENV, *words, "--n", "40", "--out", str(out)]) == 130
    assert read_pairs(f"{out}.part") == read_pairs(whole)
    assert "pairs from the 4 tasks that were over" in told(capsys)
    assert out.read_text() == "as it was"
    last = 1
    assert main(["armap", "pairs", *ENV, *words, "--n", "40", "--out", str(out)]) == 130
    assert read_pairs(f"{out}.part") == read_pairs(whole)  # there are more of them
    last = 40
    assert main(["armap", "pairs", *ENV, *words, "--n", "4", "--out", str(out)]) == 0
    assert out.read_bytes() == whole.read_bytes()
    assert not Path(f"{out}.part").exists()


def test_planners_ask_servers(tmp_path: Path, pairs: str) -> None:
    scores = tmp_path / "scores.json"
    with serving(lambda request: completion("r", chat=True)) as server:
        words = ["--endpoint", server.url, "--model-name", "big", "--n", "2", "--split", "dev"]
        assert main(["eval", "--agent", "greedy", *words, *ENV, "--out", str(scores)]) == 0
    assert len(server.asked) == 6
    assert json.loads(scores.read_text())[0]["metrics"]["model_calls"] == 3.0


def test_a_run_that_plays_writes_as_much_as_it_was_trained_to(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = tmp_path / "run" / "checkpoints" / "step-000001"
    shutil.copytree(tiny_model, step)
    (tmp_path / "run" / "config.json").write_text(json.dumps({"max_tokens": 3}))
    limits: list[int] = []

    def note(engine: Any, renderer: Any, max_tokens: int) -> Any:
        limits.append(max_tokens)
        return EngineActor(engine, renderer, max_tokens)

    monkeypatch.setattr("turngym.agents.planning.actors.EngineActor", note)
    words = ["--player", str(step), "expert", "--n", "2", "--tries", "1"]
    assert main(["armap", "pairs", *ENV, *words, "--out", str(tmp_path / "pairs.jsonl")]) == 0
    assert set(limits) == {3}


def test_hindsight(tmp_path: Path, tiny_model: Path, pairs: str) -> None:
    path = str(tmp_path / "again.jsonl")
    words = ["--out", path, "--player", str(tiny_model), "expert", "--n", "2", "--tries", "1"]
    words += ["--max-tokens", "3", "--hindsight", str(tiny_model)]
    assert main(["armap", "pairs", *ENV, *words]) == 0
    own = {pair.better.instruction for pair in read_pairs(pairs)}
    assert not own & {pair.better.instruction for pair in read_pairs(path)}


def test_hindsight_keeps_the_pairs_whose_trajectory_is_too_long(
    tmp_path: Path,
    tiny_model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("turngym.agents.planning.generation.HINDSIGHT", "x" * 600 + "{moves}")
    path = str(tmp_path / "long.jsonl")
    words = ["--out", path, "--player", "expert", "--n", "2", "--tries", "1"]
    assert main(["armap", "pairs", *ENV, *words, "--hindsight", str(tiny_model)]) == 0
    found = read_pairs(path)
    assert f"--hindsight: {len(found)} of their instructions are the environment's" in told(capsys)


def test_hindsight_knows_the_names_of_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--out", str(tmp_path / "again.jsonl"), "--player", "expert", "--n", "2"]
    assert main(["armap", "pairs", *ENV, *words, "--hindsight", "smolm2-135m"]) == 2
    assert "Did you mean 'smollm2-135m'" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["eval", "--agent", "mcts", "--model", "MODEL"], "--agent mcts: needs a reward model"),
        (["eval", "--agent", "greedy"], "--agent greedy: needs a model"),
        (["eval", "--agent", "expert", "--rollouts", "3"], "--rollouts: goes with --agent mcts"),
        (
            ["eval", "--agent", "greedy", "--model", "MODEL", "--reward-model", "x"],
            "--reward-model: goes with --agent best-of-n",
        ),
        (
            ["eval", "--agent", "mcts", "--model", "MODEL", "--reward-model", "MODEL"],
            "no reward model: reward.json is missing",
        ),
        (
            ["eval", "--agent", "greedy", "--model", "MODEL", "--token-budget", "0"],
            "planning budget: tokens is 0",
        ),
        (
            ["eval", "--agent", "greedy", "--model", "MODEL", "--token-budget", "60"],
            "no room for one reply of 64 tokens",
        ),
        (["armap", "pairs", "--out", "x", "--player", "expret"], "expret"),
        (["armap", "pairs", "--out", "x", "--player", "null", "--n", "3"], "scored the same"),
        (
            ["armap", "pairs", "--out", "x", "--player", "null", "--mistakes", "0.5"],
            "--mistakes requires --player expert",
        ),
        (["armap", "train", "--pairs", "none", "--out", "new"], "--pairs: none is not a file"),
        (
            ["armap", "train", "--pairs", "PAIRS", "--out", "new", "--dtype", "bfloat16"],
            "training all weights needs float32",
        ),
        (
            ["armap", "train", "--pairs", "PAIRS", "--out", "new", "--max-length", "0"],
            "max_tokens is 0; expected an integer of at least 16",
        ),
    ],
)
def test_refusals(
    words: list[str],
    message: str,
    tmp_path: Path,
    tiny_model: Path,
    pairs: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    places = {"MODEL": str(tiny_model), "PAIRS": pairs}
    where = ENV if words[1] != "train" else []
    assert main([places.get(word, word) for word in words] + where) == REFUSED
    assert message in told(capsys)


def test_pairs_of_a_task_stay_together_under_instructions_in_hindsight(
    tmp_path: Path, tiny_model: Path, pairs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renamed(trajectory: Trajectory, number: int) -> Trajectory:
        return replace(trajectory, instruction=f"Pull some arms, {number}.\n")

    many = read_pairs(pairs)
    own = [Pair(p.id, renamed(p.better, i), renamed(p.worse, i)) for i, p in enumerate(many)]
    path = tmp_path / "hindsight.jsonl"
    write_pairs(path, own)
    parts = {}

    def trained(reward: Any, shown: list[Pair], *_: Any) -> dict[str, float]:
        parts["shown"] = {pair.id.rpartition("/")[0] for pair in shown}
        return {"loss": 0.0}

    def scored(reward: Any, held: list[Pair]) -> Any:
        parts["held"] = {pair.id.rpartition("/")[0] for pair in held}
        return pair_scores([1.0], [0.0])

    monkeypatch.setattr(
        "turngym.algos.training.supervised.reward_model.train_reward_model", trained
    )
    monkeypatch.setattr("turngym.benchmarks.cli.armap.evaluate_pairs", scored)
    words = ["--pairs", str(path), "--out", str(tmp_path / "rm"), "--model", str(tiny_model)]
    assert main(["armap", "train", *words]) == 0
    assert len(parts["held"]) == len({p.id.rpartition("/")[0] for p in many}) // 10
    assert not parts["held"] & parts["shown"]


def test_too_few_pairs(
    tmp_path: Path, pairs: str, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join(Path(pairs).read_text().split("\n")[:4]))
    words = ["--pairs", str(few), "--out", str(tmp_path / "new"), "--model", str(tiny_model)]
    assert main(["armap", "train", *words]) == REFUSED
    assert "there must be at least 10" in told(capsys)
    more = ["--held-out", pairs, "--lora-rank", "2", "--epochs", "1", "--batch", "4"]
    assert main(["armap", "train", *words, *more, "--dtype", "bfloat16"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--reward-model", "none"], "reward.json is missing"),
        (["--reward-model", "REWARD", "--rollouts", "0"], "mcts: rollouts is 0"),
        (["--reward-model", "REWARD", "--samples", "-1"], "best-of-n: --samples is -1; expected"),
        (
            ["--reward-model", "REWARD", "--search-temperature", "-1"],
            "planner: --search-temperature is -1.0; expected",
        ),
        (["--reward-model", "REWARD", "--token-budget", "0"], "planning budget: tokens is 0"),
    ],
)
def test_planners_are_refused_before_a_model_is_made_or_another_plays(
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("turngym.benchmarks.cli.eval.starter", lambda *_: pytest.fail("made"))
    monkeypatch.setattr("turngym.benchmarks.cli.eval._evaluate", lambda *_: pytest.fail("played"))
    REWARD_FILE.write(tmp_path, ReadingSettings())
    given = [str(tmp_path) if word == "REWARD" else word for word in words]
    asked = ["--agent", "greedy", "best-of-n", "mcts", "--model", "starter", *ENV]
    assert main(["eval", *asked, *given]) == REFUSED
    assert message in told(capsys)
