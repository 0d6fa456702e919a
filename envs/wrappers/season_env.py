"""An environment that a leaderboard's server steps: ``gym.make(id, server=…, token=…)``."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Mapping
from typing import Any, cast

from ..core.episode import Info, Maybe
from ..core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError
from ..core.randomness import SeededEnv
from ..core.registration import find_environment
from ..core.settings import check_integer
from ..core.spaces import Utf8Text
from .season_client import SeasonClient

CLIENT = ("server", "token", "season", "timeout_s")
"""Settings of the client; all others are the environment's, and must be those of the season."""
RESET_OPTIONS = ("split", "task", "trial")


class RemoteEnv(SeededEnv):
    """An environment of a sealed season: its state stays on the server.

    Each task and trial can be begun once. ``reset()`` begins the next one that this account has
    not begun; ``options={"task": 3, "trial": 1}`` a certain one. A task comes again when every task
    of the environment is over once more. Seeds are the server's: the seed given to ``reset`` seeds
    only :attr:`np_random`. Rewards, metrics and verdicts are reported if the season publishes them;
    otherwise the reward is 0, the last observation empty and ``info["status"]`` at the end "ended".
    Keys that an environment adds to :class:`Info` are not sent.

    Args:
        env_id: Registered id.
        client: The way to the server.
        settings: Settings of the environment; those that are given must be the season's.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        BadValueError: The season does not hold the environment, or with other settings.
        EnvFault: The server cannot be reached.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012 - gymnasium's own form

    def __init__(
        self,
        env_id: str,
        client: SeasonClient,
        settings: Mapping[str, Any],
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UnknownNameError("render mode", render_mode, self.metadata["render_modes"])
        self.env_id = env_id
        self.client = client
        self.render_mode = render_mode
        cell = _find_cell(env_id, settings, client.describe_season())
        self.key: str = cell["key"]
        self.split: str = cell["split"]
        self.tasks: int = cell["tasks"]
        self.trials: int = cell["trials"]
        self.max_turns: int = cell["max_turns"]
        self.instructions: str = cell["instructions"]
        self.stop: tuple[str, ...] = tuple(cell["stop"])
        self.tools: tuple[Mapping[str, Any], ...] = tuple(cell["tools"])
        self.reward_range = find_environment(env_id).reward_range
        self.observation_space: Utf8Text = Utf8Text(cell["max_chars"])  # pyright: ignore
        self.action_space: Utf8Text = Utf8Text(cell["max_chars"])  # pyright: ignore
        self._session: str | None = None
        self._info: Info | None = None
        self._texts: list[str] = []

    @property
    def name(self) -> str:
        """The registered id."""
        return self.env_id

    def legal_actions(self) -> None:
        """Return None: the state stays on the server."""
        return

    def reset(  # pyright: ignore[reportIncompatibleMethodOverride] - info is typed
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, Info]:
        """Begin an episode that this account has not begun yet.

        Args:
            seed: Seeds :attr:`np_random`; the episode's own seed is the server's.
            options: ``task`` and ``trial``, counted from 0; the next free ones if left out.
                A ``split`` must be the season's.

        Raises:
            UnknownNameError: An option that does not exist.
            BadValueError: No such task or trial, or the server refused.
            EpisodeError: Everything that was asked for is played.
            EnvFault: The server cannot be reached.
        """
        given = dict(options or {})
        for key in given:
            if key not in RESET_OPTIONS:
                raise UnknownNameError("reset option", key, RESET_OPTIONS, self.name)
        if given.get("split", self.split) != self.split:
            raise BadValueError(
                f"{self.name}: split {given['split']!r}; the season plays {self.split!r}."
            )
        if seed is not None:
            self.seed_stream(seed)
        task, trial = (given.get(key) for key in ("task", "trial"))
        for key, value in (("task", task), ("trial", trial)):
            if value is not None:
                check_integer(key, value, self.name, min=0)
        reply = self.client.start(self.key, task, trial, secrets.token_hex(16))
        self._session = reply["session"]
        self._info = _read_info(reply["info"])
        self._texts = [self.instructions, reply["observation"]]
        return reply["observation"], self._info

    def step(  # pyright: ignore[reportIncompatibleMethodOverride] - info is typed
        self, action: str
    ) -> tuple[str, float, bool, bool, Info]:
        """Take one action.

        A server that cannot be reached ends the episode here with the status ``env_error``.

        Raises:
            TypeError: The action is not text.
            EpisodeError: There is no running episode.
            BadValueError: The server refused the action.
        """
        if self._session is None or self._info is None:
            raise EpisodeError(f"{self.name}: no episode yet; call reset first.")
        if self._info["status"] != "running":
            raise EpisodeError(
                f"{self.name}: step after the end of the episode (status "
                f"{self._info['status']!r}); call reset first."
            )
        if not isinstance(action, str):
            raise TypeError(
                f"{self.name}: action is a {type(action).__name__}; expected text (str)."
            )
        turn = self._info["turn"] + 1
        try:
            reply = self.client.step(self._session, turn, action)
        except EnvFault as fault:
            return self._end_with_fault(turn, action, fault)
        self._info = _read_info(reply["info"])
        self._texts += [action, reply["observation"]]
        return (
            reply["observation"],
            float(reply["reward"]),
            reply["terminated"],
            reply["truncated"],
            self._info,
        )

    def render(self) -> str | None:
        """Return the transcript so far as text (render mode ``"ansi"``), else None."""
        return "".join(self._texts) if self.render_mode == "ansi" else None

    def _end_with_fault(
        self, turn: int, action: str, fault: EnvFault
    ) -> tuple[str, float, bool, bool, Info]:
        assert self._info is not None
        observation = f"The environment broke: {fault}"
        self._info = cast(
            "Info",
            dict(self._info)
            | {"turn": turn, "status": "env_error", "valid_action": True, "reward_terms": {}},
        )
        self._texts += [action, observation]
        return observation, 0.0, False, True, self._info


def remote_env(env_id: str, env_class: Any, settings: Mapping[str, Any]) -> RemoteEnv:
    """Make the client of an environment that a season's server steps.

    Args:
        env_id: Its id.
        env_class: Its class.
        settings: What ``gym.make`` was given: the client's settings and the environment's.

    Raises:
        UnknownNameError: A setting that the environment does not have.
        BadValueError: No address or token, or the season has another environment or settings.
    """
    known = inspect.signature(env_class.__init__).parameters
    own = {name: value for name, value in settings.items() if name not in CLIENT}
    for name in own:
        if name not in known:
            names = [*CLIENT, *(key for key in known if key != "self")]
            raise UnknownNameError("setting", name, names, env_class.__name__)
    render_mode = own.pop("render_mode", None)
    ways = {name: settings[name] for name in CLIENT if name in settings}
    client = SeasonClient(ways.pop("server"), ways.pop("token", None), **ways)
    return RemoteEnv(env_id, client, own, render_mode)


def _find_cell(env_id: str, settings: Mapping[str, Any], season: Mapping[str, Any]) -> Any:
    """Return the season's cell of this environment with these settings.

    Raises:
        BadValueError: There is none, or several.
    """
    candidates = [cell for cell in season["cells"] if cell["env_id"] == env_id]
    found = [
        cell
        for cell in candidates
        if all(name in cell["settings"] and cell["settings"][name] == value
               for name, value in settings.items())
    ]  # fmt: skip
    if len(found) == 1:
        return found[0]
    held = "; ".join(f"{cell['env_id']} with {cell['settings']}" for cell in season["cells"])
    which = "no environment" if not found else "several environments"
    raise BadValueError(
        f"season {season['name']} holds {which} {env_id} with {dict(settings)}. It holds: {held}."
    )


def _read_info(reply: Mapping[str, Any]) -> Info:
    """Return the info as a local environment does."""
    whole = dict(reply)
    for key in ("parent_session", "verdict"):
        whole[key] = None if whole[key] is None else Maybe(whole[key])
    return cast("Info", whole)
