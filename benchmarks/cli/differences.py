"""What `turngym eval` says of agents on the same tasks, of this call and of an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import Console

from ...algos.evaluation.evaluate import EvalSet
from ...algos.evaluation.score_rows import Played, ScoreRow, read_score_rows
from ...algos.evaluation.set_content import SetContent, say_other_settings
from ...algos.evaluation.task_pairs import (
    TaskDifference,
    common_ways,
    compare_outcomes,
    first_other,
    pair_ways,
    why_apart,
)
from ...envs.core.errors import BadValueError, DataError
from .tables import (
    difference_table,
    escape,
    metric_tables,
    score_table,
    short_names,
    table_console,
)

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


def open_earlier(file: str, sets: Sequence[EvalSet], contents: Sequence[SetContent]) -> Earlier:
    """Read the file of ``--against``.

    Args:
        file: The file.
        sets: What is scored now.
        contents: What each of them is scored on.

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
    for what, content in zip(sets, contents, strict=True):
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
            if why := _why_other(row, what, content):
                raise BadValueError(f"{where}: {row.agent} on {what.name}: {why}.")
        found += mine
    return Earlier(file=file, rows=found)


def _why_other(row: ScoreRow, what: EvalSet, content: SetContent) -> str:
    """Return what an earlier row has otherwise than a set that is scored now; empty if nothing."""
    if row.score.split != what.split:
        return f"split {row.score.split} there and {what.split} here"
    files = row.files or {}, content.files
    if row.settings is not None and (
        other := say_other_settings(row.settings, content.settings, content.defaults, files)
    ):
        return f"the environment's settings differ: {other}"
    if row.seed is not None and row.seed != what.seed:
        return f"seed {row.seed} there and {what.seed} here; give --seed {row.seed}"
    source, there = what.base_env.source, [e.task for e in row.episodes or ()]
    here = [source.task(what.split, index).id for index in what.tasks]
    if other := first_other(here, there):
        advice = f"; give --n {len(there)}" if len(here) != len(there) else ""
        return f"other tasks: {other}{advice}"
    digests = row.tasks_digest, content.tasks_digest
    if None not in digests and digests[0] != digests[1]:
        return "other tasks: their ids are the same, and their contents are not"
    return ""


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


def show_scores(rows: Sequence[ScoreRow], earlier: Earlier | None) -> None:
    """Print the scores, the measures of whole sets, and how agents differ on the same tasks."""
    console = table_console()
    console.print(score_table([(row.agent, row.score) for row in rows]))
    whole_sets = [row for row in rows if row.episodes is not None]
    for metrics in metric_tables([(row.agent, row.score) for row in whole_sets]):
        console.print()
        console.print(metrics)
    show_differences(console, whole_sets, earlier)


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
    short = short_names(row.agent for row in (*rows, *(earlier.rows if earlier else ())))
    for ours, theirs, when in _matched(rows, earlier):
        name, mine, other = ours.score.name, short[ours.agent], short[theirs.agent] + when
        if why := why_apart(ours.played, theirs.played):
            apart.append(f"{mine} less {other} on {name}: {why}.")
        for ways in pair_ways(ours, theirs):
            label = f"{name}, {_decoding(ways.how)}" if ways.how else name
            found.append(((mine, other, label), compare_outcomes(ways.ours, ways.theirs)))
    if not (found or apart):
        return
    console.print()
    if found:
        console.print(difference_table(found))
    if earlier is not None:
        console.print(escape(f"Earlier: {earlier.file}."), highlight=False, style="dim")
        for line in say_contradictions(rows, earlier):
            console.print(escape(line), highlight=False)
    for line in apart:
        console.print(escape(f"Left out: {line}"), highlight=False, style="dim")
    many = f" {MANY}" if len(found) > 1 else ""
    console.print(MEANING + many, highlight=False, style="dim")


def say_contradictions(rows: Sequence[ScoreRow], earlier: Earlier) -> list[str]:
    """Return a line on every scripted agent that has other outcomes here than it had there.

    It asks no model, so on the same tasks with the same seed it does the same, unless the
    environment or the agent is not what it was.
    """
    lines = []
    for ours in rows:
        scripted = (ours.score.temperature, ours.max_tokens, ours.model) == (None, None, None)
        for theirs in earlier.of(ours.score.name) if scripted else ():
            pairs = zip(ours.episodes or (), theirs.episodes or (), strict=True)
            differ = sum((a.success, a.return_) != (b.success, b.return_) for a, b in pairs)
            if theirs.agent == ours.agent and ours.played == theirs.played and differ:
                lines.append(
                    f"Contradiction: {ours.agent} on {ours.score.name} has other outcomes than it "
                    f"had there, of {differ} of {len(ours.episodes or ())} tasks, with the same "
                    "tasks, settings and seed. The environment or the agent has changed since, and "
                    "the other differences may be due to that: evaluate those agents again."
                )
    return lines


def _matched(
    rows: Sequence[ScoreRow], earlier: Earlier | None
) -> Iterator[tuple[ScoreRow, ScoreRow, str]]:
    """Yield who is compared with whom: our row, the other one, and what its name ends in."""
    for name in dict.fromkeys(row.score.name for row in rows):
        first, *later = [row for row in rows if row.score.name == name]
        for row in later:
            yield row, first, ""
        for row, other in product([first, *later], earlier.of(name) if earlier else ()):
            yield row, other, EARLIER


def _decoding(how: str) -> str:
    """Return a way of decoding for a narrow column."""
    word, _, heat = how.partition(" at temperature ")
    return f"{word} (T {heat})" if heat else word
