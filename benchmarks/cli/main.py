"""The command line: reads options, runs one command, turns errors into one clear line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import tyro
from rich.console import Console

from ...envs.core.errors import MissingExtraError, TurngymError
from ..viewer.options import ViewCommand
from .adapter_options import McpCommand, OpenEnvCommand
from .arguments import expand_dotted
from .armap_options import ArmapCommand
from .bench_options import BenchCommand
from .claims_options import ClaimsCommand
from .drrn_options import DrrnCommand
from .index_options import IndexCommand
from .leaderboard_options import LeaderboardCommand, SubmitCommand
from .papers_options import PapersCommand
from .preset_words import with_preset
from .retail_options import RetailCommand
from .selector_options import SelectorCommand
from .train_options import (
    Command,
    DemoCommand,
    EnvsCommand,
    EvalCommand,
    FidelityCommand,
    PlayCommand,
    RecipesCommand,
    RetrieverCommand,
    TrainCommand,
)
from .tuning_options import MergeCommand, PlanCommand

INTERRUPTED, REFUSED = 130, 2

_HOMES: dict[type, str] = {
    DemoCommand: "demo",
    EnvsCommand: "lists",
    RecipesCommand: "lists",
    PlayCommand: "play",
    TrainCommand: "train",
    EvalCommand: "eval",
    IndexCommand: "index",
    PapersCommand: "papers",
    RetailCommand: "retail",
    RetrieverCommand: "retriever",
    SelectorCommand: "selector",
    FidelityCommand: "fidelity",
    ArmapCommand: "armap",
    SubmitCommand: "submit",
    LeaderboardCommand: "leaderboard",
    PlanCommand: "plan",
    MergeCommand: "plan",
    BenchCommand: "bench",
    ClaimsCommand: "claims",
    ViewCommand: ".viewer.command",
    McpCommand: "adapter",
    OpenEnvCommand: "adapter",
    DrrnCommand: "drrn",
}
_FUNCTIONS: dict[type, str] = {
    EnvsCommand: "list_envs",
    RecipesCommand: "list_recipes",
    RetrieverCommand: "serve",
    MergeCommand: "merge",
    McpCommand: "mcp",
    OpenEnvCommand: "openenv",
}

# What the extra `train` installs; the core lists, plays and scores scripted agents without it.
_TRAINING = ("torch", "transformers", "tokenizers", "safetensors", "tensorboard", "matplotlib")
# The OpenMP threads of small models mostly wait for one another: let them sleep.
_CALM = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "TOKENIZERS_PARALLELISM": "false"}


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        words: Arguments; those of the process when left out.

    Returns:
        0; 2 for input that was refused, 130 after Ctrl-C.
    """
    for name, value in _CALM.items():
        os.environ.setdefault(name, value)
    errors = Console(stderr=True)
    try:
        given = with_preset(expand_dotted(sys.argv[1:] if words is None else words))
        command = tyro.cli(
            cast("type[Any]", Command),
            args=given,
            prog="turngym",
            description="Worlds, algorithms and a leaderboard for multi-turn language agents.",
        )
        _runner(type(command))(command)
    except TurngymError as error:
        errors.print(f"[bold red]error:[/] {_plain(str(error))}", highlight=False, soft_wrap=True)
        return REFUSED
    except ModuleNotFoundError as error:
        if error.name not in _TRAINING:
            raise
        missing = MissingExtraError("this command", error.name, "train")
        errors.print(f"[bold red]error:[/] {_plain(str(missing))}", highlight=False, soft_wrap=True)
        return REFUSED
    except KeyboardInterrupt:
        errors.print("stopped.")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe (head, less) has enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _runner(kind: type) -> Callable[[Any], None]:
    """The function of a command; its module, which may import torch, is loaded only now."""
    module = import_module(f".{_HOMES[kind]}", __package__)
    return getattr(module, _FUNCTIONS.get(kind, "run"))


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


if __name__ == "__main__":
    sys.exit(main())
