"""The true advantage of a turn, by continuations from forks that share their random numbers.

``A = Q - V``: Q takes the recorded action and continues, V samples afresh; both continue by the
policy that played, to the end of the whole episode. Continuation k draws action u of an episode
from one stream of the engine, keyed by (episode's seed, k, u), whichever turn it started from. Then

* Q and V of one turn share their noise, and where V picks the recorded action they are one
  continuation: their difference is exactly 0;
* two continuations k that come to the same history have the same rest, which is played once. In an
  environment without random transitions the rest of Q at one turn is V at the next, so that T + 1
  values serve T turns, with the same numbers as playing everything.

Where transitions are random the fork's generator is reseeded before every action, keyed alike;
otherwise an advantage would be conditional on the luck of the recorded episode.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...agents.engines.base import Completion
from ...agents.scripted import text_env
from ...algos.core.checks import check_choices, check_seed
from ...algos.core.forest import Group, Ids, Tree, Turn
from ...algos.core.protocols import Start
from ...algos.rollouts import EpisodeHandle, EpisodeRunner, seed_at
from ...algos.rollouts.episode_runner import StepResult
from ...envs.core.errors import BadValueError, TurngymError

Floats = npt.NDArray[np.float64]
Transitions = Literal["auto", "fixed", "random"]
_SNAPSHOT, _NOISE, _LUCK = -11, -12, -13
AT_ONCE = 1024
"""Continuations of one group that are under way at a time."""


class RandomTransitionError(TurngymError):
    """A step drew random numbers although transitions were taken as fixed."""


@dataclass(frozen=True, kw_only=True)
class TruthSettings:
    """How truth is measured.

    Attributes:
        continuations: K, continuations per turn of Q and of V; a multiple of 4, fixed
            beforehand.
        noise: Seed of the continuations; another one gives independent truth on the same groups.
        transitions: ``"fixed"`` refuses steps that draw random numbers, ``"random"`` reseeds every
            fork, ``"auto"`` believes the environment (:attr:`TextEnv.chance`), and reseeds when a
            step draws nevertheless.
        merge: Play the rest of equal histories once; off plays everything, with the same numbers.
    """

    continuations: int = 16
    noise: int = 0
    transitions: Transitions = "auto"
    merge: bool = True

    def __post_init__(self) -> None:
        check_seed(self, "noise")
        check_choices(self)
        if self.continuations < 4 or self.continuations % 4:
            raise BadValueError(
                f"TruthSettings.continuations is {self.continuations}; expected a multiple of 4, 4 "
                "or more: the measures compare its halves, and those of the second one."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnTruth:
    """The continuations of one turn.

    Attributes:
        q: Returns from the turn on after the recorded action ``[K]``; nan where the environment
            broke.
        v: The same with the action sampled afresh ``[K]``.
    """

    q: Floats
    v: Floats

    def means(self) -> tuple[float, float, float, float]:
        """Return the mean of ``q - v`` over the first half of K and over two quarters of the rest.

        Continuations that broke are left out; where a part has no other its mean is nan.

        Returns:
            h1, the two parts of h2, and the standard error of the mean of all.
        """
        differences = self.q - self.v
        half, quarter = len(differences) // 2, len(differences) // 4
        whole = [part[np.isfinite(part)] for part in np.split(differences, [half, half + quarter])]
        if not all(len(part) for part in whole):
            return float("nan"), float("nan"), float("nan"), float("nan")
        every = np.concatenate(whole)
        h1, h3, h4 = (float(part.mean()) for part in whole)
        return h1, h3, h4, float(every.std(ddof=1) / np.sqrt(len(every)))


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """What was played for the truth.

    Attributes:
        continuations: Values of Q and V that were asked for.
        actions: Actions that were sampled for them.
        drew: Whether a step drew random numbers.
    """

    continuations: int = 0
    actions: int = 0
    drew: bool = False


class RecordingRunner(EpisodeRunner):
    """Keeps a fork of the episode at every turn that it plays."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.record_states = True
        self.drew = False
        self._before: dict[int, tuple[Ids, EpisodeHandle]] = {}

    async def act(self, handle: EpisodeHandle, done: Completion) -> StepResult:
        """Fork, then take the action."""
        before = handle.fork(_SNAPSHOT, redraw=False)
        where = text_env(handle.env).random_position()
        result = await super().act(handle, done)
        self.drew = self.drew or text_env(handle.env).random_position() != where
        self._before[id(done.ids)] = done.ids, before
        return result

    def position(self, turn: Turn) -> EpisodeHandle:
        """Return the episode as it was when the turn's action was taken; it belongs to the runner.

        Raises:
            BadValueError: The turn is part of an action that was cut.
        """
        if id(turn.act_ids) not in self._before:
            raise BadValueError(
                "credit: the rollout forks inside actions, and truth is measured for whole ones. "
                "Use --recipe.rollout.granularity step."
            )
        return self._before[id(turn.act_ids)][1]

    def plain(self) -> EpisodeRunner:
        """Return a runner that plays alike and keeps nothing."""
        given = self.env, self.engine, self.renderer, self.sampling, self.max_context
        return EpisodeRunner(*given)

    def forget(self) -> None:
        """Release all positions."""
        for _, handle in self._before.values():
            if not handle.done:
                self.leave(handle)
        self._before.clear()


