"""The page "which algorithm for which environment", from packed results alone.

It says beforehand whether its yardsticks hold. Where A/A rows (a row against itself on other seeds)
are called different too often, the comparisons are wrong and the page gives no advice. Where a row
differs in a control (a family without its difficulty), it differs by something else than what the
family asks. So where a control was run, there is advice only on rows that differ by more, seed by
seed, at the difficulty: that a control of few seeds decides nothing is no proof that it is equal.
Advice comes from decided findings only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ...envs.core.errors import BadValueError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.seed_tests import EDGE, LEVEL, MIN_SEEDS, Decision, SeedTest, compare_seeds
from ..claims.outcome import Outcome
from ..claims.packing import is_packed, read_outcomes
from ..matrix.matrix_files import MatrixFiles, merge_read_parts, read_part
from ..matrix.ranking import compare_by_column
from ..matrix.report import FILTERS, list_problems, one_line, write_pages
from ..matrix.results import Place, Results
from .families import FAMILIES, Family
from .oracle.forecast import MIN_EFFECT
from .pairs import PairScore, compare_pairs
from .rates import at_chosen_rates, find_disputes, format_rates, margin_of
from .report import (
    TEMPLATES,
    find_oracle,
    format_detectable,
    format_ends,
    format_size,
    format_steps,
)
from .scoring import FamilyScore, RowScore, score_ladder
from .stale_suites import CHOOSING, COMPARING, LADDER_STALE_GRID
from .suites import RATE_SEARCH, is_ladder, search_of
from .traits import TRAITS, Trait
from .yardsticks import SUSPECT, compare_controls, compare_with_itself, find_repeated

Value = TypeVar("Value")
TEMPLATE = "which-algorithm.md.j2"
MARKS: Mapping[Decision, str] = {
    "above": "▲",
    "below": "▼",
    "equivalent": "=",
    "not decided": "?",
}
ORDER = tuple(MARKS)
AT_EDGE = "∅"
"""Mark of rows that are both at the floor or at the ceiling, where nothing is compared."""
AIM = 0.5
"""Share of the pairs of distinct rows that shall be separated on at least one family."""
WANTED = ("ladder", "separating", "standard")


@dataclass(frozen=True)
class Line:
    """A row of a table: a recipe against the baseline in one place.

    Attributes:
        label: The row.
        other: What it is compared with.
        verdict: The verdict.
        test: The test over seeds; None with fewer than two seeds.
        adjusted: Its p-value after Holm; None likewise.
        seeds: Seeds that both have.
        difference: Mean difference of areas over these seeds; None without one.
        needs: Seeds that it would take; empty where it is decided, or nothing says how many.
        place: The row's field: success after training, sampled and greedy, and costs.
        control: Verdict in the control; empty where there is none.
        beyond: Whether the difference is larger than the control's, on the same side: Student's
            95 % interval of the seeds' excess leaves 0 out.
        oracle: What the tables foresaw, in words; empty where they were not asked.
        again: Whether this is an A/A row.
        edge: At which end of the measure both rows are, in words; empty where they are not.
        rate: Learning rate of the row's runs, in words; empty without one.
        base_rate: That of the row it is compared with.
        margin: Lead in area that the search for rates lets pass.
        disputed: Suites in which the verdict is another one at other rates; empty without one.
    """

    label: str
    other: str
    verdict: Decision
    test: SeedTest | None
    adjusted: float | None
    seeds: int
    difference: float | None
    needs: str
    place: Place
    control: str = ""
    beyond: bool = False
    oracle: str = ""
    again: bool = False
    edge: str = ""
    rate: str = ""
    base_rate: str = ""
    margin: float = RATE_SEARCH.margin
    disputed: str = ""

    @property
    def field(self) -> str:
        """Return the sign of the verdict with the size of the difference, in points."""
        size = "" if self.difference is None else f" {100 * self.difference:+.1f}"
        return (AT_EDGE if self.edge else MARKS[self.verdict]) + size

    @property
    def words(self) -> str:
        """Return the verdict, with the end of the measure where both rows are at one."""
        return f"{self.verdict}: {self.edge}" if self.edge else self.verdict

    @property
    def clean(self) -> bool:
        """Whether neither a control nor another rate accounts for the difference."""
        return (self.beyond or not self.control) and not self.by_rate and not self.disputed

    @property
    def by_rate(self) -> bool:
        """Whether the difference may be that of the learning rates.

        The rates differ, and the interval reaches into what the search for rates lets pass.
        """
        if self.rate == self.base_rate or self.test is None:
            return False
        return max(self.test.low95, -self.test.high95) <= self.margin

    @property
    def rates(self) -> str:
        """Return the row's learning rate, marked where it is not that of the other row."""
        return (self.rate or "–") + (" ≠" if self.rate != self.base_rate else "")

    @property
    def notes(self) -> str:
        """Return what a reader of advice on the row has to know of its evidence, in words."""
        notes = [f"{self.seeds} seeds"]
        if not self.control:
            notes.append("no control")
        elif not self.beyond:
            notes.append("not shown to be more than in the control")
        elif self.control != "equivalent":
            notes.append("more than in the control")
        if self.rate != self.base_rate:
            rates = self.rate or "none", self.base_rate or "none"
            notes.append(f"at rate {rates[0]}, {self.other} at {rates[1]}")
        return ", ".join(notes)


