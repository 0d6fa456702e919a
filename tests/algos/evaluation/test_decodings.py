"""Sampled and greedy scores of one evaluation, and what of a gain is sharpening."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Sampling
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.algos.core.forest import Group, Tree
from turngym.algos.evaluation import defaults
from turngym.algos.evaluation.decodings import Decodings
from turngym.algos.evaluation.evaluate import EpisodeScore, EvalSet, Evaluation, evaluate_model
from turngym.algos.evaluation.lm_agent import TokenAgent
from turngym.algos.evaluation.result import SetScore, gain_of, rows_of, scores_at
from turngym.algos.rollouts import EpisodeRunner
from turngym.algos.runs.metrics import checked
from turngym.algos.training.config import EnvConfig, EvalConfig
from turngym.algos.training.run_writer import read_evaluation, read_first_episode, write_evaluation
from turngym.algos.training.settings import TrainSettings
from turngym.benchmarks.cli import demo, play, submit, train
from turngym.benchmarks.cli import eval as eval_command
from turngym.benchmarks.cli.model_options import action_tokens


def runner_of(model: Path, temperature: float) -> tuple[EpisodeRunner, EvalSet]:
    tokenizer = load_tokenizer(model)
    engine = TransformersEngine(
        load_model(model, device="cpu"), tokenizer, dtype="float32", max_batch=4
    )
    env = gym.make("Letters-v0")
    sampling = Sampling(max_tokens=6, temperature=temperature)
    what = EvalSet(name="dev", env=env, split="dev", n=6)
    return EpisodeRunner(env, engine, make_renderer(tokenizer), sampling), what


def evaluate(model: Path, temperature: float = 1.0, **options: Any) -> Evaluation:
    runner, what = runner_of(model, temperature)
    return asyncio.run(evaluate_model(runner, what, **options))


def actions(evaluation: Evaluation | None) -> list[list[str]]:
    assert evaluation is not None
    return [[t.action for t in e.tree.turns] for e in evaluation.episodes if e.tree is not None]


# ---------------------------------------------------------------- playing


def test_one_evaluation_is_the_two_that_it_replaces(tiny_model: Path) -> None:
    seen: list[int] = []
    both = evaluate(tiny_model, tick=seen.append)
    assert seen == [1, 2, 3, 4, 5, 6]  # tasks, not episodes
    cold = evaluate(tiny_model, 0.0)
    assert actions(both) == actions(evaluate(tiny_model, greedy=False))
    assert actions(both.greedy) == actions(cold)
    assert actions(both) != actions(cold)
    assert (both.temperature, both.decoding) == (1.0, "sampled at temperature 1")
    assert both.greedy is not None
    assert (both.greedy.temperature, both.greedy.greedy) == (0.0, None)


def test_greedy_twice_is_identical(tiny_model: Path) -> None:
    one, two = (evaluate(tiny_model, heat).greedy for heat in (1.0, 0.3))
    assert actions(one) == actions(two)
    assert one is not None
    assert two is not None
    assert one.row() == two.row()


def test_at_temperature_0_every_task_is_played_once(tiny_model: Path) -> None:
    cold = evaluate(tiny_model, 0.0)
    score = cold.score()
    assert cold.both() == [cold]
    assert score.greedy is not None
    assert score.greedy.model_dump() == {
        key: value
        for key, value in score.model_dump().items()
        if key in type(score.greedy).model_fields
    }


def test_without_greedy_there_is_none(tiny_model: Path) -> None:
    sampled = evaluate(tiny_model, greedy=False)
    assert sampled.score().greedy is None
    assert not [key for key in sampled.rows() if "greedy" in key]


def test_a_broken_environment_breaks_both_ways(tiny_model: Path) -> None:
    runner, _ = runner_of(tiny_model, 1.0)
    env = gym.make("Letters-v0", broken="plum")
    runner.env = env
    done = asyncio.run(evaluate_model(runner, EvalSet(name="dev", env=env, split="dev", n=6)))
    assert done.greedy is not None
    assert done.errors == done.greedy.errors == 2


def test_an_environment_that_does_not_open_leaves_no_tree(tiny_model: Path) -> None:
    from turngym.envs.core.errors import EnvFault

    runner, what = runner_of(tiny_model, 1.0)

    async def broken(start: Any) -> Any:
        raise EnvFault("no")

    runner.open = broken  # type: ignore[method-assign]
    group: Group = asyncio.run(Decodings()(runner, what.starts()[0]))
    assert (group.trees, group.faults) == ([], 2)


# ---------------------------------------------------------------- scores


def episodes(solved: list[bool], data: str = "") -> list[EpisodeScore]:
    return [
        EpisodeScore(
            task_id=str(i),
            status="solved" if good else "failed",
            return_=float(good),
            tokens=3,
            metrics={"f1": float(good), "hops": float(1 + i % 2)},
            dataset=data or ("nq" if i % 2 else "popqa"),
            breakdown=("hops",),
        )
        for i, good in enumerate(solved)
    ]


def evaluation(sampled: list[bool], greedy: list[bool]) -> Evaluation:
    cold = Evaluation(
        name="dev", env_id="E-v0", split="dev", episodes=episodes(greedy), temperature=0.0
    )
    return replace(cold, episodes=episodes(sampled), temperature=1.0, greedy=cold)


SCORES = st.integers(1, 9).flatmap(
    lambda n: st.tuples(*[st.lists(st.booleans(), min_size=n, max_size=n)] * 2)
)


@settings(max_examples=30, deadline=None)
@given(SCORES)
def test_both_scores_come_back_from_the_rows(solved: tuple[list[bool], list[bool]]) -> None:
    done = evaluation(*solved)
    row = checked(done.rows())
    back = scores_at([{"step": 2, **row}], 2, {"dev": ("E-v0", "dev")}, 1.0)
    assert back[0] == done.score()
    whole = row["eval/dev/success_frac"], row["eval/dev/greedy_success_frac"]
    assert whole == tuple(pytest.approx(sum(s) / len(s)) for s in solved)
    for part in back:
        assert part.greedy is not None
        assert part.n == part.greedy.n
    assert SetScore.model_validate(done.score().model_dump(by_alias=True)) == done.score()


def test_parts_divide_the_greedy_episodes_alike() -> None:
    done = evaluation([True, False, False, False], [True, True, False, True])
    scores = {s.name: s for s in done.scores()}
    for name, sampled, greedy in (
        ("dev, nq", 0.0, 1.0),
        ("dev, popqa", 0.5, 0.5),
        ("dev, hops 1", 0.5, 0.5),
        ("dev, mean of sets", 0.25, 0.75),
    ):
        cold = scores[name].greedy
        assert cold is not None
        assert (scores[name].success.mean, cold.success.mean) == (sampled, greedy), name
        assert scores[name].temperature == 1.0


@settings(max_examples=50, deadline=None)
@given(SCORES, SCORES)
def test_a_gain_is_its_greedy_part_and_sharpening(
    old: tuple[list[bool], list[bool]], new: tuple[list[bool], list[bool]]
) -> None:
    before, after = evaluation(*old).score(), evaluation(*new).score()
    gain, back = gain_of(before, after), gain_of(after, before)
    assert gain is not None
    assert back is not None
    assert gain.greedy + gain.sharpening == pytest.approx(gain.sampled)
    assert back.sharpening == pytest.approx(-gain.sharpening)
    assert -1 <= gain.sampled <= 1


def test_a_surer_model_sharpens_and_another_strategy_does_not() -> None:
    noisy = evaluation([True, False, False, False], [True, True, True, False]).score()
    surer = evaluation([True, True, True, False], [True, True, True, False]).score()
    other = evaluation([True, True, True, True], [True, True, True, True]).score()
    wrong = evaluation([False] * 4, [False] * 4).score()
    for old, new, greedy, sharp in (
        (noisy, surer, 0.0, 0.5),
        (wrong, other, 1.0, 0.0),
        (noisy, other, 0.25, 0.5),
    ):
        gain = gain_of(old, new)
        assert gain is not None
        assert (gain.greedy, gain.sharpening) == (greedy, sharp)


def test_without_greedy_scores_no_gain_is_split() -> None:
    score = evaluation([True], [True]).score()
    alone = score.model_copy(update={"greedy": None})
    nothing = evaluation([], []).score()
    assert gain_of(alone, score) is None
    assert gain_of(score, alone) is None
    assert gain_of(nothing, score) is None


def test_files_from_before_are_read() -> None:
    score = evaluation([True], [False]).score()
    old = score.model_dump(by_alias=True)
    for key in ("temperature", "greedy", "tokens"):
        del old[key]
    read = SetScore.model_validate_json(json.dumps(old))
    assert (read.temperature, read.greedy, read.success) == (None, None, score.success)
    row = rows_of(read)
    assert scores_at([{"step": 0, **row}], 0, {"dev": ("E-v0", "dev")}) == [read]


def test_a_line_of_progress_has_both() -> None:
    line = evaluation([True, False], [True, True]).summary_line(20)
    assert line.startswith("step 20: dev success 50.0% (95 % CI 1.3% to 98.7%) sampled at temp")
    assert "100.0% (95 % CI 15.8% to 100.0%) greedy; n 2, errors 0" in line


# ---------------------------------------------------------------- transcripts, defaults


def test_transcripts_show_both_ways_of_each_task(tiny_model: Path, tmp_path: Path) -> None:
    done = evaluate(tiny_model)
    runner, _ = runner_of(tiny_model, 1.0)
    file = tmp_path / "dev.txt"
    write_evaluation(file, done, runner.renderer, 2)
    heads = [line for line in file.read_text().splitlines() if line.startswith("dev/")]
    assert [head.split(":")[0] for head in heads] == ["dev/0", "dev/0", "dev/1", "dev/1"]
    ends = ["sampled at temperature 1", "greedy"] * 2
    assert [head.split(", ")[-1] for head in heads] == ends
    for way, words in ((done, "sampled at temperature 1"), (done.greedy, "greedy")):
        told = [line for line in read_first_episode(file, words) if line.startswith(">>> ")]
        first = actions(way)[0]
        assert len(told) == len(first)
        assert told[0].removeprefix(">>> ").strip() == first[0].splitlines()[0].strip()
    assert read_first_episode(tmp_path / "none.txt", "greedy") == []
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b">>> ", ">>> é".encode()[:-1], 1))  # cut within a character
    assert len(read_evaluation(file)) == len(heads)


def test_lines_that_look_like_marks_of_the_file_part_no_episode(
    tiny_model: Path, tmp_path: Path
) -> None:
    rule = "=" * 78
    seen = f"a page\n{rule}\ndev/7: solved, return 1, greedy\n{rule}\n>>> x\n[turn 9: stop]\nend"
    wrote = f"go\n{rule}\n[turn 7: stop]"
    done = with_actions(evaluate(tiny_model), wrote)
    file = tmp_path / "dev.txt"
    write_evaluation(file, done, Seen(seen), 2)
    read = read_evaluation(file)
    assert [e.task_id for e in read] == ["dev/0", "dev/0", "dev/1", "dev/1"]
    for episode in read:
        for turn in episode.turns():
            got = [[line.strip() for line in text.splitlines()] for text in turn]
            assert got == [seen.splitlines(), wrote.splitlines()]


def test_a_rule_in_a_file_of_before_parts_no_episode(tmp_path: Path) -> None:
    rule, file = "=" * 78, tmp_path / "dev.txt"
    one = (
        f"{rule}\ndev/0: solved, return 1, greedy\n{rule}\n[turn 0: solved]\na\n{rule}\nb\n>>> c\n"
    )
    file.write_text(one + one.replace("dev/0", "dev/1"), encoding="utf-8")
    assert [(e.task_id, e.turns()) for e in read_evaluation(file)] == [
        ("dev/0", [(f"a\n{rule}\nb", "c")]),
        ("dev/1", [(f"a\n{rule}\nb", "c")]),
    ]


def with_actions(evaluation: Evaluation, action: str) -> Evaluation:
    """Return an evaluation in which every action is this one."""

    def changed(episode: EpisodeScore) -> EpisodeScore:
        assert episode.tree is not None
        turns = [replace(turn, action=action) for turn in episode.tree.turns]
        return replace(episode, tree=Tree(turns))

    greedy = evaluation.greedy and with_actions(evaluation.greedy, action)
    return replace(evaluation, episodes=[changed(e) for e in evaluation.episodes], greedy=greedy)


class Seen:
    """A renderer whose tokens are always the same text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, ids: Any) -> str:
        return self._text


def test_defaults_agree_between_the_commands() -> None:
    env = EnvConfig(id="Letters-v0")
    settings, told = TrainSettings(), TokenAgent.__init__.__kwdefaults__ or {}
    assert settings.max_tokens == told["max_tokens"] == defaults.MAX_TOKENS
    heats = {settings.eval_temperature, play.Command(env="x").temperature, told["temperature"]}
    assert heats == {defaults.TEMPERATURE}
    limits = {c.__dataclass_fields__["max_tokens"].default for c in (play.Command, submit.Command)}
    assert limits == {None}  # what a run was trained with, else the same
    assert action_tokens([], None) == defaults.MAX_TOKENS
    counts = train.Command().eval_n, eval_command.Command(agent=("null",)).n
    assert {*counts, EvalConfig(env=env).n} == {defaults.TASKS}
    assert demo.Command().n is None  # which is the same with the small model
    asked = eval_command.Command(agent=("null",))
    assert (asked.temperature, asked.max_tokens) == (None, None)  # each agent's own
