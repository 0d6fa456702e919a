"""A suite: a frozen, versioned comparison as validated data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from ...envs.core.digest import digest_of
from ...envs.core.errors import BadValueError, UnknownNameError
from ...leaderboard.schema.base import Form
from .cell import Cell

Item = TypeVar("Item")


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
    """A model by its folder or hub name."""

    kind: Literal["named"] = "named"
    name: str


Start = Annotated[TaughtStart | BlankStart | NamedStart, Field(discriminator="kind")]


class SuiteEnv(Form):
    """A column of the matrix.

    Attributes:
        id: Registered id.
        settings: Constructor settings.
        start: The model that every recipe starts from.
        limits: Budget of a cell.
        max_tokens: Maximum tokens of an action.
        max_context: Maximum tokens of context and action; None for the model's own limit.
        train_split: Split of the training tasks.
        eval_split: Split of the evaluation tasks.
        eval_tasks: Number of evaluation tasks.
        eval_every: Training steps between points of the learning curve.
        recipe_settings: Changes to every recipe there, before the recipe's own.
    """

    id: str
    settings: dict[str, Any]
    start: Start
    limits: Limits
    max_tokens: int = Field(ge=1)
    max_context: int | None = Field(default=None, ge=2)
    train_split: str = "train"
    eval_split: str = "dev"
    eval_tasks: int = Field(ge=1)
    eval_every: int = Field(ge=0)
    recipe_settings: dict[str, Any] = Field(default_factory=dict)


class SuiteRecipe(Form):
    """A row of the matrix.

    Attributes:
        name: Registered name.
        settings: Changes to the recipe, with dotted names.
    """

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Suite(Form):
    """A frozen comparison; every change needs a new version.

    Attributes:
        name: ``quick``, ``standard``, ``full``, or a custom name.
        version: Raised with every change.
        about: Purpose in one line.
        recipes: Rows.
        envs: Columns.
        seeds: Training seeds.
        small: Whether recipes use their settings for small models instead of the papers'.
        trials: Trials of every evaluation task after training.
        eval_temperature: Sampling temperature of evaluations; above 0 with several trials.
        max_batch: Maximum batch size of sampling.
        device: ``cpu``, ``cuda`` or ``auto``.
        dtype: Number format of sampling and training.
        gpu_memory_gb: Required GPU memory; 0 runs without a GPU.
    """

    name: str
    version: int = Field(ge=1)
    about: str
    recipes: tuple[SuiteRecipe, ...] = Field(min_length=1)
    envs: tuple[SuiteEnv, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(min_length=1)
    small: bool = True
    trials: int = Field(default=1, ge=1)
    eval_temperature: float = Field(default=1.0, ge=0)
    max_batch: int = Field(default=64, ge=1)
    device: Literal["auto", "cpu", "cuda"] = "cpu"
    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    gpu_memory_gb: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Suite:
        for what, names in (
            ("recipes", [r.name for r in self.recipes]),
            ("envs", [e.id for e in self.envs]),
            ("seeds", [str(s) for s in self.seeds]),
        ):
            if len(set(names)) != len(names):
                raise ValueError(f"{what} {names}: duplicate name")
        if self.trials > 1 and self.eval_temperature == 0:
            raise ValueError(
                "several trials of greedy decoding are identical; raise eval_temperature"
            )
        return self

    @property
    def digest(self) -> str:
        """Return a stable hash of the content."""
        return digest_of(self.model_dump(mode="json"))

    @property
    def cells(self) -> list[Cell]:
        """Return all cells, ordered by seed."""
        return [
            Cell(recipe=recipe.name, env_id=env.id, seed=seed)
            for seed in self.seeds
            for env in self.envs
            for recipe in self.recipes
        ]

    def env(self, env_id: str) -> SuiteEnv:
        """Return the column of an environment.

        Raises:
            UnknownNameError: The suite has none of that id.
        """
        return _named(env_id, {e.id: e for e in self.envs}, "environment", self.name)

    def recipe(self, name: str) -> SuiteRecipe:
        """Return the row of a recipe.

        Raises:
            UnknownNameError: The suite has none of that name.
        """
        return _named(name, {r.name: r for r in self.recipes}, "recipe", self.name)

    def only(self, words: Sequence[str]) -> list[Cell]:
        """Select cells by ``recipe=NAME``, ``env=ID``, ``seed=N``; repeated keys are alternatives.

        Raises:
            BadValueError: A word of another form.
            UnknownNameError: A name that the suite does not have.
        """
        wanted: dict[str, set[str]] = {}
        for word in words:
            kind, equals, name = word.partition("=")
            if not equals or kind not in ("recipe", "env", "seed"):
                raise BadValueError(f"--only {word}: expected recipe=NAME, env=ID or seed=N.")
            if kind == "recipe":
                name = self.recipe(name).name
            elif kind == "env":
                known = {e.id.removesuffix("-v0"): e.id for e in self.envs}
                name = self.env(known.get(name, name)).id
            elif name not in map(str, self.seeds):
                raise UnknownNameError("seed", name, self.seeds, f"suite {self.name}")
            wanted.setdefault(kind, set()).add(name)
        return [
            cell
            for cell in self.cells
            if cell.recipe in wanted.get("recipe", {cell.recipe})
            and cell.env_id in wanted.get("env", {cell.env_id})
            and str(cell.seed) in wanted.get("seed", {str(cell.seed)})
        ]


def _named(name: str, known: dict[str, Item], what: str, suite: str) -> Item:
    if name not in known:
        raise UnknownNameError(what, name, known, f"suite {suite}")
    return known[name]