@dataclass(frozen=True)
class Topic:
    """A family of the ladder, or a column of another suite, with all rows.

    Attributes:
        name: Its name.
        asks: What it asks; empty for a column.
        mechanism: Which mechanism should show; empty for a column.
        where: Environment, size, measure and budget in words.
        lines: One per row: above, below, equivalent, not decided, A/A rows last.
        same: Rows that were not run because they are one gradient with another one.
        same_because: Why.
        left_out: Rows that are not run here for another reason.
        trait: What an environment of this kind has.
        base: The baseline's field; None where it has none.
    """

    name: str
    asks: str
    mechanism: str
    where: str
    lines: tuple[Line, ...]
    same: Mapping[str, str]
    same_because: str
    left_out: tuple[str, ...]
    trait: Trait | None
    base: Place | None

    @property
    def decided(self) -> bool:
        """Whether anything is."""
        return any(line.verdict != "not decided" for line in self.lines)

    def named(self, verdict: Decision) -> list[Line]:
        """Return the competing rows with a verdict."""
        return [line for line in self.lines if line.verdict == verdict and not line.again]

    def field(self, label: str, baseline: str) -> str:
        """Return the entry of a row in the table over all families."""
        by_label = {line.label: line.field for line in self.lines}
        if label in by_label:
            return by_label[label]
        twin = self.same.get(label)
        if twin == baseline:
            return f"as {baseline}"
        return f"{by_label[twin]}\\*" if twin in by_label else "·"


@dataclass(frozen=True)
class Source:
    """A suite that the page is made of.

    Attributes:
        files: Names of its files.
        results: Its results.
        compared: Those that verdicts are of: of a grid of rates, each row at its chosen one.
        commits: Commits of the source with the number of cells.
    """

    files: tuple[str, ...]
    results: Results
    compared: Results
    commits: tuple[tuple[str, int], ...]

    @property
    def seeds(self) -> int:
        """Return the largest number of seeds that a field has."""
        runs = Counter(
            (r.cell.recipe, r.cell.column)
            for r in self.results.cells.values()
            if r.state == "finished"
        )
        return max(runs.values(), default=0)

    @property
    def states(self) -> dict[str, int]:
        """Count the cells by state, those without a result as not computed."""
        counts = Counter(r.state for r in self.results.cells.values())
        missing = len(self.results.suite.cells) - len(self.results.cells)
        return {**counts, **({"not computed": missing} if missing else {})}


def write_guide(files: Sequence[Path], out: Path, baseline: str = "grpo") -> Path:
    """Write the page.

    The oracle's forecast is taken from beside the ladder's files, as for its report.

    Args:
        files: Packed results or folders of suites, a ladder among them, and outcomes of claims
            (one as ``.json``, or packed); several parts of one suite are merged. Of several ladders
            the one with most families is the page's; the others' families stand below it.
        out: The page, a Markdown file.
        baseline: Row that the others are compared with.

    Raises:
        BadValueError: No ladder, or a page that is not named ``.md``.
        UnknownNameError: A suite without the baseline.
        DataError: A missing or damaged file, or parts that contradict each other.
        MissingExtraError: Jinja2 is not installed.
    """
    if out.suffix != ".md":
        raise BadValueError(f"--out {out}: expected a Markdown file, such as docs/guide.md.")
    make_folder(out.parent)
    content = gather(files, baseline)
    filters = FILTERS | {
        "cell": one_line,
        "size": format_size,
        "span": format_span,
        "detectable": format_detectable,
        "ends": format_ends,
        "steps": format_steps,
    }
    (path,) = write_pages(out.parent, {out.name: TEMPLATE}, [TEMPLATES], filters, content)
    return path


