"""OpenEnv: a typed client of :func:`~turngym.envs.adapters.openenv_server.openenv_app`.

``with TextEnvClient(base_url="http://localhost:8000").sync() as client: client.reset(task=3)``.
Tested with openenv-core 0.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from ..core.env import check_action
from ..core.errors import DataError, MissingExtraError
from ..utils.http import excerpt
from .openenv_server import TextAction, TextObservation

try:
    from openenv.core.client_types import StepResult  # pyright: ignore[reportMissingImports]
    from openenv.core.env_client import EnvClient  # pyright: ignore[reportMissingImports]
    from openenv.core.env_server.types import State  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError("the OpenEnv adapter", "openenv-core", "openenv", error) from error

WHERE = "the OpenEnv client"


class _Result(BaseModel):
    """What the server says about a reset or a step."""

    observation: dict[str, Any]
    reward: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    done: Annotated[bool, Field(strict=True)] = False


class TextEnvClient(EnvClient):
    """Plays a served environment; ``step`` takes a :class:`TextAction` or plain text.

    A reply of another shape than the server's is a
    :class:`~turngym.envs.core.errors.DataError`; what the server refuses is OpenEnv's
    ``RuntimeError``.
    """

    async def _receive(self) -> dict[str, Any]:
        try:
            reply = await super()._receive()
        except (ValueError, RecursionError) as fault:
            raise DataError(f"{WHERE}: the server's reply is no JSON: {_name(fault)}.") from None
        data = reply.get("data", {}) if isinstance(reply, dict) else None
        if not isinstance(data, dict):
            raise DataError(
                f"{WHERE}: the server's reply is {excerpt(reply)}; expected an object with 'data'."
            )
        return reply

    def _step_payload(self, action: TextAction | str) -> dict[str, Any]:
        text = action.text if isinstance(action, TextAction) else action
        check_action(text, WHERE)
        return {"text": text}

    def _parse_result(self, payload: Mapping[str, Any]) -> StepResult:
        try:
            result = _Result.model_validate(payload)
            given = {**result.observation, "reward": result.reward, "done": result.done}
            observation = TextObservation(**given)
        except ValidationError as fault:
            raise DataError(f"{WHERE}: the server's result is none: {_name(fault)}.") from None
        return StepResult(observation=observation, reward=result.reward, done=result.done)

    def _parse_state(self, payload: Mapping[str, Any]) -> State:
        try:
            return State(**payload)
        except ValidationError as fault:
            raise DataError(f"{WHERE}: the server's state is none: {_name(fault)}.") from None


def _name(fault: Exception) -> str:
    return excerpt(str(fault).encode("utf-8", "replace"))
