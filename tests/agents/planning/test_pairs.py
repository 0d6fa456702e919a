"""Pairs: files, contrasts of strength, edits, hindsight."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.maze import Arms, begun, letters, worth_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

import turngym.envs  # noqa: F401 - registers the worlds
from turngym.agents.planning.generation import (
    HindsightRelabeller,
    PairMaker,
    PairSettings,
    choose_other_action,
    edit_attempt,
    planner_player,
    policy_player,
)
from turngym.agents.planning.planners import Sampling
from turngym.agents.planning.position import Position
from turngym.agents.planning.records import REQUEST, STUB, Pair, read_pairs, record, write_pairs
from turngym.agents.planning.search import PlannerSetup
from turngym.agents.planning.trajectory import Attempt, Move, Trajectory
from turngym.agents.prompting.text_model import Completed
from turngym.agents.scripted import ExpertPolicy
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MOVES = st.lists(st.builds(Move, TEXT, TEXT), min_size=1, max_size=4).map(tuple)


def made(world: Any = None, players: Any = None, **more: Any) -> list[Pair]:
    how = PairSettings(**({"tasks": 12, "tries": 3, "contrasts": 2, "edits": 3} | more))
    crowd = [policy_player(letters)] if players is None else players
    maker = PairMaker(env=world or Arms(), players=crowd, settings=how)
    return asyncio.run(maker.pairs("train"))


@settings(max_examples=40, deadline=None)
@given(TEXT, MOVES, MOVES)
@example("", (Move("", ""),), (Move("a\u2028b\r\n", "\x85" + REQUEST),))
def test_files_come_back(
    tmp_path_factory: pytest.TempPathFactory, instruction: str, one: Any, other: Any
) -> None:
    if one == other:
        return
    path = tmp_path_factory.mktemp("pairs") / "p.jsonl"
    pairs = [
        Pair("a", Trajectory(instruction, one), Trajectory(instruction, other)),
        Pair("b", Trajectory(instruction, other), Trajectory(instruction, one)),
    ]
    assert write_pairs(path, pairs) == 2
    assert read_pairs(path) == pairs
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    assert [row["preference"] for row in rows] == [2, 1]
    path.write_text(json.dumps(rows), encoding="utf-8-sig")  # as some editors save it
    assert read_pairs(path) == pairs


def test_the_record() -> None:
    better = Trajectory("do it", (Move("a", "A"), Move("b", "B")))
    row = record(Pair("7", better, Trajectory("do it", (Move("a", "A"),))))
    assert row["conversations"][0] == {"from": "human", "value": "do it"}
    assert [turn["from"] for turn in row["output_1"]] == ["gpt", "human"] * 2 + ["gpt"]
    assert [turn["value"] for turn in row["output_1"]] == ["a", "A", "b", f"B{REQUEST}", STUB]
    assert (row["preference"], row["id"]) == (1, "7")
    assert record(Pair("7", better, better), 2)["output_2"] == row["output_1"]


GOOD = record(Pair("1", Trajectory("x", (Move("a", "A"),)), Trajectory("x", (Move("b", "B"),))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preference": 3}, "expected 1 or 2"),
        ({"preference": True}, "expected 1 or 2"),
        ({"output_1": []}, "expected turns of gpt and human"),
        ({"output_1": GOOD["output_1"][1:]}, "expected turns of gpt and human"),
        ({"output_1": "a"}, "expected a list of turns"),
        ({"output_1": [{"from": "system", "value": "a"}]}, "expected turns"),
        ({"output_2": GOOD["output_1"]}, "both outputs are the same"),
        ({"conversations": []}, "must begin with the human's instruction"),
    ],
)
def test_bad_records(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n" + json.dumps(GOOD | change) + "\n")
    with pytest.raises(DataError, match=f"line 3.*{message}"):
        read_pairs(path)


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    with pytest.raises(DataError, match="cannot be read"):
        read_pairs(path)
    deep = "[" * 10**5, "not JSON"
    for text, message in (("", "no pair"), ("{", "line 1: not JSON"), deep, ("[1]", "record 1")):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read_pairs(path)
    path.write_text("3\n")
    with pytest.raises(DataError, match="expected an object"):
        read_pairs(path)


def test_contrasts_are_never_tied() -> None:
    pairs = made(edits=0)
    assert len(pairs) > 10
    assert len({pair.id for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.better.instruction == pair.worse.instruction
        good, bad = (worth_of("".join(t.actions)) for t in (pair.better, pair.worse))
        assert good > bad
    counts = [sum(p.id.startswith(f"Arms/train/{i}/") for p in pairs) for i in range(12)]
    assert max(counts) == 2
    assert pairs == made(edits=0, concurrency=1)
    assert pairs != made(edits=0, seed=1)


@pytest.mark.parametrize("kinds", [{"contrasts": 2, "edits": 0}, {"contrasts": 0, "edits": 3}])
def test_what_rounding_makes_is_a_tie(kinds: dict[str, int]) -> None:
    one, other = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1  # sum() of Python 3.12 adds both exactly

    def in_some_order(attempt: Attempt) -> float:
        return one if attempt.trajectory.actions[0] == "l" else other

    maker = PairMaker(
        env=Arms(),
        players=[policy_player(letters)],
        settings=PairSettings(tasks=12, tries=3, **kinds),
        score=in_some_order,
    )
    assert one != other
    with pytest.raises(BadValueError, match="scored the same"):
        asyncio.run(maker.pairs("train"))


def test_strength_makes_the_difference() -> None:
    strong = policy_player(lambda seed: ExpertPolicy(seed=seed))
    weak = policy_player(lambda seed: ExpertPolicy(mistakes=1.0, seed=seed))
    pairs = made(players=[weak, strong], tries=1, contrasts=5, edits=0)
    assert len(pairs) == 12
    assert {pair.better.actions for pair in pairs} == {("l", "r", "r")}
    with pytest.raises(BadValueError, match="scored the same"):
        made(players=[strong], edits=0)


def test_edits_change_one_action_and_are_worse() -> None:
    strong = policy_player(lambda seed: ExpertPolicy(seed=seed))
    pairs = made(players=[strong], contrasts=0, edits=6)
    assert len(pairs) > 12
    for pair in pairs:
        assert (
            sum(a != b for a, b in zip(pair.better.actions, pair.worse.actions, strict=True)) == 1
        )
        again = begun(task=int(pair.id.split("/")[2]))
        for move in pair.worse.moves:  # the observations are the environment's own
            assert again.step(move.action)[0] == move.observation
    weak = policy_player(lambda seed: ExpertPolicy(mistakes=1.0, seed=seed))
    with pytest.raises(BadValueError, match="scored the same"):
        made(players=[weak], contrasts=0)


def test_attempts_without_an_action_are_in_no_pair(tmp_path: Path) -> None:
    """A model whose context the first prompt fills attempts nothing."""

    async def idle(env: Any, _: int) -> Attempt:
        return Position.of(env).attempt

    strong = policy_player(lambda seed: ExpertPolicy(seed=seed))
    pairs = made(players=[idle, strong], tries=1, contrasts=2, edits=3)
    assert pairs
    assert all(p.better.moves and p.worse.moves for p in pairs)
    assert write_pairs(tmp_path / "p.jsonl", pairs) == len(pairs)
    with pytest.raises(BadValueError, match="scored the same"):
        made(players=[idle])


def test_other_actions() -> None:
    rng = np.random.default_rng(0)
    position = Position.of(begun())
    assert {choose_other_action(position, "l", rng) for _ in range(9)} == {"r"}

    class Unlisted(Arms):
        def legal_actions(self) -> Any:
            return None

    class Silent(Unlisted):
        def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
            raise NotImplementedError

    for kind, found in ((Unlisted, {"r"}), (Silent, None)):
        env = kind()
        env.reset(seed=0)
        said = {choose_other_action(Position.of(env), "l", rng) for _ in range(9)}
        assert said == found if found else len(said) > 3
    env = Unlisted()
    env.reset(seed=0)
    assert choose_other_action(Position.of(env), "r", rng) is None
    attempt = Attempt(trajectory=Trajectory("", ()), status="running")
    assert asyncio.run(edit_attempt(Position.of(env).fork(), attempt, rng)) is None


def test_hindsight_rewrites_both() -> None:
    asked: list[Any] = []

    class Writer:
        continues = False

        async def complete(self, prompt: Any, **how: Any) -> Completed:
            asked.append(prompt[0].content)
            said = "" if len(asked) == 1 else " Pull left once. "
            return Completed(text=said, prompt_tokens=1, completion_tokens=1, stop_reason="end")

        async def close(self) -> None: ...

    plain = made()
    maker = PairMaker(
        env=Arms(),
        players=[policy_player(letters)],
        settings=PairSettings(tasks=12, tries=3, contrasts=2, edits=3, concurrency=1),
        instruct=HindsightRelabeller(Writer()),
    )
    found = asyncio.run(maker.pairs("train"))
    assert found[0] == plain[0]  # nothing was written: the world's own prompt stays
    assert {t.instruction for p in found[1:] for t in (p.better, p.worse)} == {"Pull left once.\n"}
    own = plain[1].better.instruction
    assert found[1] == Pair(
        plain[1].id,
        replace(plain[1].better, instruction="Pull left once.\n"),
        replace(plain[1].worse, instruction="Pull left once.\n"),
    )
    assert own in asked[1]
    assert plain[1].better.moves[0].observation in asked[1]
    with pytest.raises(BadValueError, match="only answers dialogues"):
        HindsightRelabeller(Writer(), chat=False)


@pytest.mark.parametrize(
    ("said", "instruction"),
    [
        ("<think>\nIt pulled left.\n</think>\n\nPull left.", "Pull left.\n"),
        ("<think>\nIt pulled left", "Own prompt"),  # cut off before it said anything
    ],
)
def test_hindsight_leaves_thoughts_out(said: str, instruction: str) -> None:
    class Thinker:
        continues = False

        async def complete(self, prompt: Any, **how: Any) -> Completed:
            return Completed(text=said, prompt_tokens=1, completion_tokens=1, stop_reason="end")

        async def close(self) -> None: ...

    attempt = Attempt(trajectory=Trajectory("Own prompt", (Move("l", "left"),)), status="failed")
    assert asyncio.run(HindsightRelabeller(Thinker())(attempt)) == instruction


def test_planners_play_for_pairs(tmp_path: Path) -> None:
    from helpers.maze import Coin

    player = planner_player(Sampling(), lambda: PlannerSetup(actor=Coin(left=0.5)))
    assert len(made(players=[player])) > 12


def test_bad_requests() -> None:
    with pytest.raises(BadValueError, match="no players"):
        made(players=[])
    with pytest.raises(BadValueError, match="contrasts and edits"):
        made(contrasts=0, edits=0)
    with pytest.raises(BadValueError, match="tries is 0"):
        made(tries=0)
    maker = PairMaker(env=Arms(), players=[policy_player(letters)], settings=PairSettings())
    with pytest.raises(UnknownNameError, match="split"):
        asyncio.run(maker.pairs("trains"))


@pytest.mark.parametrize("env_id", ["Game24-v0", "ScienceWorld-v0"])
def test_scripted_actions_end_as_a_models_do(env_id: str) -> None:
    # else a reward model could tell who wrote a line, which is not what it has to learn
    clean = policy_player(lambda seed: ExpertPolicy(0.0, seed))
    erring = policy_player(lambda seed: ExpertPolicy(0.9, seed))
    settings = PairSettings(tasks=4, contrasts=2, edits=4)
    maker = PairMaker(
        env=gym.make(env_id, size="micro"), players=[clean, erring], settings=settings
    )
    for pair in asyncio.run(maker.pairs("train")):
        for action in (*pair.better.actions, *pair.worse.actions):
            assert action.endswith("\n")
