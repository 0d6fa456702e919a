"""SkyRL-gym: ``skyrl_gym.register(id="turngym", entry_point=ENTRY_POINT)`` and :func:`skyrl_rows`.

Register inside the Ray entry task. The row says which environment and which task; the model's reply
is the action, cut after the environment's stop string (put ``environment.stop`` into the sampling
parameters as well, so that nothing is sampled after it). Tested with skyrl-gym 0.4.0.

Limits: ``done`` does not tell truncation from the end; ``metadata["status"]`` does. A broken
environment raises, for SkyRL has no place for an episode without a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import BadValueError, MissingExtraError
from .conversation import Conversation, task_rows

try:
    from skyrl_gym.envs.base_text_env import (  # pyright: ignore[reportMissingImports]
        BaseTextEnv,
    )
except ImportError as error:
    raise MissingExtraError("the SkyRL adapter", "skyrl-gym", "skyrl", error) from error

WHERE = "the SkyRL adapter"
ENTRY_POINT = f"{__name__}:SkyrlEnvironment"


class SkyrlEnvironment(BaseTextEnv):
    """An environment as SkyRL-gym's text environment.

    Args:
        env_config: ``env_id`` and ``settings`` where the row does not name them; may be empty.
        extras: The row of the data set, see :func:`skyrl_rows`.

    Raises:
        BadValueError: No ``env_id``, or an environment that opens sessions.
    """

    def __init__(
        self,
        env_config: Mapping[str, Any] | None = None,
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._row = {**_to_plain(env_config or {}), **dict(extras or {})}
        if not self._row.get("env_id"):
            raise BadValueError(f"{WHERE}: the row has no 'env_id'; make rows with skyrl_rows.")
        self.talk = Conversation(self._row["env_id"], self._row.get("settings"), where=WHERE)
        self.max_turns = self.talk.env.max_turns

    def init(self, prompt: Any) -> tuple[list[dict[str, str]], dict[str, Any]]:  # noqa: ARG002
        """Start the row's episode; the first prompt is the environment's."""
        self.turns = 0
        text = self.talk.start(self._row)
        return [{"role": "user", "content": text}], dict(self.talk.info)

    def step(self, action: str) -> dict[str, Any]:
        """Take the action; there is no observation after the end."""
        self.turns += 1
        reply = self.talk.act(action)
        observations = [] if reply.done else [{"role": "user", "content": reply.text}]
        return {
            "observations": observations,
            "reward": reply.reward,
            "done": reply.done,
            "metadata": dict(reply.info),
        }

    def get_metrics(self) -> dict[str, Any]:
        """Return the metrics of a finished episode and its return by terms."""
        terms = {f"terms/{name}": value for name, value in self.talk.terms.items()}
        return {**self.talk.info["metrics"], **terms}


def _to_plain(config: Any) -> Any:
    """Return what SkyRL read with OmegaConf, whose lists are none of Python's, as plain data."""
    if isinstance(config, Mapping):
        return {key: _to_plain(value) for key, value in config.items()}
    if isinstance(config, Sequence) and not isinstance(config, (str, bytes)):
        return [_to_plain(value) for value in config]
    return config


def skyrl_rows(
    env_id: str, count: int | None = None, *, env_class: str = "turngym", **options: Any
) -> list[dict[str, Any]]:
    """Return rows of a SkyRL data set: prompt, ``env_class``, ``reward_spec`` and task.

    Args:
        env_id: Registered id.
        count: How many; None for the whole split.
        env_class: The id under which :data:`ENTRY_POINT` was registered.
        **options: ``split``, ``seed`` and ``settings`` of
            :func:`~turngym.envs.adapters.conversation.task_rows`.
    """
    talk = Conversation(env_id, options.get("settings"), where=WHERE)
    fixed = {"env_class": env_class, "reward_spec": {"method": "env", "ground_truth": ""}}
    return [
        {"prompt": [{"role": "user", "content": talk.start(row)}], **fixed, **row}
        for row in task_rows(env_id, count, where=WHERE, **options)
    ]
