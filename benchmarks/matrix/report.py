"""The report of a matrix: a self-contained HTML file, and the same in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...algos.recipes import ONE_GRADIENT
from ...envs.core.errors import MissingExtraError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import whole_file
from ...envs.utils.seed_tests import EDGE, MIN_SEEDS, Edges
from .cell import CellResult, Machine
from .comparison import Comparison
from .curves import Unit, budget_lines, env_lines
from .plots import Plot, Tick, colours, plot, short, whiskers
from .ranking import Ranking, collect_costs, compare_by_column, rank_recipes
from .results import Place, Results, Spread

TEMPLATES = Path(__file__).parent / "templates"
PAGES = {"report.html": "report.html.j2", "report.md": "report.md.j2"}
METRICS = {
    "area": ("Area", "the measure of the training rollouts, a mean over all sampled tokens"),
    "against": ("Against", "area minus the baseline's, of an A/A row minus that of its twin"),
    "sampled": ("Sampled", "success of the sampled trials after training, in percent"),
    "greedy": ("Greedy", "success of the greedy trials after training, in percent"),
    "sharpening": ("Sharpening", "gain of sampled success less the gain of greedy success"),
    "normalised": ("Return", "return after training: 0 the random player, 100 the expert"),
}
Places = Mapping[tuple[str, str], Place]
Comparisons = Mapping[tuple[str, str], Comparison]
MATCHED = 0.05
"""Largest difference of tokens or optimiser steps between rows that count as matched."""
SIGNED = ("against", "sharpening")
"""Metrics below and above zero."""
MIDDLING, STRONG = 0.62, 0.8
"""Strengths of a field's colour above which the ink of full colour has the higher contrast: in the
dark colours from the first on, in the light ones from the second."""
MARKS = {"above": " ▲", "below": " ▼", "equivalent": " ="}


@dataclass(frozen=True)
class Shade:
    """A field of the heat map: its number and the strength of its colour (-1 to 1).

    ``empty`` where it has no number.
    """

    place: Place
    text: str
    strength: float
    title: str
    empty: bool = False

    @property
    def ink(self) -> str:
        """The class of its number, so that it stands out from its colour, by light and by dark."""
        strength = abs(self.strength)
        return "strong" if strength > STRONG else "middling" if strength > MIDDLING else ""


@dataclass(frozen=True)
class HeatMap:
    """The matrix by one metric."""

    name: str
    title: str
    note: str
    signed: bool
    rows: list[tuple[str, list[Shade]]]


@dataclass(frozen=True)
class Choice:
    """What the runs that filled a part of a suite chose, as far as they are on record.

    Attributes:
        only: What they named with ``--only``.
        runs: How many they are.
        asked: Number of cells that they chose.
        here: Number of cells with a result.
        of: Number of the suite's cells.
        whole: Whether all that is here was chosen by them. It is not where results were taken over
            from a file whose own choice is not on record.
    """

    only: str
    runs: int
    asked: int
    here: int
    of: int
    whole: bool


@dataclass(frozen=True)
class ColumnTable:
    """A column with all its rows.

    Attributes:
        name: Name of the column.
        measure: Its measure.
        threshold: Threshold of the measure; None for none.
        scaled: Whether the measure has a scale; else no rows are compared.
        start: Success of the starting model, sampled and greedy; None where it is not known.
        zero_shot: The same of the model before its warm start; empty where it has none.
        rows: Fields and comparisons.
        base_steps: Mean optimiser steps of the baseline; None without a run of it.
        base_tokens: Its mean sampled tokens; None likewise.
    """

    name: str
    measure: str
    threshold: float | None
    scaled: bool
    start: tuple[float | None, float | None]
    zero_shot: list[float | None]
    rows: list[tuple[Place, Comparison | None]]
    base_steps: float | None
    base_tokens: float | None


def write_report(
    parts: Sequence[Path],
    folder: Path | None = None,
    baseline: str = "grpo",
    declared: Mapping[str, Edges] | None = None,
) -> list[Path]:
    """Write ``report.html`` and ``report.md``.

    Args:
        parts: Folders or packed files of one suite's matrix.
        folder: Where the report goes; left out: into the matrix's folder.
        baseline: Row that the others are compared with.
        declared: Floors and ceilings of measures by column, where they are known.

    Raises:
        DataError: No matrix, no result, or a damaged file.
        MissingExtraError: Jinja2 is not installed.
    """
    content = gather(Results.read(*parts, declared=declared), baseline)
    root = parts[0] if folder is None else folder
    make_folder(root)
    return write_pages(root, PAGES, [TEMPLATES], FILTERS, content)


def write_pages(
    folder: Path,
    pages: Mapping[str, str],
    templates: Sequence[Path],
    filters: Mapping[str, Callable[..., Any]],
    content: Mapping[str, Any],
) -> list[Path]:
    """Render templates into files, with escaping in HTML.

    Args:
        folder: Folder of the pages, which are replaced atomically.
        pages: Template of each page.
        templates: Folders of the templates.
        filters: Filters of the templates.
        content: Variables of the templates.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as fault:
        raise MissingExtraError("the report", "jinja2", "train", fault) from fault
    written = []
    for name, template in pages.items():
        environment = Environment(
            loader=FileSystemLoader(templates),
            autoescape=".html" in template,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        environment.filters |= filters
        path = folder / name
        text = environment.get_template(template).render(**content)
        with whole_file(path, alone=False) as file:  # a matrix is looked at while it is filled
            file.write(text)
        written.append(path)
    return written


def gather(results: Results, baseline: str) -> dict[str, Any]:
    """Collect the variables of the templates."""
    places = {(r, e): results.place(r, e) for r in results.recipes for e in results.envs}
    found = compare_by_column(results, baseline)
    ranks = rank_recipes(results, baseline)
    base = next((rank for rank in ranks.ranks if rank.recipe == ranks.baseline), None)
    palette = colours([rank.recipe for rank in ranks.ranks], ranks.baseline)
    if not palette:
        first = [row for row in results.recipes if row not in results.suite.yardsticks]
        palette = colours(first, baseline if baseline in first else "")
    rows, axis = whiskers([*ranks.ranks, *ranks.yardsticks])
    return {
        "suite": results.suite,
        "digest": results.suite.digest,
        "baseline": baseline,
        "min_seeds": MIN_SEEDS,
        "edge": EDGE,
        "recipes": results.recipes,
        "envs": results.envs,
        "yardsticks": results.suite.yardsticks,
        "same": same_gradient(results),
        "counts": _counts(results),
        "seeds": results.seeds,
        "choice": describe_choice(results),
        "maps": [_heat_map(results, places, found, name) for name in METRICS],
        "ranking": ranks,
        "whiskers": rows,
        "whisker_axis": axis,
        "zero": _zero(axis),
        "palette": palette,
        "budget_plots": _budget_plots(results, ranks, palette),
        "plots": _env_plots(results, palette),
        "tables": [
            _column_table(results, places, found, column, baseline) for column in results.envs
        ],
        "base_steps": None if base is None else base.optimizer_steps,
        "base_tokens": None if base is None else base.tokens,
        "comparisons": sum(
            comparison.test is not None and pair[0] not in results.suite.yardsticks
            for pair, comparison in found.items()
        ),
        "costs": collect_costs(results),
        "searches": list(results.searches.values()),
        "columns": [(e, results.columns.get(e), results.return_scale(e)) for e in results.envs],
        "problems": list_problems(results),
        "machines": _machines(results),
        "trials": range(1, results.suite.trials + 1),
    }


def same_gradient(results: Results) -> dict[str, tuple[str, str]]:
    """Return the rows whose recipe's update is another one's on the same rollouts.

    Each with the name of the other recipe, and why. Known of the settings for small models alone.
    """
    if not results.suite.small:
        return {}
    rows = [results.suite.recipe(label) for label in results.recipes]
    known = {row.label: ONE_GRADIENT[row.name] for row in rows if row.name in ONE_GRADIENT}
    return {label: (same.equals, same.why) for label, same in known.items()}


def percent(value: float | None, places: int = 1) -> str:
    """Format a share as a percentage, None as a dash."""
    return "–" if value is None else f"{100 * value:.{places}f}"


def interval(value: Spread | None, places: int = 1) -> str:
    """Format a share with its interval over seeds as percentages; one seed has no interval."""
    if value is None:
        return "–"
    if value.low95 is None or value.high95 is None:
        return f"{100 * value.mean:.{places}f}"
    low, high = (100 * end for end in (value.low95, value.high95))
    return f"{100 * value.mean:.{places}f} ({low:.{places}f} to {high:.{places}f})"


def area(place: Place) -> str:
    """Format a field's area likewise, of a measure without a scale in its own unit."""
    value = place.area
    if place.scaled or value is None:
        return interval(value)
    if value.low95 is None or value.high95 is None:
        return short(value.mean)
    return f"{short(value.mean)} ({short(value.low95)} to {short(value.high95)})"


def signed(value: float | None, places: int = 1) -> str:
    """Format a difference of shares in points, with its sign."""
    return "–" if value is None else f"{100 * value:+.{places}f}"


def difference(found: Comparison | None) -> str:
    """Format a comparison's difference with its interval, in points."""
    if found is None or found.test is None:
        return "–"
    test = found.test
    return f"{signed(test.difference)} ({signed(test.low95)} to {signed(test.high95)})"


def threshold_tokens(place: Place) -> str:
    """Format the tokens to the threshold: the mean of the seeds that reached it, and how many."""
    reached = [tokens for tokens in place.to_threshold if tokens is not None]
    if not reached:
        return "–"
    mean = short(sum(reached) / len(reached))
    every = len(reached) == len(place.to_threshold)
    return mean if every else f"{mean} ({len(reached)} of {len(place.to_threshold)})"


def count_steps(steps: float, base: float | None) -> str:
    """Format optimiser steps, marked where they differ from the baseline's by more than 5 %.

    Args:
        steps: Mean optimiser steps of a run.
        base: The baseline's; None without one.
    """
    return f"{steps:.0f}{_mark_unmatched(steps, base)}"


def count_tokens(tokens: float, base: float | None) -> str:
    """Format sampled tokens, marked likewise: a run that another limit ended has fewer.

    Args:
        tokens: Mean tokens of a run.
        base: The baseline's; None without one.
    """
    return short(tokens) + _mark_unmatched(tokens, base)


def _mark_unmatched(spent: float, base: float | None) -> str:
    return " ≠" if base is not None and abs(spent - base) > MATCHED * base else ""


def format_p(value: float | None) -> str:
    """Format a p-value; a dash where there is none."""
    if value is None:
        return "–"
    return "< .001" if value < 0.001 else f"{value:.3f}"


def split_words(column: str) -> list[str]:
    """Split an environment's name where a line may break."""
    return re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^A-Z]+|[A-Z]+", column.removesuffix("-v0"))


