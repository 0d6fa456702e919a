"""What planning may cost, and what it did cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ...envs.core.settings import check_integer


@dataclass(frozen=True, kw_only=True)
class PlanningBudget:
    """Limits of one episode's planning; neither is ever exceeded.

    A model is asked only while its longest reply still fits, so that up to that many tokens stay
    unused at the end.

    Attributes:
        tokens: Maximum sampled tokens, None for no limit.
        steps: Maximum environment steps in forks, None for no limit. Playing the answer afterwards
            does not count.
    """

    tokens: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "steps"):
            if (value := getattr(self, name)) is not None:
                check_integer(name, value, "planning budget", min=1)


@dataclass(kw_only=True, slots=True)
class PlanningCost:
    """What one episode's planning cost.

    Attributes:
        model_calls: Actions and plans that the model was asked for.
        prompt_tokens: Tokens that it read, cached ones included.
        sampled_tokens: Tokens that it wrote.
        search_steps: Environment steps in forks.
        forks: Copies of the environment.
        trajectories: Trajectories that were tried.
    """

    model_calls: int = 0
    prompt_tokens: int = 0
    sampled_tokens: int = 0
    search_steps: int = 0
    forks: int = 0
    trajectories: int = 0

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {name: float(value) for name, value in asdict(self).items()}


class BudgetExhausted(Exception):
    """The budget has no room for what a search wants to do next."""
