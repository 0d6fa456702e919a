"""Cut any multi-turn environment into sessions: a context that starts anew every few turns."""

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
    the return is a sum over sessions; it always is). Rewards, statuses and metrics are those of
    the environment: only what the agent sees, ``info["session"]`` and ``info["parent_session"]``
    change.

    A recorder goes inside (``AsSessions(RecordEpisodes(env, path))``): it writes the
    environment's own episode, which replays without this wrapper. It can be forked by
    :func:`turngym.envs.fork` and pickled.

    Args:
        env: A text environment without sessions of its own, wrapped or not.
        window: Turns per session.
        carry: Newest turns that the next session is shown.
        separator: Stands between the task's first observation and those turns.

    Raises:
        BadValueError: Not a text environment; one that opens sessions itself; a setting below 1.
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
        limits = inner.observation_space.max_chars, inner.action_space.max_chars
        self.observation_space = Utf8Text(limits[0] + len(separator) + carry * sum(limits))
        self._inner = inner
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
            BadValueError: The environment opened a session of its own.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info["session"] != 0:
            raise BadValueError(
                f"AsSessions: {self._inner.name} opened session {info['session']} of its own; "
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
        return observation, float(reward), terminated, truncated, self._mark_session(info)

    def asked(self) -> Sequence[Opening]:
        """Return the session that the last action opened by ending a window."""
        return (self._make_opening(),) if self._just_opened else ()

    def waiting(self) -> Sequence[Opening]:
        """Return the present session, while nobody has acted in it."""
        fresh = self._session > 0 and self._turns == 0
        return (self._make_opening(),) if fresh and self._inner.episode.status == "running" else ()

    def session_key(self) -> str:
        """Return the key of the present session, empty for the first one."""
        return f"window {self._session}" if self._session else ""

    def open_session(self, key: str) -> tuple[str, Info]:
        """Stay in the session that was just opened: no other one waits.

        Raises:
            UnknownNameError: No session of that key is waiting.
        """
        if key not in (known := [opening.key for opening in self.waiting()]):
            raise UnknownNameError("session", key, known, self._inner.name)
        return self._shown, self._mark_session(self._inner.episode.info({}, {}))

    def _make_opening(self) -> Opening:
        return Opening(self.session_key(), self._shown, layer=self._session)

    def _mark_session(self, info: Mapping[str, Any]) -> Any:
        parent = Maybe(self._session - 1) if self._session else None
        return {**info, "session": self._session, "parent_session": parent}
