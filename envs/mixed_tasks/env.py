"""MixedTasks-v0: tasks of several environments in one stream, in given shares."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from ..core.env import Policy, TextEnv
from ..core.episode import Episode, GoldAnswer, Opening, Play, SessionSwitch
from ..core.errors import BadValueError
from ..core.randomness import EpisodeRandom
from ..core.registration import find_environment
from ..core.settings import check_number
from ..core.spaces import Utf8Text
from ..core.tasks import Task
from .source import MixedSource

Members = Mapping[str, float] | Sequence[Any]
"""What the setting ``members`` takes."""
DEFAULT: Mapping[str, float] = {"Retail-v0": 1, "MathWord-v0": 1}
SIZES = ("full", "micro")


class MixedTasks(TextEnv[Any, Any]):
    """Train on several environments at once, as TARL mixes maths problems into tool use.

    Description:
        Every task belongs to one of the members, and its episode is played by that member's own
        rules: its turns, rewards, verdicts, metrics, expert. The member's instructions stand at
        the head of the first observation, since they differ from task to task. An action may end
        with the stop string of any member.

        Task ids are ``member/its own id``, and the task's data set is the member (followed by the
        member's own data set, if there is one), so that evaluations report each apart. In train
        the shares are the weights, in every stretch of training; in the other splits every task of
        every member comes once.

    Rewards:
        Those of the member. Members may have different reward scales: comparisons within a task
        (GRPO) are not affected, a critic may be.

    Args:
        members: ``{id: weight}``, or ``[[id, settings, weight], ...]``, as
            ``[["SearchQA-v0", {"hops": 2}, 3], ["MathWord-v0", {}, 1]]``. An id may come twice with
            different settings. Default: Retail-v0 and MathWord-v0, each 1, as TARL mixes them.
        size: Size of the members whose settings name none and that have this size.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: A member, or a setting of one, that does not exist.
        BadValueError: A weight that is not above 0, a mixture as a member, or tools of one name
            that differ.

    References:
        TARL, arXiv 2509.14480, which does not state its ratio.

    Version history:
        v0: first.
    """

    def __init__(
        self,
        *,
        members: Members | None = None,
        size: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.members: dict[str, TextEnv[Any, Any]] = {}
        weights: list[float] = []
        for env_id, settings, weight in _read_members(DEFAULT if members is None else members):
            self.members[_name_member(env_id, self.members)] = _make_member(env_id, settings, size)
            weights.append(weight)
        envs = list(self.members.values())
        super().__init__(
            source=MixedSource({n: w.source for n, w in self.members.items()}, weights),
            max_turns=max(env.max_turns for env in envs),
            max_chars=max(env.observation_space.max_chars for env in envs),
            reward_range=(
                min(env.reward_range[0] for env in envs),
                max(env.reward_range[1] for env in envs),
            ),
            render_mode=render_mode,
        )
        self.action_space = Utf8Text(min(w.action_space.max_chars for w in envs))
        self.stop = tuple(dict.fromkeys(text for env in envs for text in env.stop))
        self.tools = _merge_tools(self.members)
        self.blocking = any(env.blocking for env in envs)
        self.sessions = any(env.sessions for env in envs)
        self.open_ended = any(env.open_ended for env in envs)
        self.chance = any(env.chance for env in envs)
        self.repeatable = all(env.repeatable for env in envs)
        self.has_gold = all(env.has_gold for env in envs)
        self.reward_noise = max(env.reward_noise for env in envs)

    @property
    def max_turns(self) -> int:
        """Actions of the present episode at most; before the first, of any member."""
        return self._max_turns if self._episode is None else self._present.max_turns

    @max_turns.setter
    def max_turns(self, value: int) -> None:
        self._max_turns = value

    def view_member(self) -> TextEnv[Any, Any]:
        """Return the member whose task is played, at the present state of the episode.

        A view for reading (an expert, the legal actions); step the mixture, not the view.
        """
        view = copy.copy(self._present)
        view._episode = self.episode
        return view

    def begin(self, task: Task[Any], random: EpisodeRandom) -> tuple[Any, str]:
        """Return the member's instructions and its first observation."""
        member = self._find_member(task)
        state, observation = member.begin(task, random)
        return state, member.instructions + observation

    def play(self, episode: Episode[Any], action: str) -> Play:
        """Play the action in the member."""
        return self._find_member(episode.task).play(episode, action)

    def metrics(self, episode: Episode[Any]) -> Mapping[str, float]:
        """Return the member's metrics."""
        return self._find_member(episode.task).metrics(episode)

    def breakdown(self, task: Task[Any]) -> Sequence[str]:
        """Return the metrics that tell how hard the member's task is."""
        return self._find_member(task).breakdown(task)

    def truncation_reward(self, episode: Episode[Any]) -> Mapping[str, float]:
        """Return the member's reward terms of a truncated episode."""
        return self._find_member(episode.task).truncation_reward(episode)

    def fork_state(self, state: Any) -> Any:
        """Return the member's copy of its state."""
        return self._present.fork_state(state)

    def identify_state(self, episode: Episode[Any]) -> Any:
        """Return what tells the member's states apart."""
        return self._find_member(episode.task).identify_state(episode)

    def hidden_answers(self, episode: Episode[Any]) -> Sequence[str]:
        """Return the member's hidden answers."""
        return self._find_member(episode.task).hidden_answers(episode)

    def gold_answers(self, episode: Episode[Any]) -> Sequence[GoldAnswer]:
        """Return the member's accepted answers."""
        return self._find_member(episode.task).gold_answers(episode)

    def details(self, episode: Episode[Any]) -> Mapping[str, Any]:
        """Return the member's own keys."""
        return self._find_member(episode.task).details(episode)

    def debug_info(self, episode: Episode[Any]) -> Mapping[str, Any]:
        """Return the member's own debug info."""
        return self._find_member(episode.task).debug_info(episode)

    def legal_actions(self) -> list[str] | None:
        """Return the member's legal actions."""
        return self.view_member().legal_actions()

    def asked(self) -> Sequence[Opening]:
        """Return the sessions that the member's last action asked for."""
        return self.view_member().asked()

    def waiting(self) -> Sequence[Opening]:
        """Return the member's waiting sessions."""
        return self.view_member().waiting()

    def random_position(self) -> Any:
        """Return where the member's random numbers stand."""
        return self.view_member().random_position()

    def redraw(self, key: int) -> None:
        """Give the member's episode another random stream."""
        self.view_member().redraw(key)

    def session_key(self) -> str:
        """Return the member's session key."""
        return self.view_member().session_key()

    def enter(self, episode: Episode[Any], key: str) -> tuple[str, SessionSwitch]:
        """Open a waiting session of the member."""
        return self._find_member(episode.task).enter(episode, key)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that plays each task by its member's expert.

        Args:
            mistakes: As each member understands it.
            seed: Seed of each expert's mistakes.
        """
        return _Experts({n: w.expert(mistakes, seed) for n, w in self.members.items()})

    @property
    def member(self) -> str:
        """Name of the member whose task is played."""
        return get_member(self.episode.task)

    @property
    def _present(self) -> TextEnv[Any, Any]:
        return self._find_member(self.episode.task)

    def _find_member(self, task: Task[Any]) -> TextEnv[Any, Any]:
        return self.members[get_member(task)]


def get_member(task: Task[Any]) -> str:
    """Return the name of the member that a mixture's task belongs to."""
    return task.id.partition("/")[0]


