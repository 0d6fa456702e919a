"""The groups of every recipe, played by its own rollout and measured once where they are equal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...agents.scripted import text_env
from ...algos.core.forest import Forest, Group
from ...algos.core.protocols import Rollout, Start, TaskSource
from ...algos.core.recipe import Recipe
from ...algos.learner.learner import Learner
from ...algos.rollouts.collect import play_first
from ...algos.rollouts.stats import group_tokens
from ...algos.rollouts.task_order import OrderedTasks
from ...envs.core.errors import BadValueError
from ...envs.core.tasks import get_split_blocks, get_split_size
from .crew import Bench, Crew, Job
from .resampling import ResampleSettings, check_resampled
from .truth import MeasuredGroup, RandomTransitionError, TruthSettings, Work

Tick = Callable[[float, str], None]
_Place = tuple[Rollout, float, Start]


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A recipe under the microscope.

    Attributes:
        name: As the report calls it.
        recipe: The recipe.
        learner: Scores its paths and differentiates the policy.
        tasks: Its task source.
    """

    name: str
    recipe: Recipe
    learner: Learner
    tasks: TaskSource


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """The groups that a recipe is judged by.

    Attributes:
        groups: With the truth of their turns.
        tokens: Tokens that were sampled for each, those of groups that the recipe's filter dropped
            shared out.
    """

    groups: Sequence[MeasuredGroup]
    tokens: float

    @property
    def forest(self) -> Forest:
        """The groups as a forest."""
        return Forest.of([measured.group for measured in self.groups])

    @property
    def names(self) -> list[str]:
        """Unique names of the starts."""
        return [measured.start.uid for measured in self.groups]


def make_subject(name: str, recipe: Recipe, bench: Bench) -> Subject:
    """Return a recipe with its learner and its tasks.

    Raises:
        BadValueError: Its actions are not sampled by the policy, or it cannot play here.
    """
    config, env = bench.config, text_env(bench.env)
    if not recipe.rollout.samples:
        raise BadValueError(
            f"credit: the actions of recipe {name!r} are not sampled by the policy, so they have "
            "no advantage under it. Leave the recipe out."
        )
    recipe.rollout.check(env)
    learner = Learner(
        bench.policy,
        recipe,
        pad_id=bench.renderer.pad_id,
        settings=config.learner,
        seed=config.seed,
    )
    size = get_split_size(env.source, config.split, env.name)
    if recipe.tracker is None:
        blocks = get_split_blocks(env.source, config.split)
        tasks = OrderedTasks(config.seed, config.split, size if blocks is None else blocks)
    else:
        tasks = recipe.tracker.start(config.seed, config.split, size, env.reward_range)
        if tasks.first_episodes:
            runner = bench.runner(recipe.temperature)
            asyncio.run(play_first(runner, tasks, lambda _done, _text: None))
    return Subject(name=name, recipe=recipe, learner=learner, tasks=tasks)


