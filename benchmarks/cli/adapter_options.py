"""Options of `turngym mcp` and `turngym openenv`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class McpCommand:
    """Offer an environment as MCP tools over standard input and output, to one client.

    Attributes:
        env: Id of the environment; `turngym envs` lists them.
        env_arg: A setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        split: Split of tasks that the client does not choose.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_arg: Repeated = ()
    split: str = "dev"


@dataclass(frozen=True, kw_only=True)
class OpenEnvCommand:
    """Serve an environment over OpenEnv's interface; Ctrl-C ends it.

    Attributes:
        env: Id of the environment; `turngym envs` lists them.
        env_arg: A setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        host: Address to listen on; 0.0.0.0 for all of this machine.
        port: Port to listen on; 0 for a free one.
        episodes: Connections at a time, each with an episode of its own.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_arg: Repeated = ()
    host: str = "127.0.0.1"
    port: int = 8000
    episodes: int = 64