class _Experts:
    """The policy of a mixture: that of the current task's member."""

    def __init__(self, experts: Mapping[str, Policy]) -> None:
        self._experts = dict(experts)

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:
        mixed = env.unwrapped
        assert isinstance(mixed, MixedTasks)
        return self._experts[mixed.member](mixed.view_member(), observation, info)


def _read_members(members: object) -> list[tuple[str, dict[str, Any], float]]:
    """Return (id, settings, weight) of each member."""
    if isinstance(members, Mapping):
        rows: list[Any] = [[env_id, {}, weight] for env_id, weight in members.items()]
    elif isinstance(members, Sequence) and not isinstance(members, str):
        rows = list(members)
    else:
        raise _make_error(f"members is {members!r}")
    if not rows:
        raise _make_error("members is empty")
    found = []
    for row in rows:
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 3:
            raise _make_error(f"a member is {row!r}")
        env_id, settings, weight = row
        if not isinstance(env_id, str) or not isinstance(settings, Mapping):
            raise _make_error(f"a member is {row!r}")
        find_environment(env_id)
        check_number(f"the weight of {env_id}", weight, "MixedTasks", above=0)
        found.append((env_id, dict(settings), float(weight)))
    return found


def _make_error(what: str) -> BadValueError:
    return BadValueError(
        f"MixedTasks: {what}; expected {{id: weight}} or [[id, settings, weight], ...], as "
        '{"SearchQA-v0": 3, "MathWord-v0": 1}.'
    )


def _make_member(env_id: str, settings: dict[str, Any], size: str | None) -> TextEnv[Any, Any]:
    if size is not None and size not in SIZES:
        raise BadValueError(f"MixedTasks: size is {size!r}; expected {' or '.join(SIZES)}.")
    sized = not {"size", "data", "games"}.isdisjoint(settings)
    if size in find_environment(env_id).sizes and not sized:
        settings = {"size": size, **settings}
    env = gym.make(env_id, **settings).unwrapped
    if isinstance(env, MixedTasks):
        raise BadValueError(
            f"MixedTasks: {env_id} is a mixture itself; write its members out, with their weights."
        )
    if not isinstance(env, TextEnv):
        raise BadValueError(f"MixedTasks: {env_id} is no text environment that can be mixed.")
    return env


def _name_member(env_id: str, taken: Mapping[str, Any]) -> str:
    """Return the id without its version; numbered from the second of the same id on."""
    name = re.sub(r"-v\d+$", "", env_id.rpartition("/")[2])
    number = 1
    while (found := name if number == 1 else f"{name}.{number}") in taken:
        number += 1
    return found


def _merge_tools(members: Mapping[str, TextEnv[Any, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the tools of all members; the same tool in two of them once."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, env in members.items():
        for tool in env.tools:
            called = str(tool.get("function", tool).get("name"))
            if found.setdefault(called, tool) != tool:
                raise BadValueError(
                    f"MixedTasks: {name} and another member have different tools {called!r}; an "
                    "agent could not tell them apart. Mix environments without that clash."
                )
    return tuple(found.values())
