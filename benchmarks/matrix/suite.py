"""A suite: a frozen, versioned comparison as validated data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, field_validator, model_serializer, model_validator

from ...algos.training.settings import WarmStartSettings
from ...envs.core.digest import digest_of
from ...envs.core.errors import BadValueError, UnknownNameError
from ...leaderboard.schema.base import Form
from .cell import Cell

Item = TypeVar("Item")
MAX_KEY = 235
"""Characters of a cell's key: 255 in a name of a file, less what is appended to it."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9 +._=,()-]*$"
"""Names of rows and columns, which are parts of file names."""
AGAIN = 1000
"""Seed offset of a row that repeats another one with other seeds."""


class Limits(Form):
    """The budget of every cell: training ends with the step that reaches either of them.

    Attributes:
        tokens: Tokens sampled for training.
        calls: Actions taken in environments for training, each of them a tool call or an answer.
        steps: A guard against steps that cost nothing; None for none.
    """

    tokens: int = Field(ge=1)
    calls: int = Field(ge=1)
    steps: int | None = Field(default=None, ge=1)

    def part(self, share: float) -> Limits:
        """Return a share of the budget, at least 1 of each."""

        def some(limit: int) -> int:
            return max(1, round(share * limit))

        steps = None if self.steps is None else some(self.steps)
        return Limits(tokens=some(self.tokens), calls=some(self.calls), steps=steps)


class TaughtStart(Form):
    """A small model, trained on first use by imitating the environment's expert.

    Attributes:
        settings: Changes to :func:`~turngym.agents.warm_start.settings.starter_settings`.
        world: Settings of the environment it is trained in; None takes the column's.
    """

    kind: Literal["taught"] = "taught"
    settings: dict[str, Any] = Field(default_factory=dict)
    world: dict[str, Any] | None = None


class BlankStart(Form):
    """A small model with random weights.

    Attributes:
        settings: Changes to :class:`~turngym.agents.models.random_init.BlankSettings`.
    """

    kind: Literal["blank"] = "blank"
    settings: dict[str, Any] = Field(default_factory=dict)


class NamedStart(Form):
    """A model by its folder or hub name, or one that `turngym models` lists.

    Attributes:
        name: Its name; one of the list is fetched on first use.
        warm_start: Episodes of the environment's expert that it imitates first, as `--warm-start`
            lets it; the rows start from the result.
        warm_start_batch: Maximum episodes per step of the imitation, as `--warm-start-batch`.
    """

    kind: Literal["named"] = "named"
    name: str
    warm_start: int = Field(default=0, ge=0)
    warm_start_batch: int = Field(default=WarmStartSettings.batch, ge=1)

    @model_serializer(mode="wrap")
    def _leave_out_none(self, dump: Callable[[NamedStart], dict[str, Any]]) -> dict[str, Any]:
        """Dump a warm start only where there is one: other suites keep their digests."""
        data = dump(self)
        if not data.get("warm_start", True):
            del data["warm_start"]
        if data.get("warm_start_batch") == WarmStartSettings.batch:
            del data["warm_start_batch"]
        return data


Start = Annotated[TaughtStart | BlankStart | NamedStart, Field(discriminator="kind")]


