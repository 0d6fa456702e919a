"""Experiments of claims and their arms, as frozen data."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from ...envs.core.digest import digest_of
from ...leaderboard.schema.base import Form
from ..matrix.starts import letters_start
from ..matrix.suite import (
    BlankStart,
    Limits,
    Start,
    Suite,
    SuiteEnv,
    SuiteRecipe,
    TaughtStart,
)

MAX_SEEDS = 20
OTHER_SEEDS = MAX_SEEDS
"""First seed of a repeated arm."""
LR = 2e-3
"""Learning rate of a model of 0.1 million parameters on the diagnostic environments."""
ONE_UPDATE = {"optim.minibatches": 1, "optim.epochs": 1, "optim.warmup_steps": 0}
"""A step is one update: what differs between arms is whom they compare, not how far they go."""
WARMUP = 5
"""Optimiser steps over which the learning rate rises where the start is one of the ladder's."""
SEARCH_LR = 3e-4
NO_REFERENCE = {"loss.kl.coef": 0.0}
"""Recipes that differ by other parts share this one."""
SEARCH_START = TaughtStart(world={"size": "micro", "hops": (1, 2)})
"""The package's mid-level starter, taught in micro SearchQA."""
_OF_CRAWLS = ("recall", "actions", "return")


class TrainedArm(Form):
    """A recipe trained in an environment under a budget.

    Attributes:
        name: Short name.
        recipe: Registered recipe.
        settings: Changes to its settings for small models.
        column: Environment, starting model, budget and evaluation.
    """

    name: str
    recipe: str
    settings: dict[str, Any] = Field(default_factory=dict)
    column: SuiteEnv


class Training(Form):
    """Arms that are trained as cells of the matrix, each in a matrix of its own.

    ``area`` is the mean of training success over the budget of sampled tokens, from the episodes
    that training plays anyway; ``area_return``, ``area_right`` and ``area_coins`` are those of the
    return and of an environment's shares of right letters and of coins. Training counts a session
    as an episode: where there are sessions, their mean success and return are not those of whole
    episodes, which coins are. ``area_tokens`` and ``area_calls`` are of the evaluations
    between training steps, where there are some. ``success`` (sampled), ``greedy`` (success of
    greedy decoding) and ``return`` are of the weights at the end, never of the best ones.

    Attributes:
        arms: The compared arms.
        trials: Trials of every evaluation task after training.
    """

    kind: Literal["training"] = "training"
    arms: tuple[TrainedArm, ...] = Field(min_length=1)
    trials: int = Field(default=2, ge=1)

    measures: ClassVar[tuple[str, ...]] = (
        "success",
        "greedy",
        "return",
        "area",
        "area_return",
        "area_right",
        "area_coins",
        "area_tokens",
        "area_calls",
        "fall",
        "turns",
    )

    def suite(self, arm: TrainedArm) -> Suite:
        """Return the matrix of an arm, with all possible seeds."""
        return Suite(
            name=arm.name,
            version=1,
            about=f"{arm.recipe} on {arm.column.id}, an arm of a claim",
            recipes=(SuiteRecipe(name=arm.recipe, settings=arm.settings),),
            envs=(arm.column,),
            seeds=tuple(range(OTHER_SEEDS + MAX_SEEDS)),
            trials=self.trials,
        )

    def key(self, arm: TrainedArm) -> str:
        """Return the name of the arm's folder, which claims with the same arm share."""
        return f"{arm.name}-{self.suite(arm).digest[:12]}"

    def pairing(self, arm: TrainedArm) -> str:
        """Return a hash of the arm's starting model, environment and tasks."""
        kept = {"recipe_settings", "limits", "eval_every"}
        return digest_of(arm.column.model_dump(mode="json", exclude=kept))[:12]

    def only(self, name: str) -> Training:
        """Return the experiment with one of its arms."""
        return self.model_copy(update={"arms": tuple(a for a in self.arms if a.name == name)})


