"""MixedTasks-v0: tasks of several environments in one stream, in given shares."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from ..core.env import Policy, TextEnv
from ..core.episode import Episode, Opening, Play, SessionSwitch
from ..core.errors import BadValueError
from ..core.randomness import EpisodeRandom
from ..core.registration import find_environment
from ..core.settings import check_number
from ..core.spaces import Utf8Text
from ..core.tasks import Task
from .source import MixedSource

Members = Mapping[str, float] | Sequence[Sequence[Any]]
"""What the setting ``members`` takes."""
DEFAULT: Mapping[str, float] = {"Retail-v0": 1, "MathWord-v0": 1}
SIZES = ("full", "micro")


class MixedTasks(TextEnv[Any, Any]):
    """Train on several environments at once, as TARL mixes maths problems into tool use.

    Description:
        Every task belongs to one of the members, and its episode is played by that member's own
        rules: its turns, rewards, verdicts, measures, expert. The member's instructions stand at
        the head of the first observation, since they differ from task to task. An action may end
        with the stop string of any member.

        Task ids are ``member/its own id``, and the task's data set is the member (followed by the
        member's own data set, if there is one), so that evaluations report each apart. In train
        the shares are the weights, in every stretch of training; in the other splits every task of
        every member comes once.

    Rewards:
        Those of the member. Comparisons within a task (GRPO) do not mind if members pay on
        different scales; a critic may.

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
        for env_id, settings, weight in _entries(DEFAULT if members is None else members):
            self.members[_name(env_id, self.members)] = _made(env_id, settings, size)
            weights.append(weight)
        worlds = list(self.members.values())
        super().__init__(
            source=MixedSource({n: w.source for n, w in self.members.items()}, weights),
            max_turns=max(world.max_turns for world in worlds),
            max_chars=max(world.observation_space.max_chars for world in worlds),
            reward_range=(
                min(world.reward_range[0] for world in worlds),
                max(world.reward_range[1] for world in worlds),
            ),
            render_mode=render_mode,
        )
        self.action_space = Utf8Text(min(w.action_space.max_chars for w in worlds))
        self.stop = tuple(dict.fromkeys(text for world in worlds for text in world.stop))
        self.tools = _united(self.members)
        self.blocking = any(world.blocking for world in worlds)
        self.sessions = any(world.sessions for world in worlds)
        self.open_ended = any(world.open_ended for world in worlds)

    @property
    def max_turns(self) -> int:
        """Actions that the present episode may take; the most of any before the first."""
        return self._most_turns if self._episode is None else self._present.max_turns

    @max_turns.setter
    def max_turns(self, value: int) -> None:
        self._most_turns = value

    def view_member(self) -> TextEnv[Any, Any]:
        """The member whose task is played, at the present state of the episode.

        A view for reading (an expert, the legal actions); step the mixture, not the view.
        """
        view = copy.copy(self._present)
        view._episode = self.episode
        return view

    def begin(self, task: Task[Any], random: EpisodeRandom) -> tuple[Any, str]:
        """The member's instructions and its first observation."""
        member = self._of(task)
        world, observation = member.begin(task, random)
        return world, member.instructions + observation

    def play(self, episode: Episode[Any], action: str) -> Play:
        """What the member does."""
        return self._of(episode.task).play(episode, action)

    def metrics(self, episode: Episode[Any]) -> Mapping[str, float]:
        """The member's measures."""
        return self._of(episode.task).metrics(episode)

    def truncation_reward(self, episode: Episode[Any]) -> Mapping[str, float]:
        """The member's reward terms of a truncated episode."""
        return self._of(episode.task).truncation_reward(episode)

    def fork_state(self, state: Any) -> Any:
        """The member's copy of its state."""
        return self._present.fork_state(state)

    def hidden_answers(self, episode: Episode[Any]) -> Sequence[str]:
        """The member's secrets."""
        return self._of(episode.task).hidden_answers(episode)

    def details(self, episode: Episode[Any]) -> Mapping[str, Any]:
        """The member's own keys."""
        return self._of(episode.task).details(episode)

    def debug_info(self, episode: Episode[Any]) -> Mapping[str, Any]:
        """The member's own account."""
        return self._of(episode.task).debug_info(episode)

    def legal_actions(self) -> list[str] | None:
        """The member's."""
        return self.view_member().legal_actions()

    def asked(self) -> Sequence[Opening]:
        """The member's."""
        return self.view_member().asked()

    def waiting(self) -> Sequence[Opening]:
        """The member's."""
        return self.view_member().waiting()

    def session_key(self) -> str:
        """The member's."""
        return self.view_member().session_key()

    def enter(self, episode: Episode[Any], key: str) -> tuple[str, SessionSwitch]:
        """The member's."""
        return self._of(episode.task).enter(episode, key)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Each task played by its member's expert.

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
        return self._of(self.episode.task)

    def _of(self, task: Task[Any]) -> TextEnv[Any, Any]:
        return self.members[get_member(task)]


