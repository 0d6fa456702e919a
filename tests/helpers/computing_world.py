"""SearchQA with both tools and an expert that computes first, so that laws meet python calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from turngym.envs.core.env import Policy
from turngym.envs.search_qa.env import SearchQA

CODE = "import json\nfound = {'a', 'b'}\njson.dumps(sorted(found)), object(), found, 1 / len(found)"


class ComputingQA(SearchQA):
    """The micro world with the python tool."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(
            size="micro",
            tools=("search", "python"),
            python_tool={"timeout_s": 20.0, "memory_mb": 256},
            max_turns=4,
            render_mode=render_mode,
        )

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        searching = super().expert(mistakes, seed)

        def act(env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:
            if info["turn"] == 0:
                return f"<python> {CODE} </python>"
            return searching(env, observation, info)

        return act
