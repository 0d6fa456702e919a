"""How much a training step plays: whole groups in order, until a number or a limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...envs.core.errors import BadValueError, EnvFault
from ..core.forest import Group
from ..core.protocols import Rollout, Start
from .episode_runner import EpisodeRunner
from .stats import group_tokens, group_turns

PROBE_PATHS = 8
"""Paths that are played at once where nothing is known yet of a group's size."""
EMPTY_IN_A_ROW = 32
"""Groups in a row without any action, as where all environments are broken, that end a step."""
EMPTY_STEPS = 8
"""Steps in a row whose groups have no action, that end a run: no budget of tokens would."""


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

    @property
    def empty(self) -> bool:
        """Whether there are groups, and no action in any."""
        return self.groups > 0 and not (self.tokens or self.turns)

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
        empty: Newest steps in a row whose groups have no action.
    """

    steps: int = 0
    total: Amount = Amount()
    last: Amount = Amount()
    empty: int = 0

    def after(self, groups: Iterable[Group]) -> Played:
        """Return the same after a step that played these groups."""
        step = Amount.of(groups)
        empty = self.empty + 1 if step.empty else 0
        return Played(self.steps + 1, self.total + step, step, empty)


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


def check_going_on(rollout: Rollout, played: Played, groups: Iterable[Group], fault: str) -> None:
    """End a run that plays step after step without a single action.

    Args:
        rollout: What grew the groups.
        played: What the run has played, the present step included.
        groups: Those of the present step.
        fault: The last error of an environment; empty where it is not known.

    Raises:
        EnvFault: The environments were broken.
        BadValueError: The rollout attached no turn.
    """
    if played.empty < EMPTY_STEPS:
        return
    steps = f"steps {played.steps - played.empty + 1} to {played.steps}"
    if any(group.faults for group in groups):
        raise EnvFault(
            f"training: the environment was broken in all episodes of {steps}, and no budget of "
            f"tokens or calls is used up so. {fault or 'It raised EnvFault when it was reset.'} "
            "Once it works, the same call resumes the run from its last checkpoint."
        )
    raise BadValueError(
        f"training: the groups of {steps} have no turn, so there is nothing to train on, and no "
        f"budget of tokens or calls is used up. {type(rollout).__name__} attached none; expected "
        "trees that grow by runner.turn(handle, tree)."
    )


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
            chosen = starts(len(out), count)
            if not chosen:
                raise BadValueError(
                    f"training: no task was given for place {len(out)} of a step; expected up to "
                    f"{count}, at least one (starts, starts_from of the tracker's TaskSource)."
                )
            block = await self._runner.groups(self._rollout, chosen)
            for group in block:
                one = Amount.of([group])
                if self.over:
                    self.unused_tokens += one.tokens
                    continue
                self.used += one
                self._empty = self._empty + 1 if one.empty else 0
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
