"""What `turngym eval` says of agents on the same tasks, of this call and of an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from ...algos.evaluation.evaluate import EvalSet
from ...algos.evaluation.score_rows import Played, ScoreRow, read_score_rows, settings_of
from ...algos.evaluation.task_pairs import (
    TaskDifference,
    common_ways,
    compare_outcomes,
    first_other,
    pair_ways,
    why_apart,
)
from ...envs.core.errors import BadValueError, DataError
from .tables import difference_table, escape, short_name

EARLIER = " (earlier)"
"""Stands after the names of agents that the file of --against scored."""
MEANING = (
    "Differences between these agents as they are (of models: between these weights), paired by "
    "task; gained and lost are tasks that only the agent, or only the other one, solved. Intervals "
    "(Student's t; an exact bound where all tasks differ by the same) and p (success: McNemar's "
    "exact test; return: sign flips) are over tasks. Training seeds are no source of error in "
    "them, so they decide nothing about algorithms: see docs/comparisons.md."
)
"""What stands under every table of differences."""
_NOT_GIVEN = object()
MANY = "p are not corrected for the number of comparisons."


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """An evaluation that was made before.

    Attributes:
        file: Its file, as it was typed.
        rows: Its rows that have episodes of the sets that are scored now.
    """

    file: str
    rows: Sequence[ScoreRow]

    def of(self, name: str) -> list[ScoreRow]:
        """Return the rows of a set."""
        return [row for row in self.rows if row.score.name == name]


def check_against(file: str | None, out: Path | None, *, per_task: bool) -> None:
    """Refuse ``--against`` where it could not compare, or would be overwritten.

    Args:
        file: The file; None for none.
        out: The file that scores are written to; None for none.
        per_task: Whether every task of ScienceWorld is a set of its own.

    Raises:
        BadValueError: It goes with ``--per-task``, or is the file of ``--out``.
    """
    if file is None:
        return
    if per_task:
        raise BadValueError(
            "--against: does not go with --per-task, which scores every task on too few variations "
            "to compare agents on it; leave --per-task out."
        )
    if out is not None and out.resolve() == Path(file).expanduser().resolve():
        raise BadValueError(
            f"--out {file}: is the file of --against and would be overwritten; choose another name."
        )


def known_digest(what: EvalSet) -> str | None:
    """Return a hash of a set's tasks, None where their contents have no stable form."""
    try:
        return what.tasks_digest()
    except BadValueError:
        return None


def open_earlier(file: str, sets: Sequence[EvalSet], digests: Sequence[str | None]) -> Earlier:
    """Read the file of ``--against``.

    Args:
        file: The file.
        sets: What is scored now.
        digests: Hash of each set's tasks.

    Raises:
        DataError: No such file, or none of `turngym eval --out` that has episodes.
        BadValueError: It is of another environment, other settings, seeds or tasks.
    """
    where = f"--against {file}"
    rows = read_score_rows(Path(file).expanduser())
    whole = [row for row in rows if row.episodes is not None]
    if not whole:
        raise DataError(
            f"{where}: has means without episodes, as `turngym eval --out` wrote them before it "
            "kept what became of every task; evaluate these agents again with --out."
        )
    found = []
    for what, digest in zip(sets, digests, strict=True):
        env = what.base_env.name
        same = [row for row in whole if row.score.env_id == env]
        if not same:
            others = ", ".join(dict.fromkeys(row.score.env_id for row in whole))
            raise BadValueError(f"{where}: is of {others}; expected an evaluation of {env}.")
        mine = [row for row in same if row.score.name == what.name]
        if not mine:
            names = ", ".join(dict.fromkeys(row.score.name for row in same))
            raise BadValueError(
                f"{where}: scores {names}; expected {what.name}, which is scored now. Choose the "
                "same split with --split, or the same names with --eval-data."
            )
        for row in mine:
            if why := _why_other(row, what, digest):
                raise BadValueError(f"{where}: {row.agent} on {what.name}: {why}.")
        found += mine
    return Earlier(file=file, rows=found)


