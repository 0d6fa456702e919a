"""`turngym mcp` and `turngym openenv`: an environment for other programs to play."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from rich.console import Console

from ...envs.core.errors import BadValueError
from ...envs.core.registration import find_environment
from .adapter_options import McpCommand, OpenEnvCommand
from .arguments import values

_HIGHEST_PORT = 65535


def mcp(command: McpCommand) -> None:
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


def openenv(command: OpenEnvCommand) -> None:
    """Serve until Ctrl-C.

    Raises:
        UnknownNameError: No such environment or setting.
        BadValueError: An address that cannot be used, or no room for an episode.
        MissingExtraError: openenv-core is not installed.
    """
    find_environment(command.env)
    if command.episodes < 1:
        raise BadValueError(f"--episodes is {command.episodes}; expected at least 1.")
    from ...envs.adapters.openenv_server import openenv_app

    settings = values(command.env_arg, "--env-arg")
    app = openenv_app(command.env, settings, max_episodes=command.episodes)
    import uvicorn  # openenv-core brings it

    with _bound(command.host, command.port) as door:
        host, port = door.getsockname()[:2]
        say = Console(highlight=False, soft_wrap=True).print
        say(f"Serving {command.env} on http://{host}:{port} – Ctrl-C ends it.")
        with suppress(KeyboardInterrupt):  # uvicorn has finished the requests and passes it on
            uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[door])
    say("stopped.")


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _HIGHEST_PORT:
        raise BadValueError(f"--port is {port}; expected 0 to {_HIGHEST_PORT}.")
    try:
        return socket.create_server((host, port))
    except OSError as fault:
        raise BadValueError(
            f"turngym openenv: cannot listen on {host}:{port} ({fault.strerror or fault}); choose "
            "another --host or --port."
        ) from None
