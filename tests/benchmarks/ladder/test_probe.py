"""The probe: shares of made trees, states that come again, and the command on an environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.algos.core.forest import ROOT, Group, Tree, Turn, last_token_reward
from turngym.algos.runs.progress import Silent
from turngym.benchmarks.cli import credit
from turngym.benchmarks.cli.env_options import EnvOptions, env_config
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.cli.model_options import measured_start, starter
from turngym.benchmarks.ladder.probe import entropies, repeated_states, sibling_shares
from turngym.benchmarks.ladder.suites import family_start
from turngym.envs.core.errors import BadValueError

ONE = np.ones(1, dtype=np.int64)


def turn(parent: int, *, reward: float = 0.0, state: str = "", entropy: float = 0.5) -> Turn:
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


def test_equal_returns_have_no_share() -> None:
    found, variance = sibling_shares(grown(lambda *_: 1.0))
    assert found == ()
    assert variance == pytest.approx(0.0)


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
    assert measured_start(env, None, command.max_tokens, Silent()) == (config.env, config.model)

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
    from turngym.benchmarks.ladder.probe import Probe, probe
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
