"""The probe: shares of made trees, states that come again, and the command on an environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.algos.core.forest import ROOT, Edge, Group, Tree, Turn, last_token_reward
from turngym.algos.runs.progress import Silent
from turngym.benchmarks.cli import credit
from turngym.benchmarks.cli.env_options import EnvOptions, env_config
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.cli.model_options import STARTER, measured_start, starter
from turngym.benchmarks.cli.probe import advise
from turngym.benchmarks.ladder.probe import (
    DepthShare,
    Probe,
    entropies,
    first_lengths,
    repeated_states,
    sibling_shares,
)
from turngym.benchmarks.ladder.suites import family_start
from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.statistics import Estimate

ONE = np.ones(1, dtype=np.int64)


def turn(
    parent: int,
    *,
    reward: float = 0.0,
    state: str = "",
    entropy: float = 0.5,
    edge: Edge = Edge.CONTINUE,
    previous: int | None = None,
) -> Turn:
    status = "failed" if reward else "running"
    return Turn(
        parent=parent,
        obs_ids=ONE,
        act_ids=ONE,
        logprobs=-ONE.astype(np.float32),
        entropies=np.full(1, entropy, dtype=np.float32),
        rewards=last_token_reward(reward, 1),
        status=status,
        state=state,
        edge=edge,
        previous=previous,
    )


def grown(worth: Callable[[float, float], float], prompts: int = 60) -> list[Group]:
    """Trees of two turns: the first is drawn once per tree, the second once per path."""
    rng = np.random.default_rng(0)
    groups = []
    for number in range(prompts):
        trees = []
        for _ in range(4):
            tree, first = Tree(), rng.random()
            tree.add(turn(ROOT))
            for _ in range(4):
                tree.add(turn(0, reward=worth(first, rng.random()) + 1e-9))
            trees.append(tree)
        groups.append(Group(str(number), str(number), trees))
    return groups


@pytest.mark.parametrize(
    ("worth", "share"),
    [
        (lambda first, _: first, 1.0),
        (lambda _, second: second, 0.0),
        (lambda first, second: first + second, 0.5),
    ],
    ids=["the first turn decides", "the second", "both alike"],
)
def test_the_share_of_a_prefix_is_what_it_explains(
    worth: Callable[[float, float], float], share: float
) -> None:
    found, variance = sibling_shares(grown(worth, prompts=300))
    (depth,) = found
    assert depth.depth == 1
    assert depth.pairs == 300 * 4 * 3
    assert depth.share.mean == pytest.approx(share, abs=0.1)
    assert depth.share.low95 < share + 0.02
    assert depth.share.high95 > share - 0.02
    assert variance == pytest.approx(1 / 6 if share == 0.5 else 1 / 12, rel=0.15)


def test_an_interval_ends_where_correlations_do() -> None:
    found, _ = sibling_shares(grown(lambda first, _: float(first > 0.5), prompts=6))
    (depth,) = found
    assert depth.share.low95 < depth.share.mean <= depth.share.high95
    assert depth.share.high95 == max(1.0, depth.share.mean)


def test_equal_returns_have_no_share() -> None:
    found, variance = sibling_shares(grown(lambda *_: 1.0))
    assert found == ()
    assert variance == pytest.approx(0.0)


def guessed(prompts: int, turns: int = 6, chance: float = 0.2) -> list[Group]:
    """Trees of episodes that end with the first lucky turn; turns have nothing to do with others.

    As rollouts grow them: a first chain, then endings from points of it that are drawn evenly.
    """
    rng = np.random.default_rng(3)

    def play(tree: Tree, parent: int, number: int) -> list[int]:
        line: list[int] = []
        while not line or (number < turns and not tree.turns[parent].reward):
            tree.add(turn(parent, reward=float(rng.random() < chance)))
            parent, number = len(tree.turns) - 1, number + 1
            line.append(parent)
        return line

    groups = []
    for number in range(prompts):
        trees = [Tree() for _ in range(4)]
        for tree in trees:
            points = [ROOT, *play(tree, ROOT, 0)[:-1]]
            for at in rng.integers(len(points), size=4):
                play(tree, points[at], int(at))
        groups.append(Group(str(number), str(number), trees))
    return groups


def test_a_prefix_tells_nothing_where_it_only_tells_that_the_episode_goes_on() -> None:
    """Success ended episodes, so long ones had failed so far: that was taken for correlation."""
    found, _ = sibling_shares(guessed(prompts=1000))
    assert [part.depth for part in found] == [1, 2, 3, 4, 5]
    for part in found:
        assert part.share.low95 < 0.1, part
        assert part.share.high95 > -0.1, part
        assert abs(part.share.mean) < 0.25, part  # 1.3 after five turns


def test_depths_where_few_returns_vary_are_left_out() -> None:
    groups = grown(lambda *_: 0.0, prompts=20) + grown(lambda first, _: first, prompts=4)
    assert sibling_shares(groups)[0] == ()
    groups += grown(lambda first, _: first, prompts=5)
    assert [part.depth for part in sibling_shares(groups)[0]] == [1]


def test_an_episode_of_sessions_counts_as_one() -> None:
    """Its first session was taken for the episode."""
    tree = Tree()
    tree.add(turn(ROOT))
    tree.add(turn(0))
    tree.add(turn(0, edge=Edge.SPAWN, previous=1))
    assert first_lengths([Group("0", "0", [tree])]) == [3]


def probed(**changes: Any) -> Probe:
    """What might have been measured."""
    likely = Estimate(mean=0.5, low95=0.4, high95=0.6)
    usual: dict[str, Any] = {
        "prompts": 40,
        "paths": 800,
        "siblings": (),
        "variance": 0.1,
        "revisited_frac": 0.0,
        "shared_frac": 0.0,
        "first_entropy": 1.0,
        "later_entropy": None,
        "turns": 4.0,
        "sampled": likely,
        "greedy": likely,
        "ceiling": None,
        "seconds": 1.0,
    }
    return Probe(**{**usual, **changes})


def test_advice_says_why_nothing_is_known_of_prefixes() -> None:
    """Episodes of one turn were said to have returns that do not vary."""
    (line,) = advise(probed(variance=0.0, revisited_frac=0.9))  # whose anchors all equal 0
    assert "do not vary" in line
    (line,) = advise(probed(turns=1.0))
    assert "one turn" in line
    (line,) = advise(probed())
    assert "--prompts" in line


def test_advice_names_the_first_turns_that_decide() -> None:
    """Of three depths that decide alike it named the one with the luckiest estimate."""
    shares = [(0.9, 0.7), (1.1, 0.9), (1.0, 0.8)]
    siblings = tuple(
        DepthShare(depth, Estimate(mean=mean, low95=low, high95=2 * mean - low), 100)
        for depth, (mean, low) in enumerate(shares, 1)
    )
    (line,) = advise(probed(siblings=siblings))
    assert "the first turn decides" in line
    (line,) = advise(probed(siblings=siblings[1:]))
    assert "the first 2 turns decides" in line


def test_advice_on_rare_success_claims_what_was_seen() -> None:
    """No success in 10 episodes was called rarer than 1 %."""
    seen = Estimate(mean=0.0, low95=0.0, high95=0.308)
    lines = advise(probed(variance=0.0, sampled=seen))
    assert "rarer than 31 %" in lines[-1]


def test_states_that_come_again_are_counted() -> None:
    walk, other = Tree(), Tree()
    for number, state in enumerate("aba"):
        walk.add(turn(number - 1, state=state))
    other.add(turn(ROOT, state="b"))
    again, shared = repeated_states([Group("0", "0", [walk, other])])
    assert again == pytest.approx(1 / 4)  # the second a of the walk
    assert shared == pytest.approx(2 / 4)  # b in both trees
    assert repeated_states([]) == (0.0, 0.0)


def test_entropies_are_told_apart_by_turn() -> None:
    tree = Tree()
    tree.add(turn(ROOT, entropy=1.0))
    tree.add(turn(0, entropy=0.25))
    assert entropies([Group("0", "0", [tree])]) == ([1.0], [0.25])


def test_the_command_prints_what_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    words = ["Recall-v0", "--prompts", "3", "--n", "4", "--max-tokens", "3"]
    assert main(["probe", *words]) == 0
    out = capsys.readouterr().out
    for text in ("variance of the return", "greedy", "ceiling", "100.0%", "3 prompts"):
        assert text in out


def test_a_task_that_comes_again_is_no_other_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its intervals would be as narrow as those of more tasks."""
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    words = ["Recall-v0", "--prompts", "90", "--trees", "3", "--n", "4", "--max-tokens", "3"]
    assert main(["probe", *words]) == 0
    assert "of 64 prompts" in capsys.readouterr().out


