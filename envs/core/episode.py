"""The parts of an episode: its state, steps and outcomes, the reported info, the policy."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar, cast

import gymnasium as gym

from .randomness import EpisodeRandom
from .tasks import Task

S = TypeVar("S")

Status = Literal["running", "solved", "failed", "truncated", "env_error"]
Verdict = Literal[-1, 0, 1]
NO_TERMS: Mapping[str, float] = MappingProxyType({})


class Info(TypedDict):
    """What ``reset`` and ``step`` report beside the five-tuple."""

    task_id: str
    split: str
    dataset: str  # the data set that the task is from; empty where there is none
    turn: int  # actions taken so far
    status: Status
    valid_action: bool  # False when the last action could not be read
    reward_terms: dict[str, float]  # named parts; they sum to the reward of this step
    metrics: dict[str, float]  # filled at the end of the episode, empty before
    session: int  # which context the returned observation belongs to
    parent_session: int | None  # the session that asked for it; None for the first
    verdict: Verdict | None  # the rule judge on the turn just taken, where the environment can know


class Policy(Protocol):
    """A function from an environment's present observation to an action."""

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        ...


class Maybe(int):
    """An int in a field that may also be None.

    Gymnasium's vector environments make an int array of the first plain int that they meet and
    then fail on another copy's None; any other type gets an object array, which holds both.
    """

    __slots__ = ()


class SessionSwitch(NamedTuple):
    """The observation belongs to another context: ``session``, asked for by ``parent``."""

    session: int
    parent: int | None


class Opening(NamedTuple):
    """A session that an action asked for and that is not open yet.

    Attributes:
        key: Unique in the episode.
        observation: Its first observation.
        score: How promising the environment's own schedule takes it to be.
        layer: How many sessions deep it hangs: 1 below the first session.
    """

    key: str
    observation: str
    score: float = 0.0
    layer: int = 1


class GoldAnswer(NamedTuple):
    """An accepted final answer, as an action would write it.

    Attributes:
        opener: What the action writes before the answer, in the environment's own form.
        text: The answer.
    """

    opener: str
    text: str


class Outcome(NamedTuple):
    """What one action did; made by the class methods.

    Attributes:
        observation: The answer of the environment.
        status: ``running`` if the episode continues, else the task's verdict, or ``truncated``
            if a limit of the environment's own was reached.
        terms: Named parts of the reward.
        valid: False when the action could not be read.
        verdict: The rule judge's +1, 0 or -1 on this turn, None where the environment cannot know.
        session: Set when ``observation`` belongs to another context.
    """

    observation: str
    status: Literal["running", "solved", "failed", "truncated"]
    terms: Mapping[str, float] = NO_TERMS
    valid: bool = True
    verdict: Verdict | None = None
    session: SessionSwitch | None = None

    @classmethod
    def move(
        cls,
        observation: str,
        terms: Mapping[str, float] = NO_TERMS,
        *,
        verdict: Verdict | None = None,
        session: SessionSwitch | None = None,
    ) -> Outcome:
        """Continue the episode."""
        return cls(observation, "running", terms, True, verdict, session)

    @classmethod
    def unreadable(
        cls,
        observation: str,
        terms: Mapping[str, float] = NO_TERMS,
        *,
        verdict: Verdict | None = None,
    ) -> Outcome:
        """Consume a turn for an unreadable action; ``observation`` says what to write."""
        return cls(observation, "running", terms, False, verdict)

    @classmethod
    def solved(
        cls, observation: str, terms: Mapping[str, float], *, verdict: Verdict | None = None
    ) -> Outcome:
        """End the episode with the task solved."""
        return cls(observation, "solved", terms, True, verdict)

    @classmethod
    def failed(
        cls, observation: str, terms: Mapping[str, float], *, verdict: Verdict | None = None
    ) -> Outcome:
        """End the episode with the task failed."""
        return cls(observation, "failed", terms, True, verdict)

    @classmethod
    def truncated(
        cls, observation: str, terms: Mapping[str, float], *, verdict: Verdict | None = None
    ) -> Outcome:
        """End the episode at a limit of the environment's own, beside that of turns."""
        return cls(observation, "truncated", terms, True, verdict)


@dataclass(frozen=True, slots=True)
class Call:
    """A request to something that serves batches (a retriever, a tool server).

    ``play`` may be a generator that yields calls and receives the replies. A single environment
    serves a call immediately; the batched vector environment collects the calls of all its copies
    and serves those with an equal ``serve`` together.

    Attributes:
        serve: Takes a list of requests, returns as many replies in the same order. It raises
            :class:`EnvFault` if all of them failed, and returns an ``EnvFault`` instance in the
            place of a single failed reply.
        request: The request.
    """

    serve: Callable[[Sequence[Any]], Sequence[Any]]
    request: Any


Play = Outcome | Generator[Call, Any, Outcome]


class Step(NamedTuple):
    """One step of a transcript: an observation and the action that followed it."""

    observation: str
    action: str
    reward: float
    session: int


@dataclass(slots=True)
class Episode(Generic[S]):
    """The complete state of an episode, which pickles, forks and hashes as one value.

    An episode is its task and its seed: ``env.reset(seed=episode.random.seed, options={"split":
    episode.task.split, "task": episode.task.id})`` starts the same one again.
    """

    task: Task[Any]
    state: S
    random: EpisodeRandom
    observation: str
    turn: int = 0
    status: Status = "running"
    session: int = 0
    parent_session: int | None = None
    invalid_actions: int = 0
    total_reward: float = 0.0
    steps: list[Step] = field(default_factory=list)

    def fork(self, state: S) -> Episode[S]:
        """Return a copy around ``state``, itself a copy of this episode's state."""
        return Episode(
            self.task,
            state,
            self.random.fork(),
            self.observation,
            self.turn,
            self.status,
            self.session,
            self.parent_session,
            self.invalid_actions,
            self.total_reward,
            self.steps.copy(),
        )

    def info(
        self,
        terms: dict[str, float],
        metrics: dict[str, float],
        valid: bool = True,
        verdict: Verdict | None = None,
    ) -> Info:
        """Return the info of the present state, with the two dictionaries as they are."""
        parent = self.parent_session
        return {
            "task_id": self.task.id,
            "split": self.task.split,
            "dataset": self.task.dataset,
            "turn": self.turn,
            "status": self.status,
            "valid_action": valid,
            "reward_terms": terms,
            "metrics": metrics,
            "session": self.session,
            "parent_session": None if parent is None else Maybe(parent),
            "verdict": None if verdict is None else cast("Verdict", Maybe(verdict)),
        }
