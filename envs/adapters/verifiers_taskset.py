"""verifiers, and prime-rl with it: any environment as a taskset and its environment.

The installed plugin is called ``turngym_verifiers``: ``vf-eval turngym-verifiers
--env.taskset.env-id SearchQA-v0``; prime-rl names it as ``env.taskset.id``. The environment plays
the user: the first prompt is the task's, every reply of the model is an action. Tested with
verifiers 0.4.0.

Rewards are recorded by terms, with weight 1, so that they sum to the return. A broken environment
is an error of the episode, which verifiers tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from ..core.errors import MissingExtraError
from .conversation import Conversation, task_rows

try:
    import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError("the verifiers adapter", "verifiers", "verifiers", error) from error

WHERE = "the verifiers adapter"
__all__ = ["TextEnvTaskset", "TextEnvironment"]


class TextEnvTasksetConfig(vf.TasksetConfig):
    """Which tasks of which environment."""

    env_id: str = "SearchQA-v0"
    """Registered id of the environment."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment."""
    split: str | None = None
    """Split of the tasks; train, or the first that holds one."""
    count: int | None = None
    """How many tasks; a split without end needs it."""
    seed: int = 0
    """Seed of the first task's episode; every further task takes the next."""


class TextEnvTaskData(vf.TaskData):
    """The row that fixes an episode, see :func:`~turngym.envs.adapters.conversation.task_rows`."""

    row: dict[str, Any]


class TextEnvTask(vf.Task[TextEnvTaskData, vf.State, vf.TaskConfig]):
    """One task of an environment."""


class TextEnvTaskset(vf.Taskset[TextEnvTask, TextEnvTasksetConfig]):
    """Tasks of an environment; the first observation is the prompt."""

    def load(self) -> Iterator[TextEnvTask]:
        """Yield the tasks in the split's order."""
        config = self.config
        talk = Conversation(config.env_id, config.settings, where=WHERE)
        rows = task_rows(
            config.env_id,
            config.count,
            split=config.split,
            seed=config.seed,
            settings=config.settings,
            where=WHERE,
        )
        for row in rows:
            data = TextEnvTaskData(
                id=row["task"], name=row["task"], prompt=talk.start(row), row=row
            )
            yield TextEnvTask(data, config.task)


class TextEnvironmentConfig(vf.EnvConfig):
    """One agent: the model that plays."""

    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime=vf.SubprocessConfig())


class TextEnvironment(vf.Env[TextEnvironmentConfig]):
    """Plays an episode: the environment answers the model until the episode ends."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play one episode."""
        row = task.data.row
        talk = Conversation(row["env_id"], row["settings"], where=WHERE)
        await asyncio.to_thread(talk.start, row)
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                reply = await talk.act_beside(segment.last_reply)
                if reply.done:
                    break
                segment = await interaction.turn(reply.text)
        trace = interaction.trace
        for name, value in talk.terms.items():
            trace.record_reward(name, value)
        trace.record_metrics(talk.info["metrics"])
        trace.info["status"] = talk.info["status"]
