"""The report of a study as a record, and as pages: what each recipe's credit is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from ...envs.utils.disk_cache import make_folder
from ...leaderboard.schema.base import Form
from ..matrix.report import TEMPLATES as SHARED
from ..matrix.report import write_pages
from .metrics import MIN_RELIABILITY

FILE = "credit.json"
TEMPLATES = Path(__file__).parent / "templates"
PAGES = {"credit.html": "credit.html.j2", "credit.md": "credit.md.j2"}


class Value(Form):
    """A measure with its 95 % interval over units: by bootstrap, of fewer than ten by Student's t.

    Attributes:
        value: The measure.
        low95: Lower end of the interval; None where too few samples have a value, and where all
            units agree exactly.
        high95: Upper end.
    """

    value: float
    low95: float | None = None
    high95: float | None = None


class Row(Form):
    """A credit under the microscope.

    Attributes:
        name: The recipe's, or ``truth`` or ``random`` with the rollout.
        role: ``recipe``; ``truth``: one half of the continuations judged by the other; ``random``:
            normal random numbers.
        rollout: The rollout that played its groups.
        played: Rows with the same number saw the same groups.
        groups: Number of groups.
        turns: Distinct turns with a truth.
        left_out: Turns without one, because the environment broke in their continuations.
        tokens: Sampled tokens per group, or per training batch where these are counted.
        success: Share of solved episodes.
        deviation: Standard deviation of the measured advantages.
        within: Share of the variance of token advantages that lies within turns.
        measures: By name; a measure without a value is missing.
        differences: The same less those of the first recipe.
    """

    name: str
    role: Literal["recipe", "truth", "random"]
    rollout: str
    played: int
    groups: int
    turns: int
    left_out: int
    tokens: float
    success: float
    deviation: float
    within: float
    measures: dict[str, Value]
    differences: dict[str, Value]


At = Literal["start", "halfway"]
"""The policy that is measured: a column's start, or its reference run after half the budget."""


class MatrixPlace(Form):
    """Where in a matrix a study was made.

    Attributes:
        suite: Name of the suite.
        suite_digest: Hash of its content.
        column: The column.
        at: Which policy.
        policy: What it is, in words.
        start_digest: Hash of the column's starting model; empty where it is not known.
        refused: Rows that cannot be measured, with the reason.
        seconds: Wall time of the column, training and gradients included.
        cpu_seconds: CPU time of it.
    """

    suite: str
    suite_digest: str
    column: str
    at: At
    policy: str
    start_digest: str = ""
    refused: dict[str, str]
    seconds: float
    cpu_seconds: float