@pytest.mark.parametrize("env_id", ["Corridor-v0", "Recall-v0"])
def test_probe_and_credit_begin_with_the_same_model(
    env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The family's start where there is one, else the environment's starter."""
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    own = family_start(env_id)
    assert (own is None) == (env_id == "Recall-v0")
    command = credit.Command(env=env_id)
    config = credit.make_config(command, credit.find_recipes(command), Silent())
    assert config.model == (own or starter(env_id, Silent()))
    env = env_config(env_id, EnvOptions())
    expected = (config.env, config.model, config.max_tokens)
    assert measured_start(env, STARTER, command.max_tokens, Silent()) == expected
    assert measured_start(env, None, command.max_tokens, Silent()) == expected

    seen: list[str] = []

    def stop(folder: str) -> None:
        seen.append(folder)
        raise BadValueError("seen")

    monkeypatch.setattr("turngym.agents.models.loading.load_tokenizer", stop)
    assert main(["probe", env_id]) == REFUSED
    assert seen == [config.model]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--trees", "2"], "3 trees"),
        (["--prompts", "1"], "2 prompts"),
        (["--temperature", "0"], "0"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    words: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    assert main(["probe", "Bandit-v0", *words]) == 2
    assert reason in capsys.readouterr().err
    assert not any(tmp_path.iterdir()), "refused before a model is made"


@pytest.mark.parametrize("command", [["probe", "Bandit-v0"], ["credit", "--env", "Bandit-v0"]])
def test_a_script_is_no_policy_to_measure(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It proposed `random`, which has no probabilities either."""
    out = ["--out", str(tmp_path)] if command[0] == "credit" else []
    assert main([*command, "--model", "nope", *out]) == REFUSED
    said = capsys.readouterr().err
    assert "unknown model 'nope'" in said
    assert "starter" in said
    assert "random" not in said


@pytest.mark.slow
def test_prefixes_decide_the_lottery_and_not_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turngym.agents.engines.base import Sampling
    from turngym.agents.engines.factory import EngineSettings, build_engine
    from turngym.agents.models.loading import load_tokenizer
    from turngym.agents.rendering.factory import make_renderer
    from turngym.agents.warm_start.cache import ensure_starter
    from turngym.agents.warm_start.settings import StarterSettings
    from turngym.algos.training.config import EnvConfig, EvalConfig
    from turngym.benchmarks.ladder.probe import probe
    from turngym.benchmarks.matrix.starts import LETTERS_SHAPE

    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))

    def measure(env_id: str, mistakes: float) -> Probe:
        shape: dict[str, Any] = dict(LETTERS_SHAPE)
        settings = StarterSettings(
            **shape,
            vocab_size=280,
            texts=50,
            read_steps=0,
            read_least=0.0,
            held_out=1,
            mistakes=mistakes,
            err_steps=40,
            err_lr=2e-3,
        )
        model = str(ensure_starter(env_id, settings=settings, env_kwargs={"size": "micro"}))
        env = EnvConfig(id=env_id, settings={"size": "micro"})
        what = EvalConfig(name="dev", env=env, split="dev", n=8).make()
        tokenizer = load_tokenizer(model)
        engine = build_engine(
            model, tokenizer, EngineSettings(engine_dtype="float32", device="cpu")
        )
        sampling = Sampling(max_tokens=1, temperature=1.0)
        return probe(what, engine, make_renderer(tokenizer), prompts=120, sampling=sampling)

    lottery = {p.depth: p.share for p in measure("Lottery-v0", 2 / 3).siblings}
    assert lottery[1].mean < 0.35
    assert lottery[3].mean > 0.75  # behind the free letters the lot is drawn
    assert lottery[3].mean > lottery[2].mean > lottery[1].mean - 0.1
    fork = [p.share for p in measure("Fork-v0", 0.75).siblings]
    assert max(share.mean for share in fork) < 0.3