class SuiteEnv(Form):
    """A column of the matrix.

    Attributes:
        id: Registered id.
        name: Unique name of the column; left out: the id. Several columns may have one environment.
        settings: Constructor settings.
        start: The model that every recipe starts from.
        limits: Budget of a cell.
        max_tokens: Maximum tokens of an action.
        max_context: Maximum tokens of context and action; None for the model's own limit.
        train_split: Split of the training tasks.
        eval_split: Split of the evaluation tasks.
        eval_tasks: Number of evaluation tasks.
        eval_every: Training steps between evaluations while training; 0 evaluates the trained
            model only, and the curve is that of the training rollouts.
        checkpoint_every: Training steps between checkpoints of a cell; 0 for cells of seconds,
            which write their metrics alone, are saved when they are interrupted, and begin again
            when they are killed.
        measure: What the column is about, and what areas are taken of: ``success``, ``return``, or
            a metric of the environment that every episode reports.
        threshold: Value of the measure whose cost in tokens is reported; None for none.
        tokens_per_step: Sampled tokens of a training step, common to all recipes; None leaves each
            recipe its number of groups.
        max_lag: Play with weights that are so many updates old; None plays in turn.
        importance_cap: Cap of the importance weights against lag; None for no such weights.
        recipe_settings: Changes to every recipe there, before the recipe's own.
        rows: Labels of the rows that have a cell here; left out: all.
        row_settings: Changes to single rows there, by label, after the row's own; an A/A row takes
            those of the row that it repeats.
    """

    id: str
    name: str = Field(default="", pattern=NAME)
    settings: dict[str, Any]
    start: Start
    limits: Limits
    max_tokens: int = Field(ge=1)
    max_context: int | None = Field(default=None, ge=2)
    train_split: str = "train"
    eval_split: str = "dev"
    eval_tasks: int = Field(ge=1)
    eval_every: int = Field(ge=0)
    checkpoint_every: int = Field(default=0, ge=0)
    measure: str = "success"
    threshold: float | None = None
    tokens_per_step: int | None = Field(default=None, ge=1)
    max_lag: int | None = Field(default=None, ge=0)
    importance_cap: float | None = Field(default=None, ge=1)
    recipe_settings: dict[str, Any] = Field(default_factory=dict)
    rows: list[str] = Field(default_factory=list)
    row_settings: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _fill_name(cls, given: Any) -> Any:
        return _with_default(given, "name", "id")

    @model_serializer(mode="wrap")
    def _leave_out_no_rows(self, dump: Callable[[SuiteEnv], dict[str, Any]]) -> dict[str, Any]:
        """Dump what names rows only where it does: other suites keep their digests."""
        data = dump(self)
        for field in ("rows", "row_settings"):
            if not data.get(field, True):
                del data[field]
        return data


