"""Answers, sentences and actions out of what models write."""

from __future__ import annotations

import pytest

from turngym.agents.prompting.episode import passages, plain
from turngym.agents.prompting.parsing import (
    boxed,
    concludes,
    first_sentence,
    short_answer,
    spoken,
    tagged_answer,
)
from turngym.agents.prompting.react import read_step
from turngym.agents.prompting.search_o1 import condensed, query_in
from turngym.agents.prompting.text_model import Message, flat, restored


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<answer> Lum Tor </answer>", "Lum Tor"),
        ("<answer>a</answer> or <answer>b</answer>", "b"),
        ("so <answer> Lum Tor", "Lum Tor"),
        (r"thus \boxed{\text{Lum {Tor}}}.", "Lum {Tor}"),
        (r"\boxed{a} and \boxed{b", "a"),
        ("So the answer is: **Lum Tor**.", "Lum Tor"),
        ("The answer is Lum Tor.\n", "Lum Tor"),
        ("Answer: Lum Tor", "Lum Tor"),
        ("The answer is Lum Tor. It lies in Mel.", "Lum Tor"),
        ("I thought the answer is 3, but the answer is 4.", "4"),
        ("The answer is St. Lum. Mel is older.", "St. Lum"),
        ("The answer is:\nLum Tor", "Lum Tor"),
        ("The answer is: No. They differ.", "No"),
        ("The answer is No. 5 Gate. It is old.", "No. 5 Gate"),
        ("Answer: **No.** They differ.", "No"),
        ("The answer is Mt. Lum. Mel is older.", "Mt. Lum"),
        ("So the answer is: Gen. Lum Tor.", "Gen. Lum Tor"),
        ("So the answer is 4. The others are older.", "4"),
        ("The answer is: **1987.** It was hot.", "1987"),
        ("The answer is:\n1. Lum Tor\n2. Mel", "Lum Tor"),
        ("The answer is **Lum Tor.** It lies in Mel.", "Lum Tor"),
        ("**Final Answer**: Lum Tor", "Lum Tor"),
        ("**Answer:**\n\nLum Tor", "Lum Tor"),
        ('The answer to this question is: "Lum Tor."', "Lum Tor"),
        ("She answered him. It is Lum", "She answered him. It is Lum"),
        ("I think it is\n\nLum Tor.\n", "Lum Tor"),
        ('"Lum Tor"', "Lum Tor"),
        ("Harold J.", "Harold J."),
        ("", ""),
        (" \n ", ""),
        ("<answer></answer>", ""),
    ],
)
def test_short_answers(text: str, found: str) -> None:
    assert short_answer(text) == found


def test_hidden_thoughts_are_left_out() -> None:
    assert spoken("<think> a </think> b") == "b"
    assert spoken("a </think> b") == "b"  # the template opened the block
    assert spoken("<think> cut off") == ""
    assert spoken(" plain ") == "plain"