def gather(files: Sequence[Path], baseline: str) -> dict[str, Any]:
    """Collect the variables of the template."""
    groups: dict[str, dict[Path, MatrixFiles]] = {}
    outcomes: list[Outcome] = []
    for file in files:
        if file.suffix == ".json" or is_packed(file):
            outcomes += read_outcomes(file)
        else:
            part = read_part(file)
            groups.setdefault(part.suite.name, {})[file] = part
    sources = [_source(parts) for parts in groups.values()]
    ladders = [source for source in sources if is_ladder(source.results.suite)]
    if not ladders:
        raise BadValueError("--guide: expected the results of a ladder; got none.")
    for source in sources:
        source.results.suite.check_baseline(baseline)
    ladder = max(ladders, key=lambda source: len(source.results.envs))
    oracle = find_oracle(list(groups[ladder.results.suite.name]))
    scored = {
        s.results.suite.name: [
            score
            for score in score_ladder(s.compared, oracle if s is ladder else None, baseline)
            if score.rows
        ]
        for s in ladders
    }
    scores = scored[ladder.results.suite.name]
    labels = _competitors(ladder.compared)
    pairs = compare_pairs(ladder.compared.suite, scores, labels)
    others = [
        (score, s.compared)
        for s in ladders
        if s is not ladder
        for score in scored[s.results.suite.name]
    ]
    families = [_of_family(score, ladder.compared, labels, others) for score in scores]
    columns = {
        s.results.suite.name: _of_more_families(scored[s.results.suite.name], s.compared)
        if s in ladders
        else _of_columns(s.results, baseline)
        for s in sources
        if s is not ladder
    }
    more = [topic for group in columns.values() for topic in group if topic.trait is not None]
    yardsticks = [y for s in sources for y in compare_with_itself(s.compared, baseline)]
    yardsticks += [y for name, group in scored.items() for y in compare_controls(group, name)]
    repeated = find_repeated([s.results for s in sources], ladder.results)
    measured = [y for y in yardsticks if y.same and y.can_fail]
    broken = [y for y in measured if not y.holds]
    differing = [y for y in yardsticks if y.tests and not y.same and y.called]
    trusted = bool(measured) and not broken
    topics = [*families, *(topic for group in columns.values() for topic in group)]
    decided = [t for t in [*families, *more] if t.decided]
    settings = [(name, t) for name, group in columns.items() for t in group if t.trait is None]
    given = {source.results.suite.name.removesuffix("-full") for source in sources}
    return {
        "baseline": baseline,
        "min_seeds": MIN_SEEDS,
        "level": LEVEL,
        "edge": EDGE,
        "at_edge": AT_EDGE,
        "suspect": SUSPECT,
        "sources": sources,
        "ladder": ladder,
        "oracle": oracle,
        "oracle_effect": MIN_EFFECT,
        "yardsticks": yardsticks,
        "broken": broken,
        "differing": differing,
        "trusted": trusted,
        "most_seeds": max(source.seeds for source in sources),
        "families": families,
        "labels": [label for label in labels if label != baseline],
        "columns": columns,
        "column_rows": {suite: _rows(group) for suite, group in columns.items()},
        "again": sorted({line.label for topic in topics for line in topic.lines if line.again}),
        "pairs": pairs,
        "lent": sum(pair.lent for pair in pairs),
        "search": search_of(ladder.results.suite),
        "least": _least_effects(sources),
        "repeated": repeated,
        "grid": (LADDER_STALE_GRID.name, CHOOSING, COMPARING),
        "aim": AIM,
        "share": share_separated(pairs),
        "advised": decided if trusted else [],
        "seen": [(name, t) for name, t in settings if t.named("above") or t.named("below")],
        "same": _group((t.name, (t.same, t.same_because)) for t in families if t.same),
        "left": _group((t.name, t.left_out) for t in topics if t.left_out),
        "problems": [(s, result, n) for s in sources for result, n in list_problems(s.results)],
        "silent": [t for t in [*families, *more] if t not in decided],
        "outcomes": outcomes,
        "missing_suites": [name for name in WANTED if name not in given],
        "missing_families": [name for name in FAMILIES if name not in {t.name for t in families}],
    }