class Slots:
    """Lets so many in at a time, in the order of asking; asyncio's semaphore looks at all who wait.

    Args:
        free: How many.
    """

    def __init__(self, free: int) -> None:
        self._free = free
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    async def __aexit__(self, *failure: object) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
                return
        self._free += 1


class _Nowhere(Tree):
    """Takes turns and keeps none."""

    def add(self, turn: Turn, *, checked: bool = False) -> int:  # noqa: ARG002 - the tree's interface
        """Return a place that nobody will look at."""
        return 0


@dataclass(slots=True, eq=False)
class Prober:
    """Measures the turns of the groups of one start.

    Attributes:
        runner: Plays the continuations.
        settings: How.
        random: Whether forks are reseeded before every action.
        work: What was played.
    """

    runner: EpisodeRunner
    settings: TruthSettings
    random: bool
    work: Work = field(default_factory=Work)
    _known: dict[tuple[bytes, int], asyncio.Future[float]] = field(default_factory=dict)
    _slots: Slots = field(default_factory=lambda: Slots(AT_ONCE))

    async def measure(self, before: EpisodeHandle, turn: Turn) -> TurnTruth:
        """Return Q and V of a turn.

        Args:
            before: The episode when the turn's action was taken; stays as it is.
            turn: The turn.

        Raises:
            RandomTransitionError: A step drew random numbers, but transitions are taken as fixed.
        """
        count = self.settings.continuations
        self.work.continuations += 2 * count
        origin = history_key(before)
        if self.random:  # what was drawn on the way here differs behind equal histories
            origin += self.work.continuations.to_bytes(8, "little")
        fresh = (self._fresh(before, k, origin) for k in range(count))
        if self.random:
            taken = [self._retaken(before, turn, k, origin) for k in range(count)]
        else:
            taken = [self._taken(before, turn)]
        *v, q = await asyncio.gather(*fresh, asyncio.gather(*taken))
        return TurnTruth(q=np.array(q, dtype=np.float64).reshape(-1), v=np.array(v))

    async def _fresh(self, before: EpisodeHandle, k: int, origin: bytes) -> float:
        """Return V: continue without the recorded action."""
        key = (self._mark(origin, origin), k)
        if self.settings.merge and key in self._known:
            return await self._known[key]
        async with self._slots:
            return await self._walk(self._fork(before, k), k, origin, key)

    async def _taken(self, before: EpisodeHandle, turn: Turn) -> list[float]:
        """Return Q of every k in an environment without random transitions: one step serves all."""
        after = before.fork(_SNAPSHOT, redraw=False)
        reward = await self._take(after, turn)
        count = self.settings.continuations
        if after.done:
            return [reward] * count
        origin = history_key(after)
        rest = await asyncio.gather(*(self._fresh(after, k, origin) for k in range(count)))
        self.runner.leave(after)
        return [reward + value for value in rest]

    async def _retaken(self, before: EpisodeHandle, turn: Turn, k: int, origin: bytes) -> float:
        """Return Q of one k where the step itself is random."""
        async with self._slots:
            walk = self._fork(before, k)
            self._reseed(walk, k)
            reward = await self._take(walk, turn)
            if walk.done:
                return reward
            key = (self._mark(origin, history_key(walk)), k)
            return reward + await self._walk(walk, k, origin, key)

    async def _walk(
        self, walk: EpisodeHandle, k: int, origin: bytes, key: tuple[bytes, int]
    ) -> float:
        """Play to the end, or to a history whose rest is known; return the rewards from here on."""
        line: list[tuple[asyncio.Future[float], float]] = []
        rest = 0.0
        while True:
            known = self._known.get(key) if self.settings.merge else None
            if known is not None:
                self.runner.leave(walk)
                rest = await known
                break
            promise = asyncio.get_running_loop().create_future()
            self._known[key] = promise
            line.append((promise, await self._step(walk, k)))
            if walk.done:
                break
            key = (self._mark(origin, history_key(walk)), k)
        for promise, reward in reversed(line):
            rest += reward
            promise.set_result(rest)
        return rest

    async def _step(self, walk: EpisodeHandle, k: int) -> float:
        if self.random:
            self._reseed(walk, k)
        where = text_env(walk.env).random_position()
        result = await self.runner.step(walk)
        self.work.actions += 1
        return self._settle(walk, result, where)

    async def _take(self, walk: EpisodeHandle, turn: Turn) -> float:
        """Take the recorded action."""
        where = text_env(walk.env).random_position()
        done = Completion(
            ids=turn.act_ids, logprobs=turn.logprobs, entropies=turn.entropies, stop=turn.stop
        )
        return self._settle(walk, await self.runner.act(walk, done), where)

    def _settle(self, walk: EpisodeHandle, result: StepResult, where: Any) -> float:
        """Go on to the next observation; return the reward, nan where the environment broke."""
        if not self.random and text_env(walk.env).random_position() != where:
            self.work.drew = True
            raise RandomTransitionError(
                f"credit: a step of {text_env(walk.env).name} drew random numbers, so its "
                "transitions are not fixed. Use --transitions random (or auto)."
            )
        turn = self.runner.append(walk, _Nowhere(), result)
        return float("nan") if turn.status == "env_error" else result.reward

    def _fork(self, before: EpisodeHandle, k: int) -> EpisodeHandle:
        walk = before.fork(k, redraw=False)
        walk.place = (_NOISE, self.settings.noise, k)
        return walk

    def _reseed(self, walk: EpisodeHandle, k: int) -> None:
        place = (walk.seed, _LUCK, self.settings.noise, k, walk.turns)
        text_env(walk.env).redraw(seed_at(*place))

    def _mark(self, origin: bytes, history: bytes) -> bytes:
        """Return what tells histories apart: where transitions are random, the origin as well."""
        return origin + history if self.random else history


