"""How much a training step plays: whole groups in order, until a number or a limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..core.forest import Group
from ..core.protocols import Rollout, Start
from .episode_runner import EpisodeRunner
from .stats import group_tokens, group_turns

PROBE_PATHS = 8
"""Paths that are played at once where nothing is known yet of a group's size."""
EMPTY_IN_A_ROW = 32
"""Groups in a row without any action, all of their environments broken, that end a step."""


@dataclass(frozen=True)
class Amount:
    """What was played.

    Attributes:
        tokens: Sampled tokens.
        turns: Environment steps.
        groups: Groups.
    """

    tokens: int = 0
    turns: int = 0
    groups: int = 0

    @classmethod
    def of(cls, groups: Iterable[Group]) -> Amount:
        """Return the sum over these groups."""
        each = list(groups)
        return cls(sum(map(group_tokens, each)), sum(map(group_turns, each)), len(each))

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.tokens + other.tokens, self.turns + other.turns, self.groups + other.groups
        )


@dataclass(frozen=True)
class Played:
    """What a run has played before a step: with seed and weights, all that the step depends on.

    Attributes:
        steps: Steps.
        total: In all of them.
        last: In the newest, which says how many groups the next one will need.
    """

    steps: int = 0
    total: Amount = Amount()
    last: Amount = Amount()

    def after(self, groups: Iterable[Group]) -> Played:
        """Return the same after a step that played these groups."""
        step = Amount.of(groups)
        return Played(self.steps + 1, self.total + step, step)


@dataclass(frozen=True)
class StepLimits:
    """Limits of a step: it ends with the group that reaches one of them.

    Attributes:
        tokens: Sampled tokens; None for no limit.
        turns: Environment steps; None for no limit.
    """

    tokens: int | None = None
    turns: int | None = None

    @property
    def off(self) -> bool:
        """Whether there is no limit."""
        return self.tokens is None and self.turns is None

    def reached(self, used: Amount) -> bool:
        """Whether so much is enough."""
        return (self.tokens is not None and used.tokens >= self.tokens) or (
            self.turns is not None and used.turns >= self.turns
        )

    def room(self, used: Amount, seen: Amount) -> int | None:
        """Return how many more groups are expected to fit, None where ``seen`` cannot say.

        Args:
            used: What the step has played.
            seen: Groups to take the means of.
        """
        rooms = [
            (limit - spent) * seen.groups / each
            for limit, spent, each in (
                (self.tokens, used.tokens, seen.tokens),
                (self.turns, used.turns, seen.turns),
            )
            if limit is not None and each > 0
        ]
        return max(1, int(min(rooms) + 0.5)) if rooms else None


class StepPlayer:
    """Plays the groups of one step in order, blocks of them concurrently.

    The step's groups are the shortest beginning of its order that reaches a limit; groups of the
    last block behind that are dropped as if they had not been played, so that the step does not
    depend on the size of the blocks, and never samples more than one group too much.

    Args:
        runner: Plays the groups.
        rollout: How their trees grow.
        limits: When the step is over.
        last: What the step before played: its means give the size of the first block.

    Attributes:
        used: What was played.
        unused_tokens: Tokens of the groups that were dropped.
    """

    def __init__(
        self, runner: EpisodeRunner, rollout: Rollout, limits: StepLimits, last: Amount
    ) -> None:
        self._runner = runner
        self._rollout = rollout
        self._limits = limits
        self._last = last
        self._empty = 0
        self.used = Amount()
        self.unused_tokens = 0

    @property
    def over(self) -> bool:
        """Whether a limit is reached, or nothing but broken environments was met."""
        return self._limits.reached(self.used) or self._empty >= EMPTY_IN_A_ROW

    async def groups(
        self, starts: Callable[[int, int], Sequence[Start]], most: int | None
    ) -> list[Group]:
        """Return the next groups of the step.

        Args:
            starts: Returns up to so many starts (second argument) from a place (first one) on.
            most: Number of groups; None for as many as it takes to reach a limit.
        """
        out: list[Group] = []
        while not self.over and (most is None or len(out) < most):
            count = self._block(None if most is None else most - len(out))
            block = await self._runner.groups(self._rollout, starts(len(out), count))
            for group in block:
                one = Amount.of([group])
                if self.over:
                    self.unused_tokens += one.tokens
                    continue
                self.used += one
                self._empty = 0 if one.tokens or one.turns else self._empty + 1
                out.append(group)
        return out

    def _block(self, most: int | None) -> int:
        """Return how many groups to play at once."""
        if self._limits.off and most is not None:
            return most
        room = self._limits.room(self.used, self._last + self.used)
        if room is None:
            room = max(1, PROBE_PATHS // self._rollout.max_paths)
        return room if most is None else min(room, most)
