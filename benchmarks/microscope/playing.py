"""The groups of every recipe, played by its own rollout and measured once where they are equal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...agents.scripted import text_env
from ...algos.core.forest import Forest, Group
from ...algos.core.protocols import GroupFilter, Rollout, Start, TaskSource
from ...algos.core.recipe import Recipe
from ...algos.learner.learner import Learner
from ...algos.rollouts import Chains, seed_at
from ...algos.rollouts.collect import play_first
from ...algos.rollouts.stats import group_tokens
from ...algos.rollouts.task_order import OrderedTasks, Size
from ...envs.core.errors import BadValueError
from ...envs.core.tasks import get_split_blocks, get_split_size
from .crew import Bench, Crew, Job
from .resampling import ResampleSettings, check_resampled
from .truth import MeasuredGroup, RandomTransitionError, TruthSettings, Work

Tick = Callable[[float, str], None]
_Place = tuple[Rollout, float, bool, Start]
_REFERENCE = 5
"""Stream of the seed that the reference's tasks and episodes are drawn from."""


@dataclass(frozen=True, kw_only=True)
class Play:
    """How groups are played, and which of them are kept.

    Attributes:
        rollout: How trees grow.
        temperature: Of sampling.
        filter: Accepts groups; None keeps all.
        measured: Whether the truth of their turns is measured.
    """

    rollout: Rollout
    temperature: float
    filter: GroupFilter | None = None
    measured: bool = True

    @classmethod
    def of(cls, recipe: Recipe) -> Play:
        """Return how a recipe plays."""
        return cls(rollout=recipe.rollout, temperature=recipe.temperature, filter=recipe.filter)

    def place(self, start: Start) -> _Place:
        """Return what tells a group apart that is played so."""
        return self.rollout, self.temperature, self.measured, start


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A recipe under the microscope.

    Attributes:
        name: As the report calls it.
        recipe: The recipe.
        learner: Scores its paths and differentiates the policy.
        tasks: Its task source.
        places: The split, and its size or blocks; None for a split without end.
    """

    name: str
    recipe: Recipe
    learner: Learner
    tasks: TaskSource
    places: tuple[str, Size]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """The groups that a recipe is judged by.

    Attributes:
        groups: With the truth of their turns.
        units: Number of the unit that each belongs to: of itself, or of its training batch.
        names: Unique names of the units.
        tokens: Tokens that were sampled for each unit, those of groups that the recipe's filter
            dropped shared out.
    """

    groups: Sequence[MeasuredGroup]
    units: Sequence[int]
    names: Sequence[str]
    tokens: float

    @property
    def forest(self) -> Forest:
        """The groups as a forest."""
        return Forest.of([measured.group for measured in self.groups])

    def parts(self) -> list[Forest]:
        """Return a forest per unit that has groups, in order."""
        inside: dict[int, list[Group]] = {}
        for unit, measured in zip(self.units, self.groups, strict=True):
            inside.setdefault(unit, []).append(measured.group)
        return [Forest.of(groups) for groups in inside.values()]


def make_subject(
    name: str, recipe: Recipe, bench: Bench, critic: Mapping[str, Any] | None = None
) -> Subject:
    """Return a recipe with its learner and its tasks.

    Args:
        name: As the report calls it.
        recipe: The recipe.
        bench: Environment and policy.
        critic: Weights of its critic; None leaves it as it is at a run's first step.

    Raises:
        BadValueError: Its actions are not sampled by the policy, or it cannot play here.
    """
    config, env = bench.config, text_env(bench.env)
    if not recipe.rollout.samples:
        raise BadValueError(
            f"credit: the actions of recipe {name!r} are not sampled by the policy, so they have "
            "no advantage under it. Leave the recipe out."
        )
    recipe.check(env)
    learner = Learner(
        bench.policy,
        recipe,
        pad_id=bench.renderer.pad_id,
        settings=config.learner,
        seed=config.seed,
    )
    if critic is not None and learner.critic is not None:
        learner.critic.load_state_dict(critic)
    size = get_split_size(env.source, config.split, env.name)
    blocks = get_split_blocks(env.source, config.split)
    places = config.split, size if blocks is None else blocks
    if recipe.tracker is None:
        tasks = OrderedTasks(config.seed, *places)
    else:
        tasks = recipe.tracker.start(config.seed, config.split, size, env.reward_range)
        if tasks.first_episodes:
            runner = bench.runner(recipe.temperature)
            asyncio.run(play_first(runner, tasks, lambda _done, _text: None))
    return Subject(name=name, recipe=recipe, learner=learner, tasks=tasks, places=places)


@dataclass(kw_only=True, eq=False)
class Playground:
    """Plays and measures groups, each distinct one once.

    Attributes:
        crew: Plays them.
        truth: How truth is measured.
        groups: Groups of a recipe with ``paths`` paths in each.
        paths: Recipes with smaller groups get more of them, so that all have about as many paths.
        batches: Training batches of each recipe, in place of groups; 0 counts groups.
        batch_tokens: Sampled tokens of a training batch.
        resample: How often anchors are resampled; 0 for not at all.
        anchors: Anchors in all groups of a recipe together.
        chance: Whether the environment says that its transitions are random.
        random: Whether they are taken as random.
        refuse: Called with a recipe that has nothing to measure; left out: that is an error.
    """

    crew: Crew
    truth: TruthSettings
    groups: int
    paths: int
    batches: int = 0
    batch_tokens: int = 0
    resample: int = 0
    anchors: int = 30
    chance: bool = False
    random: bool = False
    refuse: Callable[[str, BadValueError], None] | None = None
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

    def some(self, subject: Subject) -> Forest:
        """Play a subject's first groups and measure nothing; return those that its filter keeps."""
        recipe, keep = subject.recipe, subject.recipe.filter
        if self.batches:
            starts = subject.tasks.starts_from(1, 0, 0, SOME)
        else:
            starts = subject.tasks.starts(1, self.count(recipe), 0)[:SOME]
        job = Job(
            rollout=recipe.rollout,
            temperature=recipe.temperature,
            starts=tuple(starts),
            truth=None,
            random=self.random,
        )
        groups = [measured.group for found in self.crew.run([job]) for measured in found]
        return Forest.of([g for g in groups if keep is None or keep.keeps(episode_returns(g))])

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

            try:
                sample = self._batched if self.batches else self._sample
                samples[subject.name] = sample(subject, report)
            except BadValueError as fault:
                if self.refuse is None:
                    raise
                self.refuse(subject.name, fault)
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
                batch = self._measured(Play.of(subject.recipe), count, starts[:missing], tick)
                starts = starts[missing:]
                played += batch
                kept += [m for m in batch if keep is None or keep.keeps(episode_returns(m.group))]
        if not any(measured.truths for measured in kept):
            raise BadValueError(
                f"credit: recipe {subject.name!r} has no group with a turn to measure after "
                f"{rounds} rounds of {count}; choose a policy that succeeds now and then."
            )
        spent = sum(group_tokens(measured.group) for measured in played)
        return Sample(
            groups=kept,
            units=range(len(kept)),
            names=[measured.start.uid for measured in kept],
            tokens=spent / len(kept),
        )

    def _batched(self, subject: Subject, tick: Tick) -> Sample:
        play, size = Play.of(subject.recipe), self.batch_tokens
        sample = self.play_batches(play, subject.tasks, self.batches, size, tick)
        if not any(measured.truths for measured in sample.groups):
            raise BadValueError(
                f"credit: recipe {subject.name!r} has no group with a turn to measure in "
                f"{self.batches} batches; its filter dropped all of them."
            )
        return sample

    def play_only(self, subject: Subject, batches: int, tick: Tick) -> Sample:
        """Play training batches of a recipe, and measure nothing."""
        play = replace(Play.of(subject.recipe), measured=False)
        return self.play_batches(play, subject.tasks, batches, self.batch_tokens, tick)

    def play_batches(
        self, play: Play, tasks: TaskSource, batches: int, size: int, tick: Tick
    ) -> Sample:
        """Play training batches, cut as a run with ``tokens_per_step`` cuts its steps.

        Args:
            play: How.
            tasks: The order of tasks.
            batches: Their number.
            size: Sampled tokens of a batch.
            tick: Shows progress.

        Raises:
            BadValueError: No token was sampled in a whole block of groups.
        """
        spent = played = 0
        kept: list[MeasuredGroup] = []
        units: list[int] = []
        for unit in range(batches):
            goal, at = size * (spent // size + 1), 0
            while spent < goal:
                mean = spent / played if played else size / max(1, 8 // play.rollout.max_paths)
                count = max(1, int((goal - spent) / max(mean, 1.0)))
                starts = tasks.starts_from(unit + 1, played - at, at, count)
                block = self._measured(play, 0, starts, lambda _done, _text: None)
                if not any(group_tokens(measured.group) for measured in block):
                    raise BadValueError(
                        f"credit: {len(block)} groups of {play.rollout} sampled no token, so a "
                        "batch never ends; the environment fails to begin."
                    )
                for measured in block:
                    if spent >= goal:
                        break  # behind the end of the batch: as if it had not been played
                    spent += group_tokens(measured.group)
                    played, at = played + 1, at + 1
                    if play.filter is None or play.filter.keeps(episode_returns(measured.group)):
                        kept.append(measured)
                        units.append(unit)
            tick((unit + 1) / batches, f"{unit + 1} of {batches} batches")
        names = [f"batch {unit}" for unit in range(batches)]
        return Sample(groups=kept, units=units, names=names, tokens=spent / batches)

    def play_reference(self, subject: Subject, seed: int, parts: int, tick: Tick) -> Sample:
        """Play parts of :data:`PART` batches each, groups of chains that no recipe has.

        Args:
            subject: Gives temperature and tasks.
            seed: Of the study.
            parts: Their number.
            tick: Shows progress.
        """
        tasks = OrderedTasks(seed_at(seed, _REFERENCE) % 2**31, *subject.places)
        rollout, temperature = Chains(n=SIBLINGS), subject.recipe.temperature
        play = Play(rollout=rollout, temperature=temperature, measured=False)
        return self.play_batches(play, tasks, parts, PART * self.batch_tokens, tick)

    def _measured(
        self, play: Play, count: int, starts: Sequence[Start], tick: Tick
    ) -> list[MeasuredGroup]:
        """Return the groups of these starts; those that are not known yet are played."""
        places = [play.place(start) for start in starts]
        new = [s for s, p in zip(starts, places, strict=True) if p not in self._found]
        jobs = self._jobs(play, count, new)
        done = 0
        for measured in self.crew.run(jobs):
            for one in measured:
                self._found[play.place(one.start)] = one
            done += len(measured)
            tick(done / len(starts), f"{done} of {len(starts)} groups")
        return [self._found[place] for place in places]

    def _jobs(self, play: Play, count: int, starts: Sequence[Start]) -> list[Job]:
        """Cut the starts into jobs, the same however many processes there are.

        What shares a batch of the engine moves its rounding, and so, now and then, a token.
        """
        if not starts:
            return []
        anchors = max(1, round(self.anchors / max(1, count)))
        again = ResampleSettings(times=self.resample, anchors=anchors) if self.resample else None
        chosen = max(1, round(self.anchors / anchors))
        room = PATHS_AT_ONCE if play.measured else PLAYED_AT_ONCE
        most = max(AT_ONCE, room // play.rollout.max_paths) if self.batches else AT_ONCE
        parts = np.array_split(np.arange(len(starts)), -(-len(starts) // most))
        return [
            Job(
                rollout=play.rollout,
                temperature=play.temperature,
                starts=tuple(starts[i] for i in part),
                truth=self.truth if play.measured else None,
                random=self.random,
                keeps=() if play.filter is None else (play.filter,),
                resample=again,
                resampled=tuple(bool(i < chosen) for i in part),
            )
            for part in parts
        ]


SOME = 2
"""Groups that a recipe's credit is tried on."""
AT_ONCE = 5
"""Groups of a job at most: many turns share a batch, and there are jobs for several processes."""
PATHS_AT_ONCE = 40
"""Paths of a job at most where batches are measured, whose groups may be single paths."""
PLAYED_AT_ONCE = 512
"""The same where nothing is measured."""
PART = 8
"""Training batches in a part of the reference."""
SIBLINGS = 8
"""Chains of a group of the reference."""


def episode_returns(group: Group) -> np.ndarray:
    """Return the returns of a group's episodes, as a filter reads them."""
    worth, _ = Forest.of([group]).endings()
    return np.array(list(worth.values()), dtype=np.float64)


def known_truth(samples: Mapping[str, Sample]) -> int:
    """Return the number of turns with a truth, each once."""
    seen = {id(m): len(m.truths) for s in samples.values() for m in s.groups}
    return sum(seen.values())