def _why_other(row: ScoreRow, what: EvalSet, digest: str | None) -> str:
    """Return what an earlier row has otherwise than a set that is scored now; empty if nothing."""
    if row.score.split != what.split:
        return f"split {row.score.split} there and {what.split} here"
    if row.settings is not None and (other := _other_settings(row.settings, settings_of(what))):
        return f"the environment's settings differ: {other}"
    if row.seed is not None and row.seed != what.seed:
        return f"seed {row.seed} there and {what.seed} here; give --seed {row.seed}"
    source, there = what.base_env.source, [e.task for e in row.episodes or ()]
    here = [source.task(what.split, index).id for index in what.tasks]
    if other := first_other(here, there):
        advice = f"; give --n {len(there)}" if len(here) != len(there) else ""
        return f"other tasks: {other}{advice}"
    if None not in (row.tasks_digest, digest) and row.tasks_digest != digest:
        return "other tasks: their ids are the same, and their contents are not"
    return ""


def _other_settings(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    pairs = {n: [side.get(n, _NOT_GIVEN) for side in (there, here)] for n in {*there, *here}}
    differ = [(name, *pair) for name, pair in sorted(pairs.items()) if pair[0] != pair[1]]
    said = [(n, *("not given" if x is _NOT_GIVEN else repr(x) for x in two)) for n, *two in differ]
    return ", ".join(f"{name} is {a} there and {b} here" for name, a, b in said)


def check_comparable(earlier: Earlier, agents: Sequence[Played]) -> None:
    """Refuse an agent of which nothing could be compared with the earlier ones.

    Args:
        earlier: The earlier evaluation.
        agents: How every agent of this call will be scored.

    Raises:
        BadValueError: There is one.
    """
    others = [row.played for row in earlier.rows]
    for mine in agents:
        if not any(common_ways(mine, other) for other in others):
            raise BadValueError(
                f"--against {earlier.file}: nothing in it can be compared with {mine.agent}: "
                f"{why_apart(mine, others[0])}."
            )


def show_differences(
    console: Console, rows: Sequence[ScoreRow], earlier: Earlier | None = None
) -> None:
    """Print how agents differ on the same tasks; nothing for a single agent.

    Args:
        console: Where to.
        rows: Those of whole sets of this call; the others are compared with the first agent's.
        earlier: Every agent is compared with every one of it, too.
    """
    found: list[tuple[tuple[str, str, str], TaskDifference]] = []
    apart: list[str] = []
    for ours, theirs, other in _matched(rows, earlier):
        name = ours.score.name
        if why := why_apart(ours.played, theirs.played):
            apart.append(f"{short_name(ours.agent)} less {other} on {name}: {why}.")
        for ways in pair_ways(ours, theirs):
            label = f"{name}, {_decoding(ways.how)}" if ways.how else name
            names = short_name(ours.agent), other, label
            found.append((names, compare_outcomes(ways.ours, ways.theirs)))
    if not (found or apart):
        return
    console.print()
    if found:
        console.print(difference_table(found))
    if earlier is not None:
        console.print(escape(f"Earlier: {earlier.file}."), highlight=False, style="dim")
    for line in apart:
        console.print(escape(f"Left out: {line}"), highlight=False, style="dim")
    many = f" {MANY}" if len(found) > 1 else ""
    console.print(MEANING + many, highlight=False, style="dim")


def _matched(
    rows: Sequence[ScoreRow], earlier: Earlier | None
) -> Iterator[tuple[ScoreRow, ScoreRow, str]]:
    """Yield who is compared with whom: our row, the other one, and the other one's name."""
    for name in dict.fromkeys(row.score.name for row in rows):
        first, *later = [row for row in rows if row.score.name == name]
        for row in later:
            yield row, first, short_name(first.agent)
        for row, other in product([first, *later], earlier.of(name) if earlier else ()):
            yield row, other, short_name(other.agent) + EARLIER


def _decoding(how: str) -> str:
    """Return a way of decoding for a narrow column."""
    word, _, heat = how.partition(" at temperature ")
    return f"{word} (T {heat})" if heat else word
