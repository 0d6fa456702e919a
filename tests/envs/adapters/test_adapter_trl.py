"""TRL: the facade that its trainer sees, by TRL's own way of reading it."""

from __future__ import annotations

import inspect
import math
import pickle
from typing import Any

import pytest
from helpers.adapter_play import (
    MICRO,
    SEARCH,
    SESSIONS,
    TALKING,
    a_row,
    as_call,
    broken_world,
    played,
)

from turngym.envs.adapters import trl_environment
from turngym.envs.adapters.openai_tools import tool_schemas
from turngym.envs.adapters.tool_view import NOTE
from turngym.envs.adapters.trl_environment import (
    EnvironmentFactory,
    episode_info,
    term_reward,
    trl_rows,
)
from turngym.envs.core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError


def tools_of(environment: Any) -> list[str]:
    """The names that GRPOTrainer takes for tools."""
    names = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    return [n for n, _ in names if n not in ("reset", "get_reward") and not n.startswith("_")]


@pytest.mark.parametrize("env_id", TALKING)
def test_an_expert_s_episode_through_the_facade(env_id: str) -> None:
    direct = played(env_id)
    environment = EnvironmentFactory(env_id, MICRO)()
    tools = environment._game.action_tools
    assert sorted(tools_of(environment)) == sorted(tools)
    for _ in range(2):  # instances are pooled: a reset starts wholly anew
        prompt = environment.reset(prompt=[{"role": "user", "content": ""}], **direct.row)
        assert prompt.replace(NOTE, "", 1) == direct.prompt
        assert environment.get_reward() == 0
        for action, observation in zip(direct.actions, direct.observations, strict=True):
            name, arguments = as_call(action, tools)
            assert getattr(environment, name)(**arguments) == observation
        assert environment.get_reward() == pytest.approx(direct.total)
        assert episode_info(environment)["metrics"]["success"] == 1
    with pytest.raises(EpisodeError, match="the episode is over"):
        getattr(environment, name)(**arguments)


@pytest.mark.parametrize(
    ("env_id", "settings"), [("SearchQA-v0", MICRO), ("Retail-v0", {}), ("ScienceWorld-v0", MICRO)]
)
def test_transformers_reads_the_same_schemas_from_the_methods(
    env_id: str, settings: dict[str, Any]
) -> None:
    reading = pytest.importorskip("transformers.utils")
    environment = EnvironmentFactory(env_id, settings)()
    for tool in tool_schemas(env_id, settings):
        expected = tool["function"]
        read = reading.get_json_schema(getattr(environment, expected["name"]))["function"]
        assert read["description"] == expected["description"]
        assert read["parameters"]["properties"] == expected["parameters"]["properties"]
        required = read["parameters"].get("required", [])
        assert sorted(required) == sorted(expected["parameters"].get("required", []))


def test_factories_and_environments_pickle_and_share_a_class() -> None:
    factory = EnvironmentFactory("SearchQA-v0", SEARCH)
    environment = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(factory))()))
    assert type(environment) is type(factory())
    assert type(environment).__name__ == "SearchQA_v0"
    row = a_row("SearchQA-v0", settings=SEARCH)
    assert environment.reset(**row) == factory().reset(**row)


def test_rewards_by_terms() -> None:
    factory = EnvironmentFactory("SearchQA-v0", {**SEARCH, "format_score": 0.2}, own_reward=False)
    environment = factory()
    assert not hasattr(environment, "get_reward")
    assert tools_of(environment) == ["answer", "search"]
    row = {k: v for k, v in a_row("SearchQA-v0", settings=SEARCH).items() if k != "settings"}
    environment.reset(**row)
    environment.answer(answer="nobody at all")
    other = factory()
    other.reset(**row)
    reward = term_reward("outcome")
    assert reward(environments=[environment, other], prompts=[], completions=[]) == [0.0, 0.0]
    assert reward.__name__ == "outcome_term"
    assert math.isfinite(term_reward("format")(environments=[environment])[0] or 0.0)


def test_a_broken_world_gives_no_reward_until_the_next_reset() -> None:
    environment = EnvironmentFactory("SearchQA-v0", SEARCH)()
    row = a_row("SearchQA-v0", settings=SEARCH)
    environment.reset(**row)
    play = environment._game.talk.env.play
    broken_world(environment._game.talk)
    with pytest.raises(EnvFault, match="server is down"):
        environment.search(query="x")
    assert environment.get_reward() is None
    assert term_reward("outcome")([environment]) == [None]
    with pytest.raises(UnknownNameError, match="split"):
        environment.reset(split="dve")
    assert environment.get_reward() is None
    environment._game.talk.env.play = play
    environment.reset(**row)
    assert environment.get_reward() == 0.0


def test_a_programming_error_is_no_score_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = EnvironmentFactory("SearchQA-v0", SEARCH)()
    row = a_row("SearchQA-v0", settings=SEARCH)
    environment.reset(**row)

    def play(episode: Any, action: str) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(environment._game.talk.env, "play", play)
    with pytest.raises(ZeroDivisionError):
        environment.search(query="x")
    monkeypatch.undo()
    with pytest.raises(EpisodeError, match="left halfway"):  # TRL tells it to the model as well
        environment.answer(answer="x")
    for score in (environment.get_reward, lambda: term_reward("outcome")([environment])):
        with pytest.raises(ZeroDivisionError, match="a bug"):
            score()
    environment.reset(**row)
    assert environment.get_reward() == 0.0


def test_rows_hold_a_prompt_and_the_task() -> None:
    rows = trl_rows("SearchQA-v0", 3, prompt="Be brief. ", split="dev", settings=SEARCH)
    assert rows[0]["prompt"] == [{"role": "user", "content": "Be brief. "}]
    assert rows[0]["prompt"][0] is not rows[1]["prompt"][0]
    assert {tuple(row) for row in rows} == {
        ("prompt", "env_id", "settings", "split", "task", "seed")
    }


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    for env_id in SESSIONS:
        with pytest.raises(BadValueError, match="the TRL adapter keeps one append-only"):
            EnvironmentFactory(env_id, MICRO)()
    with pytest.raises(BadValueError, match="JSON"):
        EnvironmentFactory("SearchQA-v0", {"retriever": object()})()
    monkeypatch.setattr(trl_environment, "_RESERVED", ("reset", "answer"))
    trl_environment._make_facade.cache_clear()
    with pytest.raises(BadValueError, match="'answer', a name that TRL reserves"):
        EnvironmentFactory("MathWord-v0", MICRO)()