class Untrained(Form):
    """Arms that are computed in this process.

    Attributes:
        arms: The compared arms.
    """

    arms: tuple[Any, ...]

    def only(self, name: str) -> Self:
        """Return the experiment with one of its arms."""
        return self.model_copy(update={"arms": tuple(a for a in self.arms if a.name == name)})

    def key(self, arm: Form) -> str:
        """Return the name of the arm's folder."""
        whole = self.model_dump(mode="json", exclude={"arms"})
        content = {**whole, "arm": arm.model_dump(mode="json")}
        return f"{content['arm']['name']}-{digest_of(content)[:12]}"


class PlayedArm(Form):
    """A rollout strategy.

    Attributes:
        name: Short name.
        rollout: Name of the strategy.
        settings: Its settings.
    """

    name: str
    rollout: Literal["chains", "expand", "branch"]
    settings: dict[str, Any] = Field(default_factory=dict)


class ModelExperiment(Untrained):
    """Arms that use the same model on the same tasks.

    Attributes:
        env_id: The environment.
        settings: Constructor settings of the environment.
        start: The model; planning's reward model starts from it too.
        tasks: Number of tasks; in :class:`Playing` each seed has different ones.
        max_tokens: Maximum tokens of an action.
    """

    env_id: str
    settings: dict[str, Any]
    start: Start
    tasks: int = Field(ge=2)
    max_tokens: int = Field(ge=1)


class Playing(ModelExperiment):
    """Arms that play the same tasks with the same model, without training.

    Attributes:
        arms: The compared arms.
        split: Split of the tasks.
        probe_tokens: First tokens of an action whose entropy counts.
    """

    kind: Literal["playing"] = "playing"
    arms: tuple[PlayedArm, ...] = Field(min_length=1)
    split: str = "train"
    probe_tokens: int = Field(default=20, ge=1)

    measures: ClassVar[tuple[str, ...]] = ("leaves_per_token", "leaves_per_call", "entropy_rise")


class CrawledArm(Form):
    """A linear crawler, trained by PaSa's session PPO.

    Attributes:
        name: Short name.
        env_settings: Settings of the training environment; scoring uses the default one.
        settings: Changes to :class:`~turngym.benchmarks.papers.linear_crawler.LinearSettings`.
    """

    name: str
    env_settings: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)


class Crawling(Untrained):
    """Arms of the linear crawler; whole crawls of the first dev requests are scored.

    Attributes:
        arms: The compared arms.
        env_settings: Settings of the environment in training and scoring.
        requests: Requests that are scored.
        settings: Changes for all arms, before the arm's own.
    """

    kind: Literal["crawling"] = "crawling"
    arms: tuple[CrawledArm, ...] = Field(min_length=1)
    env_settings: dict[str, Any] = Field(default_factory=dict)
    requests: int = Field(ge=2)
    settings: dict[str, Any] = Field(default_factory=dict)

    measures: ClassVar[tuple[str, ...]] = _OF_CRAWLS


class PlannedArm(Form):
    """A planner.

    Attributes:
        name: Short name.
        planner: Name of the planner.
        settings: Its settings.
    """

    name: str
    planner: Literal["greedy", "sampling", "best-of-n", "reflexion", "mcts"]
    settings: dict[str, Any] = Field(default_factory=dict)


class Planning(ModelExperiment):
    """Arms that plan with the same model and the same learned trajectory reward.

    Attributes:
        arms: The compared arms.
        split: Split of the tasks.
        token_budget: Maximum sampled tokens per task.
        pair_tasks: Training tasks that pairs are made from.
        pair_tries: Attempts per task.
        reward: Changes to :class:`~turngym.agents.planning.settings.RewardTraining`.
    """

    kind: Literal["planning"] = "planning"
    arms: tuple[PlannedArm, ...] = Field(min_length=1)
    split: str = "dev"
    token_budget: int = Field(ge=1)
    pair_tasks: int = Field(ge=10)
    pair_tries: int = Field(default=4, ge=2)
    reward: dict[str, Any] = Field(default_factory=dict)

    measures: ClassVar[tuple[str, ...]] = ("success", "return")


