"""Every forgery is refused, each with a reason of its own and the place where it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.board_helpers import (
    edit_episodes,
    edit_manifest,
    fields,
    make_entry,
    refusal_of,
    tiny_suite,
    verdict_of,
)

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.leaderboard.entries_io.files import EntryFiles, write_signature
from turngym.leaderboard.entries_io.packing import make_manifest
from turngym.leaderboard.entries_io.signing import new_key, sign
from turngym.leaderboard.schema.suite import Slot, Suite


def test_a_true_entry_is_accepted_with_its_scores(entry: Path, suite: Suite) -> None:
    verdict = verdict_of(entry, suite)
    assert verdict.accepted
    assert verdict.refusal is None
    assert verdict.replayed == len(verdict.episodes) == 12
    assert verdict.scores is not None
    assert verdict.scores.score.mean == 1.0
    assert verdict.scores.pass_all == (1.0, 1.0)
    assert verdict.signed_by == ""


@pytest.mark.parametrize("name", ["reward", "score", "Success", "metrics", "return_"])
def test_a_stated_result_in_an_episode(entry: Path, suite: Suite, name: str) -> None:
    edit_episodes(entry, lambda episodes: episodes[1].update({name: 1.0}))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "score_field"
    assert "Password-v0.jsonl, line 2" in refusal.message
    assert name in refusal.message


def test_a_stated_result_deep_in_the_description(entry: Path, suite: Suite) -> None:
    edit_manifest(entry, lambda data: data["card"].update(scores={"all": 0.99}))
    assert refusal_of(entry, suite).reason == "score_field"


def test_a_field_that_nobody_knows(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(note="hello"))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "format"
    assert "note" in refusal.message


@pytest.mark.parametrize("turn", [0, 1, 3])
def test_a_changed_observation_hash(entry: Path, suite: Suite, turn: int) -> None:
    true: list[str] = []

    def forge(episodes: list) -> None:
        true.append(episodes[2]["chain"][turn])
        episodes[2]["chain"][turn] = "0123456789abcdef"

    edit_episodes(entry, forge)
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "observation"
    assert refusal.turn == turn
    assert refusal.episode == "Password-v0 task 2 trial 0 run 0"
    assert (refusal.expected, refusal.got) == (true[0], "0123456789abcdef")


def test_a_better_action_than_the_one_played(suite: Suite, tmp_path: Path) -> None:
    """The actions of the expert under the hashes of a bungler."""
    bungled, clean = tmp_path / "bungled", tmp_path / "clean"
    make_entry(suite, bungled, "null")
    make_entry(suite, clean, "expert")
    taken: list[list[str]] = []
    edit_episodes(clean, lambda episodes: taken.extend(e["actions"] for e in episodes))

    def swap(episodes: list) -> None:
        for episode, actions in zip(episodes, taken, strict=True):
            episode["actions"] = actions
            episode["chain"] = episode["chain"][: len(actions) + 1]

    edit_episodes(bungled, swap)
    refusal = refusal_of(bungled, suite)
    assert (refusal.reason, refusal.turn) == ("observation", 1)


def test_a_missing_task(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes.pop(3), "Fork-v0")
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "missing_episode"
    assert refusal.episode == "Fork-v0 task 2 trial 1 run 0"


def test_a_missing_environment(entry: Path, suite: Suite) -> None:
    (entry / "episodes" / "Fork-v0.jsonl").unlink()
    assert refusal_of(entry, suite).reason == "missing_episode"
    edit_manifest(entry, lambda data: data["environments"].pop())
    assert refusal_of(entry, suite).reason == "missing_episode"


def test_a_duplicated_episode(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes.append(episodes[0]))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "duplicate_episode"
    assert refusal.episode == "Password-v0 task 0 trial 0 run 0"


def test_a_duplicate_in_another_file(entry: Path, suite: Suite) -> None:
    text = (entry / "episodes" / "Fork-v0.jsonl").read_text()
    (entry / "episodes" / "more.jsonl").write_text(text)
    assert refusal_of(entry, suite).reason == "duplicate_episode"


def test_another_versions_digest(entry: Path, suite: Suite) -> None:
    other = "f" * 32
    edit_manifest(entry, lambda data: data["environments"][1].update(digest=other))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "environment_digest"
    assert (refusal.expected, refusal.got) == (suite.cells[1].digest, other)


def test_another_versions_task(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[5].update(task_digest="f" * 32))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "task_digest"
    assert refusal.expected == suite.cells[0].digests[2]


def test_a_wrong_seed(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(seed=7))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "seed"
    assert refusal.expected == str(suite.seed_of(Slot("Password-v0", 0, 0)))
    assert refusal.got == "7"


def test_an_action_after_the_end(entry: Path, suite: Suite) -> None:
    def prolong(episodes: list) -> None:
        episodes[0]["actions"].append("once more")
        episodes[0]["chain"].append("0" * 16)

    edit_episodes(entry, prolong)
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "action_after_end"
    assert refusal.turn == 4


def test_a_truncated_episode(entry: Path, suite: Suite) -> None:
    def cut(episodes: list) -> None:
        episodes[0]["actions"].pop()
        episodes[0]["chain"].pop()

    edit_episodes(entry, cut)
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "unfinished"
    assert refusal.turn == 2


def test_a_truncated_episode_that_owns_up_counts_as_zero(entry: Path, suite: Suite) -> None:
    def cut(episodes: list) -> None:
        episodes[0]["actions"].pop()
        episodes[0]["chain"].pop()
        episodes[0].update(error="agent_error", why="the server went away")

    edit_episodes(entry, cut)
    verdict = verdict_of(entry, suite)
    assert verdict.accepted
    assert verdict.scores is not None
    assert verdict.scores.errors == verdict.scores.envs[0].errors == 1
    assert verdict.scores.envs[0].score.mean == pytest.approx(5 / 6)
    first = verdict.episodes[0]
    assert (first.status, first.score, first.success) == ("agent_error", 0.0, False)


def test_an_error_stated_after_a_finished_episode(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(error="env_error"))
    assert refusal_of(entry, suite).reason == "error_after_end"


def test_a_hash_too_few(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0]["chain"].pop())
    refusal = refusal_of(entry, suite)
    assert (refusal.reason, refusal.expected, refusal.got) == ("chain_length", "4", "3")


@pytest.mark.parametrize("change", [{"task": 1}, {"task": 99}, {"trial": 2}])
def test_a_task_outside_the_suite(entry: Path, suite: Suite, change: dict) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(change))
    assert refusal_of(entry, suite).reason == "unknown_task"


def test_a_task_under_anothers_id(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(task_id="test/7"))
    assert refusal_of(entry, suite).reason == "unknown_task"


def test_a_run_that_the_description_does_not_name(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(run=1))
    assert refusal_of(entry, suite).reason == "unknown_run"


def test_an_unknown_env(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(env="Pasword-v0"))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "unknown_environment"
    assert "Did you mean 'Password-v0'" in refusal.message
    edit_manifest(entry, lambda data: data["environments"][0].update(env_id="CartPole-v1"))
    assert refusal_of(entry, suite).got == "CartPole-v1"


def test_a_wrong_suite_version(entry: Path, suite: Suite) -> None:
    edit_manifest(entry, lambda data: data["suite"].update(version=2))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "suite_version"
    assert refusal.got == "2"


def test_an_unknown_suite_and_another_content(entry: Path, suite: Suite) -> None:
    edit_manifest(entry, lambda data: data["suite"].update(name="tinny"))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "unknown_suite"
    assert "--suite-file FILE" in refusal.message  # a frozen suite of one's own
    edit_manifest(entry, lambda data: data["suite"].update(name="tiny", digest="f" * 32))
    assert refusal_of(entry, suite).reason == "suite_digest"


def test_an_entry_of_the_old_version_stays_true_to_it(good: Path, suite: Suite) -> None:
    """A new version has other seeds; entries of the old one are still judged by the old one."""
    new = tiny_suite(version=2)
    assert new.seed_of(Slot("Fork-v0", 0, 0)) != suite.seed_of(Slot("Fork-v0", 0, 0))
    from turngym.leaderboard.verification.verify import verify_folder

    verdict = verify_folder(good, {suite.id: suite, new.id: new})
    assert verdict.accepted


def test_an_action_too_long(entry: Path, suite: Suite) -> None:
    edit_episodes(entry, lambda episodes: episodes[0]["actions"].__setitem__(0, "a" * 100_001))
    refusal = refusal_of(entry, suite)
    assert (refusal.reason, refusal.turn) == ("action_too_long", 1)


class TestSignature:
    @pytest.fixture
    def signed(self, entry: Path, tmp_path: Path) -> Path:
        key = tmp_path / "key"
        new_key(key)
        assert key.stat().st_mode & 0o777 == 0o600
        write_signature(entry, sign(EntryFiles(entry).canonical, key))
        return entry

    def test_a_signed_entry_names_its_key(self, signed: Path, suite: Suite) -> None:
        verdict = verdict_of(signed, suite)
        assert verdict.accepted
        assert len(verdict.signed_by) == 16

    def test_a_tampered_signature(self, signed: Path, suite: Suite) -> None:
        path = signed / "signature.json"
        text = path.read_text()
        at = text.index('"signature": "') + 20
        path.write_text(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :])
        assert refusal_of(signed, suite).reason == "signature"

    def test_a_file_changed_after_signing(self, signed: Path, suite: Suite) -> None:
        edit_manifest(signed, lambda data: data.update(organisation="somebody else"))
        assert refusal_of(signed, suite).reason == "signature"

    def test_a_file_added_after_signing(self, signed: Path, suite: Suite) -> None:
        (signed / "README.md").write_text("Trust me.")
        assert refusal_of(signed, suite).reason == "signature"

    def test_the_key_of_another(self, signed: Path, suite: Suite, tmp_path: Path) -> None:
        import json

        other = new_key(tmp_path / "other")
        path = signed / "signature.json"
        data = json.loads(path.read_text())
        path.write_text(json.dumps(data | {"public_key": other}))
        assert refusal_of(signed, suite).reason == "signature"


@pytest.mark.parametrize(
    "versions",
    [{"\x1b[2J": "1"}, {"numpy": "\x1b[31m"}, {"turngym": "1", "buy": "here"}, {"numpy": ""}],
)
def test_versions_are_of_known_packages(entry: Path, suite: Suite, versions: dict) -> None:
    edit_manifest(entry, lambda data: data.update(versions=versions))
    assert refusal_of(entry, suite).reason == "format"


@pytest.mark.parametrize("field", ["name", "organisation", "licence"])
@pytest.mark.parametrize("blank", ["   ", "\u2003", "\u200b\u202e", "\u3164\u2800", "\u034f"])
def test_what_names_an_entry_can_be_read(entry: Path, suite: Suite, field: str, blank: str) -> None:
    """A row whose name is blank has no link to its page."""
    edit_manifest(entry, lambda data: data.update({field: blank}))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "format"
    assert f"{field}: is blank; expected something that can be read" in refusal.message
    with pytest.raises(BadValueError, match=f"entry: {field} is "):
        make_manifest(suite, **fields(**{field: blank}))


def test_an_environment_that_the_verifier_lacks_is_no_fault_of_the_entry(
    good: Path, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where `--plugin` was forgotten, or the package has a newer version of an id."""

    def unknown(env_id: str) -> None:
        raise UnknownNameError("environment", env_id, ["Mine-v1"], advice="Load it: --plugin FILE")

    monkeypatch.setattr("turngym.leaderboard.suites.digests.find_environment", unknown)
    refusal = refusal_of(good, suite)
    assert refusal.reason == "environment_broken"
    assert "its environment cannot be made here: unknown environment" in refusal.message
    assert "Load it: --plugin FILE" in refusal.message
