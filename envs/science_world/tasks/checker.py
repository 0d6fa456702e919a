"""The goal checker: moves a task's progress on, and counts its score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...digest import digest_of
from ..wording import full_name
from ..world import NONE, TERMINALS, World
from .goal import FAIL, NO, YES, Goal, Goals, Look
from .progress import Progress

FULL_SCORE = 100


@dataclass(slots=True)
class TaskState:
    """The goals of an episode and how far they have come; lives in ``World.goals``.

    Attributes:
        task: Id of the task ("1-1").
        variation: Number of the variation.
        goals: What is to be reached.
        progress: What has been reached.
        wanted: Names that goals look for around the agent.
    """

    task: str
    variation: int
    goals: Goals
    progress: Progress
    wanted: Mapping[str, str]

    @classmethod
    def start(cls, task: str, variation: int, goals: Goals) -> TaskState:
        """The state before the first check."""
        count = len(goals.optional)
        progress = Progress(optional=[False] * count, memory=[None] * count)
        return cls(task, variation, goals, progress, goals.wanted())

    def fork(self) -> TaskState:
        """An independent copy; the goals stay shared."""
        progress = self.progress.fork()
        return TaskState(self.task, self.variation, self.goals, progress, self.wanted)

    def digest(self) -> str:
        """Text that names the progress; the goals follow from the task."""
        return digest_of(self.progress)

    def check(self, world: World) -> None:
        """One check: ordered goals while the focus satisfies them, then optional ones."""
        look = Look(world, self.progress, self.wanted)
        if world.focus >= TERMINALS:
            self._check_terminal()
        elif world.focus != NONE:
            look.focus = world.focus
            self._check_ordered(look)
        self._check_optional(look)

    def note(self, world: World, deed: str, thing: int, patient: int = NONE) -> None:
        """Remember that the agent used, read or looked at something.

        Args:
            world: Where it was done.
            deed: "use", "read" or "look at".
            thing: What was used, read or looked at.
            patient: What a tool was used on.
        """
        name = world.name[thing].lower()
        other = thing if patient == NONE else patient
        self.progress.deeds.append((deed, name, full_name(world, other).lower()))

    def reset(self) -> None:
        """What the action "reset task" does to the goals."""
        self.progress.restart()

    @property
    def completed(self) -> bool:
        """Whether all ordered goals are done."""
        return self.progress.ordered >= len(self.goals.ordered)

    @property
    def failed(self) -> bool:
        """Whether the task is failed, and its score -1."""
        return self.progress.failed

    @property
    def score(self) -> float:
        """Score from 0 to 1; -1 as long as the task is failed.

        An ordered goal is worth 1/n of n; all optional ones together 1/(n + 1).
        """
        if self.progress.failed:
            return -1.0
        count = len(self.goals.ordered)
        unit = (1 / (count + 1)) / len(self.goals.optional)
        # Added up one by one, as the original does, so that rounding ends in the same integer.
        extra = 0.0
        for done in self.progress.optional:
            if done:
                extra += unit
        return min(self.progress.ordered / count + extra, 1.0)

    @property
    def points(self) -> int:
        """The score as an integer, 0 to 100, or -100."""
        return round(FULL_SCORE * self.score)

    def _check_terminal(self) -> None:
        if not self.completed:
            verdict = self.goals.ordered[self.progress.ordered].on_terminal()
            self.progress.failed = self.progress.failed or verdict == FAIL

    def _check_ordered(self, look: Look) -> None:
        progress, goals = self.progress, self.goals.ordered
        while progress.ordered < len(goals):
            goal = goals[progress.ordered]
            verdict = goal.check(look)
            if verdict != YES:
                progress.failed = progress.failed or verdict == FAIL
                return
            progress.last = look.focus
            progress.ordered += 1
            if goal.key:
                progress.keys.add(goal.key)
            if goal.defocus:
                look.world.focus = look.focus = NONE
                return

    def _check_optional(self, look: Look) -> None:
        progress, focus = self.progress, look.focus
        waiting = [slot for slot, done in enumerate(progress.optional) if not done]
        while waiting:
            left: list[int] = []
            for slot in waiting:
                goal = self.goals.optional[slot]
                look.slot = slot
                if progress.keys.issuperset(goal.needs) and _satisfied(goal, look, focus):
                    progress.optional[slot] = True
                    if goal.key:
                        progress.keys.add(goal.key)
                else:
                    left.append(slot)
            if len(left) == len(waiting):
                return
            waiting = left


def _satisfied(goal: Goal, look: Look, focus: int) -> bool:
    """Whether a goal holds when asked without a focus, or else with it."""
    look.focus = NONE
    verdict = goal.check(look)
    if verdict == NO and focus != NONE:
        look.focus = focus
        verdict = goal.check(look)
    return verdict == YES
