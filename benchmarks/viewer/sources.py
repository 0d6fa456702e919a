"""Read what can be viewed: run directories, rollout dumps, forests and recorded episodes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ...algos.core.forest import Forest
from ...algos.core.forest_io import load_forest
from ...algos.runs.run_dir import read_json, read_metrics
from ...algos.training.rollout_dump import KIND, SUFFIX, Pieces, RolloutDump, read_dump, turn_pieces
from ...envs.core.errors import BadValueError, DataError
from .before_after import BeforeAfter, find_before_after
from .recorded import recorded_episodes

_STEP = re.compile(r"step-(\d+)-train")
_CURVE = ("rollout/return_mean", "rollout/success_frac")


@dataclass(frozen=True, kw_only=True)
class Step:
    """The rollouts of a training step, which are read when they are first asked for.

    Attributes:
        step: The training step.
        groups: Number of its groups.
        read: Reads them.
    """

    step: int
    groups: int
    read: Callable[[], RolloutDump]

    @cached_property
    def dump(self) -> RolloutDump:
        """The rollouts.

        Raises:
            DataError: A line is damaged or of another version; names file and line.
        """
        return self.read()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The content of a page.

    Attributes:
        title: Heading of the page.
        place: Path of the source.
        about: Facts for the heading by name.
        steps: Groups by training step, in order.
        curve: Step, mean return and success of every step with metrics.
        notes: Sentences about missing data.
        before_after: A task before and after training; None where a run was not evaluated twice.
    """

    title: str
    place: str
    about: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    curve: Sequence[tuple[int, float, float]] = ()
    notes: Sequence[str] = ()
    before_after: BeforeAfter | None = None


def read_source(place: str, steps: Collection[int] = (), tokenizer: str | None = None) -> Source:
    """Read a run directory or a file.

    Args:
        place: The folder or file.
        steps: Only these training steps; all when empty.
        tokenizer: Folder of a tokenizer for forests without texts.

    Raises:
        BadValueError: The path does not exist, or contains nothing to view.
        DataError: A file, or its head, is damaged or of another version; names file and line.
    """
    path = Path(place)
    if path.is_dir():
        source = _run(path, steps, tokenizer)
    elif path.is_file():
        source = _file(path, tokenizer)
    else:
        raise BadValueError(
            f"view: {place} does not exist; expected a run directory (of `turngym train`) or a "
            "file of rollouts or episodes (.jsonl)."
        )
    have = [one.step for one in source.steps]
    if missing := sorted(set(steps) - set(have)):
        raise BadValueError(
            f"view: {place} has no rollouts of step {missing[0]}; expected one of "
            f"{', '.join(map(str, have))}."
        )
    chosen = [one for one in source.steps if not steps or one.step in steps]
    return replace(source, steps=chosen)


def _run(root: Path, steps: Collection[int], tokenizer: str | None) -> Source:
    folder = root / "trajectories"
    config_path = root / "config.json"
    if not config_path.exists() and not folder.is_dir():
        raise BadValueError(
            f"view: {root} is not a run directory: it has neither config.json nor trajectories/. "
            "Give the folder that `turngym train` wrote, or a file of episodes."
        )
    config = read_json(config_path) if config_path.exists() else {}
    full = _by_step(folder.glob(f"step-*{SUFFIX}"))
    bare = _by_step(p for p in folder.glob("step-*-train.jsonl"))
    if not full and not bare:
        raise BadValueError(
            f"view: {folder} has no rollouts (step-*{SUFFIX} or step-*-train.jsonl). They are "
            "written at the first step and with every checkpoint; has a step been taken yet?"
        )
    wanted = {s: p for s, p in {**bare, **full}.items() if not steps or s in steps}
    split: Callable[[Any], Pieces] | None = None
    notes = []
    if any(step not in full for step in wanted):
        split = _splitter(root, tokenizer, config)
        notes.append(_without(split is not None))
    files = sorted((wanted or {**bare, **full}).items())
    return Source(
        title=f"{_name(config, 'recipe') or 'run'} on {_name(config, 'env') or root.name}",
        place=str(root),
        about=_about(config),
        steps=[_step(path, step, step in full, split) for step, path in files],
        curve=_curve(root),
        notes=notes,
        before_after=find_before_after(folder),
    )


def _step(path: Path, step: int, full: bool, split: Callable[[Any], Pieces] | None) -> Step:
    """Return a step of a run; ``full`` where its file is one of :func:`write_dump`."""
    with path.open("rb") as file:
        lines = sum(line != b"\n" for line in file)
    if full:
        return Step(step=step, groups=max(1, lines) - 1, read=partial(read_dump, path))
    return Step(step=step, groups=lines, read=partial(_forest, path, step, split))


