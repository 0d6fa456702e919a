"""The report of a matrix: a self-contained HTML file, and the same in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...envs.core.errors import MissingExtraError
from ...envs.utils.statistics import Estimate
from .cell import CellResult, Machine
from .curves import Unit, budget_lines, env_lines
from .plots import Plot, Tick, colours, plot, short, whiskers
from .ranking import Ranking, collect_costs, rank_recipes
from .results import Place, Results

TEMPLATES = Path(__file__).parent / "templates"
PAGES = {"report.html": "report.html.j2", "report.md": "report.md.j2"}
METRICS = (
    ("normalised", "Normalised return", "0 the random player, 100 the scripted expert"),
    ("success", "Success", "share of solved episodes, in percent"),
    ("gain", "Gain", "normalised return after training minus before"),
)


@dataclass(frozen=True)
class Shade:
    """A field of the heat map: its number and the strength of its colour (-1 to 1)."""

    place: Place
    text: str
    strength: float
    title: str


@dataclass(frozen=True)
class HeatMap:
    """The matrix by one metric."""

    name: str
    title: str
    note: str
    rows: list[tuple[str, list[Shade]]]


def write_report(folder: Path | str, baseline: str = "grpo") -> list[Path]:
    """Write ``report.html`` and ``report.md`` into the folder of a matrix.

    Args:
        folder: The folder.
        baseline: Recipe that the others are compared with.

    Raises:
        DataError: No matrix, no result, or a damaged file.
        MissingExtraError: Jinja2 is not installed.
    """
    root = Path(folder)
    content = gather(Results.read(root), baseline)
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
        raise MissingExtraError("the report", "jinja2", "train") from fault
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
        part = path.with_name(name + ".part")
        text = environment.get_template(template).render(**content)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
        written.append(path)
    return written


def gather(results: Results, baseline: str) -> dict[str, Any]:
    """Collect the variables of the templates."""
    places = {(r, e): results.place(r, e) for r in results.recipes for e in results.envs}
    ranks = rank_recipes(results, baseline)
    palette = colours(ranks.ranks, ranks.baseline)
    rows, axis = whiskers(ranks.ranks)
    return {
        "suite": results.suite,
        "digest": results.suite.digest,
        "recipes": results.recipes,
        "envs": results.envs,
        "counts": _counts(results),
        "maps": [_heat_map(results, places, *measure) for measure in METRICS],
        "ranking": ranks,
        "whiskers": rows,
        "whisker_axis": axis,
        "zero": _zero(axis),
        "palette": palette,
        "budget_plots": _budget_plots(results, ranks, palette),
        "plots": _env_plots(results, palette),
        "costs": collect_costs(results),
        "columns": [(e, results.columns.get(e), results.scale(e)) for e in results.envs],
        "problems": _problems(results),
        "machines": _machines(results),
        "trials": range(1, results.suite.trials + 1),
    }


def percent(value: float | None, places: int = 1) -> str:
    """Format a share as a percentage, None as a dash."""
    return "–" if value is None else f"{100 * value:.{places}f}"


def interval(value: Estimate | None, places: int = 1) -> str:
    """Format a share with its interval as percentages."""
    if value is None:
        return "–"
    low, high = (100 * end for end in (value.low95, value.high95))
    return f"{100 * value.mean:.{places}f} ({low:.{places}f} to {high:.{places}f})"


def split_words(column: str) -> list[str]:
    """Split an environment's name where a line may break."""
    return re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^A-Z]+|[A-Z]+", column.removesuffix("-v0"))


def one_line(text: str) -> str:
    """Escape a text for a field of a Markdown table."""
    escaped = " ".join(text.split()).replace("\\", "\\\\")
    for sign in "|<>`*_[]":
        escaped = escaped.replace(sign, "\\" + sign)
    return escaped


def _heat_map(
    results: Results, places: dict[tuple[str, str], Place], name: str, title: str, note: str
) -> HeatMap:
    scale = max(
        (abs(place.gain) for place in places.values() if place.gain is not None), default=0.0
    )
    rows = [
        (recipe, [_shade(places[recipe, column], name, scale) for column in results.envs])
        for recipe in results.recipes
    ]
    return HeatMap(name=name, title=title, note=note, rows=rows)


def _shade(place: Place, name: str, scale: float) -> Shade:
    value = getattr(place, name)
    where = f"{place.recipe} on {place.column}"
    if value is None:
        word = {"finished": "–", "refused": "n/a", "waiting": ""}.get(place.state, place.state)
        why = place.reason or ("no scale" if place.state == "finished" else place.state)
        return Shade(place, word, 0.0, f"{where}: {why}")
    if isinstance(value, Estimate):
        label = f"{where}: {interval(value)}, {len(place.runs)} seeds"
        strength = max(0.0, min(1.0, value.mean))
        return Shade(place, f"{100 * value.mean:.0f}", round(strength, 3), label)
    strength = value / scale if scale > 0 else 0.0
    return Shade(place, f"{100 * value:+.0f}", round(strength, 3), f"{where}: {100 * value:+.1f}")


def _budget_plots(results: Results, ranks: Ranking, palette: dict[str, int]) -> list[Plot]:
    recipes = [rank.recipe for rank in ranks.ranks]
    made = []
    units: tuple[tuple[Unit, str], ...] = (("tokens", "Sampled tokens"), ("calls", "Tool calls"))
    for unit, title in units:
        lines = budget_lines(results, recipes, ranks.envs, unit)
        if lines:
            labels = (title, f"mean of {len(ranks.envs)} environments", "share of the budget, %")
            made.append(plot(lines, palette, 100.0, labels, percent=True))
    return made


def _env_plots(results: Results, palette: dict[str, int]) -> list[Plot]:
    made = []
    for column in results.envs:
        lines = env_lines(results, column, "tokens")
        if lines:
            limit = results.suite.column(column).limits.tokens
            labels = (column, f"{len(lines)} recipes", "sampled tokens")
            made.append(plot(lines, palette, limit, labels))
    return made


def _counts(results: Results) -> list[tuple[str, int]]:
    states = Counter(result.state for result in results.cells.values())
    missing = len(results.suite.cells) - len(results.cells)
    order = ("finished", "refused", "failed", "interrupted")
    found = [(state, states[state]) for state in order if states[state]]
    return [*found, ("not computed", missing)] if missing else found


def _problems(results: Results) -> list[tuple[CellResult, int]]:
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
    "short": short,
    "percent": percent,
    "interval": interval,
    "cell": one_line,
    "words": split_words,
}
