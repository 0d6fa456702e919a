"""`turngym engine serve`: an engine in a process of its own, spoken to over HTTP."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

import tyro

from ...agents.engines.factory import EngineSettings
from ...agents.engines.http.settings import TOKEN_VARIABLE
from ...envs.core.errors import BadValueError, MissingExtraError
from ...envs.utils.serving import bind_socket, serve
from ..runtime.threads import prepare_for
from .model_options import Sampler, model_path
from .tables import say

_WAITING = 2048


@dataclass(frozen=True, kw_only=True)
class Command:
    """Serve an engine over HTTP; Ctrl-C ends it.

    Training takes such servers with --engine http --http.urls URL [URL ...], and hands its weights
    to them after each step.

    Attributes:
        action: What to do.
        model: The starting model of the training: one that `turngym models` lists, a model folder,
            GGUF file or hub name.
        host: Address to listen on; 0.0.0.0 for all of this machine, which needs a token.
        port: Port to listen on; 0 for a free one.
        weights_folder: Folder that the learner sees too, from which weights are read; left out:
            they come over the network.
        token_variable: Environment variable with the token that every request must send
            (Authorization: Bearer …); where it is not set none is asked for, on this machine alone.
        sleep: Let the learner take back the memory of the card between rollouts (with --engine
            vllm that is --vllm.sleep).
        settings: Which engine, and how it samples.
    """

    action: Annotated[Literal["serve"], tyro.conf.Positional]
    model: str
    host: str = "127.0.0.1"
    port: int = 8300
    weights_folder: str | None = None
    token_variable: str = TOKEN_VARIABLE
    sleep: bool = False
    settings: Sampler = field(default_factory=EngineSettings)


def run(command: Command) -> None:
    """Serve until Ctrl-C, which ends it as any command.

    Raises:
        BadValueError: An engine that cannot be served, an address that cannot be used, or one that
            others reach without a token.
        DataError: The folder of weights does not exist.
        MissingExtraError: fastapi or uvicorn is not installed.
        KeyboardInterrupt: After the requests were finished.
    """
    try:
        import uvicorn

        from ...agents.engines.http.app import make_app
        from ...agents.engines.serving import host_engine
    except ModuleNotFoundError as error:
        if error.name not in ("uvicorn", "fastapi", "starlette"):
            raise
        raise MissingExtraError("turngym engine serve", str(error.name), "web") from error
    token = os.environ.get(command.token_variable, "")
    check_token(command.host, token, command.token_variable)
    model = model_path(command.model, kind="model")
    prepare_for(model)
    # The address comes before the model, which may take minutes.
    with bind_socket(command.host, command.port, "engine serve") as bound:
        folder = (
            None if command.weights_folder is None else Path(command.weights_folder).expanduser()
        )
        engine = host_engine(model, command.settings, weights_folder=folder, sleep=command.sleep)
        app = make_app(engine, token=token)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        bound.listen(_WAITING)
        host, port = bound.getsockname()[:2]
        shown = f"\\[{host}]" if ":" in host else host
        say(f"Serving {command.model} on http://{shown}:{port} – Ctrl-C ends it.")
        try:
            serve(server, bound)
        finally:
            engine.close()


def check_token(host: str, token: str, variable: str) -> None:
    """Refuse to be reached by others without a token.

    Raises:
        BadValueError: The address is not of this machine alone, and there is no token.
    """
    try:
        here = ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    if not here and not token:
        raise BadValueError(
            f"--host {host}: other machines reach this address, and whoever does could load weights"
            f" and sample. Set {variable or '--token-variable'} to a long random text, here and "
            "for the learner."
        )