def one_line(text: str) -> str:
    """Escape a text for a field of a Markdown table."""
    escaped = " ".join(text.split()).replace("\\", "\\\\")
    for sign in "|<>`*_[]":
        escaped = escaped.replace(sign, "\\" + sign)
    return escaped


def _heat_map(results: Results, places: Places, found: Comparisons, name: str) -> HeatMap:
    values = {pair: _value(name, place, found.get(pair)) for pair, place in places.items()}
    asked = {(c.recipe, c.column) for c in results.suite.cells if c.key in results.chosen}
    largest = max((abs(value) for value in values.values() if value is not None), default=0.0)
    scale = largest if name in SIGNED and largest > 0 else 1.0
    rows = [
        (
            recipe,
            [
                _shade(
                    name,
                    places[recipe, column],
                    found.get((recipe, column)),
                    scale,
                    asked=(recipe, column) in asked,
                )
                for column in results.envs
            ],
        )
        for recipe in results.recipes
    ]
    title, note = METRICS[name]
    return HeatMap(name=name, title=title, note=note, signed=name in SIGNED, rows=rows)


def _value(name: str, place: Place, found: Comparison | None) -> float | None:
    if name == "against":
        return None if found is None else found.difference
    value = getattr(place, name)
    return None if value is None else value.mean


