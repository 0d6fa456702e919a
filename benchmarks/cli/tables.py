"""Scores, boards and suites as tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box, markup
from rich.console import Console
from rich.table import Table

from ...algos.evaluation.evaluate import describe_decoding
from ...algos.evaluation.result import Score, SetScore, gain_of
from ...algos.evaluation.task_pairs import TaskDifference
from ...algos.runs.console import PlainConsole
from ...envs.utils.statistics import Estimate, share_gain
from ...envs.utils.untrusted_text import plain
from ...leaderboard.schema.board import Board, BoardRow, PairedTest, RunTest
from ...leaderboard.schema.result import Scores
from ...leaderboard.schema.suite import Suite

MEASURES = (("em", "EM"), ("f1", "F1"))
"""Measures that stand in the table of scores, and how they are called there."""
COUNTS = ("agent errors", "context full")
"""Counts that stand in the table of scores where they are not all 0."""
FILE_WIDTH = 120
_NAME_WIDTH = 24
"""Characters of a name in a table, where they tell it from the others."""
TABLE_SETS = 4
"""Columns of a table of measures; more sets get more tables."""


def table_console() -> Console:
    """Return where tables are printed; a file or a pipe has no edge to fold them at."""
    console = PlainConsole()
    return console if console.is_terminal else PlainConsole(width=max(console.width, FILE_WIDTH))


def escape(text: str) -> str:
    """Return untrusted text for a terminal: without markup and without control characters.

    ESC and the C1 codes move the cursor, change colours and titles, and can hide what was printed.
    """
    return markup.escape(plain(text))


def say(text: str, *, markup: bool = False) -> None:
    """Print a line, which the terminal wraps.

    Args:
        text: The line, as it is.
        markup: Whether it has styles in brackets; what is not the program's own is escaped then.
    """
    PlainConsole().print(text, highlight=False, markup=markup, soft_wrap=True)


def plain_table(*left: str, right: Sequence[str] = (), **options: Any) -> Table:
    """Return a table without lines: columns of text, then columns of numbers.

    What a narrow terminal has no room for goes on in the next line, so that names stay whole.
    """
    table = Table(**{"box": None, "padding": (0, 2, 0, 0), **options})
    for head in left:
        table.add_column(head, overflow="fold")
    for head in right:
        table.add_column(head, justify="right", overflow="fold")
    return table


def shown(part: Estimate, percent: bool) -> str:
    """Return a mean with its 95 % interval; none where all values are alike, which have none."""
    if part.low95 == part.high95:
        return f"{part.mean:.1%}" if percent else f"{part.mean:.3f} [dim](all alike)[/]"
    if percent:
        return f"{part.mean:.1%} [dim]({100 * part.low95:.1f}–{100 * part.high95:.1f})[/]"
    return f"{part.mean:.3f} [dim]({part.low95:.3f}–{part.high95:.3f})[/]"


def before_after(old: SetScore, new: SetScore) -> Table:
    """Return what training changed on one evaluation set, with 95 % intervals over tasks.

    Each measure has a row for the sampled episodes and, where they were decoded greedily too, one
    for the greedy ones.
    """
    pairs = [("errors", old.errors, new.errors)]
    pairs.append(("context full", old.context_full, new.context_full))
    counts = "".join(f", {head} {was} → {now}" for head, was, now in pairs if was or now)
    title = f"{escape(new.name)} ({new.n} questions{counts})"
    table = plain_table(title, "before", "after", "change")
    if not (old.n and new.n):
        when = "before" if not old.n else "after"
        table.add_row("[bold]success[/]", "", f"no score {when} training: every episode broke", "")
        return table
    ways = [
        (how, was, now)
        for (_, was), (how, now) in zip(_ways(old), _ways(new), strict=False)  # both, or sampled
    ]
    for how, was, now in ways:
        gain = 100 * (now.success.mean - was.success.mean)
        parts = shown(was.success, True), shown(now.success, True)
        table.add_row(f"[bold]success[/]{how}", *parts, f"[bold]{gain:+.1f} pts[/]")
    for how, was, now in ways:
        gain = now.return_.mean - was.return_.mean
        parts = shown(was.return_, False), shown(now.return_, False)
        table.add_row(f"return{how}", *parts, f"{gain:+.3f}")
    for name in sorted(old.metrics.keys() & new.metrics.keys()):
        for how, was, now in ways:
            first, last = was.metrics.get(name), now.metrics.get(name)
            # What never changes (the hops of the questions) says nothing about training.
            if first is not None and last is not None and first != last:
                table.add_row(
                    escape(name) + how, f"{first:.3f}", f"{last:.3f}", f"{last - first:+.3f}"
                )
    return table


def gain_line(old: SetScore, new: SetScore) -> str:
    """Return what training changed, and how much of it is sharpening; empty without a score.

    The intervals are over tasks: another training seed may differ by more.
    """
    if not (old.n and new.n):
        return ""
    gain, was, now = gain_of(old, new), old.greedy, new.greedy
    if gain is None or was is None or now is None or new.temperature == 0:
        points = _points(share_gain(old.success, new.success))
        return f"{new.name}: a gain of {points}; 95 % over tasks, of this one run"
    sampled = _points(share_gain(old.success, new.success))
    greedy = _points(share_gain(was.success, now.success))
    return (
        f"{new.name}: the sampled gain of {sampled} less the greedy gain of {greedy} leaves "
        f"{100 * gain.sharpening:+.1f} of sharpening; 95 % over tasks, of this one run"
    )


def _points(gain: Estimate) -> str:
    mean, low, high = (100 * x for x in (gain.mean, gain.low95, gain.high95))
    return f"{mean:+.1f} points ({low:.1f} to {high:.1f})"


def _decoding(score: SetScore) -> str:
    """Return how a set was decoded, as the end of a row's name."""
    how = describe_decoding(score.temperature)
    return f", {how}" if how else ""


