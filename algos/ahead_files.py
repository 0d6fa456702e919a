"""Rollouts that were played but not trained on, kept in the run directory over a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from ..agents.engine import EngineStats
from ..envs.errors import DataError
from .forest import Forest
from .forest_io import load_forest, save_forest
from .playing import Played
from .run_dir import read_json, write_json
from .stage import Rollouts


def save_ahead(folder: Path, rollouts: Mapping[int, Rollouts]) -> None:
    """Write these and delete all others; a folder without any is not made.

    Args:
        folder: Theirs alone.
        rollouts: By step.
    """
    if rollouts:
        folder.mkdir(exist_ok=True)
    for old in folder.glob("step-*.json*") if folder.exists() else ():
        if int(old.stem.removeprefix("step-")) not in rollouts:
            old.unlink()
    for step, one in rollouts.items():
        played = one.played
        kept = {id(group) for group in played.kept.groups}
        save_forest(_path(folder, step, "jsonl"), played.all)
        about = {
            "kept": [i for i, group in enumerate(played.all.groups) if id(group) in kept],
            "rounds": played.rounds,
            "filtered": played.filtered,
            "told": one.told,
            "stats": asdict(one.stats),
            "seconds": one.seconds,
        }
        write_json(_path(folder, step, "json"), about)  # last: what has it is whole


def load_ahead(folder: Path, done: int) -> dict[int, Rollouts]:
    """The rollouts of the steps right after ``done``, as far as they are there.

    Raises:
        DataError: A file is damaged; delete it to have its step played again.
    """
    out: dict[int, Rollouts] = {}
    step = done + 1
    while _path(folder, step, "json").exists():
        about = read_json(_path(folder, step, "json"))
        forest = load_forest(_path(folder, step, "jsonl"))
        try:
            kept = Forest.of([forest.groups[i] for i in about["kept"]])
            out[step] = Rollouts(
                played=Played(
                    all=forest,
                    kept=kept if about["filtered"] else forest,
                    rounds=about["rounds"],
                    filtered=about["filtered"],
                ),
                told=about["told"],
                stats=EngineStats(**about["stats"]),
                seconds=about["seconds"],
            )
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                f"{_path(folder, step, 'json')}: no description of rollouts ({error!r}). Delete "
                "it to have the step played again."
            ) from error
        step += 1
    return out


def _path(folder: Path, step: int, kind: str) -> Path:
    return folder / f"step-{step:06d}.{kind}"