def _group(named: Iterable[tuple[str, Value]]) -> list[tuple[list[str], Value]]:
    """Group names by what they have in common."""
    found: list[tuple[list[str], Value]] = []
    for name, value in named:
        known = next((names for names, other in found if other == value), None)
        if known is None:
            found.append(([name], value))
        else:
            known.append(name)
    return found


def _least_effects(sources: Sequence[Source]) -> list[tuple[str, float]]:
    """Return the least difference that matters with the suites that have it; 0 for any."""
    found: dict[float, list[str]] = {}
    for source in sources:
        found.setdefault(source.results.suite.min_effect, []).append(source.results.suite.name)
    return [
        ("every suite here" if len(found) == 1 else ", ".join(names), effect)
        for effect, names in found.items()
    ]


def share_separated(pairs: Sequence[PairScore]) -> tuple[int, int, int]:
    """Return the pairs that are separated somewhere, those that were tested, and all."""
    tested = [pair for pair in pairs if pair.tested]
    return sum(bool(pair.separated) for pair in tested), len(tested), len(pairs)


def format_span(line: Line) -> str:
    """Format a difference with its interval, in points; of one seed there is no interval."""
    if line.difference is None:
        return "–"
    size = f"{100 * line.difference:+.1f}"
    if line.test is None:
        return size
    return f"{size} ({100 * line.test.low95:+.1f} to {100 * line.test.high95:+.1f})"


def _source(parts: Mapping[Path, MatrixFiles]) -> Source:
    results = Results.of(merge_read_parts(parts))
    commits = Counter(
        r.machine.versions.get("git", "not recorded")
        for r in results.cells.values()
        if r.state == "finished" and r.machine is not None
    )
    return Source(
        files=tuple(part.name for part in parts),
        results=results,
        compared=at_chosen_rates(results),
        commits=tuple(sorted(commits.items())),
    )


def _competitors(results: Results) -> list[str]:
    return [r.label for r in results.suite.recipes if r.label not in results.suite.yardsticks]


def _of_family(
    score: FamilyScore,
    results: Results,
    labels: Sequence[str],
    others: Sequence[tuple[FamilyScore, Results]] = (),
) -> Topic:
    family, suite = score.family, results.suite
    disputes = find_disputes(score, results, others)
    column = suite.column(family.column(score.middle))
    base = next((row for row in score.rows if row.label == score.baseline), None)
    rows = [row for row in score.rows if row.label != score.baseline]
    lines = [_ladder_line(score, row, base, results, disputes) for row in rows]
    ran = {row.label for row in score.rows}
    same = {label: twin for label, twin in family.same.items() if score.stands_in(label)}
    setting = family.setting or "updates per batch"
    return Topic(
        name=family.name,
        asks=family.asks,
        mechanism=family.mechanism,
        where=(
            f"{family.env_id}, {setting} {format_size(score.middle)}, measure {family.measure}, "
            f"{column.limits.tokens:,} sampled tokens a run"
        ),
        lines=_sorted(lines),
        same={label: twin for label, twin in same.items() if label in labels},
        same_because=family.same_because,
        left_out=tuple(label for label in labels if label not in ran and label not in same),
        trait=_trait(family),
        base=None if base is None or (rung := base.rung(score.middle)) is None else rung.place,
    )


def _of_more_families(scores: Sequence[FamilyScore], results: Results) -> list[Topic]:
    """Return the families of a further ladder, each with the suite in its name."""
    labels = _competitors(results)
    topics = [_of_family(score, results, labels) for score in scores]
    return [replace(topic, name=f"{topic.name} ({results.suite.name})") for topic in topics]


def _rows(topics: Sequence[Topic]) -> list[tuple[str, bool]]:
    """Return the rows of a table over topics, and whether each is an A/A row; these come last."""
    found = {line.label: line.again for topic in topics for line in topic.lines}
    return sorted(found.items(), key=lambda row: row[1])


def _trait(family: Family) -> Trait:
    asks = family.asks[:1].lower() + family.asks[1:].rstrip(".")
    return TRAITS.get(family.name, Trait(f"this: {asks}", "what it can of it"))


