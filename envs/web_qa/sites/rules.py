"""Which addresses of the web may be visited: hosts by name, machines by number."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from ...core.errors import BadValueError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ENTRY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[^:/\[\]\s]+)(:(?P<port>[0-9]{1,5}))?")
_SAFE = "/:=&?%~+!$,;'@()*[]-._"
_BRACKETS = re.compile(r"\[[^\[\]]*:[^\[\]]*\](:[0-9]*)?")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "2001:db8::/32", "3fff::/20", "5f00::/16"))
)
"""Special purposes that some versions of Python take for public; 192.0.0.192 serves secrets of
machines in a cloud."""
_MAX_CHARS = 4000
_SHOWN = 10
"""Allowed hosts that a refusal names."""


class BadAddress(Exception):
    """A page that cannot be shown; the message is what the model is told."""


class Target(NamedTuple):
    """One address, taken apart.

    Attributes:
        address: As a request names it, without fragment.
        scheme: ``"http"`` or ``"https"``.
        host: Name in ASCII and lower case, or an IP address in its usual writing.
        port: Number of the port.
        path: Path and query, ready for a request line.
    """

    address: str
    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


class _Entry(NamedTuple):
    host: str
    port: int | None


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Who may be visited; everything else is refused.

    Attributes:
        allow: Hosts: ``"example.org"`` is that name alone, ``"*.example.org"`` every name below
            it, ``"*"`` every name. An IP address must be listed itself. ``"host:8080"`` allows that
            one port; without a port, 80 and 443 are allowed.
        allow_private: Also visit private, loopback, link-local, multicast and reserved addresses.

    Raises:
        BadValueError: An entry that is no host, or ``allow_private`` that is no bool.
    """

    allow: tuple[str, ...] = ()
    allow_private: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.allow, str) or not isinstance(self.allow, (tuple, list)):
            raise BadValueError(
                f"WebQA: allow is {self.allow!r}; expected hosts: ('example.org', '*.test')."
            )
        if not isinstance(self.allow_private, bool):  # the text "no" would open this machine
            raise BadValueError(
                f"WebQA: allow_private is {self.allow_private!r}; expected True or False."
            )
        _ = self.entries

    @cached_property
    def entries(self) -> tuple[_Entry, ...]:
        """The allow list, read."""
        return tuple(_parse_entry(text) for text in self.allow)

    def target(self, address: str) -> Target:
        """``address`` taken apart, when its host and port are allowed.

        Raises:
            Unread: It is no such address; the message says what is wrong.
        """
        target = read_address(address)
        if any(_matches(entry, target) for entry in self.entries):
            return target
        allowed = ", ".join(self.allow[:_SHOWN]) or "none"
        if len(self.allow) > _SHOWN:
            allowed += f" and {len(self.allow) - _SHOWN} more"
        raise BadAddress(
            f"{target.authority} may not be visited. Hosts that may be visited: {allowed}."
        )

    def check_ip(self, host: str, ip: str) -> None:
        """Refuse the machine that ``host`` turned out to be when it is not on the public net.

        Raises:
            Unread: It is not.
        """
        if not self.allow_private and not is_public(ipaddress.ip_address(ip)):
            raise BadAddress(
                f"{host} may not be visited: its address is not on the public internet."
            )


def read_address(address: str) -> Target:
    """``address`` taken apart.

    Raises:
        Unread: It is not a plain http or https address of a host.
    """
    shown = address if len(address) <= 100 else f"{address[:99]}…"
    if len(address) > _MAX_CHARS:
        raise BadAddress(f"{shown} is no address: it has more than {_MAX_CHARS} characters.")
    if any(c.isspace() or c == "\\" or not c.isprintable() for c in address):
        raise BadAddress(
            f"{shown!r} is no address: it holds a blank, a backslash or a control sign."
        )
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as fault:
        raise BadAddress(f"{shown} is no address: {fault}.") from None
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        raise BadAddress(f"{shown} is no web address; it must start with http:// or https://.")
    if "@" in parts.netloc:
        raise BadAddress(f"{shown} names a user; expected an address without user and password.")
    if "[" in parts.netloc and not _BRACKETS.fullmatch(parts.netloc):
        raise BadAddress(f"{shown} is no address: brackets hold an IPv6 address and nothing else.")
    host = _parse_host(parts, shown)
    path = quote(parts.path or "/", safe=_SAFE)
    if parts.query:
        path += f"?{quote(parts.query, safe=_SAFE)}"
    target = Target("", scheme, host, PORTS[scheme] if port is None else port, path)
    return target._replace(address=f"{scheme}://{target.authority}{path}")


def is_public(ip: IpAddress) -> bool:
    """Whether an address is on the public internet, also the IPv4 address inside an IPv6 one."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            return False
        if any(not is_public(inner) for inner in _list_embedded_ipv4(ip)):
            return False
        if ip.ipv4_mapped is not None:
            return True
    closed = (
        ip.is_private
        or ip.is_loopback
        or ip.is_link_local
        or ip.is_multicast
        or ip.is_reserved
        or ip.is_unspecified
        or (ip.version == 6 and ip.is_site_local)
    )
    return ip.is_global and not closed and not any(ip in network for network in _NOT_PUBLIC)


def _list_embedded_ipv4(ip: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    found = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
    if ip in _NAT64:
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return [inner for inner in found if inner is not None]


def _parse_host(parts: SplitResult, shown: str) -> str:
    host = (parts.hostname or "").removesuffix(".")
    if not host:
        raise BadAddress(f"{shown} is no address: it names no host.")
    if ":" in host:
        return _parse_ipv6(host, shown)
    try:
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        name = ""
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise BadAddress(f"{shown} is no address: {host!r} is no name of a host.")
    if _NUMERIC.fullmatch(name.rpartition(".")[2]):  # what resolvers read as a number
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise BadAddress(
                f"{shown} hides an IP address; expected four numbers from 0 to 255."
            ) from None
    return name


def _parse_ipv6(host: str, shown: str) -> str:
    try:
        ip = ipaddress.IPv6Address(host)
    except ValueError:
        raise BadAddress(f"{shown} is no address: {host!r} is no IPv6 address.") from None
    if ip.scope_id is not None:
        raise BadAddress(f"{shown} names a network interface; expected a plain IPv6 address.")
    return str(ip.ipv4_mapped or ip)


def _matches(entry: _Entry, target: Target) -> bool:
    if target.port not in (PORTS.values() if entry.port is None else (entry.port,)):
        return False
    if entry.host == target.host:
        return True
    if not entry.host.startswith("*") or _is_ip(target.host):
        return False
    return entry.host == "*" or target.host.endswith(entry.host[1:])


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _parse_entry(text: object) -> _Entry:
    match = _ENTRY.fullmatch(text.lower()) if isinstance(text, str) else None
    if match is None:
        raise _make_entry_error(text)
    host, port = match["host"], match["port"]
    if port is not None and not 1 <= int(port) <= 65535:
        raise _make_entry_error(text)
    number = None if port is None else int(port)
    if host == "*":
        return _Entry(host, number)
    below = "*." if host.startswith("*.") else ""
    try:
        target = read_address(f"http://{host.removeprefix('*.')}/")
    except BadAddress:
        raise _make_entry_error(text) from None
    name = target.host
    if below and _is_ip(name):
        raise _make_entry_error(text)
    return _Entry(f"{below}{name}", number)


def _make_entry_error(text: object) -> BadValueError:
    return BadValueError(
        f"WebQA: allow holds {text!r}; expected a host such as 'example.org', '*.example.org', "
        "'*' or 'localhost:8080'."
    )
