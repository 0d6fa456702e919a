"""Options of language models on the command line: what samples them, and whom agents ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from ...agents.engines.factory import EngineSettings

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
Sampler = Annotated[EngineSettings, tyro.conf.arg(name="")]
"""The engine of every model that a command names, and its settings."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model of prompting agents: --model here, or --endpoint and --model-name there.

    Attributes:
        model: Folder or hub name, a run directory, or "starter" for the small one made here.
        endpoint: Base address of an OpenAI-compatible server, as http://localhost:8000/v1.
        model_name: The server's name for the model.
        api_key_env: Environment variable that holds the server's key; left out: none is sent.
        api: The server's /chat/completions or /completions.
        request_arg: Another field of each request as name=value, repeatable; None drops a field.
        timeout: Seconds for one reply of the server.
        attempts: Tries per request, with growing pauses between them.
        concurrency: Most episodes at a time; left out: 16 with a server, --max-batch without.
        dialect: chat instructs in words; tags lets a base or small model go on with the dialogue;
            auto looks for a chat template or at --api.
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


Asked = Annotated[ModelOptions, tyro.conf.arg(name="")]
