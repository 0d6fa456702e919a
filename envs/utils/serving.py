"""Serving over HTTP by uvicorn, until somebody ends it."""

from __future__ import annotations

import logging
import socket
from typing import Any


def serve(server: Any, bound: socket.socket) -> None:
    """Run a server until Ctrl-C or SIGTERM, behind which it finishes the requests that it has.

    A second Ctrl-C drops them. uvicorn then calls off what waits for the end of the application,
    and would log how that ended, a traceback.

    Args:
        server: A ``uvicorn.Server``.
        bound: A socket at its address, which listens.

    Raises:
        KeyboardInterrupt: It was ended.
    """

    def wanted(record: logging.LogRecord) -> bool:  # noqa: ARG001 - how a filter is called
        return not server.force_exit

    log = logging.getLogger("uvicorn.error")
    log.addFilter(wanted)
    try:
        server.run(sockets=[bound])
    finally:
        log.removeFilter(wanted)
