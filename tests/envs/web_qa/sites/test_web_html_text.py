"""Text out of HTML and Markdown."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.web_qa.sites.html_text import (
    decode,
    make_encodable,
    make_web_join,
    read_html,
    read_markdown,
    read_plain,
)

JOIN = make_web_join("https://a.test/dir/page.html?q=1")

PAGE = """<!doctype html><html><head><title> A &amp; B
</title><style>p {color: red}</style></head>
<body><nav><a href="../top">Top</a><a href="#x">skip</a></nav>
<h1>Head</h1><p>One <b>bold</b>&nbsp;word,
and <a href='other.html#part'>an <i>other</i></a>.</p>
<ul><li>first<li><a href="mailto:x@y">mail</a></ul>
<table><tr><td>1</td><td>2</td></tr></table>
<script>document.write("<p>never</p>")</script><noscript>nor this</noscript>
<a href="/empty"> </a><a href="https://b.test/(x)">brackets [1]</a><a href="/open">no end"""


def test_a_page_as_text() -> None:
    title, text = read_html(PAGE, JOIN)
    assert title == "A & B"
    assert text.splitlines() == [
        "[Top](https://a.test/top)skip",
        "Head",
        "One bold word, and [an other](https://a.test/dir/other.html).",
        "- first",
        "- mail",
        "1 2",
        "[brackets (1)](https://b.test/%28x%29) [no end](https://a.test/open)",
    ]


@pytest.mark.parametrize(
    ("html", "title", "text"),
    [
        ("plain words", "", "plain words"),
        ("<title>T</title><title>U</title>x", "T", "x"),
        ("<head><title>T</title><p>no body", "T", "no body"),
        ("<svg><title>drawing</title></svg>x", "drawing", "x"),
        ("a<br>b<br/>c<hr>d", "", "a\nb\nc\nd"),
        ("<style>open ever", "", ""),
        ("</p></a></b>x", "", "x"),
        ("<a href='http://[bad'>x</a>", "", "x"),
        ("<a>x</a><a href>y</a>", "", "xy"),
        ("&#0;&#xD800;&bogus;", "", "\ufffd\ufffd&bogus;"),
    ],
)
def test_odd_pages(html: str, title: str, text: str) -> None:
    assert read_html(html, JOIN) == (title, text)


@given(st.text(alphabet="<>/aptilescr&;![]?-\"'= \n") | st.text())
def test_no_page_breaks_the_reader(source: str) -> None:
    for text in (read_html(source, JOIN), read_markdown(source, JOIN), read_plain(source)):
        assert "\n\n" not in text.text


@pytest.mark.parametrize(
    "piece",
    ["<a ", "<!--", "<![", "<?x", "<a href='x", "<p a=", "<svg></p>", "&#", "[a](", "\n \n"],
)
def test_hostile_pages_take_linear_time(piece: str) -> None:
    start = time.process_time()
    read_html(piece * (200_000 // len(piece)), JOIN)
    assert time.process_time() - start < 5


def test_comments_and_what_is_no_tag() -> None:
    source = "a<!-- <p>no</p> -->b<!doctype x><?php y?>c 1 < 2 <3 <!--d <![CDATA[e]]>"
    assert read_html(source, JOIN).text == "abc 1 < 2 <3"
    assert read_html('<p title="a > b">x</p><script>if (a<b) "</p>"</script>y', JOIN).text == "x\ny"


def test_markdown_and_plain_pages() -> None:
    title, text = read_markdown(
        'intro\n\n## The *Title* ##\nSee [x](y.md "t") and ![pic](z.png), [w](#in).\n', JOIN
    )
    assert title == "The *Title*"
    assert text.endswith("See [x](https://a.test/dir/y.md) and pic, w.")
    assert read_plain("\n First \n\nrest") == ("First", "First\nrest")
    assert read_plain("w " * 300).title == ""


def test_bytes_become_text() -> None:
    assert decode("Zoë".encode("latin-1"), "latin-1") == "Zoë"
    assert decode(b'<meta charset="latin-1">Zo\xeb').endswith("Zoë")
    for odd in ("no-such-charset", "hex", "undefined", "idna"):
        assert decode(b"Zo\xeb", odd) == "Zo\ufffd"
    assert decode("\ufeffä".encode()) == "ä"
    assert make_encodable("a\ud800b\x00") == "a?b"