@dataclass(kw_only=True, eq=False)
class Playground:
    """Plays and measures groups, each distinct one once.

    Attributes:
        crew: Plays them.
        truth: How truth is measured.
        groups: Groups of a recipe with ``paths`` paths in each.
        paths: Recipes with smaller groups get more of them, so that all have about as many paths.
        resample: How often anchors are resampled; 0 for not at all.
        anchors: Anchors in all groups of a recipe together.
        chance: Whether the environment says that its transitions are random.
        random: Whether they are taken as random.
    """

    crew: Crew
    truth: TruthSettings
    groups: int
    paths: int
    resample: int = 0
    anchors: int = 30
    chance: bool = False
    random: bool = False
    _found: dict[_Place, MeasuredGroup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        said = self.chance and self.truth.transitions == "auto"
        self.random = said or self.truth.transitions == "random"

    @property
    def work(self) -> Work:
        """What was played for the truth, of all groups together."""
        works = [measured.work for measured in self._found.values()]
        return Work(
            continuations=sum(work.continuations for work in works),
            actions=sum(work.actions for work in works),
        )

    def samples(self, subjects: Sequence[Subject], tick: Tick) -> dict[str, Sample]:
        """Return the groups of every recipe by its name.

        Recipes with a filter come last: it then costs nothing to look at groups that others keep.

        Raises:
            RandomTransitionError: A step drew random numbers, but transitions are said to be fixed.
        """
        order = sorted(subjects, key=lambda subject: subject.recipe.filter is not None)
        if self.resample:
            for subject in order:
                check_resampled(subject.recipe.rollout)
        try:
            return self._all(order, tick)
        except RandomTransitionError:
            if self.random or self.truth.transitions != "auto":
                raise
            self.random = True
            self._found.clear()
            return self._all(order, tick)

    def _all(self, subjects: Sequence[Subject], tick: Tick) -> dict[str, Sample]:
        samples = {}
        for done, subject in enumerate(subjects):

            def report(part: float, text: str, done: int = done, name: str = subject.name) -> None:
                tick((done + part) / len(subjects), f"{name}, {text}")

            samples[subject.name] = self._sample(subject, report)
        return samples

    def count(self, recipe: Recipe) -> int:
        """Return the number of groups of a recipe."""
        return max(self.groups, round(self.groups * self.paths / recipe.rollout.max_paths))

    def _sample(self, subject: Subject, tick: Tick) -> Sample:
        """Play rounds until the recipe's filter has accepted enough groups.

        Of a further round no more groups are played than are missing, which keeps the same ones.
        """
        keep = subject.recipe.filter
        count = self.count(subject.recipe)
        rounds = 1 if keep is None else keep.max_rounds
        played: list[MeasuredGroup] = []
        kept: list[MeasuredGroup] = []
        for number in range(rounds):
            starts = list(subject.tasks.starts(1, count, number))
            while starts and (missing := count - len(kept)) > 0:
                batch = self._measured(subject.recipe, starts[:missing], tick)
                starts = starts[missing:]
                played += batch
                kept += [m for m in batch if keep is None or keep.keeps(episode_returns(m.group))]
        if not any(measured.truths for measured in kept):
            raise BadValueError(
                f"credit: recipe {subject.name!r} has no group with a turn to measure after "
                f"{rounds} rounds of {count}; choose a policy that succeeds now and then."
            )
        spent = sum(group_tokens(measured.group) for measured in played)
        return Sample(groups=kept, tokens=spent / len(kept))

    def _measured(self, recipe: Recipe, starts: Sequence[Start], tick: Tick) -> list[MeasuredGroup]:
        """Return the groups of these starts; those that are not known yet are played."""
        places = [(recipe.rollout, recipe.temperature, start) for start in starts]
        jobs = self._jobs(recipe, [p[2] for p in places if p not in self._found])
        done = 0
        for measured in self.crew.run(jobs):
            for one in measured:
                self._found[recipe.rollout, recipe.temperature, one.start] = one
            done += len(measured)
            tick(done / len(starts), f"{done} of {len(starts)} groups")
        return [self._found[place] for place in places]

    def _jobs(self, recipe: Recipe, starts: Sequence[Start]) -> list[Job]:
        """Cut the starts into jobs, the same however many processes there are.

        What shares a batch of the engine moves its rounding, and so, now and then, a token.
        """
        if not starts:
            return []
        anchors = max(1, round(self.anchors / self.count(recipe)))
        again = ResampleSettings(times=self.resample, anchors=anchors) if self.resample else None
        chosen = max(1, round(self.anchors / anchors))
        parts = np.array_split(np.arange(len(starts)), -(-len(starts) // AT_ONCE))
        return [
            Job(
                rollout=recipe.rollout,
                temperature=recipe.temperature,
                starts=tuple(starts[i] for i in part),
                truth=self.truth,
                random=self.random,
                keeps=() if recipe.filter is None else (recipe.filter,),
                resample=again,
                resampled=tuple(bool(i < chosen) for i in part),
            )
            for part in parts
        ]


AT_ONCE = 5
"""Groups of a job at most: many turns share a batch, and there are jobs for several processes."""


def episode_returns(group: Group) -> np.ndarray:
    """Return the returns of a group's episodes, as a filter reads them."""
    worth, _ = Forest.of([group]).endings()
    return np.array(list(worth.values()), dtype=np.float64)


def known_truth(samples: Mapping[str, Sample]) -> int:
    """Return the number of turns with a truth, each once."""
    seen = {id(m): len(m.truths) for s in samples.values() for m in s.groups}
    return sum(seen.values())
