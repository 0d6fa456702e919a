"""PaSa's markers: the seven edge cases of the released parser, spans, round trips."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.paper_crawler.crawl.grammar import (
    MARKERS,
    STOPS,
    read_action,
    read_session,
    write_action,
)

PLAIN = st.text(st.characters(blacklist_characters="[", codec="utf-8"), max_size=12)


def args(text, kind="search"):
    return [move.arg for move in read_session(text, kind).moves]


def test_spans_of_the_example_session():
    text = "[Expand]2.1 gated memory[Expand]1 Introduction[StopExpand]"
    session = read_session(text, "expand")
    assert [(m.kind, m.arg, m.span) for m in session.moves] == [
        ("expand", "2.1 gated memory", (0, 24)),
        ("expand", "1 Introduction", (24, 46)),
    ]
    assert session.stop == (46, 58)


def test_an_action_cut_at_the_token_limit_is_dropped():
    assert args("[Search] a [Search] b") == ["a"]
    assert read_session("[Search] a", "search") == ((), None)


def test_the_stop_marker_is_no_search():
    text = "[Search] a[StopSearch] and [more]"
    assert args(text) == ["a"]
    assert read_session(text, "search").stop == (10, 22)


def test_a_bracket_cuts_the_argument():
    assert args("[Search] memory [1] cells [StopSearch]") == ["memory"]


def test_markers_of_the_other_kind_are_ignored():
    assert args("[Expand] x [Search] a [Expand] y [StopSearch]") == ["a"]


@pytest.mark.parametrize("stop", ["[Stop]", "[StopSearch]", "[StopExpand]"])
def test_every_spelling_of_stop_is_read(stop):
    session = read_session(f"[Search] a {stop} [Search] b [Stop]", "search")
    assert [m.arg for m in session.moves] == ["a"]
    assert session.stop == (11, 11 + len(stop))
    assert read_action(stop, "expand")[0].kind == "stop"


def test_order_and_duplicates_are_kept_and_empty_arguments_are_invalid():
    moves = read_session("[Search] b [Search] [Search] b [Stop]", "search").moves
    assert [(m.kind, m.arg) for m in moves] == [("search", "b"), ("invalid", ""), ("search", "b")]
    assert "empty" in moves[1].error


@pytest.mark.parametrize("text", ["", "nothing to see", "[Expand] 1 Introduction [x]"])
def test_text_without_an_own_marker_is_one_invalid_action(text):
    session = read_session(text, "search")
    assert [m.kind for m in session.moves] == ["invalid"]
    assert session.moves[0].span == (0, len(text))
    assert "[Search]" in session.moves[0].error


def test_two_markers_in_one_action_the_first_counts():
    move, stopped = read_action("[Search] a [Search] b", "search")
    assert (move.arg, move.span, stopped) == ("a", (0, 11), False)
    move, stopped = read_action("[Search] a [Search] b [Stop]", "search")
    assert (move.arg, stopped) == ("a", True)


def test_an_action_may_run_to_the_end():
    assert read_action("I think [Search]  two\n words ", "search")[0].arg == "two words"


@given(st.lists(PLAIN), st.sampled_from(["search", "expand"]), PLAIN)
def test_written_sessions_are_read_again(given_args, kind, before):
    wanted = [" ".join(a.split()) for a in given_args]
    text = before + "".join(write_action(kind, a) for a in given_args) + STOPS[kind]
    session = read_session(text, kind)
    assert [m.arg for m in session.moves] == wanted
    assert [m.kind for m in session.moves] == [kind if a else "invalid" for a in wanted]
    for move, arg in zip(session.moves, given_args, strict=True):
        start, end = move.span
        assert text[start:end] == f"{MARKERS[kind]} {arg}\n"
    assert session.stop is not None
    assert text[slice(*session.stop)] == STOPS[kind]


@given(st.text("[]SearchExpandStop ab\n", max_size=60), st.sampled_from(["search", "expand"]))
def test_any_text_is_read_with_spans_inside_it(text, kind):
    session = read_session(text, kind)
    spans = [m.span for m in session.moves] + ([session.stop] if session.stop else [])
    assert all(0 <= a <= b <= len(text) for a, b in spans)
    assert all(x[1] <= y[0] for x, y in pairwise(spans))
    move, stopped = read_action(text, kind)
    assert 0 <= move.span[0] <= move.span[1] <= len(text)
    assert stopped or move.kind != "stop"