def _shade(
    name: str, place: Place, found: Comparison | None, scale: float, *, asked: bool
) -> Shade:
    value = _value(name, place, found)
    where = f"{place.recipe} on {place.column}"
    if value is None:
        word = {"finished": "–", "refused": "n/a", "waiting": ""}.get(place.state, place.state)
        words = {"finished": "no value", "waiting": "not computed" if asked else "not asked for"}
        why = place.reason or words.get(place.state, place.state)
        return Shade(place, word, 0.0, f"{where}: {why}", empty=True)
    strength = round(max(-1.0, min(1.0, value / scale)), 3)
    if name == "against":
        assert found is not None
        text = f"{100 * value:+.0f}{MARKS.get(found.verdict, '')}"
        summary = f"{difference(found)} against {found.other}: {found.verdict}, {found.why}"
        return Shade(place, text, strength, f"{where}: {summary}")
    if name == "area" and not place.scaled:
        return Shade(place, short(value), 0.0, f"{where}: {area(place)}, no scale")
    spread = getattr(place, name)
    text = f"{100 * value:+.0f}" if name in SIGNED else f"{100 * value:.0f}"
    label = f"{where}: {interval(spread)}, {spread.n} seed{'s' if spread.n != 1 else ''}"
    return Shade(place, text, strength if name in SIGNED else max(0.0, strength), label)