def test_an_unclosed_box_is_none() -> None:
    assert boxed(r"\boxed{never") is None
    assert boxed("nothing") is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("It lies in Lum. It is old.", "It lies in Lum."),
        ("\n\n- 1871 was the year! Then", "1871 was the year!"),
        ("2. J. R. Vale and Dr. Moss met. Later", "J. R. Vale and Dr. Moss met."),
        ("no end\nsecond line.", "no end"),
        ("The area is 3.5 km. Wide.", "The area is 3.5 km."),
        ("", ""),
    ],
)
def test_first_sentences(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_conclusions() -> None:
    assert concludes("So the answer is: Lum.")
    assert not concludes("She answered him.")


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Thought: a\nAction: Search[Lum Tor]", ("search", "Lum Tor")),
        ("Action 3: search[ Lum Tor", ("search", "Lum Tor")),
        ("**Action:** Finish[Lum Tor]", ("finish", "Lum Tor")),
        ("action: Finish: Lum Tor\nmore", ("finish", "Lum Tor")),
        ("Action: Search(Lum Tor)", ("search", "Lum Tor")),
        ('Action: Search["Lum Tor"]', ("search", "Lum Tor")),
        ("Action: Search[Lum (planet) orbit]", ("search", "Lum (planet) orbit")),
        ("Action: Search(Lum (planet) orbit)", ("search", "Lum (planet) orbit")),
        ("Action: Finish[Lum (1984) by Tor]. Done (ok)", ("finish", "Lum (1984) by Tor")),
        ("Action: Finish: Lum (1984) by Tor", ("finish", "Lum (1984) by Tor")),
        ("Action: Search[Lum (planet) orbit", ("search", "Lum (planet) orbit")),
        ("Action: Search[Lum (planet]", ("search", "Lum (planet")),
        ("Action: Search[Lum Tor) now", ("search", "Lum Tor")),
        ("I will Search[Lum] now", ("search", "Lum")),
        ("Action: Search[a]\nAction: Finish[b]", ("search", "a")),
        ("Action: Finish[]", ("finish", "")),
        ("Action: Search[]", None),
        ("Action: Lookup[a]", None),
        ("Action:", None),
        ("I should search for it.", None),
        ("", None),
    ],
)
def test_react_actions(text: str, step: tuple[str, str] | None) -> None:
    assert read_step(text) == step


def test_queries_inside_reasoning() -> None:
    assert query_in("a <|begin_search_query|> x\ny<|end_search_query|>") == "x y"
    assert query_in("a <|begin_search_query|>x") == "x"
    assert query_in("<|begin_search_query|><|end_search_query|>") is None
    assert query_in("none") is None


def test_condensing_keeps_the_passages_of_the_title() -> None:
    docs = ['Doc 1(Title: "A") A is B.', 'Doc 2(Title: "C") C is D.', 'Doc 3(Title: "A") A is E.']
    seen = "\n\n<information>" + "\n".join(docs) + "</information>\n\n"
    assert passages(condensed(seen, "E")).splitlines() == [
        'Doc 1(Title: "A") A is B.',
        'Doc 2(Title: "A") A is E.',
    ]
    assert condensed(seen, "nowhere") == condensed(seen, "") == seen


def test_condensing_keeps_all_lines_of_a_passage() -> None:
    seen = "<information>Doc 1(Title: A) one\nDoc 2(Title: B) two\nlines</information>"
    assert passages(condensed(seen, "lines")) == "Doc 1(Title: B) two\nlines"


def test_the_last_opened_answer_counts() -> None:
    assert tagged_answer("<answer> a <answer> b </answer> c") == "b"
    assert tagged_answer("<answer> a </answer> <answer> b") == "b"
    assert tagged_answer("no") is None


def test_tags_cannot_be_smuggled_into_an_action() -> None:
    assert plain("a </search> <answer> b\n</answer>") == "a b"


@pytest.mark.parametrize(
    ("text", "before", "whole"),
    [
        ("<search> q ", "", "<search> q </search>"),
        (" q ", "x <answer>", " q </answer>"),
        ("<search> q </search>", "", "<search> q </search>"),
        ("I am done.", "<search> a </search>", "I am done."),
        ("<search> a </search> <answer> b", "", "<search> a </search> <answer> b</answer>"),
    ],
)
def test_stop_strings_are_put_back(text: str, before: str, whole: str) -> None:
    assert restored(text, ("</search>", "</answer>"), before) == whole


def test_marks_with_begin_and_end_are_put_back() -> None:
    stop = ("<|end_search_query|>",)
    assert restored("a <|begin_search_query|>q", stop) == "a <|begin_search_query|>q" + stop[0]
    assert restored("Thought: a", ("Observation:",)) == "Thought: a"


def test_a_dialogue_as_one_text() -> None:
    assert flat([Message("user", "a\n"), Message("assistant", "b")]) == "a\n\nb\n"
