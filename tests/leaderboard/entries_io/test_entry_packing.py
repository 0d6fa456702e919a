"""Entries from players and from transcripts hold the same episodes, errors included."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.board_helpers import fields, verdict_of

from turngym.agents.scripted import scripted
from turngym.envs.core.errors import BadValueError, ContextFullError, DataError
from turngym.envs.wrappers.record import RecordEpisodes, Transcript, read_transcripts
from turngym.leaderboard.entries_io.files import write_entry
from turngym.leaderboard.entries_io.packing import collect_episodes, make_manifest
from turngym.leaderboard.entries_io.play import AgentStopped, play_suite, storable
from turngym.leaderboard.schema.entry import Episode
from turngym.leaderboard.schema.suite import Suite


def expert(env: Any, seed: int) -> Any:
    return scripted("expert", seed, env)


def transcript_of(suite: Suite, task: int, path: Path, **settings: Any) -> Transcript:
    """The first cell's ``task`` by the expert, with the seed of the suite's first slot."""
    cell, slot = suite.cells[0], next(iter(suite.slots()))
    env = RecordEpisodes(gym.make(cell.env_id, **cell.settings, **settings), path)
    policy = scripted("expert", 0, env.unwrapped)  # type: ignore
    options = {"split": cell.split, "task": task}
    observation, info = env.reset(seed=suite.seed_of(slot), options=options)
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation, info))
    return next(read_transcripts(path))


@pytest.fixture(scope="module")
def transcripts(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> list[Transcript]:
    """Every episode by the expert, and some of other seeds, splits and settings."""
    path = tmp_path_factory.mktemp("runs") / "t.jsonl"
    for cell in suite.cells:
        for settings in ({"size": "full"}, cell.settings):
            env = RecordEpisodes(gym.make(cell.env_id, **settings), path)
            policy = scripted("expert", 0, env.unwrapped)  # type: ignore
            starts = [(suite.seed_of(s), s.task) for s in suite.slots() if s.env == cell.key]
            for seed, task in [*starts, (1, 0)]:
                observation, info = env.reset(seed=seed, options={"split": "test", "task": task})
                while info["status"] == "running":
                    action = policy(env, observation, info)
                    observation, _, _, _, info = env.step(action)
            env.close()
    return list(read_transcripts(path))


def test_transcripts_give_what_the_player_gives(
    suite: Suite, transcripts: list[Transcript], tmp_path: Path
) -> None:
    assert len(transcripts) == 28
    packed = collect_episodes(reversed(transcripts), suite)
    assert packed == list(play_suite(suite, expert))
    write_entry(tmp_path / "e", make_manifest(suite, **fields()), packed, {"README.md": "# Hi\n"})
    verdict = verdict_of(tmp_path / "e", suite)
    assert verdict.accepted
    assert verdict.scores is not None
    assert verdict.scores.score.mean == 1.0


def test_a_missing_episode_is_named_or_counted_as_an_error(
    suite: Suite, transcripts: list[Transcript], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="12 of 12 episodes of tiny-v1"):
        collect_episodes([], suite)
    first = next(iter(suite.slots()))
    some = [t for t in transcripts if t.seed != suite.seed_of(first)]
    with pytest.raises(DataError, match=r"1 of 12 .* Password-v0 task 0 trial 0"):
        collect_episodes(some, suite)
    packed = collect_episodes(some, suite, fill=True)
    assert packed[0].error == "agent_error"
    assert packed[0].actions == ()
    write_entry(tmp_path / "e", make_manifest(suite, **fields()), packed)
    verdict = verdict_of(tmp_path / "e", suite)
    assert verdict.scores is not None
    assert verdict.scores.errors == 1
    assert verdict.scores.score.mean == pytest.approx(11 / 12)


def test_two_whole_episodes_of_one_slot_are_a_choice_not_ours(
    suite: Suite, transcripts: list[Transcript]
) -> None:
    seed = suite.seed_of(next(iter(suite.slots())))
    whole = next(t for t in transcripts if t.seed == seed and t.kwargs["size"] == "micro")
    assert collect_episodes([*transcripts, whole], suite) == collect_episodes(transcripts, suite)

    other_step = dataclasses.replace(whole.steps[0], action="another")
    other = dataclasses.replace(whole, steps=(other_step, *whole.steps[1:]))
    with pytest.raises(DataError, match="two complete episodes"):
        collect_episodes([*transcripts, other], suite)
    given_up = dataclasses.replace(whole, steps=whole.steps[:1], status="running")
    for order in ([given_up, *transcripts], [*transcripts, given_up]):
        assert collect_episodes(order, suite) == collect_episodes(transcripts, suite)
    broken = dataclasses.replace(whole, status="env_error", observation="The tool\nbroke")
    rest = [t for t in transcripts if t is not whole]
    first = collect_episodes([broken, *rest], suite)[0]
    assert (first.error, first.why, len(first.actions)) == ("env_error", "The tool broke", 2)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("a\ud800", "action 2 contains a lone surrogate, which is not UTF-8"),
        ("x" * 100_001, "action 2 has 100001 characters; an entry holds at most 100000"),
    ],
    ids=["surrogate", "long"],
)
def test_an_episode_ends_before_an_action_that_no_entry_may_hold(
    suite: Suite, transcripts: list[Transcript], tmp_path: Path, action: str, why: str
) -> None:
    """The environment goes on after such an action, and the agent may even succeed."""
    slot = next(iter(suite.slots()))
    cell, seed = suite.by_key()[slot.env], suite.seed_of(slot)
    path = tmp_path / "t.jsonl"
    with RecordEpisodes(gym.make(cell.env_id, **cell.settings), path) as recorder:
        recorder.reset(seed=seed, options={"split": cell.split, "task": slot.task})
        for one in ("aa", action, "bb"):
            recorder.step(one)
    (odd,) = read_transcripts(path)
    assert len(odd.steps) == 3
    packed = collect_episodes([odd, *(t for t in transcripts if t.seed != seed)], suite)
    assert (packed[0].actions, packed[0].error, packed[0].why) == (("aa",), "agent_error", why)
    write_entry(tmp_path / "e", make_manifest(suite, **fields()), packed)
    verdict = verdict_of(tmp_path / "e", suite)
    assert verdict.scores is not None
    assert verdict.scores.errors == 1
    assert collect_episodes([odd, *transcripts], suite)[0].error is None


def test_the_render_mode_makes_no_other_episode(
    suite: Suite, transcripts: list[Transcript], tmp_path: Path
) -> None:
    shown = transcript_of(suite, 0, tmp_path / "t.jsonl", render_mode="ansi")
    assert "render_mode" in shown.kwargs
    rest = [t for t in transcripts if t.seed != shown.seed]
    assert collect_episodes([shown, *rest], suite) == collect_episodes(transcripts, suite)


def test_the_seed_of_the_suite_with_another_task_is_refused(
    suite: Suite, transcripts: list[Transcript], tmp_path: Path
) -> None:
    other = transcript_of(suite, 3, tmp_path / "t.jsonl")
    rest = [t for t in transcripts if t.seed != other.seed]
    told = r"Password-v0 task 0 trial 0: .* plays the task 'test/3'; expected 'test/0'\..*'task': 0"
    with pytest.raises(DataError, match=told):
        collect_episodes([other, *rest], suite)
    with pytest.raises(DataError, match=r"other content under the id 'test/0'"):
        collect_episodes([dataclasses.replace(other, task_id="test/0"), *rest], suite)


def test_errors_of_agents_count_as_zero(suite: Suite, tmp_path: Path) -> None:
    stops = iter(
        [AgentStopped("agent_error", "server\x00 gone"), ContextFullError("full"), None] * 4
    )

    def make(env: Any, seed: int) -> Any:
        stop = next(stops)
        policy = expert(env, seed)

        def act(env: Any, observation: str, info: Any) -> str:
            if stop is not None and info["turn"] == 1:
                raise stop
            return policy(env, observation, info)

        return act

    episodes = list(play_suite(suite, make))
    assert [e.error for e in episodes[:3]] == ["agent_error", "context_full", None]
    assert episodes[0].why == "server  gone"
    assert [len(e.actions) for e in episodes[:3]] == [1, 1, 3]
    write_entry(tmp_path / "e", make_manifest(suite, **fields()), episodes)
    verdict = verdict_of(tmp_path / "e", suite)
    assert verdict.accepted
    assert verdict.scores is not None
    assert verdict.scores.errors == 8
    assert verdict.scores.score.mean == pytest.approx(4 / 12)
    assert all(r.metrics == {} for r in verdict.episodes if r.failed)


def test_errors_of_our_own_code_go_up(suite: Suite) -> None:
    def act(env: Any, observation: str, info: Any) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(play_suite(suite, lambda env, seed: act))


def test_what_utf8_cannot_hold_is_replaced_before_it_is_played(suite: Suite) -> None:
    episodes = list(play_suite(suite, lambda _, seed: lambda env, obs, info: "a\ud800"))
    assert {action for episode in episodes for action in episode.actions} == {"a?"}
    assert storable("ü\U0001f600") == "ü\U0001f600"
    assert Episode.model_validate_json(episodes[0].model_dump_json()) == episodes[0]


def test_progress_is_told(suite: Suite) -> None:
    told: list[tuple[int, int]] = []
    list(play_suite(suite, expert, on_progress=lambda done, total: told.append((done, total))))
    assert told == [(n, 12) for n in range(1, 13)]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"date": "2026-02-30"}, "date"),
        ({"board": "best"}, "board"),
        ({"score": 1.0}, "score"),
        ({"board": "algorithms"}, "track"),
    ],
)
def test_descriptions_are_checked_before_anything_is_played(
    suite: Suite, change: dict, field: str
) -> None:
    with pytest.raises(BadValueError, match=field):
        make_manifest(suite, **fields(**change))


def test_an_entry_goes_into_a_new_folder_only(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(BadValueError, match="not empty"):
        write_entry(tmp_path, make_manifest(suite, **fields()), [])
