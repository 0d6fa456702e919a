"""The contract of every turngym environment: text in, text out, deterministic, forkable.

An environment implements how a task starts (:meth:`TextEnv.begin`) and what an action does to its
state (:meth:`TextEnv.play`). Everything else lives here: turn counting and truncation, status and
reward terms, sessions, fork, digest, transcript.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any, Generic, Self, TypeVar, cast

from .batched_calls import forward_calls, serve_one_by_one
from .digest import digest_of
from .episode import (
    NO_TERMS,
    Call,
    Episode,
    GoldAnswer,
    Info,
    Opening,
    Outcome,
    Play,
    Policy,
    SessionSwitch,
    Status,
    Step,
    Verdict,
)
from .errors import BadValueError, EnvFault, EpisodeError, UnknownNameError
from .randomness import EPISODE_KEY, EpisodeRandom, SeededEnv
from .registration import breakdown_metrics, load_expert
from .reports import (
    check_begun,
    check_observation,
    check_outcome,
    describe_unreadable,
    finite_metrics,
    finite_terms,
    json_debug_info,
    sum_terms,
)
from .settings import check_integer, check_kinds
from .spaces import Utf8Text
from .tasks import Task, TaskSource, draw_task, find_task

__all__ = [
    "NO_TERMS",
    "Call",
    "Episode",
    "FiveTuple",
    "GoldAnswer",
    "Info",
    "Opening",
    "Outcome",
    "Play",
    "Policy",
    "SessionSwitch",
    "Status",
    "Step",
    "TextEnv",
    "Verdict",
    "check_action",
]

S = TypeVar("S")
P = TypeVar("P")

FiveTuple = tuple[str, float, bool, bool, Info]
RESET_OPTIONS = ("split", "task")
LINE = "\n"
SEED_RANGE = 2**53
"""Seeds drawn for an episode stay below this: every JSON reader keeps such integers exact."""


def check_action(action: Any, where: str) -> None:
    """Check that an action is text.

    Raises:
        TypeError: It is something else; ``where`` names the environment.
    """
    if not isinstance(action, str):
        raise TypeError(f"{where}: action is a {type(action).__name__}; expected text (str).")


class TextEnv(SeededEnv, ABC, Generic[S, P]):
    """Base class of every environment.

    A subclass passes its task source to ``__init__`` and implements :meth:`begin` and
    :meth:`play`; :meth:`metrics` adds metrics, :meth:`truncation_reward` rewards a truncated
    episode, :meth:`fork_state` copies the state (override it when ``deepcopy`` is too slow),
    :meth:`identify_state` says what of it tells it from other states.
    Everything that changes during an episode lives in the state; attributes of the
    environment itself are read-only data that forks share.

    Args:
        source: Where tasks come from.
        max_turns: Actions an episode may take before it is truncated.
        max_chars: Bound of both text spaces, in characters; a longer action is unreadable.
        reward_range: Lowest and highest return of an episode, for tables and checks.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        BadValueError: ``max_turns``, ``max_chars`` or ``reward_range`` out of range.
        UnknownNameError: An unknown render mode or setting.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012 - gymnasium's own form

    instructions: str = ""
    """The rules of the environment; ``instructions + first observation`` is a complete prompt."""
    stop: tuple[str, ...] = ()
    """Strings that end an action; the string itself is part of the action."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """JSON Schemas of the environment's tools (see
    :func:`turngym.envs.tools.schema.tool_schema`)."""
    blocking: bool = False
    """True when a step may wait for something outside the process."""
    open_ended: bool = False
    """True if tasks have no common maximum return, so that success is a matter of degree."""
    chance: bool = False
    """True if what an action brings is drawn from the episode's random stream, so that rollouts
    give every fork a stream of its own (:meth:`redraw`)."""
    repeatable: bool = True
    """False if something outside, such as a program or a model that samples, may answer the same
    action in the same state otherwise the next time; rollouts then ask it for every path."""
    reward_noise: float = 0.0
    """Bound of the reward term ``noise``, which is random and tells nothing about the actions."""
    has_gold: bool = False
    """True if every task has accepted answers, which :meth:`gold_answers` returns."""
    sessions: bool = False
    """True if actions may ask for sessions: contexts of their own within the episode."""
    _stepping: Episode[S] | None = None  # the episode whose step has not come to its end

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse one text as ``stop``: each of its characters would end an action."""
        super().__init_subclass__(**kwargs)
        if isinstance(cls.stop, str):
            raise TypeError(
                f"{cls.__name__}.stop is {cls.stop!r}; expected texts: ({cls.stop!r},)."
            )

    def __new__(cls, *args: Any, **settings: Any) -> Self:  # noqa: ARG004
        """Reject settings that the constructor does not take, and values of another kind."""
        check_kinds(cls, settings)
        return super().__new__(cls)

    def __init__(
        self,
        *,
        source: TaskSource[P],
        max_turns: int,
        max_chars: int = 100_000,
        reward_range: tuple[float, float] = (0.0, 1.0),
        render_mode: str | None = None,
    ) -> None:
        check_integer("max_turns", max_turns, type(self).__name__, min=1)
        low, high = reward_range
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise BadValueError(
                f"{type(self).__name__}: reward_range is {reward_range}; expected two finite "
                "numbers, the lower first."
            )
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UnknownNameError(
                "render mode", render_mode, self.metadata["render_modes"], type(self).__name__
            )
        self.source = source
        self.max_turns = max_turns
        self.reward_range = reward_range
        self.render_mode = render_mode
        self.observation_space: Utf8Text = Utf8Text(max_chars)  # pyright: ignore
        self.action_space: Utf8Text = Utf8Text(max_chars)  # pyright: ignore
        self._episode: Episode[S] | None = None

    @abstractmethod
    def begin(self, task: Task[P], random: EpisodeRandom) -> tuple[S, str]:
        """Return the state and the first observation of ``task``, a function of these two alone."""

    @abstractmethod
    def play(self, episode: Episode[S], action: str) -> Play:
        """Apply ``action`` to ``episode.state`` (in place) and return what it did.

        ``episode.turn`` already counts this action. Raise :class:`EnvFault` when a tool or a
        grader is broken; return :meth:`Outcome.unreadable` when the action cannot be read. As a
        generator it may yield :class:`Call` objects and receives their replies.
        """

    def metrics(self, episode: Episode[S]) -> Mapping[str, float]:  # noqa: ARG002
        """Return metrics of a finished episode beside the ones that every environment has.

        They are finite numbers; one that does not apply to an episode is left out there.
        """
        return NO_TERMS

    def breakdown(self, task: Task[P]) -> Sequence[str]:  # noqa: ARG002
        """Return the metrics that tell how hard a task is, as the registry's row names them."""
        return breakdown_metrics(self.name, type(self))

    def truncation_reward(self, episode: Episode[S]) -> Mapping[str, float]:  # noqa: ARG002
        """Return reward terms of a truncated episode beside those of its last action."""
        return NO_TERMS

    def fork_state(self, state: S) -> S:
        """Return an independent copy of the state."""
        return copy.deepcopy(state)

    def identify_state(self, episode: Episode[S]) -> Any:
        """Return what tells the present state from the task's others, as plain data.

        Two states are equal where the same actions lead from both to equal states and equal
        rewards. Override this where the state also holds how it was reached: clocks, counts and
        logs of actions that nothing depends on, what is remembered to be faster.
        """
        return episode.state

    def hidden_answers(self, episode: Episode[S]) -> Sequence[str]:  # noqa: ARG002
        """Return texts that must not occur in the first prompt; the conformance kit checks it."""
        return ()

    def gold_answers(self, episode: Episode[S]) -> Sequence[GoldAnswer]:  # noqa: ARG002
        """Return the accepted final answers, where tasks have such (:attr:`has_gold`).

        Learners score them, no agent is shown them: how likely the right answer is after a turn
        says what the turn has found out.
        """
        return ()

    def legal_actions(self) -> list[str] | None:
        """Return the actions that make sense now, where they can be listed; else None."""
        return None

    def details(self, episode: Episode[S]) -> Mapping[str, Any]:  # noqa: ARG002
        """Return keys to add to :class:`Info`: the same after every step, each of one type."""
        return NO_TERMS

    def debug_info(self, episode: Episode[S]) -> Mapping[str, Any]:  # noqa: ARG002
        """Return what the last action did, as JSON data for people who look at the episode later.

        No agent is shown it, so it may contain what the environment keeps hidden. It consists of
        dicts, lists, texts, finite numbers of Python's own, bools and None.
        """
        return NO_TERMS

    def take_metrics(self, episode: Episode[S]) -> dict[str, float]:
        """Return :meth:`metrics` as finite floats.

        Raises:
            EnvFault: One is none; names environment, task and metric.
        """
        return finite_metrics(self.metrics(episode), lambda: self._where(episode))

    def take_debug_info(self, episode: Episode[S]) -> dict[str, Any]:
        """Return :meth:`debug_info` as a dictionary.

        Raises:
            EnvFault: Something in it is no JSON data; names environment, task and entry.
        """
        return json_debug_info(self.debug_info(episode), lambda: self._where(episode))

    def baselines(self) -> Mapping[str, Callable[[int], Policy]]:
        """Return scripted policies by name, each made from a seed.

        They are there to be compared with, and to be imitated where the expert cannot be; one that
        reads hidden state says so.
        """
        return {}

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a scripted policy that reads the hidden state and reaches the best score.

        It is the class that the environment's registry row names (``EnvironmentSpec.expert``);
        override this method where it takes more than these two arguments.

        Args:
            mistakes: Probability per action of a plausible wrong action instead.
            seed: Seed of the mistakes.

        Raises:
            NotImplementedError: The environment has none.
        """
        expert = load_expert(type(self))
        if expert is None:
            raise NotImplementedError(f"{self.name} has no scripted expert.")
        return expert(mistakes=mistakes, seed=seed)

    def find_expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy | None:
        """Return :meth:`expert`'s policy, None where the environment has none."""
        try:
            return self.expert(mistakes=mistakes, seed=seed)
        except NotImplementedError:
            return None

    def asked(self) -> Sequence[Opening]:
        """Return the sessions that the last action asked for and that can still be opened."""
        return ()

    def waiting(self) -> Sequence[Opening]:
        """Return all sessions that can be opened now, in the environment's own order."""
        return ()

    def session_key(self) -> str:
        """Return the key of the present session, empty for the first one."""
        return ""

    def enter(self, episode: Episode[S], key: str) -> tuple[str, SessionSwitch]:
        """Make the waiting session ``key`` the present one: its first observation, its number.

        The session that the environment's own schedule had opened goes back to those that wait
        when nobody has acted in it yet.
        """
        raise NotImplementedError(f"{self.name} has no sessions to enter.")

    def reset(  # pyright: ignore[reportIncompatibleMethodOverride] - info is typed
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, Info]:
        """Start an episode.

        Args:
            seed: Seed of the environment's generator and of the episode; draws the task unless
                one is named. Without it both continue from the generator's present state.
            options: ``split`` ("train" by default) and ``task`` (an index or a task id).

        Raises:
            UnknownNameError: An option, split or task id that does not exist.
            BadValueError: A negative seed, or a task index out of range.
            TypeError: The task's id, or what ``begin`` returned, is no text.
            EnvFault: Something that the first observation needs is broken, or it is not UTF-8.
        """
        split = wanted = None
        if options:
            for key in options:
                if key not in RESET_OPTIONS:
                    raise UnknownNameError("reset option", key, RESET_OPTIONS, self.name)
            split, wanted = options.get("split"), options.get("task")
        if seed is not None:
            seed = self.seed_stream(seed)
        if wanted is None:
            task = draw_task(self.source, split, self.np_random, self.name)
        else:
            task = find_task(self.source, split, wanted, self.name)
        if seed is None:
            seed = int(self.np_random.integers(SEED_RANGE))
        random = EpisodeRandom(seed)
        begun = self.begin(task, random)
        check_begun(begun, type(self).__name__, task, self.name)
        state, observation = begun
        self._episode = Episode(task, state, random, observation)
        return observation, self._info(self._episode)

    def step(  # pyright: ignore[reportIncompatibleMethodOverride] - info is typed
        self, action: str
    ) -> FiveTuple:
        """Take one action; see :class:`Info` for what comes back beside the five-tuple.

        Raises:
            TypeError: The action is not text.
            EpisodeError: There is no running episode, or its last step was left halfway.
        """
        episode = self._check_running(action)
        try:
            played = self._play_action(episode, action)
            if isinstance(played, GeneratorType):
                played = serve_one_by_one(played)
        except EnvFault as fault:
            return self._end_with_fault(episode, action, fault)
        return self._close(episode, action, played)

    def open_step(self, action: str) -> Generator[Call, Any, FiveTuple]:
        """Run :meth:`step` as a generator of :class:`Call` that returns the five-tuple.

        The caller sends each reply back, or an :class:`EnvFault` instance if the call failed, and
        drives the generator to its end.
        """
        return self._drive_step(self._check_running(action), action)

    def open_session(self, key: str) -> tuple[str, Info]:
        """Open a waiting session out of order, to train on a sample of an episode's sessions.

        Raises:
            UnknownNameError: No session of that key is waiting.
            EpisodeError: The episode is over.
        """
        episode = self._check_running("")
        if key not in (known := [opening.key for opening in self.waiting()]):
            raise UnknownNameError("session", key, known, self.name)
        episode.observation, switch = self.enter(episode, key)
        episode.session, episode.parent_session = switch
        return episode.observation, self._info(episode)

    def render(self) -> str | None:
        """Return the transcript so far as text (render mode ``"ansi"``), else None."""
        if self.render_mode is None:
            return None
        return "".join(self._transcript(self.episode))

    @property
    def name(self) -> str:
        """The registered id, or the class name."""
        return self.spec.id if self.spec is not None else type(self).__name__

    @property
    def episode(self) -> Episode[S]:
        """The present episode.

        Raises:
            EpisodeError: Before the first reset.
        """
        if self._episode is None:
            raise EpisodeError(f"{self.name}: no episode yet; call reset first.")
        return self._episode

    def fork(self) -> TextEnv[S, P]:
        """Return an independent copy at this very state; read-only data stays shared."""
        twin: TextEnv[S, P] = object.__new__(type(self))
        state = vars(twin)
        state.update(vars(self))
        state["observation_space"] = self.observation_space.fork()
        state["action_space"] = self.action_space.fork()
        if self._stream is not None:
            state["_stream"] = self._stream.fork()
        if (episode := self._episode) is not None:
            state["_episode"] = episode.fork(self.fork_state(episode.state))
            if self._stepping is episode:
                state["_stepping"] = state["_episode"]
        return twin

    def fork_ahead(self) -> TextEnv[S, P]:
        """Return a copy without the episode, whose next reset brings what this one's would bring.

        Nothing changes here: the copy can begin the next episode before it is asked for.
        """
        episode, self._episode = self._episode, None
        try:
            twin = self.fork()
        finally:
            self._episode = episode
        # a copy makes its generator at the first draw: the one in use goes to who draws first
        twin._stream, self._stream = self._stream, twin._stream
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> TextEnv[S, P]:
        return self.fork()

    def random_position(self) -> Any:
        """Return where the episode's random numbers stand; it changes when a step draws any.

        An environment with a stream of its own in its state adds that stream's position.
        """
        return self.episode.random.position

    def redraw(self, key: int) -> None:
        """Give the episode another random stream; its state and its seed stay as they are.

        A fork draws the numbers that the original draws, which compares actions by common random
        numbers. Forks whose luck shall be independent are redrawn with keys of their own. An
        environment with a stream of its own in its state starts that one anew too.

        Args:
            key: Not negative; equal keys of episodes of one seed give equal streams.
        """
        episode = self.episode
        episode.random = EpisodeRandom(episode.random.seed, (*EPISODE_KEY, key))

    def forget(self) -> None:
        """Drop the episode and the generator, as if the environment were new."""
        self._episode = self._stream = self._stepping = None

    def digest(self) -> str:
        """Return a stable hash of the episode, equal in every process."""
        return digest_of(self.episode)

    def state_digest(self) -> str:
        """Return a stable hash of where the episode stands, however it came there.

        It covers the task, the session, whether the task's verdict has fallen, and what
        :meth:`identify_state` returns; the turn counter, the transcript, the rewards so far, the
        random stream and the turn limit are left out. So it is equal where the same actions have
        equal prospects, as GiGPO's anchor states are (arXiv 2505.10978, section 4.2), while
        :meth:`digest` is equal only after equal histories.
        """
        episode = self.episode
        settled = episode.status in ("solved", "failed")
        named = episode.task.id, self.session_key(), settled, self.identify_state(episode)
        return digest_of(named)

    def _check_running(self, action: str) -> Episode[S]:
        """Return the running episode, or raise if the caller is at fault (not the model)."""
        episode = self.episode
        if episode.status != "running" or self._stepping is episode:
            why = f"the end of the episode (status {episode.status!r})"
            if self._stepping is episode:
                why = "one that an error or an interrupt left halfway"
            raise EpisodeError(f"{self.name}: step after {why}; call reset first.")
        check_action(action, self.name)
        return episode

    def _play_action(self, episode: Episode[S], action: str) -> Play:
        self._stepping = episode
        episode.turn += 1
        if not self.action_space.contains(action):
            why = describe_unreadable(action, self.action_space.max_chars)
            return Outcome.unreadable(
                f"The action could not be read: {why}. Write at most "
                f"{self.action_space.max_chars} characters of valid UTF-8 text.\n"
            )
        return self.play(episode, action)

    def _drive_step(self, episode: Episode[S], action: str) -> Generator[Call, Any, FiveTuple]:
        try:
            played = self._play_action(episode, action)
            if isinstance(played, GeneratorType):
                played = yield from forward_calls(played)
        except EnvFault as fault:
            return self._end_with_fault(episode, action, fault)
        return self._close(episode, action, played)

    def _close(self, episode: Episode[S], action: str, played: Any) -> FiveTuple:
        check_outcome(played, type(self).__name__)
        try:
            terms, reward = self._settle(episode, played)
            episode.steps.append(Step(episode.observation, action, reward, episode.session))
            episode.total_reward += reward
            episode.invalid_actions += not played.valid
            metrics = {} if episode.status == "running" else self._metrics(episode)
        except EnvFault as fault:
            return self._end_with_fault(episode, action, fault)
        if played.session is not None:
            episode.session, episode.parent_session = played.session
        episode.observation = played.observation
        status = episode.status
        info = self._info(episode, terms, metrics, played.valid, played.verdict)
        terminated = status in ("solved", "failed")
        self._stepping = None
        return played.observation, reward, terminated, status == "truncated", info

    def _settle(self, episode: Episode[S], outcome: Outcome) -> tuple[dict[str, float], float]:
        """Settle the status and return the reward's terms and their sum."""

        def where() -> str:
            return f"{self._where(episode)}, turn {episode.turn}"

        if not outcome.observation.isascii():  # a flag of the text: others are read whole
            check_observation(outcome.observation, where)
        terms = finite_terms(outcome.terms, where)
        episode.status = outcome.status
        if outcome.status == "running" and episode.turn >= self.max_turns:
            episode.status = "truncated"
        if episode.status == "truncated":
            given = self.truncation_reward(episode)
            extra = finite_terms(given, lambda: f"{where()}, truncation_reward()")
            for name, value in extra.items():
                terms[name] = terms.get(name, 0.0) + value
        return terms, sum_terms(terms, where)

    def _metrics(self, episode: Episode[S]) -> dict[str, float]:
        own = {
            "success": float(episode.status == "solved"),
            "return": episode.total_reward,
            "turns": float(episode.turn),
            "invalid_actions": float(episode.invalid_actions),
        }
        return own | self.take_metrics(episode)

    def _where(self, episode: Episode[S]) -> str:
        return f"{self.name}, task {episode.task.id}"

    def _end_with_fault(self, episode: Episode[S], action: str, fault: EnvFault) -> FiveTuple:
        """End the episode without a score, also when the grader broke after the step counted."""
        del episode.steps[episode.turn - 1 :]
        episode.total_reward = math.fsum(step.reward for step in episode.steps)
        episode.steps.append(Step(episode.observation, action, 0.0, episode.session))
        episode.status = "env_error"
        episode.observation = f"The environment broke: {fault}"
        self._stepping = None  # it has ended
        return episode.observation, 0.0, False, True, self._info(episode)

    def _info(self, episode: Episode[S], *reported: Any) -> Info:
        info = episode.info(*reported) if reported else episode.info({}, {})
        if details := self.details(episode):
            info.update(cast("Info", details))
        return info

    def _transcript(self, episode: Episode[S]) -> Iterator[str]:
        """Yield all texts; an action and its answer never share a line."""
        yield self.instructions
        action = LINE
        for shown, following in [
            *((step.observation, step.action) for step in episode.steps),
            (episode.observation, ""),
        ]:
            if shown and not action.endswith(LINE) and not shown.startswith(LINE):
                yield LINE
            yield shown
            yield following
            action = following
