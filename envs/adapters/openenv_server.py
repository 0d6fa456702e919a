"""OpenEnv: a server over any environment.

``app = openenv_app("SearchQA-v0", {"hops": 2})`` is a FastAPI application for any server of such,
and for the ``app:`` line of an ``openenv.yaml``. Every connection has an episode of its own.
:class:`~turngym.envs.adapters.openenv_client.TextEnvClient` talks to it, as does OpenEnv's generic
client. Tested with openenv-core 0.3.0.

Environments that open sessions work as well: every observation tells its session. OpenEnv has no
place for truncation, status and reward terms and drops metadata on the way, so they are fields of
the observation. A broken environment ends the episode with status ``env_error`` and no reward.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field

from ..core.episode import Info
from ..core.errors import MissingExtraError
from ..core.settings import check_integer
from .conversation import Settings, cut_at_stop, make_text_env

try:
    from openenv.core.env_server import create_app  # pyright: ignore[reportMissingImports]
    from openenv.core.env_server.interfaces import (  # pyright: ignore[reportMissingImports]
        Environment,
    )
    from openenv.core.env_server.types import (  # pyright: ignore[reportMissingImports]
        Action,
        EnvironmentMetadata,
        Observation,
        State,
    )
    from starlette.websockets import WebSocketDisconnect
except ImportError as error:
    raise MissingExtraError("the OpenEnv adapter", "openenv-core", "openenv", error) from error

WHERE = "the OpenEnv adapter"


class TextAction(Action):
    """What the model wrote."""

    text: str


class TextObservation(Observation):
    """The environment's observation and info, see :class:`~turngym.envs.core.episode.Info`."""

    text: str
    instructions: str = Field("", description="The rules of the environment; only after a reset.")
    status: str = "running"
    truncated: bool = False
    task_id: str = ""
    split: str = ""
    turn: int = 0
    valid_action: bool = True
    reward_terms: dict[str, float] = Field(default_factory=dict)
    metrics: dict[str, float] = Field(default_factory=dict)
    session: int = 0
    parent_session: int | None = None


class TextEnvironment(Environment):
    """An environment behind OpenEnv's interface.

    Args:
        env_id: Registered id.
        settings: Settings of the environment.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env_id: str, settings: Settings = None) -> None:
        super().__init__()
        self.env = make_text_env(env_id, settings, where=WHERE)
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> TextObservation:
        """Start an episode.

        Args:
            seed: Seed of the episode.
            episode_id: Name of the episode in the state.
            **options: ``split`` and ``task`` (an index or a task id).

        Raises:
            UnknownNameError: Another option; an unknown split or task.
        """
        text, info = self.env.reset(seed=seed, options=options)
        self._state = State(episode_id=episode_id, task_id=info["task_id"], status="running")
        return _make_observation(text, info, instructions=self.env.instructions)

    def step(
        self,
        action: TextAction,
        timeout_s: float | None = None,  # noqa: ARG002 - OpenEnv's; environments have limits of their own
        **_: Any,
    ) -> TextObservation:
        """Take an action, cut after the environment's stop string.

        Raises:
            EpisodeError: The episode is over, or none was started.
        """
        text = cut_at_stop(action.text, self.env.stop)
        text, reward, terminated, truncated, info = self.env.step(text)
        broken = info["status"] == "env_error"
        self._state.step_count = info["turn"]
        self._state.status = info["status"]
        return _make_observation(
            text,
            info,
            done=terminated or truncated,
            truncated=truncated,
            reward=None if broken else reward,
        )

    @property
    def state(self) -> State:
        """Episode id, steps, task and status."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the name and purpose of the environment."""
        text = (type(self.env).__doc__ or "").strip().partition("\n")[0]
        return EnvironmentMetadata(name=self.env.name, description=text)


def openenv_app(env_id: str, settings: Settings = None, *, max_episodes: int = 64) -> Any:
    """Return a FastAPI application that serves an environment.

    Args:
        env_id: Registered id.
        settings: Settings of the environment.
        max_episodes: Connections at a time, each with an episode of its own.

    Raises:
        BadValueError: Not a text environment, or no connection at all.
    """
    check_integer("max_episodes", max_episodes, WHERE, min=1)
    make_text_env(env_id, settings, where=WHERE)  # refuses a wrong setting here and not per request
    app = create_app(
        partial(TextEnvironment, env_id, settings),
        TextAction,
        TextObservation,
        env_name=env_id,
        max_concurrent_envs=max_episodes,
    )
    # openenv-core closes the connection of a client that has left, which starlette calls an error
    app.add_exception_handler(WebSocketDisconnect, _ignore)
    return app


async def _ignore(connection: Any, error: Exception) -> None:
    """Do nothing."""


def _make_observation(text: str, info: Info, **given: Any) -> TextObservation:
    reported = {key: info[key] for key in _REPORTED}
    return TextObservation(text=text, **reported, **given)


_REPORTED = (
    "status",
    "task_id",
    "split",
    "turn",
    "valid_action",
    "reward_terms",
    "metrics",
    "session",
    "parent_session",
)