def history_key(handle: EpisodeHandle) -> bytes:
    """Return a hash of all that was seen and done in the episode's sessions, in order.

    With the seed of the episode it determines the episode's state.
    """
    total = hashlib.blake2b(digest_size=16)
    total.update(handle.seed.to_bytes(8, "little") + handle.session.to_bytes(4, "little"))
    for number, context in sorted(handle.contexts.items()):
        ids = np.array([number, len(context.ids), *context.ids, -1, *context.obs_ids])
        total.update(ids.astype(np.int64).tobytes())
    if len(handle.contexts) > 1:
        for step in text_env(handle.env).episode.steps:
            total.update(step.session.to_bytes(4, "little"))
            total.update(step.action.encode("utf-8", "surrogatepass") + b"\0")
    return total.digest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredGroup:
    """A group with the truth of its turns.

    Attributes:
        start: Its start.
        group: The group.
        truths: By (tree, turn), for every turn that is in a trainable path; empty where the group
            was not measured.
        work: What was played for them.
        resampled: Anchor turns (tree, turn), and the group with all else sampled again.
    """

    start: Start
    group: Group
    truths: Mapping[tuple[int, int], TurnTruth]
    work: Work
    resampled: Sequence[tuple[tuple[int, int], Sequence[Group]]] = ()


def trained_turns(group: Group) -> list[tuple[int, int]]:
    """Return (tree, turn) of the turns of trainable paths, each once, in order."""
    found = {
        (t, i)
        for t, tree in enumerate(group.trees)
        for leaf in tree.whole_leaves()
        for i in tree.chain(leaf)
    }
    return sorted(found)


async def measure_group(
    runner: RecordingRunner, start: Start, group: Group, settings: TruthSettings, random: bool
) -> MeasuredGroup:
    """Measure every turn of a group that the runner has played.

    Raises:
        BadValueError: The rollout forks inside actions.
        RandomTransitionError: A step drew random numbers, but ``random`` is off.
    """
    if runner.drew and not random:
        raise RandomTransitionError(
            f"credit: a step of {text_env(runner.env).name} drew random numbers while the groups "
            "were played, so its transitions are not fixed. Use --transitions random (or auto)."
        )
    places = trained_turns(group)
    turns = [group.trees[t].turns[i] for t, i in places]
    if any(turn.partial for tree in group.trees for turn in tree.turns):
        raise BadValueError(
            "credit: the rollout forks inside actions, and truth is measured for whole ones. Use "
            "--recipe.rollout.granularity step."
        )
    prober = Prober(runner.plain(), settings, random)
    try:
        async with asyncio.TaskGroup() as tasks:
            found = [
                tasks.create_task(prober.measure(runner.position(turn), turn)) for turn in turns
            ]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    truths = {place: task.result() for place, task in zip(places, found, strict=True)}
    return MeasuredGroup(start=start, group=group, truths=truths, work=prober.work)
