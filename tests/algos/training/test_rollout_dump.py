"""RolloutDump rollouts: nothing is lost, texts join, damage and other versions are named."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.forests import forests, plain
from helpers.viewer_runs import Letters, Scores, crawled, credits_of, forked, write_step
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.rendering.token_text import TokenText
from turngym.algos.core.forest import Forest, Group
from turngym.algos.core.forest_io import save_forest
from turngym.algos.core.protocols import Credits
from turngym.algos.training.rollout_dump import first_groups, read_dump, token_pieces, write_dump
from turngym.envs.core.errors import DataError


@pytest.fixture(scope="module")
def byte_text(tiny_model: Path) -> TokenText:
    from transformers import AutoTokenizer

    return TokenText(AutoTokenizer.from_pretrained(tiny_model))


@given(text=st.text(st.characters(codec="utf-8"), max_size=30))
@settings(max_examples=60, deadline=None)
def test_texts_of_tokens_join_to_the_text(byte_text: TokenText, text: str) -> None:
    ids = byte_text.encode(text)
    pieces = token_pieces(byte_text, ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == byte_text.decode(ids)


def test_tokens_that_share_a_character_leave_it_to_the_last(byte_text: TokenText) -> None:
    pieces = token_pieces(byte_text, byte_text.encode("a€b"))
    assert pieces == ["a", "", "", "€", "b"]


def test_half_a_character_at_the_end_is_shown_as_such(byte_text: TokenText) -> None:
    assert token_pieces(byte_text, byte_text.encode("a€")[:-1]) == ["a", "", "\ufffd"]


@given(forest=forests())
@settings(max_examples=25, deadline=None)
def test_what_was_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, forest: Forest
) -> None:
    path = tmp_path_factory.mktemp("kept") / "x.jsonl"
    credits = credits_of(forest)
    annotations = {"values": [np.zeros(forest.n_act(p) + 1, np.float32) for p in forest]}
    kept = first_groups(forest, annotations, credits, len(forest.groups))
    write_dump(path, kept, Scores(), Letters())  # type: ignore[arg-type]
    back = read_dump(path)
    assert plain(back.forest) == plain(forest)
    assert back.forest.paths == forest.paths
    for i, at in enumerate(forest.paths):
        assert back.streams["advantages"][i].tobytes() == credits.advantages[i].tobytes()
        assert back.streams["values"][i].shape == (forest.n_act(at),)
        assert set(back.streams["new_logprobs"][i]) == {-0.5}
    for group, texts in zip(forest.groups, back.pieces, strict=True):
        for tree, rows in zip(group.trees, texts, strict=True):
            for turn, (obs, act) in zip(tree.turns, rows, strict=True):
                assert [ord(c) for c in obs] == [i % 0xD800 for i in turn.obs_ids]
                assert [ord(c) for c in act] == [i % 0xD800 for i in turn.act_ids]


def test_a_dump_that_is_cut_off_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A viewer that looks at a run while it trains advised to delete the file."""
    forest = Forest.of([crawled()])
    kept = first_groups(forest, {}, credits_of(forest), len(forest.groups))
    write_dump(tmp_path / "x.jsonl", kept, Scores(), Letters())  # type: ignore[arg-type]

    def cut(group: Group) -> dict[str, Any]:
        raise OSError(errno.ENOSPC, "No space left on device")

    for place in ("turngym.algos.training.rollout_dump", "turngym.algos.core.forest_io"):
        monkeypatch.setattr(f"{place}.group_to_json", cut)
    with pytest.raises(OSError, match="No space left"):
        write_dump(tmp_path / "x.jsonl", kept, Scores(), Letters())  # type: ignore[arg-type]
    assert plain(read_dump(tmp_path / "x.jsonl").forest) == plain(forest)
    with pytest.raises(OSError, match="No space left"):
        save_forest(tmp_path / "y.jsonl", forest)
    assert not (tmp_path / "y.jsonl").exists()


def test_only_the_first_groups_are_kept_with_their_own_streams() -> None:
    forest = Forest.of([forked("a"), crawled(), forked("b")])
    rows = [np.full(forest.n_act(p), i, np.float32) for i, p in enumerate(forest)]
    extra = {"pair": rows}
    kept = first_groups(forest, {}, Credits(advantages=rows, extra=extra), 2)
    assert [group.task_id for group in kept.forest.groups] == ["task of a", "crawl"]
    n = len(kept.forest.paths)
    assert n == len([p for p in forest.paths if p.group < 2])
    for name in ("advantages", "pair"):
        assert [row[0] for row in kept.streams[name]] == list(range(n))


@pytest.mark.parametrize("name", ["earlier_returns", "of_my_own"])
def test_what_has_no_number_for_each_token_is_left_out(tmp_path: Path, name: str) -> None:
    """Returns of a task's last group, where there was none, made TIGPO's files unreadable."""
    forest = Forest.of([forked("a")])
    lengths = [forest.n_act(p) for p in forest]
    for rows in ([0] * len(lengths), [n + 2 for n in lengths], lengths):
        notes = {name: [np.ones(n, np.float32) for n in rows]}
        kept = first_groups(forest, notes, credits_of(forest), 1)
        write_dump(tmp_path / "x.jsonl", kept, Scores(), Letters())  # type: ignore[arg-type]
        by_token = name == "of_my_own" and rows is lengths
        assert (name in read_dump(tmp_path / "x.jsonl").streams) is by_token


def test_debug_info_comes_back(tmp_path: Path) -> None:
    forest = Forest.of([crawled()])
    back = read_dump(write_step(tmp_path / "x.jsonl", forest, 4))
    assert (back.step, back.about["recipe"]) == (4, "treegrpo")
    turn = back.forest.groups[0].trees[0].turns[0]
    assert turn.debug_info["crawl"]["actions"][0]["found"][0]["title"] == "The oak paper"


@pytest.mark.parametrize(
    ("line", "damage", "message"),
    [
        (0, {"format": 99}, r"line 1: holds 'turngym\.rollouts' of format 99; this version reads"),
        (0, {"kind": "songs"}, "line 1: holds 'songs'"),
        (1, {"pieces": []}, "line 2: no group of a file of rollouts"),
        (1, {"trees": 3}, "line 2: .*trees: .*valid list, got 3"),
        (1, {"paths": []}, "the paths do not fit the trees"),
    ],
)
def test_damage_is_named(tmp_path: Path, line: int, damage: dict[str, Any], message: str) -> None:
    path = write_step(tmp_path / "x.jsonl", Forest.of([forked("a")]), 1)
    lines = path.read_text().splitlines()
    lines[line] = json.dumps({**json.loads(lines[line]), **damage})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=message):
        read_dump(path)


def test_a_cut_line_is_named(tmp_path: Path) -> None:
    path = write_step(tmp_path / "x.jsonl", Forest.of([forked("a"), crawled()]), 1)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"line 3: .*interrupted"):
        read_dump(path)


def test_another_number_of_values_is_named(tmp_path: Path) -> None:
    path = write_step(tmp_path / "x.jsonl", Forest.of([forked("a")]), 1)
    head, body = path.read_text().splitlines()
    row = json.loads(body)
    row["paths"][0]["streams"]["advantages"].pop()
    path.write_text(f"{head}\n{json.dumps(row)}\n")
    with pytest.raises(DataError, match=r"advantages has \(39,\) values, 40 tokens"):
        read_dump(path)
