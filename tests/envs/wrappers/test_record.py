"""Transcripts: written whole, read back, replayed; crashes, forks, tampering."""

from __future__ import annotations

import dataclasses
import errno
import json
import multiprocessing
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.guess_worlds import Guess, guess
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs import fork, read_transcripts, replay
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.core.registration import EnvironmentSpec, register_environment
from turngym.envs.wrappers.record import RecordEpisodes, Transcript, append_line, get_versions

for _name, _class in {"Guess": "Guess", "Faulty": "FaultyGuess", "Rooms": "SessionGuess"}.items():
    register_environment(
        EnvironmentSpec(
            id=f"Test{_name}-v0",
            entry_point=f"helpers.guess_worlds:{_class}",
            summary="test",
            hidden=True,
        )
    )


def recorder(path: Path, env_id: str = "TestGuess-v0", **settings: Any) -> RecordEpisodes:
    return RecordEpisodes(gym.make(env_id, **settings), path / "log" / "episodes.jsonl")


def written(env: RecordEpisodes) -> list[Transcript]:
    assert env.path is not None
    return list(read_transcripts(env.path))


def test_a_finished_episode_is_one_line_that_replays(tmp_path: Path) -> None:
    env = recorder(tmp_path, max_turns=5)
    first, _ = env.reset(seed=4, options={"split": "dev", "task": 3})
    second = env.step("junk")[0]
    env.step(guess(309))
    (transcript,) = written(env)
    assert transcript.env_id == "TestGuess-v0"
    assert transcript.kwargs == {"max_turns": 5}
    assert transcript.reset == {"seed": 4, "options": {"split": "dev", "task": 3}}
    assert (transcript.seed, transcript.task_id, transcript.split) == (4, "dev/3", "dev")
    assert transcript.instructions == Guess.instructions
    assert set(transcript.versions) == {"turngym", "gymnasium", "numpy"}
    assert (transcript.status, transcript.metrics["success"]) == ("solved", 1.0)
    assert [s.observation for s in transcript.steps] == [first, second]
    assert [s.action for s in transcript.steps] == ["junk", guess(309)]
    assert [s.valid for s in transcript.steps] == [False, True]
    assert [s.reward for s in transcript.steps] == [0.0, 1.0]
    assert transcript.steps[1].terms == {"outcome": 1.0}
    assert transcript.observation == "Yes.\n"
    report = replay(transcript)
    assert report.same, report.difference
    assert report.turns == 2
    assert len(env.path.read_text().splitlines()) == 1


ACTIONS = st.lists(
    st.integers(0, 120).map(guess) | st.text(max_size=8) | st.just("\ud800"), min_size=1, max_size=6
)


@given(seed=st.none() | st.integers(0, 2**60), actions=ACTIONS, rooms=st.booleans())
@settings(max_examples=30, deadline=None)
def test_every_episode_replays_also_without_a_seed(
    tmp_path_factory: pytest.TempPathFactory, seed: int | None, actions: list[str], rooms: bool
) -> None:
    env = recorder(
        tmp_path_factory.mktemp("r"), "TestRooms-v0" if rooms else "TestGuess-v0", max_turns=4
    )
    env.reset(seed=seed)
    env.reset()
    for action in actions:
        if any(env.step(action)[2:4]):
            break
    env.close()
    (transcript,) = written(env)
    assert transcript.reset["seed"] is None
    report = replay(transcript)
    assert report.same, report.difference
    assert report.turns == len(transcript.steps)


