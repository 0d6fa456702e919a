"""What a claim runs: kinds of experiments and their arms, as frozen data."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from ...envs.core.digest import digest_of
from ...leaderboard.schema.base import Form
from ..matrix.suite import Start, Suite, SuiteEnv, SuiteRecipe

MAX_SEEDS = 20
_OF_CRAWLS = ("recall", "actions", "return")


class TrainedArm(Form):
    """A recipe trained in a world under a budget.

    Attributes:
        name: Short name.
        recipe: Registered recipe.
        settings: Changes to its settings for small models.
        column: World, start, budget and evaluation.
    """

    name: str
    recipe: str
    settings: dict[str, Any] = Field(default_factory=dict)
    column: SuiteEnv


class Training(Form):
    """Arms that are trained as cells of the matrix, each in a matrix of its own.

    Attributes:
        arms: What is compared.
        trials: Tries of every evaluation task after training.
    """

    kind: Literal["training"] = "training"
    arms: tuple[TrainedArm, ...] = Field(min_length=1)
    trials: int = Field(default=2, ge=1)

    measures: ClassVar[tuple[str, ...]] = (
        "success",
        "return",
        "area_tokens",
        "area_calls",
        "fall",
        "turns",
    )

    def suite(self, arm: TrainedArm) -> Suite:
        """The matrix of an arm; which seeds of it are computed is said when it is filled."""
        return Suite(
            name=arm.name,
            version=1,
            about=f"{arm.recipe} on {arm.column.id}, an arm of a claim",
            recipes=(SuiteRecipe(name=arm.recipe, settings=arm.settings),),
            envs=(arm.column,),
            seeds=tuple(range(MAX_SEEDS)),
            trials=self.trials,
        )

    def key(self, arm: TrainedArm) -> str:
        """Name of the arm's folder; claims with the same arm share it."""
        return f"{arm.name}-{self.suite(arm).digest[:12]}"


class Untrained(Form):
    """Arms that are computed in this process."""

    def key(self, arm: Form) -> str:
        """Return the name of the arm's folder."""
        whole = self.model_dump(mode="json", exclude={"arms"})
        content = {**whole, "arm": arm.model_dump(mode="json")}
        return f"{content['arm']['name']}-{digest_of(content)[:12]}"


class PlayedArm(Form):
    """A rollout strategy.

    Attributes:
        name: Short name.
        rollout: Which.
        settings: Its settings.
    """

    name: str
    rollout: Literal["chains", "expand", "branch"]
    settings: dict[str, Any] = Field(default_factory=dict)


class Playing(Untrained):
    """Arms that play the same tasks with the same model; nothing is trained.

    Attributes:
        arms: What is compared.
        env_id: The world.
        settings: What it is made with.
        start: The model.
        split: Split of the tasks.
        tasks: Tasks that each seed plays; other ones with another seed.
        max_tokens: Most tokens of an action.
        probe_tokens: First tokens of an action whose entropy counts.
    """

    kind: Literal["playing"] = "playing"
    arms: tuple[PlayedArm, ...] = Field(min_length=1)
    env_id: str
    settings: dict[str, Any]
    start: Start
    split: str = "train"
    tasks: int = Field(ge=2)
    max_tokens: int = Field(ge=1)
    probe_tokens: int = Field(default=20, ge=1)

    measures: ClassVar[tuple[str, ...]] = ("leaves_per_token", "leaves_per_call", "entropy_rise")


class CrawledArm(Form):
    """A linear crawler, trained by PaSa's session PPO.

    Attributes:
        name: Short name.
        world: Settings of the world that it is trained in; it is scored in the usual one.
        settings: Changes to :class:`~turngym.benchmarks.papers.linear_crawler.LinearSettings`.
    """

    name: str
    world: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)


class Crawling(Untrained):
    """Arms of the linear crawler; whole crawls of the first dev requests are scored.

    Attributes:
        arms: What is compared.
        world: Settings of the world in training and scoring.
        requests: Requests that are scored.
        settings: Changes for all arms, before the arm's own.
    """

    kind: Literal["crawling"] = "crawling"
    arms: tuple[CrawledArm, ...] = Field(min_length=1)
    world: dict[str, Any] = Field(default_factory=dict)
    requests: int = Field(ge=2)
    settings: dict[str, Any] = Field(default_factory=dict)

    measures: ClassVar[tuple[str, ...]] = _OF_CRAWLS


class PlannedArm(Form):
    """A planner.

    Attributes:
        name: Short name.
        planner: Which.
        settings: Its settings.
    """

    name: str
    planner: Literal["greedy", "sampling", "best-of-n", "reflexion", "mcts"]
    settings: dict[str, Any] = Field(default_factory=dict)


class Planning(Untrained):
    """Arms that plan with the same model and the same learned trajectory reward.

    Attributes:
        arms: What is compared.
        env_id: The world.
        settings: What it is made with.
        start: The model that acts, and that the reward model begins with.
        split: Split of the tasks.
        tasks: Tasks that are planned.
        max_tokens: Most tokens of an action.
        token_budget: Most tokens that planning a task may sample.
        pair_tasks: Tasks of the train split that pairs are made from.
        pair_tries: Attempts per task.
        reward: Changes to :class:`~turngym.agents.planning.settings.RewardTraining`.
    """

    kind: Literal["planning"] = "planning"
    arms: tuple[PlannedArm, ...] = Field(min_length=1)
    env_id: str
    settings: dict[str, Any]
    start: Start
    split: str = "dev"
    tasks: int = Field(ge=2)
    max_tokens: int = Field(ge=1)
    token_budget: int = Field(ge=1)
    pair_tasks: int = Field(ge=10)
    pair_tries: int = Field(default=4, ge=2)
    reward: dict[str, Any] = Field(default_factory=dict)

    measures: ClassVar[tuple[str, ...]] = ("success", "return")
