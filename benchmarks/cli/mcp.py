"""`turngym mcp`: an environment as tools of the Model Context Protocol."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import tyro

from ...envs.core.registration import find_environment
from .arguments import Repeated, values


@dataclass(frozen=True, kw_only=True)
class Command:
    """Offer an environment as MCP tools over standard input and output, to one client.

    Attributes:
        env: Id of the environment; `turngym envs` lists them.
        env_arg: A setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        split: Split of tasks that the client does not choose.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_arg: Repeated = ()
    split: str = "dev"


def run(command: Command) -> None:
    """Serve one client until it leaves; only the protocol goes to standard output.

    Raises:
        UnknownNameError: No such environment or setting.
        BadValueError: An environment that opens sessions.
        MissingExtraError: The package mcp is not installed.
    """
    find_environment(command.env)
    from ...envs.adapters.mcp_server import mcp_server, serve_stdio

    settings = values(command.env_arg, "--env-arg")
    asyncio.run(serve_stdio(mcp_server(command.env, settings, split=command.split)))
