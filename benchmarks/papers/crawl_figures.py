"""Pictures of crawls: recall against actions, and one crawl as a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.markup import escape
from rich.tree import Tree

from ...algos.runs.plots import COLOURS, GREY, INK, as_it_is
from ...envs.core.errors import BadValueError
from ...envs.paper_crawler.scores import SELECTED_ABOVE
from .crawl_trace import CrawlAction, FoundPaper, Trace

ANSWER, SELECTED, OTHER = "#2b8a3e", "#1f6feb", "#c9ced6"
"""Colours of papers: annotated answers, others that the selector takes, the rest."""
MAX_ROWS, MAX_DOTS, LABEL_CHARS = 70, 40, 60


class Row(NamedTuple):
    """One action in the picture: how deep it hangs, and the row of the paper it belongs to."""

    action: CrawlAction
    depth: int
    parent: int | None
    place: int  # of its paper among the parent's new ones


def draw_recall(crawls: Mapping[str, Sequence[Trace]], path: Path, title: str = "") -> None:
    """Draw the mean crawler recall of several agents against the number of actions taken.

    A crawl that has ended keeps its recall. The band is the 95 % interval of the mean over the
    requests; the dot marks the mean number of actions and the mean final recall.

    Args:
        crawls: Finished crawls by agent.
        path: Where the picture goes.
        title: Stands above it.

    Raises:
        BadValueError: An agent without crawls.
    """
    figure, axes = _canvas(8.0, 4.2)
    longest = 1
    for colour, (name, traces) in zip(COLOURS * 9, crawls.items(), strict=False):
        if not traces:
            raise BadValueError(f"{name}: there are no crawls to draw.")
        curves = _aligned([t.recall() for t in traces])
        mean = curves.mean(0)
        half = 1.96 * curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else 0 * mean
        steps = np.arange(len(mean))
        longest = max(longest, len(mean) - 1)
        axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.15, lw=0)
        end = float(np.mean([len(t.actions) for t in traces]))
        axes.plot(steps, mean, color=colour, lw=1.8, label=as_it_is(f"{name} (n = {len(traces)})"))
        axes.plot([end], [mean[-1]], "o", color=colour, ms=5)
    axes.set_xscale("symlog", linthresh=5)
    axes.set_xlim(0, longest)
    ticks = [t for t in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if t <= longest]
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("actions (searches and expansions)", color=INK)
    axes.set_title("Share of the annotated answers found", loc="left", fontsize=10, color=INK)
    axes.grid(axis="y", color="#e6e8eb", lw=0.8)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    _finish(figure, axes, path, title)


def draw_crawl(crawl: Trace, path: Path) -> None:
    """Draw one crawl as a tree: a row per action, its new papers as dots, its paper's row above.

    Rows beyond the first :data:`MAX_ROWS` are counted in a last line.

    Args:
        crawl: What is drawn.
        path: Where the picture goes.

    Raises:
        BadValueError: The crawl has no action.
    """
    rows = tree_rows(crawl)
    if not rows:
        raise BadValueError(f"task {crawl.task_id}: the crawl has no action to draw.")
    shown = rows[:MAX_ROWS]
    figure, axes = _canvas(9.0, 1.5 + 0.24 * len(shown))
    start = 0.42  # where the dots begin, right of the labels
    dots = min(MAX_DOTS, max(len(row.action.new) for row in shown))
    edge = start + 0.012 * dots + 0.17
    for number, row in enumerate(shown):
        indent = 0.012 + 0.03 * row.depth
        if row.parent is not None:
            _link(axes, row, number, start)
        text = _label(row.action)
        axes.text(indent, number, text, va="center", fontsize=7, color=INK, parse_math=False)
        for place, seen in enumerate(row.action.new[:MAX_DOTS]):
            colour, size = _look(seen)
            axes.plot(start + 0.012 * place, number, "o", color=colour, ms=size, zorder=3)
        if len(row.action.new) > MAX_DOTS:
            more = f"+{len(row.action.new) - MAX_DOTS}"
            axes.text(start + 0.012 * MAX_DOTS, number, more, va="center", fontsize=6, color=GREY)
        worth = f"{row.action.relevant} relevant, cost {row.action.cost:g}"
        axes.text(edge, number, worth, va="center", ha="right", fontsize=6.5, color=GREY)
    if len(rows) > len(shown):
        rest = f"and {len(rows) - len(shown)} more actions"
        axes.text(0.012, len(shown), rest, va="center", fontsize=7, color=GREY)
    axes.set_xlim(0, edge)
    axes.set_ylim(len(shown) + 0.6, -1.8)
    axes.set_xticks([])
    axes.set_yticks([])
    for colour, size, name in (
        (ANSWER, 6, "annotated answer"),
        (SELECTED, 5, "selected, not annotated"),
        (OTHER, 4, "other new paper"),
    ):
        axes.plot([], [], "o", color=colour, ms=size, label=name)
    axes.plot([], [], "o", mfc="none", mec=INK, ms=7, mew=0.6, label="sections opened")
    axes.legend(frameon=False, fontsize=7, ncols=4, loc="upper left", borderaxespad=0.0)
    for side in axes.spines.values():
        side.set_visible(False)
    found = sum(seen.answer for action in crawl.actions for seen in action.new)
    summary = f"{found} of {crawl.answers} answers found, {len(crawl.actions)} actions"
    _finish(figure, axes, path, f"{_short(crawl.request, 64)}   ({summary})")


def crawl_tree(crawl: Trace) -> Tree:
    """Return the same tree for a terminal."""
    root = Tree(f"[bold]{escape(crawl.request)}[/]  ({crawl.answers} annotated answers)")
    branches: list[Tree] = []
    for row in tree_rows(crawl):
        good = sum(seen.answer for seen in row.action.new)
        counts = f"{len(row.action.new)} new, {row.action.relevant} relevant, {good} answers"
        style = "green" if row.action.relevant else "bright_black"
        above = root if row.parent is None else branches[row.parent]
        label = f"[{style}]{escape(_label(row.action))}[/]  {counts}, cost {row.action.cost:g}"
        branches.append(above.add(label))
    return root


def tree_rows(crawl: Trace) -> list[Row]:
    """Return the actions in tree order: each before those of the papers that it found."""
    by_paper: dict[str, list[CrawlAction]] = {}
    for action in crawl.actions:
        by_paper.setdefault(action.paper, []).append(action)
    rows: list[Row] = []

    def hang(paper: str, depth: int, parent: int | None, place: int) -> None:
        for action in by_paper.get(paper, ()):
            rows.append(Row(action, depth, parent, place))
            at = len(rows) - 1
            for number, seen in enumerate(action.new):
                hang(seen.id, depth + 1, at, number)

    hang("", 0, None, 0)
    return rows


def _aligned(curves: Sequence[Sequence[float]]) -> np.ndarray:
    """Curves ``[n, longest]``; shorter ones keep their last value."""
    longest = max(map(len, curves))
    return np.array([[*c, *[c[-1]] * (longest - len(c))] for c in curves])


def _link(axes: Any, row: Row, number: int, start: float) -> None:
    """A line from the dot of the paper to the row of its section."""
    assert row.parent is not None
    indent = 0.006 + 0.03 * row.depth
    axes.plot([indent, indent], [row.parent + 0.35, number], color=OTHER, lw=0.7, zorder=1)
    axes.plot([indent, indent + 0.005], [number, number], color=OTHER, lw=0.7, zorder=1)
    if row.place < MAX_DOTS:
        x = start + 0.012 * row.place
        axes.plot(x, row.parent, "o", mfc="none", mec=INK, ms=8, mew=0.6, zorder=4)


def _look(paper: FoundPaper) -> tuple[str, float]:
    if paper.answer:
        return ANSWER, 6
    return (SELECTED, 5) if paper.score > SELECTED_ABOVE else (OTHER, 4)


def _label(action: CrawlAction) -> str:
    return f"{action.kind}: {_short(action.arg or '(unreadable)', LABEL_CHARS)}"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _canvas(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _finish(figure: Any, axes: Any, path: Path, title: str) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK, length=3)
    if title:
        figure.suptitle(
            as_it_is(title), x=0.01, ha="left", fontsize=10, color=INK, fontweight="bold"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
