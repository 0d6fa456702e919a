"""One guarded request over HTTP: the machine that was checked is the machine that is asked."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urljoin

from .rules import BadAddress, Rules, Target

TYPES = ("text/html", "text/plain", "application/json")
REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_AGAIN = (429, 500, 502, 503, 504)
_BLOCK = 1 << 16
_AGENT = "turngym (https://pypi.org/project/turngym)"
_UNKNOWN_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))

Resolve = Callable[[str, int], Sequence[str]]


class Unreachable(OSError):
    """No answer, or one that says that there is none now; another try may help."""


class Fetched(NamedTuple):
    """What came back.

    Attributes:
        address: Where it came from, after redirects.
        kind: Content type, one of :data:`TYPES`.
        charset: What the server says, empty when it says nothing.
        body: The bytes.
    """

    address: str
    kind: str
    charset: str
    body: bytes


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, each once, in the system's order.

    Raises:
        Unread: There is no such host.
        Unreachable: The name service gave no answer.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as fault:
        if fault.errno in _UNKNOWN_NAME:
            raise BadAddress(f"There is no host {host}.") from None
        raise Unreachable(f"{host}: its name cannot be looked up now ({fault.strerror})") from fault
    except UnicodeError:
        raise BadAddress(f"There is no host {host}.") from None
    return list(dict.fromkeys(str(row[4][0]) for row in found))


@dataclass(frozen=True, kw_only=True)
class Fetcher:
    """Gets one address, redirects included; every step keeps the rules.

    A name is looked up once per step; the addresses found are checked, and the connection goes to
    the first of them that answers, so a name that means another machine a moment later changes
    nothing.

    Attributes:
        rules: Which hosts may be visited.
        timeout_s: Seconds that a whole request may take, redirects included.
        max_bytes: Most bytes of a body.
        resolve: Looks names up.
    """

    rules: Rules
    timeout_s: float = 10.0
    max_bytes: int = 2_000_000
    resolve: Resolve = resolve

    def __call__(self, address: str) -> Fetched:
        """The content at ``address``.

        Raises:
            Unread: It may not be visited or cannot be shown; says why.
            Unreachable: The server gives no answer now.
        """
        deadline = time.monotonic() + self.timeout_s
        for _ in range(REDIRECTS + 1):
            target = self.rules.target(address)
            try:
                found = self._request(target, deadline)
            except ssl.SSLCertVerificationError as fault:
                why = fault.verify_message.rstrip(".")
                raise BadAddress(f"{target.host} may not be trusted: {why}.") from None
            except TimeoutError:
                raise Unreachable(
                    f"{target.authority}: no answer within {self.timeout_s:g} seconds"
                ) from None
            except Unreachable:
                raise
            except (OSError, http.client.HTTPException) as fault:
                said = str(fault) or type(fault).__name__
                raise Unreachable(f"{target.authority}: {said}") from fault
            if isinstance(found, Fetched):
                return found
            address = found
        raise BadAddress(f"{address}: more than {REDIRECTS} redirects.")

    def _request(self, target: Target, deadline: float) -> Fetched | str:
        """The content, or the address that the server sends on to."""
        ips = self.resolve(target.host, target.port)
        for ip in ips:
            self.rules.check_ip(target.host, ip)
        link = _connect(target, ips, deadline)
        try:
            connection = http.client.HTTPConnection(target.host, target.port)
            connection.auto_open = 0
            connection.sock = link
            headers = {
                "Host": target.authority,
                "User-Agent": _AGENT,
                "Accept": ", ".join(TYPES),
                "Accept-Encoding": "identity",
                "Connection": "close",
            }
            connection.request("GET", target.path, headers=headers)
            with connection.getresponse() as response:
                return self._read(target, response, deadline)
        finally:
            link.end()

    def _read(
        self, target: Target, response: http.client.HTTPResponse, deadline: float
    ) -> Fetched | str:
        status, address = response.status, target.address
        if status in _MOVED:
            place = response.headers.get("Location", "")
            if not place:
                raise BadAddress(f"{address} has moved (status {status}) and does not say where.")
            try:
                return urljoin(address, place)
            except ValueError:
                raise BadAddress(
                    f"{address} leads to {place[:100]!r}, which is no address."
                ) from None
        if status in _AGAIN:
            raise Unreachable(f"{target.authority}: status {status} {response.reason}")
        if status != http.client.OK:
            raise BadAddress(f"{address} cannot be shown: status {status} {response.reason}.")
        kind = response.headers.get_content_type()
        if kind not in TYPES:
            raise BadAddress(f"{address} cannot be shown: it is {kind}, not a page of text.")
        coding = response.headers.get("Content-Encoding", "identity")
        if coding.strip().lower() not in ("", "identity"):
            raise BadAddress(f"{address} cannot be shown: it came compressed ({coding}).")
        charset = response.headers.get_content_charset() or ""
        return Fetched(address, kind, charset, self._body(address, response, deadline))

    def _body(self, address: str, response: http.client.HTTPResponse, deadline: float) -> bytes:
        large = BadAddress(
            f"{address} cannot be shown: it is larger than {self.max_bytes:,} bytes."
        )
        if (response.length or 0) > self.max_bytes:
            raise large
        body = bytearray()
        while block := response.read1(_BLOCK):
            body += block
            if len(body) > self.max_bytes:
                raise large
            _seconds_left(deadline)
        if response.length:  # the connection ended before the announced end
            raise Unreachable(f"{address}: the answer broke off after {len(body):,} bytes")
        return bytes(body)


def _connect(target: Target, ips: Sequence[str], deadline: float) -> _Timed:
    """A connection to the first of ``ips`` that takes one."""
    fault: OSError = Unreachable(f"{target.host} has no address")
    for untried, ip in zip(range(len(ips), 0, -1), ips, strict=True):
        try:
            wait = _seconds_left(deadline) / untried
            link = socket.create_connection((ip, target.port), timeout=wait)
        except OSError as broken:
            fault = broken
            continue
        try:
            link.settimeout(_seconds_left(deadline))
            if target.scheme == "https":
                link = _make_tls_context().wrap_socket(link, server_hostname=target.host)
        except BaseException:
            link.close()
            raise
        return _Timed(link, deadline)
    raise fault


@lru_cache(maxsize=1)
def _make_tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _seconds_left(deadline: float) -> float:
    """Seconds until the deadline.

    Raises:
        TimeoutError: There are none.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Timed:
    """A socket whose every wait ends at one deadline, however slowly the other side drips."""

    def __init__(self, link: socket.socket, deadline: float) -> None:
        self._link, self._deadline = link, deadline

    def sendall(self, data: Any) -> None:
        self._link.settimeout(_seconds_left(self._deadline))
        self._link.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - always "rb"
        return io.BufferedReader(_TimedStream(self._link, self._deadline))

    def close(self) -> None:
        """Nothing yet: the connection closes before the body is read; see :meth:`end`."""

    def end(self) -> None:
        self._link.close()


class _TimedStream(io.RawIOBase):
    def __init__(self, link: socket.socket, deadline: float) -> None:
        self._link, self._deadline = link, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._link.settimeout(_seconds_left(self._deadline))
        return self._link.recv_into(buffer)
