"""One end for all waits of a request, however slowly the other side drips.

A time limit per wait is none against a server that sends a byte of its headers now and then, or one
interim answer after another. Within :func:`deadline`, every wait of a :class:`TimedBackend`'s
connections ends at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from httpcore import ConnectTimeout, NetworkBackend, NetworkStream, ReadTimeout, WriteTimeout

_PIECE = 1 << 14
"""Bytes that are handed to the system at a time, so that the end is looked at between them."""
_end: ContextVar[float | None] = ContextVar("end of the request", default=None)


@contextmanager
def deadline(moment: float) -> Iterator[None]:
    """Within, waits of this thread end at ``moment`` of the monotonic clock."""
    token = _end.set(moment)
    try:
        yield
    finally:
        _end.reset(token)


class TimedBackend(NetworkBackend):
    """Opens connections whose waits end at the request's deadline.

    Args:
        inner: Opens the connections themselves.
    """

    def __init__(self, inner: NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        """See :class:`httpcore.NetworkBackend`."""
        wait = _bounded(timeout, ConnectTimeout)
        return TimedStream(self._inner.connect_tcp(host, port, wait, local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        """See :class:`httpcore.NetworkBackend`."""
        self._inner.sleep(seconds)


class TimedStream(NetworkStream):
    """A connection whose waits end at the request's deadline.

    Args:
        inner: The connection.
    """

    def __init__(self, inner: NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """See :class:`httpcore.NetworkStream`."""
        return self._inner.read(max_bytes, _bounded(timeout, ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """See :class:`httpcore.NetworkStream`."""
        for at in range(0, len(buffer), _PIECE):
            self._inner.write(buffer[at : at + _PIECE], _bounded(timeout, WriteTimeout))

    def close(self) -> None:
        """See :class:`httpcore.NetworkStream`."""
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        """See :class:`httpcore.NetworkStream`."""
        wait = _bounded(timeout, ConnectTimeout)
        return TimedStream(self._inner.start_tls(ssl_context, server_hostname, wait))

    def get_extra_info(self, info: str) -> Any:
        """See :class:`httpcore.NetworkStream`."""
        return self._inner.get_extra_info(info)


def _bounded(timeout: float | None, late: type[Exception]) -> float | None:
    """Return the seconds that a wait may take.

    Raises:
        Exception: ``late``: the deadline has passed.
    """
    end = _end.get()
    if end is None:
        return timeout
    left = end - time.monotonic()
    if left <= 0:
        raise late
    return left if timeout is None else min(timeout, left)