def score_table(rows: Sequence[tuple[str, SetScore]]) -> Table:
    """Return a row per agent and set; exact match and F1 where the environment has them."""
    present = [head for head in COUNTS if any(_count(score, head) for _, score in rows)]
    counts = ["n", "errors", *present]
    measures = [(name, head) for name, head in MEASURES if any(name in s.metrics for _, s in rows)]
    heads = [head for _, head in measures]
    table = plain_table("agent", "set", right=(*counts, *heads))
    table.add_column("success (95 % CI)")
    table.add_column("return (95 % CI)")
    if any(score.temperature is not None for _, score in rows):
        table.columns[1].header = "set, decoding"
    names = short_names(agent for agent, _ in rows)
    for agent, whole in rows:
        for how, score in _ways(whole):
            table.add_row(
                f"[bold]{escape(names[agent])}[/]",
                escape(whole.name) + how,
                *(str(_count(score, head)) for head in counts),
                *(f"{score.metrics[m]:.3f}" if m in score.metrics else "" for m, _ in measures),
                shown(score.success, True) if score.n else "no score",
                shown(score.return_, False) if score.n else "no score",
            )
    return table


def _ways(score: SetScore) -> list[tuple[str, Score]]:
    """Return the scores of a set by way of decoding: sampled, and greedy where there is one."""
    short = f", sampled (T {score.temperature:g})" if score.temperature else _decoding(score)
    ways: list[tuple[str, Score]] = [(short, score)]
    if score.greedy is not None and score.temperature != 0:
        ways.append((", greedy", score.greedy))
    return ways


