"""Forests on disk: nothing is lost, damage is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.forests import forests, plain, tree, turn
from hypothesis import given

from turngym.algos.core.forest import Forest, Group
from turngym.algos.core.forest_io import load_forest, save_forest
from turngym.envs.core.errors import DataError


@given(forests())
def test_what_was_saved_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, forest: Forest
) -> None:
    path = tmp_path_factory.mktemp("io") / "forest.jsonl"
    save_forest(path, forest)
    back = load_forest(path)
    assert plain(back) == plain(forest)
    assert back.paths == forest.paths
    assert len(path.read_bytes().splitlines()) == len(forest.groups)


def test_cut_actions_and_paid_turns_come_back(tmp_path: Path) -> None:
    none = np.zeros(0, np.int64)
    parts = [turn(0.0, n=2, partial=True), turn(1.0, parent=0, obs_ids=none, status="solved")]
    forest = Forest.of([Group("u", "t", [tree(*parts)], pruned_tokens=7, pruned_turns=2)])
    save_forest(tmp_path / "x.jsonl", forest)
    assert plain(load_forest(tmp_path / "x.jsonl")) == plain(forest)


def test_debug_info_comes_back_also_under_its_former_name(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    save_forest(path, Forest.of([Group("u", "t", [tree(turn(1.0, debug_info={"queue": 2}))])]))
    text = path.read_text()
    path.write_text(text + text.replace('"debug_info"', '"account"'))
    found = load_forest(path)
    assert [g.trees[0].turns[0].debug_info for g in found.groups] == [{"queue": 2}] * 2


def test_states_come_back_and_older_files_have_none(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    turns = turn(0.0, state="5e"), turn(1.0, parent=0)
    save_forest(path, Forest.of([Group("u", "t", [tree(*turns)])]))
    assert [t.state for t in load_forest(path).groups[0].trees[0].turns] == ["5e", ""]
    assert path.read_text().count('"state"') == 1  # only where there is one
    path.write_text(path.read_text().replace('"state": "5e"', '"state": 5'))
    with pytest.raises(DataError, match=r"state.*got 5"):
        load_forest(path)


def saved(folder: Path) -> Path:
    path = folder / "forest.jsonl"
    groups = [Group(f"u{i}", "t", [tree(turn(0.1, status="solved"))]) for i in range(3)]
    save_forest(path, Forest.of(groups))
    return path


def test_a_cut_off_line_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataError, match=r"forest\.jsonl, line 3: .*interrupted"):
        load_forest(path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"act_ids": "12"}, "act_ids: .*valid list, got '12'"),
        ({"act_ids": [1.5]}, "act_ids.0: .*valid integer, got 1.5"),
        ({"rewards": [True]}, "rewards.0: .*valid number, got True"),
        ({"logprobs": [0.5, 0.5]}, "logprobs has shape"),
        ({"logprobs": [1e400]}, "not finite"),
        ({"status": "won"}, "status: .*'running'.*, got 'won'"),
        ({"parent": 3}, "parent is 3"),
        ({"parent": "0"}, "parent: .*valid integer, got '0'"),
        ({"valid": 1}, "valid: .*valid boolean, got 1"),
        ({"metrics": [["success", "yes"]]}, "metrics.0.1: .*valid number.*, got 'yes'"),
        ({"version": None}, "version: .*valid integer, got None"),
    ],
)
def test_a_damaged_field_is_named(tmp_path: Path, damage: dict[str, Any], message: str) -> None:
    path = saved(tmp_path)
    lines = path.read_text().splitlines()
    row = json.loads(lines[1])
    row["trees"][0][0] |= damage
    lines[1] = json.dumps(row)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=rf"line 2: .*{message}"):
        load_forest(path)


@pytest.mark.parametrize("line", ["[]", "{}", '{"uid": 3}', "nonsense", "\xff"])
def test_a_foreign_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(line.encode("latin-1") + b"\n")
    with pytest.raises(DataError, match="line 1"):
        load_forest(path)
