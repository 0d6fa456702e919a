"""Serving over HTTP by uvicorn: the socket, and the server until somebody ends it."""

from __future__ import annotations

import errno
import logging
import socket
from typing import Any

from ..core.errors import BadValueError

_HIGHEST_PORT = 65535


def bind_socket(host: str, port: int, command: str) -> socket.socket:
    """Return a socket at the address, which does not listen yet.

    It names its protocol: asyncio sends what it has at once (``TCP_NODELAY``) on connections of
    such a socket alone. Without that the second part of an answer waits for the first one's
    receipt, some 40 ms for every request on a kept connection.

    Raises:
        BadValueError: The address cannot be used.
    """
    if not 0 <= port <= _HIGHEST_PORT:
        raise BadValueError(f"--port is {port}; expected 0 to {_HIGHEST_PORT}.")
    bound: socket.socket | None = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except (OSError, UnicodeError) as fault:
        if bound is not None:
            bound.close()
        if getattr(fault, "errno", None) == errno.EADDRINUSE:
            raise BadValueError(
                f"port {port} of {host} is in use; choose another with --port."
            ) from None
        why = getattr(fault, "strerror", None) or str(fault)
        raise BadValueError(
            f"turngym {command}: cannot listen on {host}:{port} ({why}); choose another --host or "
            "--port."
        ) from None
    return bound


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