def get_member(task: Task[Any]) -> str:
    """Name of the member that a task of a mixture belongs to."""
    return task.id.partition("/")[0]


class _Experts:
    """The policy of a mixture: that of the member at play."""

    def __init__(self, experts: Mapping[str, Policy]) -> None:
        self._experts = dict(experts)

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:
        mixed = env.unwrapped
        assert isinstance(mixed, MixedTasks)
        return self._experts[mixed.member](mixed.view_member(), observation, info)


def _entries(members: object) -> list[tuple[str, dict[str, Any], float]]:
    """(id, settings, weight) of each member."""
    if isinstance(members, Mapping):
        rows: list[Any] = [[env_id, {}, weight] for env_id, weight in members.items()]
    elif isinstance(members, Sequence) and not isinstance(members, str):
        rows = list(members)
    else:
        raise _bad(f"members is {members!r}")
    if not rows:
        raise _bad("members is empty")
    found = []
    for row in rows:
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 3:
            raise _bad(f"a member is {row!r}")
        env_id, settings, weight = row
        if not isinstance(env_id, str) or not isinstance(settings, Mapping):
            raise _bad(f"a member is {row!r}")
        find_environment(env_id)
        check_number(f"the weight of {env_id}", weight, "MixedTasks", above=0)
        found.append((env_id, dict(settings), float(weight)))
    return found


def _bad(what: str) -> BadValueError:
    return BadValueError(
        f"MixedTasks: {what}; expected {{id: weight}} or [[id, settings, weight], ...], as "
        '{"SearchQA-v0": 3, "MathWord-v0": 1}.'
    )


def _made(env_id: str, settings: dict[str, Any], size: str | None) -> TextEnv[Any, Any]:
    if size is not None and size not in SIZES:
        raise BadValueError(f"MixedTasks: size is {size!r}; expected {' or '.join(SIZES)}.")
    takes_size = size in find_environment(env_id).sizes and not {"size", "data"} & set(settings)
    if size is not None and takes_size:
        settings = {"size": size, **settings}
    world = gym.make(env_id, **settings).unwrapped
    if isinstance(world, MixedTasks):
        raise BadValueError(
            f"MixedTasks: {env_id} is a mixture itself; write its members out, with their weights."
        )
    if not isinstance(world, TextEnv):
        raise BadValueError(f"MixedTasks: {env_id} is no text world that can be mixed.")
    return world


def _name(env_id: str, taken: Mapping[str, Any]) -> str:
    """The id without its version; numbered from the second of the same id on."""
    name = env_id.rpartition("/")[2].rpartition("-v")[0]
    number = 1
    while (found := name if number == 1 else f"{name}.{number}") in taken:
        number += 1
    return found


def _united(members: Mapping[str, TextEnv[Any, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The tools of all members; the same tool in two of them once."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, world in members.items():
        for tool in world.tools:
            called = str(tool.get("function", tool).get("name"))
            if found.setdefault(called, tool) != tool:
                raise BadValueError(
                    f"MixedTasks: {name} and another member have different tools {called!r}; an "
                    "agent could not tell them apart. Mix worlds without that clash."
                )
    return tuple(found.values())
