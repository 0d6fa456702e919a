"""`turngym demo` and `turngym starters`: what they tell, and that a better strategy is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.agents.models import loading
from turngym.algos.evaluation.result import RunResult, Score, SetScore, gain_of
from turngym.algos.recipes import make_recipe
from turngym.algos.runs.run_dir import write_json
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig, model_digest
from turngym.benchmarks.cli import demo, starters
from turngym.benchmarks.cli.demo import next_folder, tell_if_slow, tell_strategy
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.statistics import Estimate


def score(success: float, searches: float, greedy: Score | None = None) -> SetScore:
    part = Estimate(mean=success, low95=success, high95=success)
    numbers: dict[str, Any] = {"n": 4, "errors": 0, "success": part, "return": part}
    numbers["metrics"] = {"searches": searches}
    cold = Score(**numbers)
    about = {"name": "dev", "env_id": "SearchQA-v0", "split": "dev", "temperature": 1.0}
    return SetScore(**about, **numbers, greedy=cold)


def result(before: SetScore, after: SetScore) -> RunResult:
    about = {"recipe": "grpo", "env_id": "SearchQA-v0", "seed": 0, "config_digest": ""}
    cost = {"model_digest": "", "sampled_tokens": 9, "env_turns": 3, "seconds": 1.0}
    return RunResult(**about, **cost, steps=5, before=[before], after=[after])


def test_the_story_is_told_in_figures_and_one_question(tmp_path: Path) -> None:
    folder = tmp_path / "trajectories"
    folder.mkdir()
    rule = "=" * 78
    for step, action in ((0, "<answer> Wes Kite </answer>"), (5, "<search> Wes Kite born")):
        blocks = [
            f"{rule}\ndev/0: failed, return 0, {way}\n{rule}\n[turn 0: x]\nHow?\n>>> {way}"
            for way in ("sampled at temperature 1", "greedy")
        ]
        text = "\n".join([*blocks, action, ""])
        (folder / f"step-{step:06d}-dev.txt").write_text(text)
    lines = tell_strategy(result(score(0.0, 1.0), score(0.95, 2.0)), tmp_path)
    assert "  before: 1.00 searches per question, 0.0% right" in lines
    assert "  after: 2.00 searches per question, 95.0% right" in lines
    assert [line.strip() for line in lines if line.startswith("    ")] == [
        *("How?", ">>> greedy", "<answer> Wes Kite </answer>"),
        *("How?", ">>> greedy", "<search> Wes Kite born"),
    ]


def test_a_folder_that_cannot_be_made_is_told_before_a_model_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "starter", None)
    (tmp_path / "file").write_text("")
    assert main(["demo", "--run-dir", str(tmp_path / "file" / "below")]) == REFUSED
    assert "cannot be a folder (Not a directory)" in capsys.readouterr().err.replace("\n", " ")


def test_a_processor_without_bfloat16_is_said_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    multiplies = [True, False]
    monkeypatch.setattr(loading, "has_bfloat16", lambda _: multiplies.pop(0))
    assert tell_if_slow("cpu") == ""
    assert "--warm-start" in tell_if_slow("cpu")


def test_a_starter_is_scored_beside_its_expert(
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []

    def made(env_id: str, report: object, changes: object) -> str:
        asked.append((env_id, changes))
        return str(tiny_model)

    monkeypatch.setattr(starters, "starter", made)
    out = tmp_path / "starters.json"
    words = ["starters", "--env", "Game24-v0", "demo", "--n", "3", "--max-tokens", "4"]
    assert main([*words, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for word in ("headroom", "Game24-v0", "size micro, hops 2", "100.0, 100.0"):
        assert word in said
    assert [name for name, _ in asked] == ["Game24-v0", "SearchQA-v0"]
    assert asked[0][1] is None
    assert asked[1][1]["habits"]["haste"] > 0.5
    first, second = json.loads(out.read_text())
    assert (first["starter"], second["settings"]) == ("Game24-v0", {"size": "micro", "hops": 2})
    for row in (first, second):
        assert row["expert"]["success"]["mean"] == 1.0
        assert (row["score"]["n"], row["score"]["greedy"]["n"]) == (3, 3)
    assert main([*words, "--measure", "return"]) == 0
    assert "1.000" in capsys.readouterr().out


def test_starters_need_a_temperature_and_known_names(capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in ((["--temperature", "0"], "above 0"), (["--env", "Gme24-v0"], "Game24")):
        assert main(["starters", *words]) == REFUSED
        assert told in capsys.readouterr().err
    assert "SearchQA-v0" in starters.taught_environments()
    assert "Bandit-v0" not in starters.taught_environments()
    with pytest.raises(BadValueError):
        starters.run(starters.Command(temperature=-1.0))


def test_an_interrupted_demo_goes_on_and_another_gets_its_own_folder(
    tiny_model: Path, tmp_path: Path
) -> None:
    def config(seed: int, steps: int) -> TrainConfig:
        return TrainConfig(
            env=EnvConfig(id="SearchQA-v0"),
            model=str(tiny_model),
            recipe=make_recipe("grpo", small=True),
            budget=Budget(steps=steps),
            seed=seed,
        )

    mine = config(seed=0, steps=2)
    assert next_folder(tmp_path, mine) == tmp_path / "demo-1"
    made = tmp_path / "demo-9"
    made.mkdir()
    assert next_folder(tmp_path, mine) == tmp_path / "demo-10"  # it holds no run
    write_json(made / "config.json", mine.resolved(model_digest(mine.model)))
    assert next_folder(tmp_path, config(seed=0, steps=3)) == made
    assert next_folder(tmp_path, config(seed=1, steps=2)) == tmp_path / "demo-10"
    (made / "result.json").touch()
    assert next_folder(tmp_path, mine) == tmp_path / "demo-10"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_demo_finds_a_better_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    assert main(["demo", "--run-dir", str(tmp_path / "run")]) == 0
    done = RunResult.read(tmp_path / "run" / "result.json")
    (before,), (after,) = done.before, done.after
    assert before.greedy is not None
    assert after.greedy is not None
    assert before.success.mean <= 0.4
    assert before.greedy.success.mean <= 0.45
    assert min(after.success.mean, after.greedy.success.mean) >= 0.85
    gain = gain_of(before, after)
    assert gain is not None
    assert gain.sharpening < 0.5 * gain.sampled
    assert before.greedy.metrics["searches"] < 1.5 < after.greedy.metrics["searches"]


@pytest.mark.parametrize("model", [(), ("--model", "smollm2-135m")])
def test_no_questions_are_refused(
    model: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--n", "0", *model]) == 2
    assert "--n is 0; expected at least 1" in capsys.readouterr().err