class CreditReport(Form):
    """What a study found.

    Attributes:
        format: Version of the record.
        env_id: The environment.
        env_settings: Its settings as text by name.
        model: The policy.
        model_digest: Hash of its weights.
        split: Split of the tasks.
        seed: Of tasks, episodes and sampling.
        groups: Groups of the first recipe; 0 where training batches were counted.
        batches: Training batches of every recipe, the unit of its measures; 0 counts groups.
        batch_tokens: Sampled tokens of a batch.
        compared: Batches of every recipe that were compared with the reference.
        reference: Parts of the reference, of 8 batches' tokens each.
        continuations: K, continuations of Q and of V per turn.
        noise: Seed of the continuations.
        transitions: Whether the environment's transitions were fixed, or random and reseeded.
        work: ``turns``, ``continuations`` (values that were asked for), ``actions`` (sampled for
            them), ``seconds`` and ``processes`` of measuring.
        commit: Git commit of the code, empty where it is not known.
        rows: The recipes in the order asked for, then truth and random of each rollout.
        place: The column of a matrix that was measured; None for a study of its own.
    """

    format: Literal[1] = 1
    env_id: str
    env_settings: dict[str, str]
    model: str
    model_digest: str
    split: str
    seed: int
    groups: int
    batches: int = 0
    batch_tokens: int = 0
    compared: int = 0
    reference: int = 0
    continuations: int
    noise: int
    transitions: Literal["fixed", "random"]
    work: dict[str, float]
    commit: str
    rows: list[Row]
    place: MatrixPlace | None = None

    @property
    def start_digest(self) -> str:
        """Hash of the model that the policy began as; empty where it is not known."""
        if self.place is not None and self.place.at == "halfway":
            return self.place.start_digest
        return self.model_digest

    @property
    def model_name(self) -> str:
        """The policy as pages name it: a folder's name, of a checkpoint its run's as well."""
        folder = PurePath(self.model)
        if not folder.is_absolute():
            return self.model
        run = folder.parent.parent.name if folder.parent.name == "checkpoints" else ""
        return f"{run}/{folder.name}" if run else folder.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the tables.

    Attributes:
        key: Name of the measure.
        title: Heading.
        note: What it says, a sentence.
        ceiling: Measure that holds the best value that the noise of the truth allows.
        percent: Shown in percent.
        least: Least value that the measure can have; None where it has none.
        most: The greatest, likewise.
    """

    key: str
    title: str
    note: str
    ceiling: str = ""
    percent: bool = False
    least: float | None = None
    most: float | None = None


TURNS = (
    Column(
        key="rank",
        title="rank",
        note="Rank correlation of credit and truth within groups; 0 is chance, 1 the right order.",
        ceiling="rank_ceiling",
        least=-1,
        most=1,
    ),
    Column(
        key="rank_in_state",
        title="rank, same state",
        note="The same among turns of a group in one state; missing where no state came twice.",
        least=-1,
        most=1,
    ),
    Column(
        key="sign_low",
        title="sign, at least",
        note="Share of the advantage whose sign is right, at least; .5 is chance.",
        percent=True,
        least=0,
        most=1,
    ),
    Column(
        key="sign_high",
        title="at most",
        note="The same at most: the truth's noise hides the exact value.",
        percent=True,
        least=0,
        most=1,
    ),
    Column(
        key="explained",
        title="explained",
        note="Variance of the advantages that the credit explains at its best scale, free of the "
        "noise of truth.",
        percent=True,
    ),
    Column(
        key="constant_groups",
        title="silent groups",
        note="Groups in which all turns have one credit.",
        percent=True,
        least=0,
        most=1,
    ),
    Column(
        key="localisation",
        title="on decisive turns",
        note="Share of the credit on turns whose advantage is beyond 3 standard errors of 0; "
        "beside it the share of those turns.",
        ceiling="localisation_chance",
        percent=True,
        least=0,
        most=1,
    ),
)
GRADIENTS = (
    Column(
        key="cosine_batch",
        title="cosine, one group",
        note="Cosine of the gradients of credit and of truth, group by group, on the same actions.",
        ceiling="cosine_batch_ceiling",
        least=-1,
        most=1,
    ),
    Column(
        key="cosine_turns",
        title="turn by turn",
        note="The same with the gradients of turns taken as orthogonal.",
        ceiling="cosine_turns_ceiling",
        least=-1,
        most=1,
    ),
    Column(
        key="cosine_mean",
        title="all groups",
        note="Cosine of the sums over all groups, free of the noise of truth.",
        least=-1,
        most=1,
    ),
    Column(
        key="cosine_bias",
        title="bias alone",
        note="Cosine of the expected gradients, from products of different groups alone.",
        least=-1,
        most=1,
    ),
    Column(
        key="cosine_reference",
        title="one batch and the reference",
        note="Cosine of the gradients of a training batch and of the reference, the truth's "
        "expected gradient over other batches: the batch's luck is in it; one yardstick for all.",
        least=-1,
        most=1,
    ),
    Column(
        key="cosine_summed",
        title="all compared, and the reference",
        note="The same of the sum over all compared batches.",
        least=-1,
        most=1,
    ),
    Column(
        key="cosine_expected",
        title="expected, and the reference",
        note="The same of the expected gradient: bias against the reference alone.",
        least=-1,
        most=1,
    ),
    Column(
        key="reference_per_1k",
        title="towards the reference per 1,000 tokens",
        note="As the signal, along the reference.",
    ),
    Column(
        key="signal_per_1k",
        title="signal per 1,000 tokens",
        note="Squared part of a group's gradient along the reference over the squared rest, per "
        "thousand sampled tokens.",
    ),
    Column(key="bias", title="bias²", note="Squared bias of the scaled credit over Var(A)."),
    Column(key="variance", title="variance", note="Its variance over Var(A)."),
)


def corrected(row: Row, column: Column) -> float | None:
    """Return a measure over its ceiling; None where the truth is too noisy for that."""
    value, ceiling = row.measures.get(column.key), row.measures.get(column.ceiling)
    reliable = ceiling is not None and ceiling.value**2 >= MIN_RELIABILITY
    if value is None or ceiling is None or not reliable or column.key == "localisation":
        return None
    return value.value / ceiling.value


def show(value: Value | None, percent: bool = False) -> str:
    """Return a measure with its interval as text; empty where there is none."""
    if value is None:
        return ""
    numbers = [value.value, value.low95, value.high95]
    scale, digits = (100, 0) if percent else (1, 2)
    # z: what rounds to nothing has no sign
    texts = ["" if n is None else f"{scale * n:z.{digits}f}" for n in numbers]
    unit = "%" if percent else ""
    between = f" ({texts[1]} to {texts[2]})" if texts[1] else ""
    return f"{texts[0]}{unit}{between}"


def show_cell(row: Row, column: Column) -> str:
    """Return a row's measure as text; its interval ends where the measure does.

    Student's interval of few units knows nothing of a measure's limits. What the correction for
    noise has taken beyond one is shown as it is.
    """
    value = row.measures.get(column.key)
    if value is not None and value.low95 is not None and value.high95 is not None:
        low, high = value.low95, value.high95
        if column.least is not None:
            low = max(low, min(column.least, value.value))
        if column.most is not None:
            high = min(high, max(column.most, value.value))
        value = value.model_copy(update={"low95": low, "high95": high})
    return show(value, column.percent)


def shown_columns(report: CreditReport, columns: Sequence[Column]) -> list[Column]:
    """Return the columns in which some row has a value."""
    return [c for c in columns if any(c.key in row.measures for row in report.rows)]


def say_left_out(report: CreditReport) -> str:
    """Return that bias and variance were not measured, and how they are; empty where they were."""
    if any("bias" in row.measures for row in report.rows):
        return ""
    if report.batches:
        return "Bias² and variance are left out: training batches are not sampled again."
    return (
        "Bias² and variance are left out, for they take more than twice as long as all the rest:"
        " --resample 8 measures them, of recipes with independent chains."
    )


def write_report(
    report: CreditReport, folder: Path, pages: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the record ``credit.json`` and its pages into a folder.

    Args:
        report: The report.
        folder: Made when it does not exist.
        pages: Files for `turngym view` by the recipe's name, relative to the folder.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    make_folder(folder)
    report.write(folder / FILE)
    content: dict[str, Any] = {
        "maps": [],  # of the shared style
        "envs": [],
        "report": report,
        "tables": [
            ("Turns: does the credit know which of them mattered?", shown_columns(report, TURNS)),
            ("Gradients: where does the update go?", shown_columns(report, GRADIENTS)),
        ],
        "left_out": say_left_out(report),
        "dumps": pages or {},
        "show": show,
        "show_cell": show_cell,
        "corrected": corrected,
        "doubts": say_doubts(report),
    }
    return [folder / FILE, *write_pages(folder, PAGES, [TEMPLATES, SHARED], {}, content)]


def say_doubts(report: CreditReport) -> list[str]:
    """Return a line for each rollout whose measured advantages are all 0, or have no sure order."""
    played: dict[int, list[Row]] = {}
    for row in report.rows:
        if row.role == "recipe":
            played.setdefault(row.played, []).append(row)
    lines = []
    for rows in played.values():
        names = ", ".join(row.name for row in rows)
        if rows[0].deviation == 0:
            lines.append(
                f"{names}: every measured advantage is 0, so there is nothing to judge. Take a "
                "policy that succeeds in 20 to 80 % of the episodes."
            )
            continue
        found = rows[0].measures.get("reliability")
        if found is None and "rank" not in rows[0].measures:
            continue  # groups of one turn: there is nothing to rank
        if found is None or found.value < MIN_RELIABILITY:
            how = "not reliable" if found is None else f"{found.value:z.2f} reliable, below .5"
            flat = rows[0].measures.get("flat_groups")
            alike = (
                f" In {show(Value(value=flat.value), percent=True)} of the groups all turns have "
                "the same one (mostly 0), which counts as no order at all: there a policy that "
                "succeeds at times helps, too."
                if flat is not None and flat.value > 0
                else ""
            )
            lines.append(
                f"{names}: the order of the measured advantages is {how}. Use more continuations "
                f"before reading the ranks.{alike}"
            )
    return lines
