"""Prompting agents on the command line: their model, and where their transcripts go."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...agents.engines.base import Engine
from ...agents.engines.factory import build_engine
from ...agents.engines.openai_client import Endpoint
from ...agents.prompting import (
    PROMPTING,
    Dialect,
    EngineModel,
    Limits,
    OpenAIModel,
    TextModel,
    prompting,
)
from ...algos.evaluation.prompting import Prompted
from ...algos.runs.progress import Reporter
from ...envs.core.errors import BadValueError
from ..runtime.threads import prepare
from .arguments import values
from .model_options import ModelOptions
from .models import model_path, starter
from .planner_options import PLANNING
from .train_options import EvalCommand

STARTER = "starter"
ASKING = (*PROMPTING, *PLANNING)
"""Agents that need a model: prompting agents and planners."""
AT_A_SERVER = 16
TOKENS = {"chat": 512, "tags": 64}
OF_ENDPOINTS = ("model_name", "api_key_env", "api", "request_arg", "timeout", "attempts")
"""Options that say nothing without a server."""
OF_AGENTS = ("concurrency", "dialect")
"""Options that say nothing without a prompting agent."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The model that prompting agents ask, and how.

    Attributes:
        label: What result files call it.
        model: Writes.
        dialect: In which it is asked.
        engine: Samples, for a model in this process; None for a server's.
        tokenizer: The engine's.
    """

    label: str
    model: TextModel
    dialect: Dialect
    engine: Engine | None = None
    tokenizer: Any = None

    def seat(self, name: str, command: EvalCommand) -> Prompted:
        """The agent ``name`` with this model."""
        limits = Limits(
            max_tokens=self.max_tokens(command),
            temperature=command.temperature,
        )
        return Prompted(
            agent=prompting(name, self.dialect),
            model=self.model,
            limits=limits,
            concurrency=self.concurrency(command),
            folder=transcripts(command.out, name),
        )

    def max_tokens(self, command: EvalCommand) -> int:
        """Most tokens of one reply."""
        return TOKENS[self.dialect] if command.max_tokens is None else command.max_tokens

    @staticmethod
    def concurrency(command: EvalCommand) -> int:
        """Most episodes at a time."""
        if command.asked.concurrency is not None:
            return command.asked.concurrency
        return command.sampler.max_batch if command.asked.endpoint is None else AT_A_SERVER


def transcripts(out: str | None, agent: str) -> Path | None:
    """Folder of an agent's transcripts beside the result file; None without one."""
    if out is None:
        return None
    file = Path(out).expanduser()
    return file.with_name(f"{file.stem}-transcripts") / agent


def check_options(names: tuple[str, ...], asked: ModelOptions) -> None:
    """Refuse options that do not fit together, before anything is loaded.

    Raises:
        BadValueError: No model for a prompting agent, two of them, or one that nobody asks.
    """
    mine = [name for name in names if name in ASKING]
    given = asked.model is not None or asked.endpoint is not None
    if mine and not given:
        raise BadValueError(
            f"--agent {mine[0]}: needs a model: --model FOLDER (or --model {STARTER}), or "
            "--endpoint http://host/v1 with --model-name NAME."
        )
    if given and not mine:
        raise BadValueError(
            f"--model and --endpoint: are asked by prompting agents ({', '.join(PROMPTING)}) and "
            f"planners ({', '.join(PLANNING)}); to score a model itself, name its folder as "
            "--agent."
        )
    if asked.model is not None and asked.endpoint is not None:
        raise BadValueError("--model and --endpoint: two models were given; give one.")
    if asked.endpoint is not None and not asked.model_name:
        raise BadValueError("--endpoint: needs --model-name, the server's name for the model.")
    if asked.endpoint is None:
        _refuse(asked, OF_ENDPOINTS, "goes with --endpoint")
    if not mine:
        _refuse(asked, OF_AGENTS, f"goes with prompting agents ({', '.join(ASKING)})")
    if (variable := asked.api_key_env) and not os.environ.get(variable):
        raise BadValueError(f"--api-key-env: the environment variable {variable} is not set.")


def _refuse(asked: ModelOptions, names: tuple[str, ...], reason: str) -> None:
    """Refuse options that would do nothing."""
    for name in names:
        if getattr(asked, name) != getattr(ModelOptions(), name):
            raise BadValueError(f"--{name.replace('_', '-')}: {reason}.")


def ask_model(command: EvalCommand, report: Reporter) -> Asked:
    """Load the model, or get ready to ask the server.

    Raises:
        BadValueError: No such model, or one that cannot be asked so.
    """
    asked = command.asked
    found = _remote(asked) if asked.endpoint is not None else _local(command, report)
    return found if asked.dialect == "auto" else replace(found, dialect=asked.dialect)


def _remote(asked: ModelOptions) -> Asked:
    endpoint = Endpoint(
        url=asked.endpoint or "",
        key_variable=asked.api_key_env or "",
        timeout=asked.timeout,
        attempts=asked.attempts,
    )
    name = asked.model_name or ""
    extra = values(asked.request_arg, "--request-arg")
    model = OpenAIModel(endpoint, name, api=asked.api, extra=extra)
    return Asked(label=name, model=model, dialect="tags" if model.continues else "chat")


def _local(command: EvalCommand, report: Reporter) -> Asked:
    from ...agents.models.loading import load_tokenizer

    name = command.asked.model or ""
    small = name == STARTER
    if not small and "/" not in name and not Path(name).expanduser().exists():
        raise BadValueError(
            f"--model {name}: no such folder; expected a model folder, a run directory, a hub name "
            f"with '/', or {STARTER}."
        )
    prepare(small=small)
    folder = starter(command.env, report) if small else model_path(name)
    tokenizer = load_tokenizer(folder)
    engine = build_engine(folder, tokenizer, command.sampler)
    model = EngineModel(engine, tokenizer)
    return Asked(
        label=name,
        model=model,
        dialect="chat" if model.chats else "tags",
        engine=engine,
        tokenizer=tokenizer,
    )
