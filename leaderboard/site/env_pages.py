"""The pages of the environments: description, entries and tasks."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...envs.core.env import TextEnv
from ...envs.core.registration import find_environment
from ..ranking.board import reference_of
from ..ranking.index import Indexed
from ..ranking.scoring import task_scores
from ..schema.entry import ReferenceName
from ..schema.result import EnvScores
from ..schema.suite import Cell, Suite
from ..suites.digests import make_cell_env
from .rendering import Folder, Renderer

_HEADING = re.compile(r"^([A-Z][A-Za-z ]*):[ \t]*\n(?=[ \t]+\S)", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=``\w+``: |[-*] )")
_CODE = re.compile(r"``(.+?)``|:\w+:`(.+?)`", re.DOTALL)


@dataclass(frozen=True)
class Piece:
    """A part of a paragraph: text, or code."""

    text: str
    code: bool = False


@dataclass(frozen=True)
class Part:
    """A section of a docstring.

    Attributes:
        heading: Its title; empty for what stands before the first.
        paragraphs: The pieces of each paragraph.
    """

    heading: str
    paragraphs: tuple[tuple[Piece, ...], ...]


@dataclass(frozen=True)
class EnvRow:
    """One entry on one environment."""

    entry_id: str
    name: str
    reference: ReferenceName | None
    scores: EnvScores


@dataclass(frozen=True)
class TaskRow:
    """A task: id, first observation, and mean scores of the entries.

    Attributes:
        task: Index.
        task_id: Id.
        opening: First observation of the first trial.
        references: Mean score of the reference rows by name.
        others: Mean score over all other entries; None if there are none.
    """

    task: int
    task_id: str
    opening: str
    references: dict[str, float]
    others: float | None


def write_environments(
    renderer: Renderer, folder: Folder, index: Sequence[Indexed], suites: Mapping[str, Suite]
) -> None:
    """Write one page per environment of every played suite, and the list of them."""
    played: dict[str, list[Indexed]] = {}
    for one in index:
        played.setdefault(one.manifest.suite.id, []).append(one)
    listed: list[tuple[Suite, list[tuple[Cell, str]]]] = []
    for suite_id, entries in sorted(played.items()):
        if suite_id not in suites:
            continue
        suite = suites[suite_id]
        cells = [(cell, find_environment(cell.env_id).summary) for cell in suite.cells]
        listed.append((suite, cells))
        for cell in suite.cells:
            _write_env(renderer, folder, suite, cell, entries)
    text = renderer.text("environments.html", depth=1, here="environments", suites=listed)
    folder.write("environments/index.html", text)


def _write_env(
    renderer: Renderer, folder: Folder, suite: Suite, cell: Cell, entries: Sequence[Indexed]
) -> None:
    env = make_cell_env(cell)
    rows = _rows(cell, entries)
    text = renderer.text(
        "environment.html",
        depth=2,
        here="environments",
        suite=suite,
        cell=cell,
        summary=find_environment(cell.env_id).summary,
        about=about_parts(env),
        rules=env.instructions,
        rows=rows,
        tasks=_tasks(suite, cell, env, entries),
        trials=min((len(row.scores.pass_at) for row in rows), default=1),
    )
    folder.write(f"environments/{suite.id}/{cell.key}.html", text)
    env.close()


def about_parts(env: TextEnv[Any, Any]) -> list[Part]:
    """Return the environment's docstring up to its settings."""
    text = (inspect.getdoc(type(env)) or "").partition("\nArgs:")[0]
    first, *rest = _HEADING.split(text)
    parts = [("", first), *zip(rest[::2], rest[1::2], strict=True)]
    return [Part(heading, _paragraphs(body)) for heading, body in parts if body.strip()]


def _paragraphs(body: str) -> tuple[tuple[Piece, ...], ...]:
    found = _PARAGRAPH.split(textwrap.dedent(body).strip())
    return tuple(_pieces(" ".join(paragraph.split())) for paragraph in found)


def _pieces(paragraph: str) -> tuple[Piece, ...]:
    """Split a paragraph at its code: double backquotes, and Sphinx's roles."""
    pieces, end = [], 0
    for found in _CODE.finditer(paragraph):
        pieces.append(Piece(paragraph[end : found.start()]))
        role = found[2] or ""
        name = role.rpartition(".")[2] if role.startswith("~") else role
        pieces.append(Piece(found[1] or name, code=True))
        end = found.end()
    return tuple(piece for piece in (*pieces, Piece(paragraph[end:])) if piece.text)


def _rows(cell: Cell, entries: Sequence[Indexed]) -> list[EnvRow]:
    rows = []
    for one in entries:
        scores = next(env for env in one.scores.envs if env.env == cell.key)
        rows.append(EnvRow(one.entry_id, one.manifest.name, reference_of(one), scores))
    return sorted(rows, key=lambda row: (-row.scores.score.mean, row.entry_id))


def _tasks(
    suite: Suite, cell: Cell, env: TextEnv[Any, Any], entries: Sequence[Indexed]
) -> list[TaskRow]:
    means = [(reference_of(one), task_scores(one.verdict.episodes)) for one in entries]
    rows = []
    slots = {slot.task: slot for slot in reversed(list(suite.slots())) if slot.env == cell.key}
    for task in cell.tasks:
        options = {"split": cell.split, "task": task}
        opening, info = env.reset(seed=suite.seed_of(slots[task]), options=options)
        key = cell.key, task
        others = [mean[key] for name, mean in means if name is None]
        rows.append(
            TaskRow(
                task=task,
                task_id=info["task_id"],
                opening=opening,
                references={name: mean[key] for name, mean in means if name is not None},
                others=sum(others) / len(others) if others else None,
            )
        )
    return rows
