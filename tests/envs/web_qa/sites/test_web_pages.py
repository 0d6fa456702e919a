"""Parts of pages, snippets, batches of requests, and the words of the game."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.episode import Call
from turngym.envs.core.errors import EnvFault
from turngym.envs.tools.retrieval.base import Hit, Query
from turngym.envs.web_qa.sites.pages import (
    NoPage,
    Page,
    Served,
    Visit,
    clip,
    escape_tags,
    find_parts,
    pick_sentence,
    split_into_parts,
    strip_links,
)
from turngym.envs.web_qa.text import read_target, write_page, write_results

LONG = "One is first. Two is second.\nThree is third and much longer than the others are."


@given(st.text(alphabet="ab. \n\u6f22", max_size=300), st.integers(40, 90))
def test_parts_hold_all_but_blanks(text: str, most: int) -> None:
    parts = split_into_parts(text, most)
    assert all(end - start <= most for start, end in parts)
    assert "".join("".join(text[a:b].split()) for a, b in parts) == "".join(text.split())
    assert all(b <= c for (_, b), (c, _) in pairwise(parts))


def test_parts_end_at_lines_and_sentences() -> None:
    assert [LONG[a:b] for a, b in split_into_parts(LONG, 40)] == [
        "One is first. Two is second.",
        "Three is third and much longer than the",
        "others are.",
    ]
    assert split_into_parts("", 40) == [(0, 0)]
    assert list(find_parts(LONG, 40, 20, 60)) == [1, 2]
    assert list(find_parts(LONG, 40, 29, 68)) == [2]


def test_a_page_shows_its_parts() -> None:
    page = Page("https://a.test/x", "X", LONG)
    text, there = write_page(page, 1, 40)
    assert there
    assert text == (
        "\n\n<information>X\nhttps://a.test/x\n"
        "part 1 of 3; next: <open> https://a.test/x page 2 </open>\n"
        "One is first. Two is second.</information>\n\n"
    )
    assert "part 3 of 3\nothers are." in write_page(page, 3, 40)[0]
    text, there = write_page(page, 4, 40)
    assert not there
    assert "has 3 parts; there is no part 4" in text
    assert "part" not in write_page(page, 1, 400)[0]
    assert "has 1 part; there is no part 0" in write_page(page, 0, 400)[0]
    assert "holds no text" in write_page(page._replace(text=""), 1, 400)[0]


def test_snippets_fit_the_query() -> None:
    text = "Ada Brook was a chemist. She was born in Lum Tor. Her rival was Kai Ash."
    assert pick_sentence(text, "Ada Brook rival", but="Ada Brook") == "Her rival was Kai Ash."
    assert pick_sentence(text, "nothing", but="") == "Ada Brook was a chemist."
    assert pick_sentence("", "x") == ""
    assert clip("a  b\nc " * 20, 10) == "a b c a b…"
    assert (
        strip_links("See [Lum Tor](https://wiki.test/lum-tor), [x] (y).") == "See Lum Tor, [x] (y)."
    )


@pytest.mark.parametrize(
    ("content", "address", "number", "part"),
    [
        ("https://a.test/x", "https://a.test/x", None, 1),
        (" https://a.test/x  PAGE 12 ", "https://a.test/x", None, 12),
        ("3", "3", 3, 1),
        ("[3] page 2", "[3]", 3, 2),
        ("3.", "3.", 3, 1),
        ("x page 0", "x", None, 0),
        ("1234567", "1234567", None, 1),
    ],
)
def test_targets_are_read(content: str, address: str, number: int | None, part: int) -> None:
    assert read_target(content) == (address, number, part)


@pytest.mark.parametrize("content", ["", "two words", "x page", "x page two", "x page -1", "page"])
def test_what_names_no_target(content: str) -> None:
    target = read_target(content)
    assert target is None or target.address == "page"


def test_results_are_numbered_and_tags_from_outside_are_escape_tags() -> None:
    hits = [Hit("https://a.test/1", "A", "first", 1.0), Hit("https://a.test/2", "B", "second", 0.5)]
    assert write_results(hits, 999) == (
        "\n\n<information>1. A\nhttps://a.test/1\nfirst\n2. B\nhttps://a.test/2\nsecond"
        "</information>\n\n"
    )
    assert write_results([], 999) == "\n\n<information>Nothing found.</information>\n\n"
    assert escape_tags("a </Information><p> <answer>") == "a (/Information)<p> (answer)"


def test_requests_go_together_by_kind() -> None:
    calls: list[object] = []

    class Little:
        def search(self, queries: list[str], k: int) -> list[list[Hit] | EnvFault]:
            calls.append((queries, k))
            return [EnvFault("x") if q == "bad" else [Hit(q, q, q, 1.0)] for q in queries]

        def open(self, addresses: list[str]) -> list[NoPage]:
            calls.append(addresses)
            return [NoPage(a) for a in addresses]

    site = Little()
    serve = Served(site)  # pyright: ignore
    one, fault, two, three, four = serve(
        [Query("a", 2), Query("bad", 2), Visit("b"), Query("c", 1), Visit("d")]
    )
    assert calls == [(["c"], 1), (["a", "bad"], 2), ["b", "d"]]
    assert (one[0].id, three[0].id, two, four) == ("a", "c", NoPage("b"), NoPage("d"))
    assert isinstance(fault, EnvFault)
    assert serve == Served(site)  # pyright: ignore
    assert Call(serve, Query("a", 2)) == Call(Served(site), Query("a", 2))  # pyright: ignore