def _ladder_line(
    score: FamilyScore,
    row: RowScore,
    base: RowScore | None,
    results: Results,
    disputes: Mapping[str, Sequence[str]],
) -> Line:
    column = score.family.column(score.middle)
    compared, equal = row.middle, row.equal
    seen = row.forecast.says if row.forecast is not None and row.forecast.against else ""
    rungs = [one.rung(score.middle) if one is not None else None for one in (row, base)]
    ours, theirs = ({} if rung is None else dict(rung.areas) for rung in rungs)
    again = row.label in score.yardsticks
    return Line(
        label=row.label,
        other=score.baseline if compared is None else compared.other,
        verdict="not decided" if compared is None else compared.verdict,
        test=None if compared is None else compared.test,
        adjusted=None if compared is None else compared.adjusted,
        seeds=len(ours.keys() & theirs.keys()),
        difference=_difference(None if compared is None else compared.test, ours, theirs),
        needs="" if compared is None else compared.needs,
        place=results.place(row.label, column),
        control="" if equal is None else equal.verdict,
        beyond=base is not None and _beyond(score, row, base),
        oracle=row.meets or seen,
        again=again,
        edge="" if compared is None else compared.edge,
        rate=format_rates(results, row.label, column),
        base_rate=format_rates(results, score.baseline, column),
        margin=margin_of(results.suite),
        disputed=", ".join(disputes.get(row.label, ())),
    )


def _beyond(score: FamilyScore, row: RowScore, base: RowScore) -> bool:
    """Return whether a row's difference at the middle size exceeds that in the control.

    The side is that of the difference over all seeds, of which the control may have a part.
    """
    if row.middle is None or row.middle.test is None:
        return False
    rungs = [row.rung(score.middle), base.rung(score.middle), row.control, base.control]
    areas = [{} if rung is None else rung.areas for rung in rungs]
    seeds = sorted(set.intersection(*(set(one) for one in areas)))
    if len(seeds) < MIN_SEEDS:
        return False
    ours, theirs, ours_without, theirs_without = areas
    here = [ours[s] - theirs[s] for s in seeds]
    without = [ours_without[s] - theirs_without[s] for s in seeds]
    test = compare_seeds(here, without)
    return test.low95 > 0 if row.middle.test.difference > 0 else test.high95 < 0


def _difference(
    test: SeedTest | None, ours: Mapping[int, float], theirs: Mapping[int, float]
) -> float | None:
    if test is not None:
        return test.difference
    seeds = ours.keys() & theirs.keys()
    return sum(ours[s] - theirs[s] for s in seeds) / len(seeds) if seeds else None


def _of_columns(results: Results, baseline: str) -> list[Topic]:
    """Return the columns of a suite that is no ladder."""
    found = compare_by_column(results, baseline)
    apart, labels = results.suite.yardsticks, _competitors(results)
    topics = []
    for name in results.envs:
        column = results.suite.column(name)
        lines = []
        for row in results.recipes:
            compared = found.get((row, name))
            if compared is None:
                continue
            ours, theirs = results.areas(row, name), results.areas(compared.other, name)
            lines.append(
                Line(
                    label=row,
                    other=compared.other,
                    verdict=compared.verdict,
                    test=compared.test,
                    adjusted=compared.adjusted,
                    seeds=len(ours.keys() & theirs.keys()),
                    difference=_difference(compared.test, ours, theirs),
                    needs=compared.needs,
                    place=results.place(row, name),
                    again=row in apart,
                    edge=compared.edge,
                    rate=format_rates(results, row, name),
                    base_rate=format_rates(results, compared.other, name),
                    margin=search_of(results.suite).margin,
                )
            )
        ran = {line.label for line in lines} | {baseline}
        topics.append(
            Topic(
                name=name,
                asks="",
                mechanism="",
                where=(
                    f"{column.id}, measure {column.measure}, {column.limits.tokens:,} sampled "
                    "tokens a run"
                ),
                lines=_sorted(lines),
                same={},
                same_because="",
                left_out=tuple(label for label in labels if label not in ran),
                trait=None,
                base=results.place(baseline, name) if baseline in results.recipes else None,
            )
        )
    return topics


def _sorted(lines: Sequence[Line]) -> tuple[Line, ...]:
    def place(line: Line) -> tuple[bool, int, float]:
        return line.again, ORDER.index(line.verdict), -(line.difference or 0.0)

    return tuple(sorted(lines, key=place))
