"""Which tasks a step plays."""

from __future__ import annotations

from turngym.algos.rollouts.task_order import step_starts


def test_every_task_of_a_finite_split_is_played_equally_often() -> None:
    tasks = [s.task for step in range(1, 7) for s in step_starts(3, step, 5, "train", 10)]
    assert sorted(tasks) == sorted([*range(10)] * 3)
    assert tasks[:10] != tasks[10:20]


def test_tasks_depend_on_seed_and_step_alone() -> None:
    one = step_starts(1, 7, 4, "train", None)
    assert one == step_starts(1, 7, 4, "train", None)
    assert one != step_starts(2, 7, 4, "train", None)
    assert len({s.seed for s in one} | {s.seed for s in step_starts(1, 8, 4, "train", None)}) == 8


def test_further_rounds_of_a_step_play_other_episodes() -> None:
    rounds = [step_starts(3, 2, 4, "train", 10, extra) for extra in range(4)]
    assert rounds[2] == step_starts(3, 2, 4, "train", 10, 2)
    every = [start for round_ in rounds for start in round_]
    assert len({s.uid for s in every}) == len({s.seed for s in every}) == 16
    assert len({tuple(s.task for s in round_) for round_ in rounds}) == 4
