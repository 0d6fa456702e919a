"""MixedTasks-v0: members play their own tasks, shares hold in every prefix."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.household import DATA
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.rollouts.task_order import step_starts
from turngym.envs import EnvironmentSpec, check_text_env, fork, register_environment
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.tasks import get_split_blocks
from turngym.envs.diagnostic.common import ListedTasks
from turngym.envs.mixed_tasks.env import MixedTasks, get_member
from turngym.envs.mixed_tasks.source import MixedSource
from turngym.envs.search_qa.questions import Question
from turngym.envs.search_qa.source import GivenQuestions, QuestionSets

MATHS = [
    ["MathWord-v0", {"size": "micro", "max_turns": 3}, 1],
    ["Password-v0", {"size": "full"}, 3],
]


def mixed(members: Any, **settings: Any) -> MixedTasks:
    env = gym.make("MixedTasks-v0", members=members, **settings).unwrapped
    assert isinstance(env, MixedTasks)
    return env


def test_members_of_different_lengths_keep_every_law() -> None:
    members = [["MathWord-v0", {"max_turns": 3}, 2], ["Recall-v0", {}, 1]]
    report = check_text_env("MixedTasks-v0", tasks_checked=9, members=members, size="micro")
    assert set(report.skipped) <= {"legal actions are valid"}


def test_a_task_is_played_by_its_member() -> None:
    env = mixed(MATHS)
    alone = {"MathWord": gym.make("MathWord-v0", **MATHS[0][1]).unwrapped,
             "Password": gym.make("Password-v0", size="full").unwrapped}  # fmt: skip
    assert env.instructions == ""
    seen = Counter[str]()
    for index in range(12):
        observation, info = env.reset(seed=index, options={"task": index})
        name, _, own = info["task_id"].partition("/")
        assert info["dataset"] == env.member == name
        other: Any = alone[name]
        text, _ = other.reset(seed=index, options={"split": "train", "task": own})
        assert observation == other.instructions + text
        assert env.max_turns == other.max_turns
        one, two = env.expert(0.5, seed=index), other.expert(0.5, seed=index)
        while info["status"] == "running":
            action = one(env, observation, info)
            assert action == two(other, text, other._info(other.episode))
            observation, reward, *_, info = env.step(action)
            text, same, *_, expected = other.step(action)
            expected |= {"task_id": info["task_id"], "dataset": name}
            assert (observation, reward, info) == (text, same, expected)
        seen[name] += 1
    assert seen == {"MathWord": 3, "Password": 9}


def test_the_turn_limit_is_the_member_s() -> None:
    env = mixed(MATHS)
    assert env.max_turns == 6  # the most of any, as long as nothing is played
    for task in ("MathWord/train/4", "Password/train/2"):
        _, info = env.reset(seed=1, options={"task": task})
        for _ in range(env.max_turns):
            info = env.step("?")[4]
        assert info["turn"] == {"MathWord": 3, "Password": 6}[env.member]
        assert info["status"] == {"MathWord": "truncated", "Password": "failed"}[env.member]


def test_forks_and_pickles_go_on_as_the_original() -> None:
    env = mixed(MATHS)
    for index in range(4):
        observation, info = env.reset(seed=3, options={"task": index})
        env.step(env.expert(0.0)(env, observation, info))
        twins = [fork(env).unwrapped, pickle.loads(pickle.dumps(env))]
        said = [t.step("<answer> 1 </answer>")[:4] for t in (*twins, env)]
        assert said[0] == said[1] == said[2]
        assert len({t.digest() for t in (*twins, env)}) == 1


def test_chance_and_noise_of_a_member_are_the_mixture_s() -> None:
    members = [["Noise-v0", {"noise": 0.5}, 1], ["Keys-v0", {}, 1]]
    slow = {"the same in another process": "checked elsewhere"}
    check_text_env("MixedTasks-v0", tasks_checked=6, exempt=slow, members=members)
    env = mixed(members)
    assert (env.chance, env.reward_noise, env.reward_range) == (True, 2.0, (-2.0, 3.0))
    assert not mixed(MATHS).chance


def test_words_and_spaces_are_united() -> None:
    env = mixed({"MathWord-v0": 1, "SearchQA-v0": 2}, size="micro")
    assert env.stop == ("</answer>", "</search>")
    assert env.reward_range == (0.0, 1.0)
    assert set(env.source.sizes()) == {"train", "dev", "test"}
    blocks = get_split_blocks(env.source, "dev")
    assert blocks is not None
    assert sorted(Counter(blocks.tolist()).values()) == [500, 2000]


NESTED = {"members": {"MathWord-v0": 1}, "size": "micro"}
UNEVEN = [["Password-v0", {}, 1e-9], ["MathWord-v0", {"size": "micro"}, 1]]


@pytest.mark.parametrize(
    ("members", "error", "reason"),
    [
        ({"MathWrod-v0": 1}, UnknownNameError, "Did you mean 'MathWord-v0'"),
        (
            {"MathWord-v0": 0},
            BadValueError,
            "weight of MathWord-v0 is 0; expected a number above 0",
        ),
        ({"MathWord-v0": -1}, BadValueError, "above 0"),
        ({"MathWord-v0": float("inf")}, BadValueError, "above 0"),
        ({"MathWord-v0": "1"}, BadValueError, "weight of MathWord-v0 is '1'; expected a number"),
        ({"MathWord-v0": True}, BadValueError, "expected a number"),
        ({}, BadValueError, "members is empty"),
        ("MathWord-v0", BadValueError, "members is 'MathWord-v0'; expected"),
        (["MathWord-v0"], BadValueError, r"a member is 'MathWord-v0'; expected {id: weight}"),
        ([["MathWord-v0", 1]], BadValueError, "a member is"),
        ([["MathWord-v0", 1, 1]], BadValueError, "a member is"),
        ([["MathWord-v0", {"stepz": 1}, 1]], UnknownNameError, "Did you mean 'steps'"),
        ([["MixedTasks-v0", NESTED, 1]], BadValueError, "is a mixture itself"),
        (UNEVEN, BadValueError, "smallest weight a larger one"),
    ],
)
def test_bad_members_are_refused(members: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        mixed(members, size="micro" if isinstance(members, dict) else None)


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(BadValueError, match="size is 'tiny'; expected full or micro"):
        mixed({"MathWord-v0": 1}, size="tiny")


def test_games_of_a_member_s_own_have_no_size() -> None:
    members = [["Household-v0", {"games": str(DATA / "games")}, 1], ["Keys-v0", {}, 1]]
    assert mixed(members, size="micro").members["Household"].max_turns == 50


def test_an_id_without_a_version_names_its_member() -> None:
    register_environment(
        EnvironmentSpec(
            id="Unversioned",
            entry_point="helpers.guess_worlds:Guess",
            summary="guess a letter",
            hidden=True,
        )
    )
    env = mixed({"Unversioned": 1, "Keys-v0": 1})
    assert list(env.members) == ["Unversioned", "Keys"]


def test_one_id_twice_has_two_names() -> None:
    env = mixed([["MathWord-v0", {"size": "micro"}, 1], ["MathWord-v0", {"steps": 6}, 1]])
    assert list(env.members) == ["MathWord", "MathWord.2"]
    _, info = env.reset(seed=0, options={"task": "MathWord.2/train/7"})
    assert len(env.episode.task.payload.plan) == 6
    assert info["dataset"] == "MathWord.2"


def test_tools_of_one_name_must_be_one_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    from turngym.envs.math_word.env import MathWord

    tool = {"type": "function", "function": {"name": "calc", "parameters": {}}}
    monkeypatch.setattr(MathWord, "tools", (tool,))
    twice = [["MathWord-v0", {"size": "micro"}, 1]] * 2
    assert mixed(twice).tools == (tool,)
    other = {"type": "function", "function": {"name": "calc", "parameters": {"x": 1}}}
    monkeypatch.setattr("turngym.envs.diagnostic.recall.Recall.tools", (other,))
    with pytest.raises(BadValueError, match="different tools 'calc'"):
        mixed([*twice, ["Recall-v0", {}, 1]])


class Endless:
    """A source whose train has no end."""

    def sizes(self) -> dict[str, int | None]:
        return {"train": None, "dev": 5}

    def task(self, split: str, index: int) -> Any:
        return ListedTasks(list(range(50))).task(split, index % 5)

    def index_of(self, split: str, task_id: str) -> int | None:
        return None


@given(
    st.lists(st.tuples(st.integers(2, 40), st.floats(0.2, 5)), min_size=2, max_size=4),
    st.integers(1, 300),
)
def test_shares_hold_in_every_prefix(given: list[tuple[int, float]], stop: int) -> None:
    sources = {
        f"s{i}": ListedTasks([(i, k) for k in range(2 * n)]) for i, (n, _) in enumerate(given)
    }
    weights = [w for _, w in given]
    source = MixedSource(sources, weights)
    size = source.sizes()["train"]
    assert size is not None
    stop = min(stop, size)
    had = Counter(get_member(source.task("train", i)) for i in range(stop))
    for i, w in enumerate(weights):
        assert abs(had[f"s{i}"] - stop * w / sum(weights)) <= len(weights) / 2 + 1
    ids = [source.task("train", i).id for i in range(size)]
    assert len(set(ids)) == size
    for index in (0, size // 2, size - 1):
        assert source.index_of("train", ids[index]) == index
    everything = {(s, k) for s, one in sources.items() for k in range(len(one._tasks["train"]))}
    assert len({i.partition("#")[0] for i in ids}) == len(everything)


def test_a_source_without_end_never_repeats_itself() -> None:
    source = MixedSource({"a": Endless(), "b": ListedTasks(list(range(50)))}, [1, 3])
    size = source.sizes()["train"]
    assert size is not None
    assert size >= 100_000 - 2
    blocks = source.blocks("train")
    assert blocks is not None
    shares = np.bincount(blocks % 2) / size
    assert shares == pytest.approx([0.25, 0.75], abs=1e-4)
    assert len(set(blocks[blocks % 2 == 0].tolist())) == 1  # one walk through the endless one
    assert source.index_of("train", "b/train/3#2") is not None
    assert source.index_of("train", "b/train/3#1") is None
    assert source.index_of("train", "c/train/3") is None
    assert source.sizes()["test"] == 10  # that the other source lacks


def ask(*ids: str) -> list[tuple[str, Question]]:
    return [(own, Question(f"What is {own}?", (own,))) for own in ids]


def of_train(rows: QuestionSets) -> GivenQuestions:
    return GivenQuestions({"train": rows})


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("others", [(), (1, 3)])
def test_a_member_that_is_a_mixture_keeps_its_shares(split: str, others: tuple[int, ...]) -> None:
    sets = {"rare": ask(*"abcd"), "usual": ask(*(f"u{i}" for i in range(12)))}
    sources: dict[str, Any] = {"QA": GivenQuestions({split: QuestionSets(sets)})}
    sources |= {f"s{i}": ListedTasks(list(range(50 * n))) for i, n in enumerate(others)}
    source = MixedSource(sources, [2.0] * len(sources))
    blocks = get_split_blocks(source, split)
    assert blocks is not None
    size = len(blocks)
    datasets = [source.task(split, i).dataset for i in range(size)]
    for at in range(3):  # shuffled by training, it is the same pattern of data sets
        starts = step_starts(at, 1, size, split, blocks)
        assert [source.task(split, s.task).dataset for s in starts] == datasets
        assert [s.task for s in starts] != list(range(size))
    of_member = [d for d in datasets if d.startswith("QA")]
    assert len(of_member) >= (16 if split == "dev" or not others else 48)
    for first in range(0, len(of_member), 4):  # also when the member comes again
        assert of_member[first : first + 4].count("QA: rare") == 1


def test_ids_of_what_comes_again_are_no_other_task_s() -> None:
    own = ("a", "a#2", "a#2#", "a#", "b#3")
    source = MixedSource(
        {"QA": of_train(QuestionSets({"one": ask(*own)})), "s": ListedTasks(list(range(100)))},
        [1, 1],
    )
    size = source.sizes()["train"]
    assert size is not None
    ids = [source.task("train", i).id for i in range(size)]
    assert len(set(ids)) == size
    assert [source.index_of("train", task_id) for task_id in ids] == list(range(size))
    assert ids.count("QA/a#2") == 1
    assert {"QA/a#2##", "QA/a#3", "QA/b#3#2"} < set(ids)
    for unknown in ("QA/a#3#", "QA/a#02", "QA/b#2", "QA/a#1", f"QA/a#{'9' * 5000}"):
        assert source.index_of("train", unknown) is None


def test_a_member_s_own_weights_let_its_ids_come_again_beside_the_mixture_s() -> None:
    sets = QuestionSets({"few": ask("a", "b"), "many": ask(*"cdefgh")}, [1, 1])
    source = MixedSource({"QA": of_train(sets), "s": ListedTasks(list(range(200)))}, [1, 1])
    size = source.sizes()["train"]
    assert size is not None
    ids = [source.task("train", i).id for i in range(size)]
    assert len(set(ids)) == size
    assert [source.index_of("train", task_id) for task_id in ids] == list(range(size))