class SuiteRecipe(Form):
    """A row of the matrix.

    Attributes:
        name: Registered name of the recipe.
        label: Unique name of the row; left out: the recipe's. Several rows may have one recipe.
        settings: Changes to the recipe, with dotted names.
        seed_offset: Added to the suite's seeds. A row that differs from another in nothing else is
            an A/A row: how far it lies from the other is what chance alone does. It is no
            competitor and is never ranked.
    """

    name: str
    label: str = Field(default="", pattern=NAME)
    settings: dict[str, Any] = Field(default_factory=dict)
    seed_offset: int = Field(default=0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _fill_label(cls, given: Any) -> Any:
        return _with_default(given, "label", "name")

    def again(self, offset: int = AGAIN) -> SuiteRecipe:
        """Return the A/A row of this row: the same with other seeds."""
        return self.model_copy(
            update={"label": f"{self.label} again", "seed_offset": self.seed_offset + offset}
        )


class RateSearch(Form):
    """A search for the learning rate of every row in every column, before its cells.

    Multiples of the rate that the row has there are tried with every search seed under a part of
    the budget. Another one than its own is taken only where it leads clearly: choosing the best of
    a few noisy areas would give rows different rates by luck, and the seeds of a cell, which share
    the rate, could not show that.

    Attributes:
        scales: Multiples of the row's own learning rate (``optim.lr``); the first one is 1.
        seeds: Training seeds of the search; none of them is a seed of a cell.
        share: Part of the cell's budget that each trial has.
        margin: Lead in the mean area under the column's measure from which another rate is taken;
            it has to lead with every seed, too.
    """

    scales: tuple[float, ...] = Field(min_length=2)
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    share: float = Field(gt=0, le=1)
    margin: float = Field(default=0.05, ge=0)

    @field_validator("scales")
    @classmethod
    def _own_first(cls, scales: tuple[float, ...]) -> tuple[float, ...]:
        if min(scales) <= 0 or len(set(scales)) != len(scales) or scales[0] != 1:
            raise ValueError(f"scales {scales}: expected different ones above 0, 1 first")
        return scales

    def choose(self, areas: Mapping[float, Sequence[float | None]], kept: float = 1.0) -> float:
        """Return the scale with the largest mean area if it leads another one clearly, else that.

        Args:
            areas: Areas by scale, by seed in the same order; None where a trial has none, which
                counts against its scale.
            kept: The scale that is kept without a clear lead: the row's own rate.
        """
        tried = {
            scale: values
            for scale, found in areas.items()
            if len(values := [area for area in found if area is not None]) == len(found) > 0
        }
        if kept not in tried:
            return kept
        best = max(tried, key=lambda scale: sum(tried[scale]))
        leads = [ours - own for ours, own in zip(tried[best], tried[kept], strict=True)]
        clear = min(leads) > 0 and sum(leads) / len(leads) > self.margin
        return best if clear else kept


_NO_NUMBERS = ("name", "rows", "row_settings", "checkpoint_every")
"""Fields of a column that change no number of its cells, or only those of some rows."""
_OF_START = (
    "id",
    "settings",
    "start",
    "max_tokens",
    "max_context",
    "eval_split",
    "eval_tasks",
    "measure",
)
"""Fields of a column that its start and its reference players depend on."""
_OF_PLAY = ("trials", "eval_temperature", "max_batch", "device", "dtype")
"""Fields of a suite that every evaluation depends on."""


class Suite(Form):
    """A frozen comparison; every change needs a new version.

    Attributes:
        name: ``quick``, ``standard``, ``full``, or a custom name on one line.
        version: Raised with every change.
        about: Purpose in one line.
        recipes: Rows.
        envs: Columns.
        seeds: Training seeds.
        small: Whether recipes use their settings for small models instead of the papers'.
        trials: Trials of every evaluation task after training, beside a greedy one.
        eval_temperature: Sampling temperature of the trials; above 0.
        max_batch: Maximum batch size of sampling.
        lr_search: How the learning rate of each row is chosen; None takes its own.
        min_effect: Difference of areas below which no row is called above or below another.
        equivalence: Difference of areas within which rows are called equivalent.
        device: ``cpu``, ``cuda`` or ``auto``.
        dtype: Number format of sampling and training.
        gpu_memory_gb: Required GPU memory; 0 runs without a GPU.
    """

    name: str = Field(pattern=r"^[^\x00-\x1f\x7f]*$")
    version: int = Field(ge=1)
    about: str
    recipes: tuple[SuiteRecipe, ...] = Field(min_length=1)
    envs: tuple[SuiteEnv, ...] = Field(min_length=1)
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    small: bool = True
    trials: int = Field(default=1, ge=1)
    eval_temperature: float = Field(default=1.0, gt=0)
    max_batch: int = Field(default=64, ge=1)
    lr_search: RateSearch | None = None
    min_effect: float = Field(default=0.0, ge=0)
    equivalence: float = Field(default=0.03, gt=0)
    device: Literal["auto", "cpu", "cuda"] = "cpu"
    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    gpu_memory_gb: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Suite:
        for what, names in (
            ("recipes", [r.label for r in self.recipes]),
            ("envs", [e.name for e in self.envs]),
            ("seeds", [str(s) for s in self.seeds]),
        ):
            if len(set(names)) != len(names):
                raise ValueError(f"{what} {names}: duplicate name")
        labels = {r.label for r in self.recipes}
        for column in self.envs:
            if unknown := {*column.rows, *column.row_settings} - labels:
                raise ValueError(f"column {column.name!r}: {sorted(unknown)} are no rows")
        for row in self.recipes:
            used = {seed + row.seed_offset for seed in self.seeds}
            twin = self.twin(row)
            if twin is not None and used & {seed + twin.seed_offset for seed in self.seeds}:
                raise ValueError(f"row {row.label!r}: shares a seed with the row that it repeats")
            if self.lr_search is not None and used & set(self.lr_search.seeds):
                raise ValueError(f"lr_search: a seed of it is a seed of row {row.label!r}")
        longest = max((cell.key for cell in self.cells), key=len, default="")
        if len(longest) > MAX_KEY:
            raise ValueError(
                f"the files of a cell would be called {longest}, {len(longest)} characters; "
                f"expected at most {MAX_KEY}: shorten the row's label or the column's name"
            )
        return self

    @property
    def digest(self) -> str:
        """Return a stable hash of the content."""
        return digest_of(self.model_dump(mode="json"))

    @property
    def purpose(self) -> str:
        """Return the purpose as a sentence, with a full stop where it has no mark of its own."""
        text = self.about.strip()
        return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"

    def column_digest(self, name: str) -> str:
        """Return a hash of what the start of a column and its reference players depend on.

        Raises:
            UnknownNameError: The suite has no such column.
        """
        dump = self.column(name).model_dump(mode="json", include=set(_OF_START))
        return digest_of(["column", _given(dump), self._shared(_OF_PLAY)])

    def search_digest(self, label: str, name: str) -> str:
        """Return a hash of what the learning rate of a row in a column depends on.

        Raises:
            UnknownNameError: The suite has no such row or column.
        """
        return digest_of(["search", *self._trained(label, name)])

    def cell_digest(self, cell: Cell) -> str:
        """Return a hash of what the numbers of a cell depend on.

        That is its column, its row, its training seed and the settings that all cells share, but no
        names, no other rows, columns or seeds, and nothing that only the report takes: so a result
        survives every version of the suite that does not touch it.

        Raises:
            UnknownNameError: The suite has no such row or column.
        """
        seed = cell.seed + self.recipe(cell.recipe).seed_offset
        return digest_of(["cell", *self._trained(cell.recipe, cell.column), seed])

    def row_settings(self, label: str, name: str) -> dict[str, Any]:
        """Return the changes to a row in a column; of an A/A row those of the row it repeats."""
        known = self.column(name).row_settings
        if label in known:
            return known[label]
        twin = self.twin(self.recipe(label))
        return {} if twin is None else known.get(twin.label, {})

    def _trained(self, label: str, name: str) -> list[Any]:
        """Return what the training runs of a row in a column depend on, but for the seed."""
        row = self.recipe(label)
        column = self.column(name).model_dump(mode="json", exclude=set(_NO_NUMBERS))
        search = None if self.lr_search is None else self.lr_search.model_dump(mode="json")
        settings = row.model_dump(mode="json", include={"name", "settings"})
        settings["settings"] |= self.row_settings(label, name)
        return [_given(column), settings, search, self._shared((*_OF_PLAY, "small"))]

    def _shared(self, fields: Sequence[str]) -> dict[str, Any]:
        return {field: getattr(self, field) for field in fields}

    @property
    def cells(self) -> list[Cell]:
        """Return all cells, ordered by seed."""
        return [
            Cell(recipe=row.label, column=column.name, seed=seed)
            for seed in self.seeds
            for column in self.envs
            for row in self.recipes
            if not column.rows or row.label in column.rows
        ]

    def column(self, name: str) -> SuiteEnv:
        """Return a column by its name.

        Raises:
            UnknownNameError: The suite has none of that name.
        """
        return _named(name, {e.name: e for e in self.envs}, "column", self.name)

    def recipe(self, label: str) -> SuiteRecipe:
        """Return a row by its label.

        Raises:
            UnknownNameError: The suite has none of that label.
        """
        return _named(label, {r.label: r for r in self.recipes}, "recipe", self.name)

    def check_baseline(self, label: str) -> None:
        """Check that there is a row that a report can compare the others with.

        Raises:
            UnknownNameError: The suite has none of that label.
        """
        rows = [row.label for row in self.recipes]
        if label not in rows:
            raise UnknownNameError(
                "row",
                label,
                rows,
                f"suite {self.name}",
                advice="The others are compared with it; name another one: --baseline ROW.",
            )

    def twin(self, row: SuiteRecipe) -> SuiteRecipe | None:
        """Return the row that an A/A row repeats; None for any other row."""
        for other in self.recipes:
            same = (other.name, other.settings) == (row.name, row.settings)
            if same and other.seed_offset < row.seed_offset:
                return other
        return None

    @property
    def yardsticks(self) -> dict[str, str]:
        """Return the A/A rows, each with the row that it repeats."""
        pairs = [(row.label, self.twin(row)) for row in self.recipes]
        return {label: twin.label for label, twin in pairs if twin is not None}

    def only(self, words: Sequence[str]) -> list[Cell]:
        """Select cells; repeated keys are alternatives.

        Args:
            words: ``recipe=NAME`` (all rows of a recipe), ``row=LABEL``, ``env=ID`` (all columns
                of an environment), ``column=NAME``, ``seed=N``.

        Raises:
            BadValueError: A word of another form.
            UnknownNameError: A name that the suite does not have.
        """
        wanted: dict[str, set[str]] = {}
        for word in words:
            kind, equals, name = word.partition("=")
            if not equals or kind not in ("recipe", "row", "env", "column", "seed"):
                raise BadValueError(
                    f"--only {word}: expected recipe=NAME, row=LABEL, env=ID, column=NAME or "
                    "seed=N."
                )
            wanted.setdefault(kind, set()).update(self._meant(kind, name))
        names = {kind: wanted.get(kind) for kind in ("recipe", "row", "env", "column", "seed")}

        def fits(cell: Cell) -> bool:
            has = {
                "recipe": self.recipe(cell.recipe).name,
                "row": cell.recipe,
                "env": self.column(cell.column).id,
                "column": cell.column,
                "seed": str(cell.seed),
            }
            return all(found is None or has[kind] in found for kind, found in names.items())

        return [cell for cell in self.cells if fits(cell)]

    def with_seeds(self, count: int) -> Suite:
        """Return the same comparison over as many seeds: its own, then those behind its last.

        Raises:
            BadValueError: None, or more than do not meet those of a search or of an A/A row.
        """
        more = range(max(self.seeds) + 1, max(self.seeds) + 1 + max(0, count - len(self.seeds)))
        if count < 1:
            raise BadValueError(f"--seeds {count}: expected at least 1.")
        try:
            return Suite.model_validate(self.model_dump() | {"seeds": (*self.seeds[:count], *more)})
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise BadValueError(f"--seeds {count}: {why}; expected fewer.") from None

    def differs_in_seeds(self, other: Suite) -> bool:
        """Return whether nothing but the seeds tells the two apart."""
        return self.digest != other.digest == self.model_copy(update={"seeds": other.seeds}).digest

    def some(self, words: Sequence[str]) -> list[Cell]:
        """Select cells as :meth:`only` does, at least one.

        Raises:
            BadValueError: A word of another form, or no cell fits all of them.
            UnknownNameError: A name that the suite does not have.
        """
        if not (cells := self.only(words)):
            raise BadValueError(
                f"--only {' --only '.join(words)}: suite {self.name} has no cell that is all of "
                "this (a column may have some of the rows alone); leave one out, or name another."
            )
        return cells

    def _meant(self, kind: str, name: str) -> set[str]:
        known = {
            "recipe": {r.name: r.name for r in self.recipes},
            "row": {r.label: r.label for r in self.recipes},
            "env": {e.id: e.id for e in self.envs},
            "column": {e.name: e.name for e in self.envs},
            "seed": {str(seed): str(seed) for seed in self.seeds},
        }[kind]
        short = {key.removesuffix("-v0"): value for key, value in known.items()}
        word = {"env": "environment"}.get(kind, kind)
        return {_named(name, short | known, word, self.name)}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is None or empty: a setting that does not exist yet changes no digest."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _with_default(given: Any, field: str, source: str) -> Any:
    """Return the values of a form, an empty field filled from another one."""
    if isinstance(given, dict) and not given.get(field) and source in given:
        return {**given, field: given[source]}
    return given


def _named(name: str, known: dict[str, Item], what: str, suite: str) -> Item:
    if name not in known:
        raise UnknownNameError(what, name, known, f"suite {suite}")
    return known[name]
