"""JSON of strangers and the files of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helpers.board_helpers import edit_episodes, refusal_of
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.leaderboard.schema.limits import ReadLimits
from turngym.leaderboard.schema.result import Refused
from turngym.leaderboard.schema.suite import Suite
from turngym.leaderboard.schema.untrusted_json import STATED, parse_untrusted_json
from turngym.leaderboard.verification.verify import verify_folder

LIMITS = ReadLimits(line_bytes=20_000, json_depth=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text().filter(lambda k: k.lower() not in STATED), inner, max_size=3)
    ),
    max_leaves=6,
)


def depth(value: object) -> int:
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 0


@settings(max_examples=50)
@given(VALUES)
def test_reads_what_json_reads_up_to_its_depth(value: object) -> None:
    data = json.dumps(value).encode()
    if depth(value) > LIMITS.json_depth:
        with pytest.raises(Refused, match="deeper"):
            parse_untrusted_json(data, "x", LIMITS)
    else:
        assert parse_untrusted_json(data, "x", LIMITS) == value


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b"[" * 7 + b"]" * 7, "deeper"),
        (b"[" * 19_000, "deeper"),
        (b'{"a":' * 2000, "deeper"),
        (b'"' + b"a" * 20_000 + b'"', "bytes"),
        (b'{"a": }', "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"", "not JSON"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b'{"a": {"rewards": []}}', "states a result"),
    ],
)
def test_refuses(data: bytes, what: str) -> None:
    with pytest.raises(Refused, match=what):
        parse_untrusted_json(data, "entry.json", LIMITS)


def test_brackets_in_texts_are_no_depth() -> None:
    text = '[[[[[[[[[[{{{{{{{{{{ \\" '
    assert parse_untrusted_json(json.dumps([text]).encode(), "x", LIMITS) == [text]


def test_a_line_that_never_ends(entry: Path, suite: Suite) -> None:
    with (entry / "episodes" / "Fork-v0.jsonl").open("a") as file:
        file.write('{"env": "' + "a" * 3000)
    limits = ReadLimits(line_bytes=2000)
    verdict = verify_folder(entry, {suite.id: suite}, limits)
    assert verdict.refusal is not None
    assert verdict.refusal.reason == "format"
    assert "Fork-v0.jsonl, line 7" in verdict.refusal.message


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1.5},
        {"seed": -1},
        {"seed": 2**128},
        {"task": "0"},
        {"task": True},
        {"actions": "abc"},
        {"actions": [1]},
        {"chain": []},
        {"chain": ["XYZ"]},
        {"error": "bored"},
        {"why": "a\nb"},
    ],
)
def test_fields_of_the_wrong_kind(entry: Path, suite: Suite, change: dict) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(change))
    refusal = refusal_of(entry, suite)
    assert refusal.reason == "format"
    assert next(iter(change)) in refusal.message


def test_lone_surrogates_are_no_text(entry: Path, suite: Suite) -> None:
    path = entry / "episodes" / "Fork-v0.jsonl"
    lines = path.read_text().splitlines()
    episode = json.loads(lines[0])
    episode["actions"][0] = "\ud800"
    path.write_text("\n".join([json.dumps(episode), *lines[1:]]) + "\n")
    assert refusal_of(entry, suite).reason == "format"


@pytest.mark.parametrize("name", ["model.pkl", "weights.bin", "run.sh", ".env", "a b.md"])
def test_files_that_an_entry_may_not_hold(entry: Path, suite: Suite, name: str) -> None:
    (entry / name).write_text("harmless")
    assert refusal_of(entry, suite).reason == "archive"


def test_links_in_a_folder(entry: Path, suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (entry / "README.md").symlink_to(tmp_path / "secret.md")
    assert "link" in refusal_of(entry, suite).message
    (entry / "README.md").unlink()
    (entry / "more").symlink_to(tmp_path)
    assert "link" in refusal_of(entry, suite).message


def test_a_pipe_in_a_folder_does_not_hang(entry: Path, suite: Suite) -> None:
    os.mkfifo(entry / "episodes" / "more.jsonl")
    assert "device" in refusal_of(entry, suite).message


@pytest.mark.parametrize("name", ["entry.json", "episodes/Fork-v0.jsonl"])
def test_a_missing_file(entry: Path, suite: Suite, name: str) -> None:
    (entry / name).unlink()
    assert refusal_of(entry, suite).reason in ("format", "missing_episode")


def test_markup_stays_text(entry: Path, suite: Suite) -> None:
    """Texts of strangers come through unchanged; whoever shows them escapes them."""
    from helpers.board_helpers import edit_manifest, verdict_of

    edit_manifest(entry, lambda data: data.update(name="<script>alert(1)</script> [red]"))
    verdict = verdict_of(entry, suite)
    assert verdict.accepted
    assert verdict.manifest is not None
    assert verdict.manifest.name == "<script>alert(1)</script> [red]"


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", 'https://a"onload=', "ftp://a"]
)
def test_links_that_run_something(entry: Path, suite: Suite, link: str) -> None:
    from helpers.board_helpers import edit_manifest

    edit_manifest(entry, lambda data: data["card"].update(links=[link]))
    assert refusal_of(entry, suite).reason == "format"
