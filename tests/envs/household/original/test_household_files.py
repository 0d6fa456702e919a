"""Games from files: packed, as downloaded, what is left out, what is no game."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from helpers.household import DATA

from turngym.envs.core.errors import BadValueError, DataError
from turngym.envs.household.engine.game import LIGHT, TASK_TYPES
from turngym.envs.household.original.files import GameFiles, load_game_files, read_game_files

PACK = DATA / "games" / "games.json.gz"


def rows() -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(PACK.read_bytes()))


def test_a_folder_of_packed_games_is_read_in_the_original_s_splits() -> None:
    source = GameFiles(str(DATA / "games"), TASK_TYPES)
    assert source.sizes() == {"valid_seen": 3, "valid_train": 6, "valid_unseen": 3}
    task = source.task("valid_seen", 0)
    assert task.id.startswith("valid_seen/pick_and_place_simple-Book-None-SideTable-329/trial_")
    assert task.dataset == "alfworld"
    assert source.index_of("valid_seen", task.id) == 0
    assert source.index_of("valid_unseen", task.id) is None
    assert source.task("valid_seen", 0).payload is task.payload
    assert sorted(source.left_out.values()) == [
        "marked as not solvable",
        "the original cannot load it: its goal cannot be reached",
    ]
    assert pickle.loads(pickle.dumps(source)).sizes() == source.sizes()


def test_games_as_downloaded_say_their_task_in_the_grammar(tmp_path: Path) -> None:
    for row in rows():
        path = tmp_path / row["path"]
        path.parent.mkdir(parents=True)
        grammar = 'grammar :: """{"task": [ {"rhs": ' + json.dumps(row["task"]) + "}]}"
        plain = {"pddl_problem": row["pddl_problem"], "grammar": grammar}
        path.write_text(json.dumps(plain | {"solvable": row["solvable"]}))
    packed = {game.path: game for game in read_game_files(PACK)}
    single = {game.path: game for game in read_game_files(tmp_path)}
    assert {path: game.task for path, game in single.items()} == {
        path: game.task for path, game in packed.items()
    }
    source = load_game_files(str(tmp_path), (LIGHT,))
    assert source.sizes() == {"valid_train": 1, "valid_unseen": 1}
    assert all("solvable" in reason for reason in source.left_out.values())
    assert load_game_files(str(tmp_path / "valid_unseen"), (LIGHT,)).sizes() == {"valid_unseen": 1}


def test_games_that_the_original_skips_are_skipped(tmp_path: Path) -> None:
    row = rows()[0]
    row["path"] = row["path"].replace("-None-", "-Sliced-")
    (tmp_path / "games.json").write_text(json.dumps([row]))
    with pytest.raises(BadValueError, match="1 were left out"):
        GameFiles(str(tmp_path), TASK_TYPES)


def test_what_is_no_game_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="where no game is"):
        list(read_game_files(tmp_path))
    pack = tmp_path / "games.json"
    pack.write_text("[{}]")
    with pytest.raises(DataError, match="pddl_problem"):
        list(read_game_files(pack))
    pack.write_text(json.dumps([{"path": "a/b-c/d/e", "pddl_problem": ""}]))
    with pytest.raises(DataError, match="no task line"):
        list(read_game_files(pack))
    pack.write_text("[")
    with pytest.raises(DataError, match="cannot be read"):
        list(read_game_files(pack))
    pack.write_text("3")
    with pytest.raises(DataError, match="holds a int; expected a list of games"):
        list(read_game_files(pack))


def test_two_games_of_one_path_are_refused(tmp_path: Path) -> None:
    for name in ("games.json", "copy.json"):
        (tmp_path / name).write_text(json.dumps(rows()))
    with pytest.raises(DataError, match="comes twice; expected every game once"):
        GameFiles(str(tmp_path), TASK_TYPES)
