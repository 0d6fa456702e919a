"""Arms that play, crawl and plan, with a model that was never taught."""

from __future__ import annotations

import math

from helpers.made_claims import BLANK

from turngym.benchmarks.claims.experiments import (
    CrawledArm,
    Crawling,
    PlannedArm,
    Planning,
    PlayedArm,
    Playing,
)
from turngym.benchmarks.claims.outcome import ArmRuns
from turngym.benchmarks.claims.planning import run_planning
from turngym.benchmarks.claims.playing import run_crawling, run_playing
from turngym.benchmarks.matrix.suite import BlankStart

START = BlankStart(settings=BLANK)


def again(runner, experiment, folder) -> tuple[list[str], list[str], tuple[ArmRuns, ...]]:
    """What the first and the second call computed, and that both say the same."""
    first: list[str] = []
    second: list[str] = []
    arms = runner(experiment, (0, 1), folder, first.append)
    assert runner(experiment, (0, 1), folder, second.append) == arms
    return first, second, arms


def test_played_arms_count_leaves_per_token(tmp_path) -> None:
    experiment = Playing(
        arms=(
            PlayedArm(name="tree", rollout="expand"),
            PlayedArm(name="chains", rollout="chains", settings={"n": 6}),
            PlayedArm(name="branches", rollout="branch", settings={"initial": 2, "budget": 4}),
        ),
        env_id="Password-v0",
        settings={"size": "micro"},
        start=START,
        tasks=3,
        max_tokens=2,
    )
    first, second, (tree, chains, branches) = again(run_playing, experiment, tmp_path)
    assert (len(first), second) == (6, [])
    for arm in (tree, chains, branches):
        assert [len(run.values["entropy_rise"]) for run in arm.runs] == [3, 3]
    flat = {v for run in chains.runs for v in run.values["leaves_per_call"].values()}
    assert flat == {math.log2(1 / 3)}  # a chain is a leaf of three doors
    more, less = tree.mean("leaves_per_call"), chains.mean("leaves_per_call")
    assert more is not None
    assert less is not None
    assert more > less
    assert tree.runs[0].values != tree.runs[1].values


def test_crawled_arms(tmp_path) -> None:
    experiment = Crawling(
        arms=(
            CrawledArm(name="usual"),
            CrawledArm(name="nothing pays", env_settings={"alpha": 0.0}, settings={"kl_coef": 0.0}),
        ),
        env_settings={"size": "micro"},
        requests=4,
        settings={"steps": 12, "frozen_steps": 2, "requests": 4},
    )
    first, second, (usual, nothing) = again(run_crawling, experiment, tmp_path)
    assert (len(first), second) == (4, [])
    many, few = usual.mean("actions"), nothing.mean("actions")
    assert many is not None
    assert few is not None
    assert few < many
    assert set(usual.runs[0].values) == {"recall", "actions", "return"}


def test_planned_arms_share_a_reward_model(tmp_path) -> None:
    experiment = Planning(
        arms=(
            PlannedArm(name="greedy", planner="greedy"),
            PlannedArm(name="best", planner="best-of-n", settings={"n": 3}),
        ),
        env_id="Password-v0",
        settings={"size": "micro"},
        start=START,
        tasks=4,
        max_tokens=2,
        token_budget=40,
        pair_tasks=10,
        reward={"epochs": 1, "batch": 8},
    )
    first, second, (greedy, best) = again(run_planning, experiment, tmp_path)
    assert sum("reward model" in line for line in first) == 2  # one per seed
    assert second == []
    for arm in (greedy, best):
        assert [len(run.values["success"]) for run in arm.runs] == [4, 4]


def test_the_folder_of_an_arm_follows_its_content() -> None:
    def made(**changes) -> str:
        given = {"arms": (CrawledArm(name="usual"),), "requests": 4, **changes}
        experiment = Crawling(**given)
        return experiment.key(experiment.arms[0])

    assert made() == made(arms=(CrawledArm(name="usual"), CrawledArm(name="other")))
    assert made() != made(requests=5)
    assert made() != made(arms=(CrawledArm(name="usual", env_settings={"alpha": 1.0}),))
