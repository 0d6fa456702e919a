import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.search_qa.answer_metrics import exact_match, f1, normalise_answer, sub_em


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Beatles!", "beatles"),
        ("U.S.A.", "usa"),
        ("a.k.a. the Rock", "aka rock"),
        ("An apple-pie", "applepie"),
        ("The", ""),
        ("“quoted”", "“quoted”"),
        ("1,000", "1000"),
    ],
)
def test_e24_normalise(text: str, normal: str) -> None:
    assert normalise_answer(text) == normal


def test_e24_f1() -> None:
    assert f1("The Eiffel Tower in Paris", ["Eiffel Tower"]) == pytest.approx(2 / 3)
    assert f1("yes it is", ["yes"]) == 0.0
    assert f1("Barack Hussein Obama", ["Barack Obama", "Obama"]) == pytest.approx(0.8)


def test_sub_em_ignores_a_gold_that_normalises_to_nothing() -> None:
    assert sub_em("anything", ["The"]) == 0.0
    assert sub_em("in the Lum Tor valley", ["Lum Tor"]) == 1.0


@pytest.mark.parametrize("score", [exact_match, f1])
@pytest.mark.parametrize(("gold", "other"), [("A", "the"), ("The", "a"), ("...", "???")])
def test_a_gold_that_normalises_to_nothing_is_taken_as_written(
    score: Callable[[str, list[str]], float], gold: str, other: str
) -> None:
    assert score(f" {gold.lower()} ", [gold]) == 1.0
    for said in ("", " ", other, "B"):
        assert score(said, [gold]) == 0.0


@given(st.text(), st.lists(st.text(), min_size=1, max_size=4))
def test_scores_agree(said: str, golds: list[str]) -> None:
    score = f1(said, golds)
    assert 0.0 <= score <= 1.0
    if exact_match(said, golds):
        assert score == 1.0
    assert exact_match(golds[0], golds) == float(bool(golds[0].split()))


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise_answer(text)
    assert " ".join(once.split()) == once
    shouted = text.upper() if text.upper().lower() == text.lower() else text
    assert exact_match(text, [shouted]) == float(bool(text.split()))


@given(
    st.lists(st.sampled_from(["a", "an ", "The", "theme", "-", " ", "\n", "\x1c", "’", "é", "."]))
)
def test_plain_texts_are_normalised_as_all_others(parts: list[str]) -> None:
    bare = "".join(parts).lower().replace("-", "").replace(".", "")
    assert normalise_answer("".join(parts)) == " ".join(
        re.sub(r"\b(a|an|the)\b", " ", bare).split()
    )
