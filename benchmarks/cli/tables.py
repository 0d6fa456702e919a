"""Scores as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...algos.evaluation.result import SetScore
from ...envs.utils.statistics import Estimate

MEASURES = (("em", "EM"), ("f1", "F1"))
"""Measures that stand in the table of scores, and how they are called there."""
COUNTS = ("agent errors", "context full")
"""Counts that stand in the table of scores where they are not all 0."""

FILE_WIDTH = 120


def table_console() -> Console:
    """Where tables are printed; a file or a pipe has no edge to fold them at."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, FILE_WIDTH))


def shown(part: Estimate, percent: bool) -> str:
    """A mean with its 95 % interval."""
    if percent:
        return f"{part.mean:.1%} [dim]({100 * part.low95:.1f}–{100 * part.high95:.1f})[/]"
    return f"{part.mean:.3f} [dim]({part.low95:.3f}–{part.high95:.3f})[/]"


def before_after(old: SetScore, new: SetScore) -> Table:
    """What training changed on one evaluation set; intervals are 95 % bootstrap over episodes."""
    told = [("errors", old.errors, new.errors)]
    told.append(("context full", old.context_full, new.context_full))
    counts = "".join(f", {head} {was} → {now}" for head, was, now in told if was or now)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(f"{escape(new.name)} ({new.n} questions{counts})", no_wrap=True)
    for head in ("before", "after", "change"):
        table.add_column(head, no_wrap=True)
    if not (old.n and new.n):
        when = "before" if not old.n else "after"
        table.add_row("[bold]success[/]", "", f"no score {when} training: every episode broke", "")
        return table
    gain = 100 * (new.success.mean - old.success.mean)
    table.add_row(
        "[bold]success[/]",
        shown(old.success, True),
        shown(new.success, True),
        f"[bold]{gain:+.1f} pts[/]",
    )
    gain = new.return_.mean - old.return_.mean
    table.add_row("return", shown(old.return_, False), shown(new.return_, False), f"{gain:+.3f}")
    for name in sorted(old.metrics.keys() & new.metrics.keys()):
        was, now = old.metrics[name], new.metrics[name]
        # What never changes (the hops of the questions) says nothing about training.
        if was != now:
            table.add_row(name, f"{was:.3f}", f"{now:.3f}", f"{now - was:+.3f}")
    return table


def score_table(rows: Sequence[tuple[str, SetScore]]) -> Table:
    """One row per agent and set; exact match and F1 where the environment measures them."""
    told = [head for head in COUNTS if any(_count(score, head) for _, score in rows)]
    counts = ["n", "errors", *told]
    measures = [(name, head) for name, head in MEASURES if any(name in s.metrics for _, s in rows)]
    heads = [head for _, head in measures]
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("agent", "set", *counts, *heads, "success (95 % CI)", "return (95 % CI)"):
        table.add_column(head, justify="right" if head in (*counts, *heads) else "left")
    for agent, score in rows:
        table.add_row(
            f"[bold]{escape(_short(agent))}[/]",
            escape(score.name),
            *(str(_count(score, head)) for head in counts),
            *(f"{score.metrics[m]:.3f}" if m in score.metrics else "" for m, _ in measures),
            shown(score.success, True) if score.n else "no score",
            shown(score.return_, False) if score.n else "no score",
        )
    return table


def metric_table(rows: Sequence[tuple[str, SetScore]]) -> Table:
    """The environment's other measures, a column per agent and set."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("mean per episode")
    for agent, score in rows:
        table.add_column(escape(f"{_short(agent)}\n{score.name}"), justify="right")
    for name in sorted({m for _, s in rows for m in s.metrics}):
        cells = (f"{s.metrics[name]:.3f}" if name in s.metrics else "" for _, s in rows)
        table.add_row(name, *cells)
    return table


def _count(score: SetScore, head: str) -> int:
    return getattr(score, head.replace(" ", "_"))


def _short(agent: str) -> str:
    """The end of a path: its start says little and fills the table."""
    return agent if len(agent) <= 24 else "…" + agent[-23:]
