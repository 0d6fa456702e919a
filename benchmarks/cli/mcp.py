"""`turngym mcp`: an environment as tools of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

import tyro

from ...envs.adapters.conversation import task_rows
from ...envs.core.errors import BadValueError
from ...envs.core.registration import find_environment
from .arguments import Repeated, values


@dataclass(frozen=True, kw_only=True)
class Command:
    """Offer an environment as MCP tools over standard input and output, to one client.

    Attributes:
        env: Id of the environment; `turngym envs` lists them.
        env_arg: A setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        split: Split of tasks that the client does not choose.
        fixed: Play the first tasks of the split in order, each once and to its end: the agent,
            which is evaluated, does not choose.
        n: Episodes with --fixed; left out: the whole split.
        seed: Seed of the fixed episodes.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_arg: Repeated = ()
    split: str = "dev"
    fixed: bool = False
    n: int | None = None
    seed: int | None = None


def run(command: Command) -> None:
    """Serve one client until it leaves, or Ctrl-C; only the protocol goes to standard output.

    Raises:
        UnknownNameError: No such environment or setting.
        BadValueError: An environment that opens sessions, or options that do not fit.
        MissingExtraError: The package mcp is not installed.
    """
    find_environment(command.env)
    settings = values(command.env_arg, "--env-arg")
    fixed = _fixed(command, settings)
    from ...envs.adapters.mcp_server import mcp_server, serve_stdio

    server = mcp_server(command.env, settings, split=command.split, fixed=fixed)
    with _ended_by_signals():
        asyncio.run(serve_stdio(server))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process at once.

    A thread of the server waits for the client's next line, so that an exception would wait too.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, former in before.items():
            if callable(former):  # a shell makes processes in its background ignore Ctrl-C
                signal.signal(number, lambda number, _: os._exit(128 + number))
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _fixed(command: Command, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]] | None:
    """Return the episodes that are played; None where the client chooses."""
    if not command.fixed:
        if command.n is not None or command.seed is not None:
            raise BadValueError("mcp: --n and --seed go with --fixed; give that too.")
        return None
    if command.n is not None and command.n < 1:
        raise BadValueError(f"mcp: --n is {command.n}; expected 1 or more.")
    seed = command.seed or 0
    rows = task_rows(
        command.env, command.n, split=command.split, seed=seed, settings=settings, where="mcp"
    )
    return chain([next(rows)], rows)  # what does not fit is refused now, not by the first call
