"""Rows of a verl data set; needs no other package to make them."""

from __future__ import annotations

from typing import Any

from .conversation import Conversation, task_rows

WHERE = "the verl adapter"


def verl_rows(
    env_id: str, count: int | None = None, *, agent_name: str = "turngym", **options: Any
) -> list[dict[str, Any]]:
    """Return rows for verl's parquet files (``pandas.DataFrame(rows).to_parquet(path)``).

    Args:
        env_id: Registered id.
        count: How many; None for the whole split.
        agent_name: Name of the agent loop in verl's configuration.
        **options: ``split``, ``seed`` and ``settings`` of
            :func:`~turngym.envs.adapters.conversation.task_rows`.

    Raises:
        BadValueError: An environment that opens sessions.
    """
    talk = Conversation(env_id, options.get("settings"), where=WHERE)
    return [
        {
            "data_source": env_id,
            "agent_name": agent_name,
            "prompt": [{"role": "user", "content": talk.start(row)}],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": index, "split": row["split"]},
            **row,
        }
        for index, row in enumerate(task_rows(env_id, count, where=WHERE, **options))
    ]