def difference_table(rows: Sequence[tuple[tuple[str, str, str], TaskDifference]]) -> Table:
    """Return a row per comparison on the same tasks, and one of the return where it says more.

    Args:
        rows: Agent, the other one, and the set with the way of decoding; how they differ.
    """
    lacking = any(found.left_out for _, found in rows)
    counts = ["tasks", *(["no score"] if lacking else []), "gained", "lost"]
    table = plain_table("agent", "less", "set", right=counts)
    table.add_column("difference (95 % CI)")
    table.add_column("p", justify="right")
    for (agent, other, where), found in rows:
        table.add_row(
            f"[bold]{escape(agent)}[/]",
            escape(other),
            escape(where),
            str(found.tasks),
            *([str(found.left_out)] if lacking else []),
            str(found.gained),
            str(found.lost),
            *_success_cells(found),
        )
        if found.return_ is not None:
            blank = [""] * (3 + len(counts))
            interval = found.return_.interval
            ends = "all tasks differ by the same"
            if interval is not None:
                ends = f"{signed(interval.low95, 3)} to {signed(interval.high95, 3)}"
            mean = f"return {signed(found.return_.mean, 3)} [dim]({ends})[/]"
            table.add_row(*blank, mean, f"{found.return_.p_value:.2g}")
    return table


def _success_cells(found: TaskDifference) -> tuple[str, str]:
    if found.success is None:
        return "no task with a score of both", ""
    mean, low, high = (
        signed(100 * x, 1) for x in (found.success.mean, found.success.low95, found.success.high95)
    )
    return f"success {mean} [dim]({low} to {high})[/] points", f"{found.p_value:.2g}"


def signed(number: float, digits: int) -> str:
    """Return a difference with its sign; what rounds to 0 has none."""
    shown = f"{number:+.{digits}f}"
    return shown[1:] if float(shown) == 0 else shown


def metric_table(rows: Sequence[tuple[str, SetScore]]) -> Table:
    """Return the environment's other metrics, a column per agent, set and way of decoding."""
    names = short_names(agent for agent, _ in rows)
    columns = [
        (escape(f"{names[agent]}\n{whole.name}") + how.replace(", ", "\n"), score)
        for agent, whole in rows
        for how, score in _ways(whole)
    ]
    table = plain_table("mean per episode", right=[head for head, _ in columns])
    for name in sorted({m for _, s in columns for m in s.metrics}):
        cells = (f"{s.metrics[name]:.3f}" if name in s.metrics else "" for _, s in columns)
        table.add_row(escape(name), *cells)
    return table


def metric_tables(sets: Sequence[tuple[str, SetScore]]) -> list[Table]:
    """Return :func:`metric_table` of a few sets at a time, as many as fit side by side."""
    starts = range(0, len(sets), TABLE_SETS)
    return [metric_table(sets[start : start + TABLE_SETS]) for start in starts]


def _count(score: Score, head: str) -> int:
    return getattr(score, head.replace(" ", "_"))


def short_names(agents: Iterable[str]) -> dict[str, str]:
    """Return the ends of names by name, long enough to tell them apart.

    The start of a path says little and fills the table, but checkpoints of several runs have ends
    in common.
    """
    known = list(dict.fromkeys(agents))
    found = {}
    for agent in known:
        width = _NAME_WIDTH
        others = [name for name in known if name != agent]
        while width < len(agent) and any(
            _end(name, width) == _end(agent, width) for name in others
        ):
            width += 8
        found[agent] = _end(agent, width)
    return found


def _end(name: str, width: int) -> str:
    return name if len(name) <= width else "…" + name[1 - width :]


def board_table(board: Board) -> Table:
    """Return one board, from the best row down."""
    title = f"{board.board} on {board.suite}"
    if board.track is not None:
        budget = board.track.budget
        title += (
            f", from {board.track.start}: {budget.sampled_tokens} sampled tokens, "
            f"{budget.tool_calls} calls"
        )
    if not board.sealed:
        title += " (open: reproduction and development; ranks by rerun alone)"
    k = len(board.rows[0].pass_at)
    numbers = ("score %", "success %", f"pass@{k} %", f"pass^{k} %", "turns", "errors", "next")
    table = _lined_table(title, ("", "entry", *numbers))
    for row in board.rows:
        table.add_row(*_cells(row), style="dim" if row.reference else "")
    return table