def _whole(dump: RolloutDump) -> Step:
    return Step(step=dump.step, groups=len(dump.forest.groups), read=lambda: dump)


def _by_step(paths: Any) -> dict[int, Path]:
    found = {}
    for path in sorted(paths):
        match = _STEP.search(path.name)
        if match is not None:
            found[int(match[1])] = path
    return found


def _without(texts: bool) -> str:
    lacking = "advantages" if texts else "token texts and advantages"
    return (
        f"Some steps were written without {lacking}: `turngym train --keep-rollouts N` keeps N "
        "groups with every number per token."
    )


def _curve(root: Path) -> list[tuple[int, float, float]]:
    rows = read_metrics(root / "metrics.jsonl")
    curve = [
        (int(row["step"]), float(row[_CURVE[0]]), float(row.get(_CURVE[1], 0.0)))
        for row in rows
        if _CURVE[0] in row
    ]
    every = max(1, -(-len(curve) // 400))
    return curve[::every]


def _about(config: Mapping[str, Any]) -> dict[str, str]:
    about = {}
    for name in ("split", "seed", "model"):
        if name in config:
            about[name] = str(config[name])
    parts = config.get("recipe", {})
    for name in ("rollout", "credit", "loss"):
        part = parts.get(name) if isinstance(parts, dict) else None
        if isinstance(part, dict) and "type" in part:
            about[name] = str(part["type"])
    if "model" in about:
        about["model"] = Path(about["model"]).name
    return about


def _name(config: Mapping[str, Any], part: str) -> str:
    value = config.get(part)
    return str(value.get("name") or value.get("id") or "") if isinstance(value, dict) else ""


def _file(path: Path, tokenizer: str | None) -> Source:
    head = _first_line(path)
    if "kind" in head and head["kind"] == KIND:
        dump = read_dump(path)
        title = f"{dump.about.get('recipe', 'rollouts')} on {dump.about.get('env', path.name)}"
        return Source(title=title, place=str(path), steps=[_whole(dump)])
    if "trees" in head:
        match = _STEP.search(path.name)
        root = path.parent.parent
        split = _splitter(root, tokenizer, {})
        dump = _forest(path, int(match[1]) if match else 0, split)
        notes = [_without(split is not None)]
        return Source(title=path.name, place=str(path), steps=[_whole(dump)], notes=notes)
    if "env_id" in head or "format" in head:
        dump, notes = recorded_episodes(path)
        title = f"episodes of {dump.about['env']}"
        return Source(title=title, place=str(path), steps=[_whole(dump)], notes=notes)
    raise DataError(
        f"{path}, line 1: neither rollouts nor a forest nor a recorded episode; it has "
        f"{', '.join(map(repr, sorted(head)[:6])) or 'no fields'}. Expected a file that "
        "`turngym train`, `turngym eval --out` or RecordEpisodes wrote."
    )


def _first_line(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        line = file.readline()
    if not line:
        raise DataError(f"{path} is empty; was the recording interrupted?")
    try:
        head = json.loads(line)
        if not isinstance(head, dict):
            raise ValueError(f"a {type(head).__name__}")
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, line 1: not a JSON object ({error}); expected a .jsonl file of rollouts or "
            "recorded episodes."
        ) from error
    return head


def _forest(path: Path, step: int, split: Callable[[Any], Pieces] | None) -> RolloutDump:
    forest: Forest = load_forest(path)
    pieces: list[list[list[Pieces]]] = []
    if split is not None:
        pieces = [[[split(t) for t in tree.turns] for tree in g.trees] for g in forest.groups]
    return RolloutDump(step=step, about={"sampled": True}, forest=forest, pieces=pieces)


def _splitter(
    root: Path, tokenizer: str | None, config: Mapping[str, Any]
) -> Callable[[Any], Pieces] | None:
    """Return a function that splits turns with the run's tokenizer, if there is one."""
    folders = [Path(tokenizer)] if tokenizer else sorted((root / "checkpoints").glob("step-*"))
    if tokenizer and not (folders[0] / "tokenizer.json").exists():
        raise BadValueError(f"view: --tokenizer {tokenizer} has no tokenizer.json.")
    folders += [Path(str(config["model"]))] if "model" in config else []
    for folder in folders:
        if (folder / "tokenizer.json").exists():
            from ...agents.models.loading import load_tokenizer
            from ...agents.rendering.token_text import TokenText

            text = TokenText(load_tokenizer(str(folder)))
            return lambda turn: turn_pieces(text, turn)
    return None
