"""`turngym openenv`: an environment over OpenEnv's interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from ...envs.core.errors import BadValueError
from ...envs.core.registration import find_environment
from ...envs.utils.serving import bind_socket, serve
from .arguments import Repeated, values
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Command:
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


def run(command: Command) -> None:
    """Serve until Ctrl-C, which ends it as any command.

    Raises:
        UnknownNameError: No such environment or setting.
        BadValueError: An address that cannot be used, or no room for an episode.
        MissingExtraError: openenv-core is not installed.
        KeyboardInterrupt: After the requests were finished.
    """
    find_environment(command.env)
    if command.episodes < 1:
        raise BadValueError(f"--episodes is {command.episodes}; expected at least 1.")
    from ...envs.adapters.openenv_server import openenv_app

    settings = values(command.env_arg, "--env-arg")
    app = openenv_app(command.env, settings, max_episodes=command.episodes)
    import uvicorn  # openenv-core brings it

    with bind_socket(command.host, command.port, "openenv") as bound:
        bound.listen()  # who reads the address below may connect at once
        host, port = bound.getsockname()[:2]
        shown = f"\\[{host}]" if ":" in host else host
        say(f"Serving {command.env} on http://{shown}:{port} – Ctrl-C ends it.")
        serve(uvicorn.Server(uvicorn.Config(app, log_level="warning")), bound)