_RANKED_BY = {"season": "sealed season", "rerun": "rerun"}


def _cells(row: BoardRow) -> tuple[str, ...]:
    name = row.name if row.reference else f"{row.name} ({row.organisation})"
    name += f", sent by {row.account}" if row.account else ""
    name += f", {_RANKED_BY[row.ranked_by]}" if row.ranked_by else ""
    name += f", copy of {row.copy_of}" if row.copy_of else ""
    test = row.versus_next
    return (
        "" if row.rank is None else str(row.rank),
        escape(name + (f", reproduces {row.reproduces}" if row.reproduces else "")),
        _interval(row.score),
        _percent(row.success.mean),
        _percent(row.pass_at[-1]),
        _percent(row.pass_all[-1]),
        f"{row.turns:.1f}",
        str(row.errors),
        "" if test is None else f"{100 * test.difference:+.1f}, {_certainty(test)}",
    )


def _certainty(test: PairedTest | RunTest) -> str:
    if isinstance(test, PairedTest):
        return f"p {test.p_value:.2g}"
    return f"p {test.adjusted_p:.2g}, {test.verdict}"


def self_table(board: Board) -> Table | None:
    """Return what each method of a board of algorithms differs by from itself; None for none."""
    rows = [
        (row.name, "its other runs" if test.other == row.entry_id else test.other, test)
        for row in board.rows
        for test in (row.versus_itself, row.versus_reproduced)
        if test is not None
    ]
    if not rows:
        return None
    heads = ("entry", "against", "difference", "p", "runs")
    table = _lined_table("A/A: one method against itself, points over training runs", heads)
    for name, other, test in rows:
        ends = f"{100 * test.low95:+.1f} to {100 * test.high95:+.1f}"
        shown = f"{100 * test.difference:+.1f} ({ends})"
        table.add_row(escape(name), escape(other), shown, f"{test.p_value:.2g}", str(test.runs))
    return table


def scores_table(name: str, scores: Scores) -> Table:
    """Return the scores of one entry per environment."""
    k = len(scores.pass_at)
    numbers = ("score %", "success %", f"pass@{k} %", f"pass^{k} %", "return", "turns", "errors")
    table = _lined_table(name, ("environment", *numbers))
    for env in scores.envs:
        label = env.env if env.metric == "success" else f"{env.env} ({env.metric})"
        table.add_row(
            escape(label),
            _interval(env.score),
            _percent(env.success.mean),
            _percent(env.pass_at[k - 1]),
            _percent(env.pass_all[k - 1]),
            f"{env.return_.mean:.3g}",
            f"{env.turns:.1f}",
            str(env.errors),
        )
    table.add_row(
        "all",
        _interval(scores.score),
        _percent(scores.success.mean),
        _percent(scores.pass_at[-1]),
        _percent(scores.pass_all[-1]),
        "",
        f"{scores.turns:.1f}",
        str(scores.errors),
        style="bold",
    )
    return table


def suites_table(suites: Sequence[Suite]) -> Table:
    """Return the suites and their sizes."""
    table = Table()
    for column in ("suite", "environments", "tasks", "episodes", "digest", "about"):
        table.add_column(column, justify="left" if column in ("suite", "about") else "right")
    for suite in suites:
        table.add_row(
            suite.id,
            str(len(suite.cells)),
            str(sum(len(cell.tasks) for cell in suite.cells)),
            str(sum(1 for _ in suite.slots())),
            suite.digest[:8],
            escape(suite.description),
        )
    return table


def _lined_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        if column in ("entry", "environment"):
            table.add_column(column, justify="left", min_width=16, overflow="fold")
        else:
            table.add_column(column, justify="right")
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(estimate: Estimate) -> str:
    low, high = _percent(estimate.low95), _percent(estimate.high95)
    return f"{_percent(estimate.mean)} [{low}, {high}]".replace("[", r"\[")