Experiment = Training | Playing | Crawling | Planning


def play_search(*arms: PlayedArm) -> Playing:
    """Play two-hop questions of micro SearchQA with the package's mid-level starter."""
    return Playing(
        arms=arms,
        env_id="SearchQA-v0",
        settings={"size": "micro", "hops": 2},
        start=SEARCH_START,
        tasks=48,
        max_tokens=64,
    )


def train_arm(name: str, recipe: str, column: SuiteEnv, **settings: Any) -> TrainedArm:
    """Make a trained arm; double underscores in names of settings stand for dots."""
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    return TrainedArm(name=name, recipe=recipe, settings=dotted, column=column)


def probe(env_id: str, tokens: int, per_step: int, *, every: int = 0, **settings: Any) -> SuiteEnv:
    """Make the column of a diagnostic environment, where a blank model learns within seconds."""
    return SuiteEnv(
        id=env_id,
        settings={"size": "micro", **settings},
        start=BlankStart(),
        limits=Limits(tokens=tokens, calls=tokens),
        max_tokens=3,
        eval_split="train",
        eval_tasks=60,
        eval_every=every,
        recipe_settings={**ONE_UPDATE, "optim.lr": LR, "tokens_per_step": per_step},
    )


GUESS = 1 / 3
"""Share of right letters of who writes one of three at random: the floor in their environments."""


def letters(
    env_id: str,
    tokens: int,
    per_step: int = 256,
    *,
    count: int = 3,
    lr: float = LR,
    calls: int | None = None,
    **settings: Any,
) -> SuiteEnv:
    """Make the column of an environment of letters, which a model starts by writing at random.

    Every setting of an environment has the same start
    (:func:`~turngym.benchmarks.matrix.starts.letters_start`).
    Where random letters teach a model not to act, :func:`taught` gives it another one.

    Args:
        env_id: The environment.
        tokens: Budget of sampled tokens; a letter is one token.
        per_step: Sampled tokens of a training step.
        count: Number of letters.
        lr: Learning rate.
        calls: Budget of actions; that of tokens when left out.
        settings: Constructor settings of the environment.
    """
    return SuiteEnv(
        id=env_id,
        settings={"size": "micro", **settings},
        start=letters_start(count, {}),
        limits=Limits(tokens=tokens, calls=calls or tokens),
        max_tokens=1,
        eval_tasks=60,
        eval_every=0,
        recipe_settings={**ONE_UPDATE, "optim.lr": lr, "tokens_per_step": per_step},
    )


def taught(column: SuiteEnv, start: Start) -> SuiteEnv:
    """Return a column with another starting model, whose rate rises as the ladder's do."""
    settings = {**column.recipe_settings, "optim.warmup_steps": WARMUP}
    return column.model_copy(update={"start": start, "recipe_settings": settings})


def search(
    tokens: int = 10_000,
    per_step: int = 600,
    *,
    hops: int = 2,
    start: Start = SEARCH_START,
    **settings: Any,
) -> SuiteEnv:
    """Make the column of micro SearchQA, starting from the package's mid-level starter.

    Two hops bend flat at about 10,000 tokens; more of them measures the ceiling.
    """
    return SuiteEnv(
        id="SearchQA-v0",
        settings={"size": "micro", "hops": hops, **settings},
        start=start,
        limits=Limits(tokens=tokens, calls=tokens),
        max_tokens=64,
        eval_tasks=100,
        eval_every=0,
        recipe_settings={
            **ONE_UPDATE,
            **NO_REFERENCE,
            "optim.lr": SEARCH_LR,
            "tokens_per_step": per_step,
        },
    )
