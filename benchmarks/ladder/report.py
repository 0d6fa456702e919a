"""The ladder's page: scores, tables by family, curves over sizes and radars, from files alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...envs.core.errors import BadValueError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.seed_tests import EDGE, SeedTest
from ...envs.utils.statistics import Estimate
from ..matrix.comparison import Comparison
from ..matrix.plots import Plot
from ..matrix.report import FILTERS, count_steps, one_line, percent, write_pages
from ..matrix.report import TEMPLATES as MATRIX_TEMPLATES
from ..matrix.results import Place, Results
from ..matrix.suite import Suite
from .catalogue import SUITES
from .families import Size
from .oracle.forecast import MIN_EFFECT, Oracle
from .plots import draw_radars, family_palette, size_curves
from .scoring import FamilyScore, Rung, least_seeds, score_ladder
from .suites import is_ladder

TEMPLATES = Path(__file__).parent / "templates"
PAGES = {"ladder.html": "ladder.html.j2", "ladder.md": "ladder.md.j2"}
ORACLE_FILE = "oracle.json"


def write_ladder(
    parts: Sequence[Path], folder: Path | None = None, baseline: str = "grpo"
) -> list[Path]:
    """Write ``ladder.html`` and ``ladder.md``.

    The oracle's forecast is read from ``oracle.json`` in the report's folder or a part's, or from
    beside a packed part (:func:`packed_oracle`); without it the page says so.

    Args:
        parts: Folders or packed files of one ladder's matrix.
        folder: Where the pages go; left out: into the matrix's folder.
        baseline: Row that the others are compared with.

    Raises:
        BadValueError: The suite is no ladder.
        DataError: No matrix, no result, or a damaged file.
        MissingExtraError: Jinja2 is not installed.
    """
    results = Results.read(*parts)
    refuse_other(results.suite, str(parts[0]))
    root = parts[0] if folder is None else folder
    make_folder(root)
    content = gather(results, find_oracle([root, *parts]), baseline)
    return write_pages(root, PAGES, [TEMPLATES, MATRIX_TEMPLATES], LADDER_FILTERS, content)


def packed_oracle(path: Path) -> Path:
    """Return where the oracle's forecast of packed results lies: ``NAME-oracle.json`` beside."""
    return path.with_name(path.name.split(".")[0] + "-oracle.json")


def find_oracle(parts: Sequence[Path]) -> Oracle | None:
    """Read the first forecast that lies in folders of a ladder or beside packed results.

    Raises:
        DataError: A damaged file.
    """
    for part in parts:
        beside = (packed_oracle(part), part.parent / ORACLE_FILE)
        for path in beside if part.is_file() else (part / ORACLE_FILE,):
            if path.exists():
                return Oracle.read(path)
    return None


def refuse_other(suite: Suite, where: str) -> None:
    """Check that a suite is a ladder.

    Raises:
        BadValueError: It has a column that is no size of a family.
    """
    if not is_ladder(suite):
        raise BadValueError(
            f"{where}: suite {suite.name!r} has columns that are no size of a family; expected "
            "ladder, ladder-full, or a suite file made of their columns."
        )


def gather(results: Results, oracle: Oracle | None, baseline: str) -> dict[str, Any]:
    """Collect the variables of the templates."""
    scores = [score for score in score_ladder(results, oracle, baseline) if score.rows]
    palettes = {score.family.name: family_palette(score) for score in scores}
    labels = [row.label for row in results.suite.recipes if row.label in results.recipes]
    competitors = [label for label in labels if label not in results.suite.yardsticks]
    plots: dict[str, Plot | None] = {
        score.family.name: size_curves(score, palettes[score.family.name]) for score in scores
    }
    foretold = {score.forecast.baseline for score in scores if score.forecast is not None}
    return {
        "suite": results.suite,
        "suite_word": results.suite.name if results.suite.name in SUITES else "SUITE.json",
        "least": least_seeds(results.suite),
        "edge": EDGE,
        "digest": results.suite.digest,
        "scores": scores,
        "labels": competitors,
        "palettes": palettes,
        "plots": plots,
        "radars": draw_radars(scores, competitors, baseline),
        "baseline": baseline,
        "oracle": oracle,
        "oracle_effect": MIN_EFFECT,
        "oracle_baselines": sorted(foretold) or [baseline],
        "oracle_apart": bool(foretold - {baseline}),
        "finished": sum(r.state == "finished" for r in results.cells.values()),
        "wanted": len(results.suite.cells),
        "contradictions": [(s, row) for s in scores for row in s.rows if row.contradicts],
        "separated": count_separated(scores),
        "maps": [],
        "envs": [],
    }


def count_separated(scores: list[FamilyScore]) -> tuple[int, int]:
    """Return how many rows differ from the baseline on a family, and of how many that ran.

    A row differs where its middle size is decided above or below, after Holm.
    """
    ran: dict[str, bool] = {}
    for score in scores:
        for row in score.rows:
            if row.middle is not None and row.label not in score.yardsticks:
                ran[row.label] = ran.get(row.label, False) or row.middle.apart
    return sum(ran.values()), len(ran)


def format_rung(rung: Rung | None) -> str:
    """Format the seeds that solved a size, marked where they are enough."""
    if rung is None or not rung.seeds:
        return "–"
    return f"{rung.solved}/{rung.seeds}{' ✓' if rung.passed else ''}"


def format_area(rung: Rung | None) -> str:
    """Format a mean area with its interval, as percentages; one seed has no interval."""
    if rung is None or not rung.areas:
        return "–"
    if rung.area is None:  # of one seed there is no interval
        return f"{100 * sum(rung.areas.values()) / len(rung.areas):.1f}"
    return format_estimate(rung.area)


def format_estimate(value: Estimate) -> str:
    """Format a share with its interval, as percentages."""
    return f"{100 * value.mean:.1f} ({100 * value.low95:.1f} to {100 * value.high95:.1f})"


def format_verdict(compared: Comparison | None) -> str:
    """Format a verdict; where nothing was decided with the seeds it would take, or what bars it."""
    if compared is None:
        return "–"
    needs = f": {compared.missing}" if compared.missing else ""
    bar = compared.lost or compared.edge
    return compared.verdict + (f": {bar}" if bar else needs)


def format_detectable(test: SeedTest | None) -> str:
    """Format the smallest true difference that the seeds would find, in points."""
    return "–" if test is None else percent(test.detectable)


def format_ends(place: Place) -> str:
    """Format the success after training, sampled and greedy, as percentages."""
    ends = (place.sampled, place.greedy)
    return " / ".join("–" if end is None else percent(end.mean) for end in ends)


def format_steps(place: Place, base: Place | None = None) -> str:
    """Format the mean optimiser steps of a run, marked where they are not the baseline's."""
    if not place.runs:
        return "–"
    theirs = base.mean_used("optimizer_steps") if base is not None and base.runs else None
    return count_steps(place.mean_used("optimizer_steps"), theirs)


def format_size(size: Size | None) -> str:
    """Format a size; a dash where no size was solved."""
    return "–" if size is None else f"{size:g}"


LADDER_FILTERS = FILTERS | {
    "rung": format_rung,
    "area": format_area,
    "estimate": format_estimate,
    "verdict": format_verdict,
    "size": format_size,
    "detectable": format_detectable,
    "ends": format_ends,
    "steps": format_steps,
    "cell": one_line,
}
