"""OpenEnv: a typed client of :func:`~turngym.envs.adapters.openenv_server.openenv_app`.

``with TextEnvClient(base_url="http://localhost:8000").sync() as client: client.reset(task=3)``.
Tested with openenv-core 0.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import MissingExtraError
from .openenv_server import TextAction, TextObservation

try:
    from openenv.core.client_types import StepResult  # pyright: ignore[reportMissingImports]
    from openenv.core.env_client import EnvClient  # pyright: ignore[reportMissingImports]
    from openenv.core.env_server.types import State  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError("the OpenEnv adapter", "openenv-core", "openenv") from error


class TextEnvClient(EnvClient):
    """Plays a served environment; ``step`` takes a :class:`TextAction` or plain text."""

    def _step_payload(self, action: TextAction | str) -> dict[str, Any]:
        return {"text": action if isinstance(action, str) else action.text}

    def _parse_result(self, payload: Mapping[str, Any]) -> StepResult:
        reward, done = payload.get("reward"), bool(payload.get("done", False))
        observation = TextObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: Mapping[str, Any]) -> State:
        return State(**payload)
