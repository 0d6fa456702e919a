"""Cut any multi-turn world into sessions: a context that starts anew every few turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from ..core.env import TextEnv
from ..core.episode import Info, Maybe, Opening
from ..core.errors import BadValueError, UnknownNameError
from ..core.settings import check_integer
from ..core.spaces import Utf8Text

SEPARATOR = "\n[...]\n"


class AsSessions(gym.Wrapper[str, str, str, str], gym.utils.RecordConstructorArgs):
    """Every ``window`` turns a new session begins, asked for by the turn before it.

    Its first observation is the task's first one, a separator, and the newest ``carry`` actions
    with their answers. That is sound where the task and these are enough to go on (and wherever
    the return is a sum over sessions; it always is). Rewards, statuses and metrics are the world's
    own: only what the agent sees, ``info["session"]`` and ``info["parent_session"]`` change.

    A recorder goes inside (``AsSessions(RecordEpisodes(env, path))``): it writes the world's own
    episode, which replays without this wrapper. Forks with :func:`turngym.envs.fork`, and pickles.

    Args:
        env: A text world without sessions of its own, wrapped or not.
        window: Turns per session.
        carry: Newest turns that the next session is shown.
        separator: Stands between the task's first observation and those turns.

    Raises:
        BadValueError: Not a text world; one that opens sessions itself; a setting below 1.
    """

    sessions = True

    def __init__(
        self, env: gym.Env[str, str], window: int, carry: int = 1, separator: str = SEPARATOR
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, window=window, carry=carry, separator=separator
        )
        gym.Wrapper.__init__(self, env)
        inner = env.unwrapped
        if not isinstance(inner, TextEnv):
            raise BadValueError(f"AsSessions: {inner} is not a TextEnv.")
        if env.get_wrapper_attr("sessions"):
            raise BadValueError(
                f"AsSessions: {inner.name} opens sessions of its own (its actions ask for them), "
                "so there is nothing to cut; use it as it is."
            )
        for name, value in (("window", window), ("carry", carry)):
            check_integer(name, value, "AsSessions", min=1)
        most = inner.observation_space.max_chars, inner.action_space.max_chars
        self.observation_space = Utf8Text(most[0] + len(separator) + carry * sum(most))
        self._world = inner
        self._window, self._carry, self._separator = window, carry, separator
        self._first = ""
        self._newest: list[str] = []
        self._session = 0
        self._turns = 0  # actions taken in the present session
        self._shown = ""
        self._just_opened = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode in session 0."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._first = self._shown = observation
        self._newest, self._session, self._turns = [], 0, 0
        self._just_opened = False
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one action; the last one of a window is answered in the next session.

        Raises:
            BadValueError: The world opened a session of its own.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info["session"] != 0:
            raise BadValueError(
                f"AsSessions: {self._world.name} opened session {info['session']} of its own; "
                "use it as it is."
            )
        self._turns += 1
        self._newest = [*self._newest, f"{action}{observation}"][-self._carry :]
        self._just_opened = info["status"] == "running" and self._turns == self._window
        if self._just_opened:
            self._session += 1
            self._turns = 0
            observation = f"{self._first}{self._separator}{''.join(self._newest)}"
        self._shown = observation
        return observation, float(reward), terminated, truncated, self._marked(info)

    def asked(self) -> Sequence[Opening]:
        """The session that the last action opened by ending a window."""
        return (self._opening(),) if self._just_opened else ()

    def waiting(self) -> Sequence[Opening]:
        """The present session, while nobody has acted in it."""
        fresh = self._session > 0 and self._turns == 0
        return (self._opening(),) if fresh and self._world.episode.status == "running" else ()

    def session_key(self) -> str:
        """Key of the present session, empty for the first one."""
        return f"window {self._session}" if self._session else ""

    def open_session(self, key: str) -> tuple[str, Info]:
        """Stay in the session that was just opened: no other one waits.

        Raises:
            UnknownNameError: No session of that key is waiting.
        """
        if key not in (known := [opening.key for opening in self.waiting()]):
            raise UnknownNameError("session", key, known, self._world.name)
        return self._shown, self._marked(self._world.episode.info({}, {}))

    def _opening(self) -> Opening:
        return Opening(self.session_key(), self._shown, layer=self._session)

    def _marked(self, info: Mapping[str, Any]) -> Any:
        parent = Maybe(self._session - 1) if self._session else None
        return {**info, "session": self._session, "parent_session": parent}