def test_abandoned_episodes_are_written_and_untouched_ones_not(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    env.reset(seed=1)
    env.reset(seed=2)
    env.step("")
    env.reset(seed=3)
    env.step("")
    env.close()
    env.close()
    assert [(t.seed, t.status, len(t.steps)) for t in written(env)] == [
        (2, "running", 1),
        (3, "running", 1),
    ]
    assert all(replay(t).same for t in written(env))


def test_the_environment_is_closed_where_the_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    env, closed = recorder(tmp_path), []
    monkeypatch.setattr("turngym.envs.wrappers.record.append_line", full)
    monkeypatch.setattr(env.inner, "close", lambda: closed.append(1))
    env.reset(seed=1)
    env.step("")
    with pytest.raises(OSError, match="No space left"):
        env.close()
    assert closed == [1]


def test_an_episode_that_a_refused_reset_leaves_running_is_written_whole(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    env.reset(seed=4, options={"split": "dev", "task": 3})
    env.step(guess(301))
    with pytest.raises(UnknownNameError, match="split"):
        env.reset(options={"split": "dve"})
    env.step(guess(309))
    (transcript,) = written(env)
    assert (transcript.status, len(transcript.steps)) == ("solved", 2)
    assert replay(transcript).same


def test_a_fault_outside_the_world_is_not_replayed(tmp_path: Path) -> None:
    env = recorder(tmp_path, "TestFaulty-v0")
    env.reset(seed=1)
    env.step(guess(100))
    env.step(guess(13))
    (transcript,) = written(env)
    assert transcript.status == "env_error"
    report = replay(transcript)
    assert (report.same, report.turns) == (True, 1)


def test_forks_write_whole_episodes(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    env.reset(seed=4, options={"split": "dev", "task": 3})
    env.step(guess(301))
    twin = fork(env)
    assert isinstance(twin, RecordEpisodes)
    twin.step(guess(309))
    env.step(guess(302))
    env.step(guess(309))
    lengths = [len(t.steps) for t in written(env)]
    assert lengths == [2, 3]
    assert all(replay(t).same for t in written(env))


def test_without_a_file_the_present_episode_can_be_read() -> None:
    env = RecordEpisodes(gym.make("TestGuess-v0"), None)
    first, _ = env.reset(seed=4, options={"split": "dev", "task": 3})
    begun = env.transcript
    assert (begun.steps, begun.observation, begun.status) == ((), first, "running")
    env.step("junk")
    twin = fork(env)
    assert isinstance(twin, RecordEpisodes)
    twin.step(guess(309))
    assert (env.transcript.status, len(env.transcript.steps)) == ("running", 1)
    assert twin.transcript.metrics["success"] == 1.0
    assert twin.chain == twin.transcript.steps[-1].chain != env.chain
    assert replay(twin.transcript).same
    env.reset(seed=5)
    assert env.transcript.steps == ()


def test_recorders_stand_inside_other_wrappers(tmp_path: Path) -> None:
    inner = RecordEpisodes(gym.wrappers.TimeLimit(gym.make("TestGuess-v0"), 2), tmp_path / "a")
    env = gym.wrappers.TransformReward(inner, lambda r: r * 2)
    env.reset(seed=1)
    env.step("")
    assert env.step("")[3]
    (transcript,) = read_transcripts(tmp_path / "a")
    assert len(transcript.steps) == 2
    assert replay(transcript).same


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str, int]] = {
    "reward": ({}, {"reward": 0.5}, "reward", 1),
    "terms": ({}, {"terms": {"luck": 0.0}}, "reward terms", 1),
    "action": ({}, {"action": guess(399)}, "observation", 1),
    "status": ({}, {"status": "solved"}, "status", 1),
    "valid": ({}, {"valid": False}, "valid action", 1),
    "chain": ({}, {"chain": "0" * 16}, "chain", 1),
    "first text": ({}, {"observation": "Hello"}, "observation", 0),
    "seed": ({"seed": 5}, {}, "observation", 0),
    "task": ({"task_id": "dev/4"}, {}, "task digest", 0),
    "no task": ({"task_id": "dev/444"}, {}, "task", 0),
    "rules": ({"instructions": "Win."}, {}, "instructions", 0),
    "start of chain": ({"chain": "0" * 16}, {}, "chain", 0),
    "metrics": ({"metrics": {"success": 1.0}}, {}, "metrics", 2),
    "end": ({"status": "failed"}, {}, "status at the end", 2),
    "last text": ({"observation": "Yes!\n"}, {}, "observation", 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_transcript_is_found_out(tmp_path: Path, change: str) -> None:
    whole, first, what, turn = CHANGES[change]
    env = recorder(tmp_path)
    env.reset(seed=4, options={"split": "dev", "task": 3})
    env.step(guess(301))
    env.step(guess(309))
    (good,) = written(env)
    steps = (dataclasses.replace(good.steps[0], **first), *good.steps[1:])
    report = replay(dataclasses.replace(good, **{"steps": steps, **whole}))
    assert not report.same
    assert report.difference.startswith(f"{what}: recorded ")
    assert report.turn == turn


def test_a_file_replays_up_to_the_first_difference(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    for seed in (1, 2):
        env.reset(seed=seed)
        env.step("")
        env.step("")
    env.close()
    report = replay(str(env.path))
    assert (report.same, report.turns) == (True, 4)
    first, second = written(env)
    bad = tmp_path / "bad"
    for transcript in (first, dataclasses.replace(second, seed=3)):
        append_line(bad, transcript.to_json())
    assert not replay(bad).same
    with pytest.raises(DataError, match="there is no such file"):
        replay(tmp_path / "nowhere")


def test_actions_after_the_end_are_found_out(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    env.reset(seed=4, options={"split": "dev", "task": 3})
    env.step(guess(309))
    (good,) = written(env)
    report = replay(dataclasses.replace(good, steps=good.steps * 2))
    assert not report.same
    assert report.turn in (1, 2)


def test_another_world_is_found_out(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    env.reset(seed=4)
    env.step("")
    env.close()
    (good,) = written(env)
    report = replay(good, gym.make("TestRooms-v0"))
    assert report.difference == "environment: recorded 'TestGuess-v0', played 'TestRooms-v0'"
    with pytest.raises(BadValueError, match="is not a TextEnv"):
        replay(good, gym.make("CartPole-v1"))


@pytest.mark.parametrize("keep", [1, 40, -2])
def test_a_line_cut_off_by_a_crash_is_left_out_and_then_removed(tmp_path: Path, keep: int) -> None:
    env = recorder(tmp_path)
    for seed in (1, 2):
        env.reset(seed=seed)
        env.step("")
    env.reset()
    whole, cut = env.path.read_bytes().splitlines(keepends=True)
    env.path.write_bytes(whole + cut[:keep])
    assert [t.seed for t in written(env)] == [1]
    append_line(env.path, written(env)[0].to_json())
    assert [t.seed for t in written(env)] == [1, 1]
    assert env.path.read_bytes() == whole * 2


@pytest.mark.parametrize("nulls", [0, 3])
def test_a_line_that_lacks_its_break_alone_is_whole(nulls: int, tmp_path: Path) -> None:
    env = recorder(tmp_path)
    for seed in (1, 2):
        env.reset(seed=seed)
        env.step("")
    env.close()
    both = env.path.read_bytes()
    env.path.write_bytes(both[:-1] + b"\0" * nulls)
    assert [t.seed for t in written(env)] == ([1] if nulls else [1, 2])
    append_line(env.path, written(env)[0].to_json())
    assert [t.seed for t in written(env)] == [1, 2, 1]


def test_a_file_that_is_one_cut_line_is_started_anew(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"{" * 200_000)
    assert list(read_transcripts(path)) == []
    append_line(path, "{}")
    assert path.read_bytes() == b"{}\n"


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": 1}\n[2]', "[1, 2]"])
def test_a_whole_last_line_without_its_break_is_kept(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    append_line(path, "{}")
    assert path.read_text() == f"{text}\n{{}}\n"


@pytest.mark.parametrize("text", ["shopping list", '{"a": 1}\nmilk'])
def test_a_file_of_something_else_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(DataError, match="no transcript"):
        append_line(path, "{}")
    assert path.read_text() == text


def good_data(tmp_path: Path) -> dict[str, Any]:
    env = recorder(tmp_path)
    env.reset(seed=4)
    env.step("")
    env.close()
    return json.loads(env.path.read_text())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "not a transcript of format 1 \\(found 2\\)"),
        ({"seed": "4"}, "seed: Input should be a valid integer"),
        ({"steps": {}}, "steps: Input should be a valid tuple"),
        ({"steps": [3]}, "steps.0: Input should be a dictionary"),
        ({"steps": [{}]}, "steps.0.observation: Field required"),
        ({"extra": 1}, "extra: Unexpected keyword argument"),
        ({"metrics": None}, "metrics: Input should be a valid dictionary"),
    ],
)
def test_bad_lines_are_named_by_file_and_line(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = tmp_path / "bad.jsonl"
    data = good_data(tmp_path)
    path.write_text(f"{json.dumps(data)}\n\n{json.dumps({**data, **change})}\n")
    with pytest.raises(DataError, match=rf"bad\.jsonl, line 3: .*{words}"):
        list(read_transcripts(path))


@pytest.mark.parametrize("line", ["not json", "[1]", "3", "{}", "[" * 9999])
def test_other_files_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "x").write_text(line + "\n")
    with pytest.raises(DataError, match="x, line 1"):
        list(read_transcripts(tmp_path / "x"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.jsonl: there is no such file"):
        list(read_transcripts(tmp_path / "nowhere.jsonl"))


def test_paths_among_the_settings_are_written_as_text(tmp_path: Path) -> None:
    env = gym.make("TestGuess-v0")
    assert env.spec is not None
    env.spec.kwargs["data"] = {"train": tmp_path / "q.jsonl"}
    recorder = RecordEpisodes(env, tmp_path / "x")
    recorder.reset(seed=1)
    recorder.step("")
    recorder.close()
    (transcript,) = read_transcripts(tmp_path / "x")
    assert transcript.kwargs == {"data": {"train": str(tmp_path / "q.jsonl")}}


def test_what_cannot_be_replayed_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="has no id"):
        RecordEpisodes(Guess(), tmp_path / "x")
    with pytest.raises(BadValueError, match="is not a TextEnv"):
        RecordEpisodes(gym.make("CartPole-v1"), tmp_path / "x")
    odd = gym.make("TestGuess-v0")
    assert odd.unwrapped.spec is not None
    odd.unwrapped.spec.kwargs["thing"] = object()
    with pytest.raises(BadValueError, match="not plain values"):
        RecordEpisodes(odd, tmp_path / "x")


def append_many(path: Path, word: str) -> None:
    for _ in range(200):
        append_line(path, word * 500)


def test_processes_may_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=append_many, args=(path, word)) for word in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    lines = path.read_text().splitlines()
    assert sorted(lines) == ["a" * 500] * 200 + ["b" * 500] * 200


def test_sessions_opened_out_of_order_are_refused() -> None:
    env = RecordEpisodes(gym.make("Spawn-v0"), None)
    env.reset(seed=0)
    with pytest.raises(BadValueError, match="out of order"):
        env.get_wrapper_attr("open_session")("a")


def test_a_checkout_that_was_never_installed_has_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Entries could not be packed there."""
    known = metadata.version

    def look(name: str) -> str:
        if name == "turngym":
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", look)
    assert get_versions.__wrapped__() == {
        "turngym": "0+source",
        "gymnasium": known("gymnasium"),
        "numpy": known("numpy"),
    }


def test_a_file_system_without_locks_takes_transcripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    append_line(tmp_path / "episodes.jsonl", "{}")
    append_line(tmp_path / "episodes.jsonl", "{}")
    assert (tmp_path / "episodes.jsonl").read_text() == "{}\n{}\n"
