"""Game24-v0: golden episodes by hand, mistakes, verdicts, puzzles of a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs import check_text_env, fork
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.game24.arithmetic import is_reachable, make_numbers
from turngym.envs.game24.env import Game24
from turngym.envs.game24.expert import MISTAKE_KINDS, write_mistake
from turngym.envs.game24.puzzles import load_generated_puzzles, read_puzzles

REPLIES = {
    "invented": " is ",
    "absent": "is not among the numbers left.",
    "format": "Write a step like 3 + 5 = 8",
    "unused": " and used ",
}


def table(path: Path, *rows: str, header: str = "Rank,Puzzles,Solved rate") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("puzzles")
    return table(folder / "24.csv", "1,4 4 6 8,99.2%", "2,3 3 8 8,1%", "3,1 1 11 12,5%")


def play(known: Path, task: int, *actions: str, **given: Any) -> tuple[list[str], dict[str, Any]]:
    """What is answered, and the last info."""
    env = Game24(puzzles=known, **given)
    first, info = env.reset(seed=0, options={"task": task})
    seen: list[Any] = [first]
    for action in actions:
        text, *_, info = env.step(action)
        seen.append((text, info["verdict"], info["status"]))
    return seen, dict(info)


def test_keeps_every_law_in_full() -> None:
    assert not check_text_env("Game24-v0", size="full", tasks_checked=12).skipped


def test_three_steps_by_hand(known: Path) -> None:
    seen, info = play(
        known, 0, "4 + 8 = 12", "thinking\n6 - 4 = 2 (left: 2 12)", "2 * 12 = 24", max_turns=3
    )
    assert seen == [
        "Numbers: 4 4 6 8\n",
        ("Left: 4 6 12\n", 1, "running"),
        ("Left: 2 12\n", 1, "running"),
        ("24 is made.\n", 1, "solved"),
    ]
    assert info["reward_terms"] == {"outcome": 1.0}
    assert info["metrics"]["steps"] == 3


def test_a_step_that_loses_24_and_what_follows(known: Path) -> None:
    seen, info = play(known, 1, "8 + 8 = 16", "3 + 3 = 6", "16 + 6 = 22")
    assert [s[1:] for s in seen[1:]] == [(-1, "running"), (0, "running"), (0, "failed")]
    assert seen[-1][0] == "22 is left and not 24.\n"
    assert info["reward_terms"] == {}
    seen, _ = play(known, 1, "8 + 8 = 16", "answer: 8 / (3 - 8 / 3)")
    assert seen[-1] == ("24 is made.\n", 1, "solved")


@pytest.mark.parametrize(
    ("action", "reply"),
    [
        ("5 + 4 = 9", "5 is not among the numbers left."),
        ("6 + 6 = 12", "6 is left only once."),
        ("4 + 8 = 13", "4 + 8 is 12, not 13."),
        ("8 / 6 = 1.33", "8 / 6 is 4/3, not 133/100."),
        ("4 + 8 = 12 (left: 4 12)", "After that 4 6 12 would be left, not 4 12."),
    ],
)
def test_a_refused_step_says_why_and_changes_nothing(known: Path, action: str, reply: str) -> None:
    seen, info = play(known, 0, action)
    assert seen[1] == (f"{reply} Left: 4 4 6 8\n", -1, "running")
    assert info["valid_action"] is True


def test_a_division_by_zero_is_refused(known: Path) -> None:
    seen, _ = play(known, 0, "4 - 4 = 0", "8 / 0 = 0")
    assert seen[2] == ("8 / 0 divides by zero. Left: 0 6 8\n", -1, "running")


@pytest.mark.parametrize(
    ("action", "reply"),
    [
        ("answer: 4 * 6", "4 is given twice and used once."),
        ("answer: 4 + 4 * 6 - 4 / 8", "4 is used 3 times and given twice."),
        ("answer: 24", "24 is not among the numbers given."),
        ("answer: 4 + 4 + 6", "8 is given once and used never."),
        ("answer: 6 / (4 - 4) + 8", "The answer divides by zero."),
        ("4 + 4 + 6 + 8", "The answer is 22, not 24."),
    ],
)
def test_a_wrong_answer_says_why_and_ends(known: Path, action: str, reply: str) -> None:
    seen, info = play(known, 0, action)
    assert seen[1] == (f"{reply}\n", -1, "failed")
    assert info["metrics"]["answered"] == 1


def test_an_unreadable_action_costs_a_turn(known: Path) -> None:
    seen, info = play(known, 0, "hello", max_turns=3)
    assert "Write a step like 3 + 5 = 8" in seen[1][0]
    assert (info["valid_action"], info["turn"]) == (False, 1)


def test_sizes_and_splits() -> None:
    full, micro = load_generated_puzzles("full"), load_generated_puzzles("micro")
    assert sum(n or 0 for n in full.sizes().values()) == 1362
    for source in (full, micro):
        seen = [
            source.task(split, i).payload.numbers
            for split, size in source.sizes().items()
            for i in range(size or 0)
        ]
        assert len(set(seen)) == len(seen)
        assert all(is_reachable(make_numbers(numbers)) for numbers in seen)
    assert max(max(micro.task("train", i).payload.numbers) for i in range(50)) <= 9


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["full", "micro"]),
    st.integers(0, 1000),
    st.lists(st.integers(0, 35), max_size=2),
)
def test_verdicts_say_whether_24_can_still_be_made(size: str, seed: int, picks: list[int]) -> None:
    env = Game24(size=size)
    env.reset(seed=seed)
    alive = True
    for pick in picks:
        legal = env.legal_actions()
        branch = fork(env)
        *_, info = env.step(legal[pick % len(legal)])
        still = is_reachable(env.episode.state.left)
        assert info["verdict"] == (1 if still else -1 if alive else 0)
        assert branch.unwrapped.legal_actions() == legal
        alive = still
    observation, info = "", {"status": env.episode.status}
    expert = env.expert()
    while info["status"] == "running":
        observation, *_, info = env.step(expert(env, observation, info))
    assert info["status"] == "solved"


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MISTAKE_KINDS), st.integers(0, 1000), st.integers(0, 1))
def test_every_kind_of_mistake_is_met_by_its_reply(kind: str, seed: int, before: int) -> None:
    env = Game24(max_turns=5)
    env.reset(seed=seed)
    expert = env.expert()
    for _ in range(before):
        env.step(expert(env, "", {}))
    numbers = make_numbers(env.episode.task.payload.numbers)
    action = write_mistake(kind, numbers, env.episode.state.left, np.random.default_rng(seed))
    text, _, terminated, _, info = env.step(action)
    assert info["verdict"] == -1
    assert terminated is (kind == "unused")
    assert REPLIES[kind] in text
    assert info["valid_action"] is (kind != "format")


def test_the_expert_errs_as_often_as_told() -> None:
    counts: Counter[int] = Counter()
    env = Game24(size="micro")
    expert = env.expert(mistakes=0.4, seed=1)
    for seed in range(150):
        env.reset(seed=seed)
        *_, info = env.step(expert(env, "", {}))
        counts[info["verdict"] or 0] += 1
    assert 40 <= counts[-1] <= 80
    with pytest.raises(BadValueError, match="mistakes is 2"):
        env.expert(mistakes=2)
    with pytest.raises(UnknownNameError, match="Did you mean 'absent'"):
        write_mistake("abscent", (), (), np.random.default_rng(0))


def test_a_file_is_split_as_the_literature_does(tmp_path: Path) -> None:
    source = load_generated_puzzles("full")
    all_of_them = [
        str(source.task(split, i).payload) for split, n in source.sizes().items() for i in range(n)
    ]
    path = table(tmp_path / "24.csv", *(f"{i + 1},{p},1%" for i, p in enumerate(all_of_them)))
    assert read_puzzles(path).sizes() == {"train": 900, "dev": 362, "test": 100}
    env = gym.make("Game24-v0", puzzles=path)
    text, _ = env.reset(seed=1, options={"split": "test", "task": 0})
    assert text == f"Numbers: {all_of_them[900]}\n"


@pytest.mark.parametrize(
    ("rows", "header", "why"),
    [
        (["1,4 4 6"], "Rank,Puzzles", r"line 2: the puzzle is '4 4 6'; expected four"),
        (["1,4 4 6 8", "2,4 4 6 x"], "Rank,Puzzles", r"line 3: the puzzle is '4 4 6 x'"),
        (["1,1 1 1 1"], "Rank,Puzzles", r"line 2: '1 1 1 1' cannot make 24"),
        (["4 4 6 48", "1 1 1 97"], "Puzzles", r"line 3: '1 1 1 97' cannot make 24"),
        (["4 4 6 8", "8 6 4 4"], "Puzzles", r"line 3: 4 4 6 8 stands in line 2 already"),
        (["1"], "Rank,Puzzles", r"line 2: the puzzle is ''"),
        (["4 4 6 8"], "Rank", r"line 1: the columns are rank; expected one named 'Puzzles'"),
        ([], "Puzzles", "holds no puzzle"),
    ],
)
def test_bad_files(tmp_path: Path, rows: list[str], header: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        Game24(puzzles=table(tmp_path / "bad.csv", *rows, header=header))


def test_bad_settings(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"Puzzles\n\xff\xfe")
    with pytest.raises(DataError, match="no CSV file in UTF-8"):
        Game24(puzzles=tmp_path / "binary.csv")
    with pytest.raises(BadValueError, match="there is no file"):
        Game24(puzzles=tmp_path / "none.csv")
    with pytest.raises(BadValueError, match="puzzles is 3; expected a text or a path"):
        Game24(puzzles=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadValueError, match="max_turns is 2; expected at least 3"):
        Game24(max_turns=2)
    with pytest.raises(UnknownNameError, match="Did you mean 'micro'"):
        Game24(size="mikro")
