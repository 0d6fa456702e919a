"""Every environment as a conversation: same episodes, sums, ends, refusals."""

from __future__ import annotations

import json

import pytest
from helpers.adapter_play import MICRO, SESSIONS, TALKING, a_row, broken_world, played
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.adapters.conversation import (
    Conversation,
    cut_at_stop,
    make_text_env,
    settings_to_json,
    task_rows,
)
from turngym.envs.core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError


@pytest.mark.parametrize("env_id", TALKING)
def test_the_expert_s_episode_is_the_same_through_the_conversation(env_id: str) -> None:
    direct = played(env_id)
    talk = Conversation(env_id, MICRO, where="test")
    assert talk.start(direct.row) == direct.prompt
    for action, observation in zip(direct.actions, direct.observations, strict=True):
        reply = talk.act(action)
        assert reply.text == observation
    assert reply.done
    assert talk.total == pytest.approx(direct.total)
    assert talk.terms == pytest.approx(direct.terms)
    assert (talk.info["status"], talk.info["metrics"]) == (direct.status, direct.metrics)
    assert direct.status == "solved"
    with pytest.raises(EpisodeError, match="over"):
        talk.act("anything")


@pytest.mark.parametrize("env_id", SESSIONS)
def test_a_world_of_sessions_is_refused_with_the_reason(env_id: str) -> None:
    with pytest.raises(BadValueError, match="opens sessions") as caught:
        Conversation(env_id, MICRO, where="the X adapter")
    assert str(caught.value).startswith(f"the X adapter: {env_id}")


def test_rows_fix_episodes_and_are_flat() -> None:
    rows = list(task_rows("SearchQA-v0", 4, split="test", seed=9, settings=MICRO))
    assert [row["seed"] for row in rows] == [9, 10, 11, 12]
    assert len({row["task"] for row in rows}) == 4
    assert all(isinstance(value, (str, int)) for row in rows for value in row.values())
    assert json.loads(rows[0]["settings"]) == MICRO
    talks = [Conversation("SearchQA-v0", MICRO, where="test") for _ in range(2)]
    first, second = (talk.start(rows[2]) for talk in talks)
    assert first == second != talks[0].start(rows[1])
    assert talks[0].info["split"] == "test"


def test_rows_of_a_whole_split() -> None:
    assert len(list(task_rows("Game24-v0", split="dev", settings=MICRO))) == 37
    with pytest.raises(BadValueError, match=r"no end; give a count"):
        next(task_rows("SearchQA-v0", settings=MICRO))
    with pytest.raises(BadValueError, match="holds 37 tasks; 38 were asked for"):
        next(task_rows("Game24-v0", 38, split="dev", settings=MICRO))
    with pytest.raises(UnknownNameError, match="split"):
        next(task_rows("Game24-v0", 3, split="dve", settings=MICRO))
    for count in (-1, 0, 1.5, "2"):
        with pytest.raises(BadValueError, match=r"count is .* at least 1"):
            list(task_rows("Game24-v0", count, settings=MICRO))  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadValueError, match="seed is -1"):
        next(task_rows("Game24-v0", 2, seed=-1, settings=MICRO))


def test_a_row_of_another_world_is_refused() -> None:
    talk = Conversation("Game24-v0", MICRO, where="test")
    with pytest.raises(BadValueError, match="the row's env_id"):
        talk.start(a_row("MathWord-v0"))
    with pytest.raises(BadValueError, match="the row's settings"):
        talk.start({"settings": "{}"})
    talk.start({"settings": json.dumps(MICRO), "seed": 3})


def test_a_broken_world_has_no_score() -> None:
    talk = Conversation("SearchQA-v0", MICRO, where="test")
    talk.start(a_row("SearchQA-v0"))
    broken_world(talk)
    with pytest.raises(EnvFault, match="server is down"):
        talk.act("<search> x </search>")
    assert talk.info["status"] == "env_error"
    with pytest.raises(EpisodeError):
        talk.act("<search> x </search>")


def test_an_episode_keeps_what_it_earned_when_another_cannot_be_started() -> None:
    direct = played("ScienceWorld-v0")
    talk = Conversation("ScienceWorld-v0", MICRO, where="test")
    talk.start(direct.row)
    assert talk.act(direct.actions[0]).reward > 0
    with pytest.raises(UnknownNameError, match="split"):
        talk.start({"split": "dve"})
    for action in direct.actions[1:]:
        talk.act(action)
    assert talk.total == pytest.approx(direct.total)
    assert talk.terms == pytest.approx(direct.terms)


def test_bad_settings_and_calls_out_of_order() -> None:
    with pytest.raises(BadValueError, match="no JSON"):
        Conversation("Game24-v0", "{size", where="test")
    with pytest.raises(BadValueError, match="expected a JSON object"):
        Conversation("Game24-v0", "[1]", where="test")
    for settings in (5, [1], [("size", "micro")]):
        with pytest.raises(BadValueError, match=r"test: settings are .*; expected names"):
            Conversation("Game24-v0", settings, where="test")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadValueError, match="without JSON form"):
        settings_to_json({"data": {1}}, "test")
    with pytest.raises(EpisodeError, match="no episode yet"):
        Conversation("Game24-v0", MICRO, where="test").act("1 + 1 = 2")
    talk = Conversation("Game24-v0", MICRO, where="test")
    talk.start(a_row("Game24-v0"))
    for action in (None, 3, ["1 + 1 = 2"]):
        with pytest.raises(TypeError, match=r"test: action is a .*; expected text"):
            talk.act(action)  # pyright: ignore[reportArgumentType]
    assert talk.act("1 + 1 = 2").info["turn"] == 1
    with pytest.raises(BadValueError, match="not a turngym"):
        make_text_env("CartPole-v1", where="test")


@given(st.text("ab<>/"), st.lists(st.text("ab<>/", min_size=1), max_size=3))
def test_the_cut_ends_with_the_first_stop_string(text: str, stop: list[str]) -> None:
    cut = cut_at_stop(text, tuple(stop))
    assert text.startswith(cut)
    assert cut_at_stop(cut, tuple(stop)) == cut
    if any(mark in text for mark in stop):
        assert any(cut.endswith(mark) for mark in stop)
    else:
        assert cut == text


def test_settings_with_tuples_are_those_that_rows_give_back_as_lists() -> None:
    settings = {"size": "micro", "hops": (1, 2)}
    talk = Conversation("SearchQA-v0", settings, where="here")
    row = json.loads(json.dumps({"env_id": "SearchQA-v0", "settings": settings, "task": 0}))
    assert talk.start(row)
    with pytest.raises(BadValueError, match="make one per environment"):
        talk.start(row | {"settings": {"size": "micro", "hops": [1]}})
