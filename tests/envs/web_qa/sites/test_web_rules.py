"""Which addresses may be visited."""

from __future__ import annotations

import ipaddress

import pytest

from turngym.envs.core.errors import BadValueError
from turngym.envs.web_qa.sites.rules import BadAddress, Rules, is_public, read_address

OPEN = Rules(allow=("*",))


@pytest.mark.parametrize(
    ("address", "host", "port", "path"),
    [
        ("http://example.org", "example.org", 80, "/"),
        ("HTTPS://Example.ORG./a%20b?q=ä#top", "example.org", 443, "/a%20b?q=%C3%A4"),
        ("http://example.org:443/", "example.org", 443, "/"),
        ("http://bücher.example/ü", "xn--bcher-kva.example", 80, "/%C3%BC"),
        ("http://[2001:DB8::1]:80/x", "2001:db8::1", 80, "/x"),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.1", 80, "/"),
        ("http://１２７.0.0.1/", "127.0.0.1", 80, "/"),
    ],
)
def test_addresses_are_taken_apart(address: str, host: str, port: int, path: str) -> None:
    target = read_address(address)
    assert (target.host, target.port, target.path) == (host, port, path)
    assert read_address(target.address) == target


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("example.org", "must start with http"),
        ("file:///etc/passwd", "must start with http"),
        ("javascript:alert(1)", "must start with http"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://user@example.org/", "names a user"),
        ("http://example.org@127.0.0.1/", "names a user"),
        ("http://:pw@example.org/", "names a user"),
        ("http://@example.org/", "names a user"),
        ("http://2130706433/", "hides an IP address"),
        ("http://0x7f000001/", "hides an IP address"),
        ("http://0x7f.1/", "hides an IP address"),
        ("http://127.1/", "hides an IP address"),
        ("http://0177.0.0.1/", "hides an IP address"),
        ("http://256.1.1.1/", "hides an IP address"),
        ("http://0/", "hides an IP address"),
        ("http://example.org:99999/", "no address"),
        ("http://example.org:x/", "no address"),
        ("http://[::1/", "no address"),
        ("http://[fe80::1%25eth0]/", "network interface"),
        ("http://exa mple.org/", "a blank"),
        ("http://example.org\\@evil.org/", "backslash"),
        ("http://example.org/\x00", "control sign"),
        ("http://ex%61mple.org/", "no name of a host"),
        ("http://a..b/", "no name of a host"),
        (f"http://example.org/{'a' * 5000}", "more than 4000"),
    ],
)
def test_odd_addresses_are_refused(address: str, reason: str) -> None:
    with pytest.raises(BadAddress, match=reason):
        read_address(address)


def test_one_host_is_no_list_of_hosts() -> None:
    with pytest.raises(BadValueError, match=r"allow is 'example\.org'; expected hosts"):
        Rules(allow="example.org")  # pyright: ignore


@pytest.mark.parametrize(
    ("allow", "address", "good"),
    [
        ("example.org", "http://example.org/", True),
        ("example.org", "https://EXAMPLE.org/", True),
        ("example.org", "http://www.example.org/", False),
        ("example.org", "http://notexample.org/", False),
        ("example.org", "http://example.org.evil.net/", False),
        ("example.org", "http://example.org:8080/", False),
        ("example.org:8080", "http://example.org:8080/", True),
        ("example.org:8080", "http://example.org/", False),
        ("*.example.org", "http://a.b.example.org/", True),
        ("*.example.org", "http://example.org/", False),
        ("*.example.org", "http://badexample.org/", False),
        ("Bücher.example", "http://xn--bcher-kva.example/", True),
        ("*", "http://anything.test/", True),
        ("*", "http://93.184.216.34/", False),
        ("*", "http://anything.test:22/", False),
        ("93.184.216.34", "http://93.184.216.34/", True),
        ("[2606:4700::1]:81", "http://[2606:4700:0::1]:81/", True),
        ("127.0.0.1", "http://[::ffff:7f00:1]/", True),
    ],
)
def test_the_allow_list(allow: str, address: str, good: bool) -> None:
    rules = Rules(allow=(allow,))
    if good:
        assert rules.target(address).address
    else:
        with pytest.raises(BadAddress, match=r"may not be visited\. Hosts that may be visited: "):
            rules.target(address)


def test_nothing_is_allowed_unless_named() -> None:
    with pytest.raises(BadAddress, match=r"example\.org may not be visited.*: none"):
        Rules().target("http://example.org/")
    with pytest.raises(BadAddress, match=r"h0\.test, .*h9\.test and 2 more"):
        Rules(allow=tuple(f"h{i}.test" for i in range(12))).target("http://example.org/")


@pytest.mark.parametrize(
    "entry",
    ["", "http://example.org", "a/b", "*.*", "*.1.2.3.4", "a:0", "a:70000", "a b", "a*b", 3],
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(BadValueError, match="expected a host such as"):
        Rules(allow=(entry,))


@pytest.mark.parametrize(
    ("ip", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("::ffff:93.184.216.34", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("192.0.2.1", False),
        ("::1", False),
        ("::", False),
        ("fc00::1", False),
        ("fe80::1", False),
        ("fe80::1%2", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("::127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", False),
    ],
)
def test_what_is_on_the_public_net(ip: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(ip)) == public
    if public:
        OPEN.check_ip("x.test", ip)
    else:
        with pytest.raises(
            BadAddress, match=r"x\.test may not be visited: its address is not on the"
        ):
            OPEN.check_ip("x.test", ip)
        Rules(allow_private=True).check_ip("x.test", ip)
