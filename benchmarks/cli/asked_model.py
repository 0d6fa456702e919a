"""Options of `turngym eval` that say which model prompting agents and planners ask."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from ...agents.engines.factory import EngineSettings
from ...agents.prompting import PROMPTING
from ...envs.core.errors import BadValueError
from .arguments import Repeated
from .model_options import STARTER
from .planner_options import COMPARING, PLANNING, refuse_unused

DRRN = "drrn:"
"""Before the folder of a network that scores legal actions."""
ASKING = (*PROMPTING, *PLANNING)
"""Agents that need a model: prompting agents and planners."""
OF_ENDPOINTS = ("model_name", "api_key_env", "api", "request_arg", "timeout", "attempts")
"""Options that need a server."""
OF_AGENTS = ("concurrency", "dialect")
"""Options that need a prompting agent."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model of prompting agents: --model here, or --endpoint and --model-name there.

    Attributes:
        model: A model that `turngym models` lists, a model folder, GGUF file or hub name, a run
            directory, or "starter" for the small one made here.
        endpoint: Base address of an OpenAI-compatible server, as http://localhost:8000/v1.
        model_name: The server's name for the model.
        api_key_env: Environment variable that holds the server's key; left out: none is sent.
        api: The server's /chat/completions or /completions.
        request_arg: Another field of each request as name=value, repeatable; None drops a field.
        timeout: Seconds for one reply of the server.
        attempts: Tries per request, with growing pauses between them.
        concurrency: Maximum episodes at a time; left out: 16 with a server, --max-batch without.
        dialect: chat instructs with messages; tags lets a base or small model continue the
            dialogue; auto follows the chat template, or --api.
    """

    model: str | None = None
    endpoint: str | None = None
    model_name: str | None = None
    api_key_env: str | None = None
    api: Literal["chat", "completions"] = "chat"
    request_arg: Repeated = ()
    timeout: float = 120.0
    attempts: int = 5
    concurrency: int | None = None
    dialect: Literal["auto", "chat", "tags"] = "auto"


def check_model_options(names: tuple[str, ...], asked: ModelOptions) -> None:
    """Refuse agents and options that do not fit together, before anything is loaded.

    Raises:
        BadValueError: No model for a prompting agent, two of them, or one that nobody asks; an
            agent that is named twice, or none.
    """
    if not names:
        raise BadValueError("--agent: names no agent; expected one or more after it.")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadValueError(f"--agent: {twice} is named twice; it would be scored the same twice.")
    mine = [name for name in names if name in ASKING]
    given = asked.model is not None or asked.endpoint is not None
    if mine and not given:
        raise BadValueError(
            f"--agent {mine[0]}: needs a model: --model FOLDER (or --model {STARTER}), or "
            "--endpoint http://host/v1 with --model-name NAME."
        )
    if given and not mine:
        raise BadValueError(
            f"--agent {' '.join(names)}: asks no model; --model and --endpoint are asked by "
            f"prompting agents ({', '.join(PROMPTING)}) and planners ({', '.join(PLANNING)}). To "
            "score a model itself, name its folder as --agent."
        )
    if asked.model is not None and asked.endpoint is not None:
        raise BadValueError("--model and --endpoint: two models were given; give one.")
    if asked.endpoint is not None and not asked.model_name:
        raise BadValueError("--endpoint: needs --model-name, the server's name for the model.")
    if asked.endpoint is None:
        refuse_unused(asked, OF_ENDPOINTS, "goes with --endpoint")
    if not mine:
        refuse_unused(asked, OF_AGENTS, f"goes with prompting agents ({', '.join(ASKING)})")
    if (variable := asked.api_key_env) and not os.environ.get(variable):
        raise BadValueError(f"--api-key-env: the environment variable {variable} is not set.")


def check_sampling(
    agents: Sequence[str],
    scripts: Container[str],
    *,
    temperature: float | None,
    max_tokens: int | None,
    engine: EngineSettings | None,
) -> None:
    """Refuse settings of sampling that none of the agents has.

    Args:
        agents: Who plays.
        scripts: Those that no model writes for.
        temperature: As it was given, None where it was left out. Planners have one of their own.
        max_tokens: Likewise. A network that scores legal actions writes none.
        engine: As it was given, None where the model of prompting agents has it.

    Raises:
        BadValueError: One was given for nothing.
    """
    writing = [agent for agent in agents if agent not in scripts]
    users = {
        "temperature": (temperature, [agent for agent in writing if agent not in PLANNING]),
        "max-tokens": (max_tokens, [a for a in writing if not a.startswith(DRRN)]),
    }
    for name, (value, mine) in users.items():
        if value is not None and not mine:
            other = "; planners have --search-temperature" if writing else ""
            raise BadValueError(
                f"--{name}: goes with an agent that is or asks a model; {', '.join(agents)} "
                f"{'has' if len(agents) == 1 else 'have'} no such setting"
                f"{other if name == 'temperature' else ''}."
            )
    models = [a for a in writing if not a.startswith(DRRN) and a not in ASKING]
    if engine is not None and not models:
        # the reward model of planners is on the device
        also = {"device"} if any(agent in COMPARING for agent in writing) else set()
        names = [f.name for f in fields(engine) if f.name not in also]
        refuse_unused(engine, names, "goes with an agent that is a model here, or with --model")
