"""The commands around retrievers: ``turngym retriever serve``."""

from __future__ import annotations

import socket
from collections.abc import Sized
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from ...agents.retrieval.server import make_app
from ...envs.core.errors import BadValueError, DataError, MissingExtraError
from ...envs.tools.retrieval.base import Retriever
from .envs import existing_file
from .train_options import RetrieverCommand

_WAITING = 2048
_HIGHEST_PORT = 65535


def serve(command: RetrieverCommand) -> None:
    """Serve until Ctrl-C.

    Raises:
        BadValueError: Neither or both of index and corpus, or an address that cannot be used.
        DataError: A file or folder that does not exist or hold what it should.
        MissingExtraError: fastapi or uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("turngym retriever serve", "uvicorn", "web") from None
    say = Console(highlight=False, soft_wrap=True).print
    with _bound(command.host, command.port) as door:  # before the index, which may take minutes
        retriever = _opened(command)
        app = make_app(retriever, default_k=command.topk)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        door.listen(_WAITING)
        host, port = door.getsockname()[:2]
        shown = f"\\[{host}]" if ":" in host else host
        many = f"{len(retriever):,} passages" if isinstance(retriever, Sized) else "passages"
        say(f"Serving {many} on http://{shown}:{port}/retrieve – Ctrl-C ends it.")
        with suppress(KeyboardInterrupt):  # uvicorn has finished the requests and passes it on
            server.run(sockets=[door])
    say("stopped.")


def _opened(command: RetrieverCommand) -> Retriever:
    if bool(command.index) == (command.corpus is not None):
        came = "both" if command.index else "neither"
        raise BadValueError(
            f"turngym retriever serve: {came} of --index and --corpus; expected one of them: a "
            "folder with an index, or a file of passages."
        )
    if command.corpus is not None:
        from ...envs.search_qa.data import load_corpus_index

        return load_corpus_index(existing_file(command.corpus, "--corpus"))
    from ...envs.tools.retrieval.index import open_indexes

    folders = [Path(folder).expanduser() for folder in command.index]
    for folder in folders:
        if not folder.is_dir():
            raise DataError(f"--index: {folder} is not a folder.")
    return open_indexes(folders)


def _bound(host: str, port: int) -> socket.socket:
    """A socket at the address, which does not listen yet.

    Raises:
        BadValueError: The address cannot be used.
    """
    if not 0 <= port <= _HIGHEST_PORT:
        raise BadValueError(f"--port is {port}; expected 0 to {_HIGHEST_PORT}.")
    door: socket.socket | None = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        door = socket.socket(family, kind)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
    except (OSError, UnicodeError) as fault:
        if door is not None:
            door.close()
        why = getattr(fault, "strerror", None) or str(fault)
        raise BadValueError(
            f"turngym retriever serve: cannot listen on {host}:{port} ({why}); choose another "
            "--host or --port."
        ) from None
    return door
