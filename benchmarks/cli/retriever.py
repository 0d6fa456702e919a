"""`turngym retriever serve`: searches answered over HTTP."""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from ...agents.retrieval.server import make_app
from ...envs.core.errors import BadValueError, DataError, MissingExtraError, check_package
from ...envs.tools.retrieval.base import Retriever
from ...envs.utils.serving import bind_socket, serve
from .arguments import Repeated
from .env_options import existing_file
from .tables import say

_WAITING = 2048


@dataclass(frozen=True, kw_only=True)
class Command:
    """Answer searches over HTTP, as Search-R1's retrieval servers do; Ctrl-C ends it.

    Attributes:
        action: What to do.
        index: Folder of an index, repeatable: several are searched together.
        corpus: File of passages (.jsonl), searched by BM25; instead of --index.
        host: Address to listen on; 0.0.0.0 for all of this machine.
        port: Port to listen on; 0 for a free one.
        topk: Passages per query where a request does not say.
        token_variable: Environment variable with the token that every search must send
            (Authorization: Bearer …); left out: anybody who reaches the address may search.
    """

    action: Annotated[Literal["serve"], tyro.conf.Positional]
    index: Repeated = ()
    corpus: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    topk: int = 3
    token_variable: str | None = None


def run(command: Command) -> None:
    """Serve until Ctrl-C, which ends it as any command.

    Raises:
        BadValueError: Neither or both of index and corpus, or an address that cannot be used.
        DataError: A file or folder that does not exist or hold what it should.
        MissingExtraError: fastapi or uvicorn is not installed.
        KeyboardInterrupt: After the requests were finished.
    """
    check_package("turngym retriever serve", "fastapi", "web")  # before the index is read
    try:
        import uvicorn
    except ImportError as fault:
        raise MissingExtraError("turngym retriever serve", "uvicorn", "web", fault) from fault
    token = "" if command.token_variable is None else os.environ.get(command.token_variable, "")
    if command.token_variable is not None and not token:
        raise BadValueError(
            f"--token-variable: {command.token_variable} is not set; set it to a long random text."
        )
    # The address comes before the index, which may take minutes.
    with bind_socket(command.host, command.port, "retriever serve") as bound:
        retriever = _open_retriever(command)
        app = make_app(retriever, default_k=command.topk, token=token)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        bound.listen(_WAITING)
        host, port = bound.getsockname()[:2]
        shown = f"\\[{host}]" if ":" in host else host
        many = f"{len(retriever):,} passages" if isinstance(retriever, Sized) else "passages"
        say(f"Serving {many} on http://{shown}:{port}/retrieve – Ctrl-C ends it.")
        serve(server, bound)


def _open_retriever(command: Command) -> Retriever:
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
