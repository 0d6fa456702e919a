"""An episode as an agent sees it: counted, seeded, and only in worlds that fit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.prompting_help import FakeModel, make_world, play

from turngym.agents.prompting import (
    Agent,
    Completed,
    Cot,
    Direct,
    Limits,
    PromptedEpisode,
    React,
    SearchO1,
    Usage,
)
from turngym.agents.prompting.episode import (
    LONGEST_ANSWER,
    LONGEST_QUERY,
    check_dialect,
    each_passage,
)
from turngym.envs.core.errors import BadValueError, EpisodeError, UnknownNameError


async def opened(env: Any, model: Any = None) -> PromptedEpisode:
    return await PromptedEpisode.open(
        env, model or FakeModel(), limits=Limits(max_tokens=50), seed=1
    )


def test_other_worlds_are_refused() -> None:
    with pytest.raises(BadValueError, match="does not take <search>"):
        asyncio.run(opened(gym.make("Bandit-v0")))


def test_a_mixture_is_asked_for_its_questions_without_the_rules() -> None:
    members = [["SearchQA-v0", {"size": "micro", "prompt": "search-r1"}, 1]]
    mixed = asyncio.run(opened(gym.make("MixedTasks-v0", members=members)))
    assert "Answer the given question" in mixed.observation
    assert mixed.question == mixed.env.unwrapped.episode.task.payload.text


def test_a_mixture_with_another_world_in_it_is_refused() -> None:
    members = {"SearchQA-v0": 1, "MathWord-v0": 1}
    with pytest.raises(BadValueError, match="MathWord-v0 does not take <search>"):
        asyncio.run(opened(gym.make("MixedTasks-v0", members=members, size="micro")))


def test_queries_are_one_line_of_bounded_length(tmp_path: Path) -> None:
    async def go() -> PromptedEpisode:
        episode = await opened(make_world(tmp_path))
        await episode.search("x\n</search>" + "y" * 1000)
        await episode.search(" <think> ")
        return episode

    episode = asyncio.run(go())
    first, second = (e["action"] for e in episode.events)
    assert len(first) == LONGEST_QUERY + len("<search>  </search>")
    assert first.startswith("<search> x yyy")
    assert second == f"<search> {episode.question} </search>"
    assert episode.searches_left == 2
    assert episode.text.startswith(f"Question: {episode.question}\n<search> x")


LONG = "so " * 40_000  # more than the environment reads
ENDLESS = ((Direct(), LONG), (Direct(dialect="tags"), LONG), (Cot(dialect="tags"), LONG, LONG))


@pytest.mark.parametrize(("agent", "replies"), [(agent, said) for agent, *said in ENDLESS])
def test_a_reply_without_end_is_a_wrong_answer(
    agent: Agent, replies: list[str], tmp_path: Path
) -> None:
    episode = play(agent, FakeModel(*replies), make_world(tmp_path))
    assert episode.info["status"] == "failed"
    assert len(episode.events[-1]["action"]) < 2 * LONGEST_ANSWER + 100


def test_an_answer_behind_a_thought_without_end_is_asked_for_again(tmp_path: Path) -> None:
    model = FakeModel(f"{LONG}<answer>R2</answer>", "<answer>R2</answer>")
    episode = play(SearchO1(dialect="tags"), model, make_world(tmp_path))
    assert episode.info["status"] == "solved"


def test_an_action_after_the_end_is_a_mistake_of_the_agent(tmp_path: Path) -> None:
    async def go() -> None:
        episode = await opened(make_world(tmp_path))
        await episode.answer("a")
        await episode.answer("b")

    with pytest.raises(EpisodeError, match="after the episode's end"):
        asyncio.run(go())


def test_every_call_has_its_own_seed_and_the_same_one_again(tmp_path: Path) -> None:
    said = ["Action: Search[a]", "Action: Search[b]", "Action: Finish[R2]"]
    models = [FakeModel(*said) for _ in range(2)]
    for model in models:
        play(React(), model, make_world(tmp_path))
    seeds = [[a["seed"] for a in m.asked] for m in models]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3
    assert all(0 <= s < 2**31 for s in seeds[0])


def test_limits_hold_for_every_call(tmp_path: Path) -> None:
    model = FakeModel("R2")
    play(Direct(), model, make_world(tmp_path), max_tokens=9)
    assert model.asked[0]["max_tokens"] == 9
    for bad in ({"max_tokens": 0}, {"temperature": -1.0}):
        with pytest.raises(BadValueError, match="expected"):
            Limits(**bad)


def test_calls_without_a_token_count_are_counted() -> None:
    usage = Usage()
    done = Completed(text="", prompt_tokens=3, completion_tokens=None, stop_reason="end")
    usage.add(done)
    assert usage.metrics()["uncounted_calls"] == 1
    assert usage.metrics()["prompt_tokens"] == 3


def test_passages_may_have_several_lines() -> None:
    text = "Doc 1(Title: A) one\nDoc 7 of it\n\nDoc 2(Title: B) two"
    assert each_passage(text) == ["(Title: A) one\nDoc 7 of it", "(Title: B) two"]
    assert each_passage("Nothing found.") == each_passage("") == []


def test_a_dialect_needs_a_model_that_speaks_it() -> None:
    check_dialect("tags", FakeModel())
    check_dialect("chat", FakeModel(continues=False))
    with pytest.raises(BadValueError, match="dialect 'chat'"):
        check_dialect("tags", FakeModel(continues=False))
    with pytest.raises(UnknownNameError, match="Did you mean 'tags'"):
        check_dialect(Direct(dialect="tag").dialect, FakeModel())  # type: ignore[arg-type]