def _column_table(
    results: Results, places: Places, found: Comparisons, column: str, baseline: str
) -> ColumnTable:
    about, start = results.suite.column(column), results.columns.get(column)
    tries = (start.tries, start.greedy_tries) if start is not None else (None, None)
    before = [None if t is None else t.mean("solved") for t in tries]
    bare = (start.zero_shot_tries, start.zero_shot_greedy_tries) if start is not None else ()
    zero_shot = [t.mean("solved") for t in bare if t is not None]
    rows = [(places[row, column], found.get((row, column))) for row in results.recipes]
    base = places.get((baseline, column))
    base = base if base is not None and base.runs else None
    return ColumnTable(
        name=column,
        measure=about.measure,
        threshold=about.threshold,
        scaled=results.measure_scale(column) is not None,
        start=(before[0], before[1]),
        zero_shot=zero_shot,
        rows=[(place, comparison) for place, comparison in rows if place.runs],
        base_steps=None if base is None else base.mean_used("optimizer_steps"),
        base_tokens=None if base is None else base.mean_used("tokens"),
    )


def _budget_plots(results: Results, ranks: Ranking, palette: dict[str, int]) -> list[Plot]:
    recipes = [rank.recipe for rank in ranks.ranks]
    made = []
    columns = ranks.envs[0] if len(ranks.envs) == 1 else f"mean of {len(ranks.envs)} columns"
    units: tuple[tuple[Unit, str], ...] = (("tokens", "Sampled tokens"), ("calls", "Tool calls"))
    for unit, title in units:
        lines = budget_lines(results, recipes, ranks.envs, unit)
        if lines:
            labels = (title, columns, "share of the budget, %")
            made.append(plot(lines, palette, 100.0, labels, percent=True))
    return made


def _env_plots(results: Results, palette: dict[str, int]) -> list[Plot]:
    made = []
    for column in results.envs:
        lines = env_lines(results, column, "tokens")
        if lines:
            about = results.suite.column(column)
            labels = (column, about.measure, "sampled tokens")
            scaled = results.measure_scale(column) is not None
            made.append(plot(lines, palette, about.limits.tokens, labels, percent=scaled))
    return made


def _counts(results: Results) -> list[tuple[str, int]]:
    states = Counter(result.state for result in results.cells.values())
    missing = len(results.chosen - results.cells.keys())
    order = ("finished", "refused", "failed", "interrupted")
    found = [(state, states[state]) for state in order if states[state]]
    return [*found, ("not computed", missing)] if missing else found


def describe_choice(results: Results) -> Choice | None:
    """Return what a part of the suite was chosen by, and how large it is; None for all of it."""
    of = len(results.suite.cells)
    if len(results.chosen) == of:
        return None
    asked = results.files.asked_for()
    return Choice(
        only="; and ".join(", ".join(words) for words in results.files.only),
        runs=len(results.files.only),
        asked=len(asked),
        here=len(results.cells),
        of=of,
        whole=results.cells.keys() <= asked,
    )


def list_problems(results: Results) -> list[tuple[CellResult, int]]:
    """Return the cells without a score, one for all seeds of a field with the same reason."""
    seen: dict[tuple[str, str, str, str], tuple[CellResult, int]] = {}
    for result in results.cells.values():
        if result.state == "finished":
            continue
        key = (result.cell.recipe, result.cell.column, result.state, result.reason)
        first, count = seen.get(key, (result, 0))
        seen[key] = (first, count + 1)
    order = {"failed": 0, "interrupted": 1, "refused": 2}
    return sorted(seen.values(), key=lambda item: order.get(item[0].state, 3))


def _machines(results: Results) -> list[tuple[Machine, int]]:
    """Return the different machines with the number of cells that each computed."""
    found: dict[str, tuple[Machine, int]] = {}
    for result in results.cells.values():
        if result.machine is not None:
            key = result.machine.model_copy(update={"started": ""}).model_dump_json()
            first, count = found.get(key, (result.machine, 0))
            found[key] = (first, count + 1)
    return list(found.values())


def _zero(axis: Sequence[Tick]) -> float | None:
    """Return the position of 0 on the axis of the whiskers, or None."""
    return next((tick.at for tick in axis if float(tick.label) == 0), None)


FILTERS = {
    "signed": signed,
    "difference": difference,
    "threshold": threshold_tokens,
    "short": short,
    "percent": percent,
    "interval": interval,
    "area": area,
    "cell": one_line,
    "words": split_words,
    "p": format_p,
    "count_steps": count_steps,
    "count_tokens": count_tokens,
}
