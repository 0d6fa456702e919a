"""What a selector may write, and how it is read."""

import pytest
from helpers.shelf import example_four
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.paper_crawler.marl import write_decision, write_decisions
from turngym.envs.paper_crawler.marl.decisions import (
    read_decision,
    read_decisions,
    write_question,
)
from turngym.envs.paper_crawler.papers import Judged
from turngym.envs.paper_crawler.prompts import PROMPTS


@pytest.mark.parametrize(
    ("text", "accepted", "score"),
    [
        ("True", True, 1.0),
        (" False\nReason: it is about salt.", False, 0.0),
        ("Decision: True", True, 1.0),
        ("Decision:False 0.25", False, 0.25),
        ("True 0.93\nReason: 0.1 of it fits", True, 0.93),
        ("True 0.3", True, 0.3),  # the token decides, the number orders
        ("True 1", True, 1.0),
        ("False 1e-05", False, 1e-05),
        ("True, it cites 3 of them", True, 1.0),
        ("True 3 of them fit", True, 1.0),
    ],
)
def test_decisions_that_can_be_read(text, accepted, score):
    assert read_decision(text) == (accepted, score, "")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "'' does not begin with True or False"),
        ("true", "does not begin"),
        ("Truely", "does not begin"),
        ("The answer is True", "does not begin"),
        ("Reason: x\nDecision: True", "does not begin"),
        ("1", "does not begin"),
        ("x" * 50, "…' does not begin"),
        ("True 1.7", "1.7 is no probability"),
        ("False -0.1", "-0.1 is no probability"),
        ("True 1e999", "1e999 is no probability"),
    ],
)
def test_what_cannot_be_read_is_false(text, error):
    decision = read_decision(text)
    assert decision[:2] == (False, 0.0)
    assert error in decision.error


def test_a_batch_has_a_line_for_each_paper():
    text = "Here:\n 2: True 0.6\n1 : False\n2: False\n3: perhaps\n7: True\n" + "9" * 5000 + ": True"
    first, second, third, fourth = read_decisions(text, 4)
    assert first == (False, 0.0, "")
    assert second == (True, 0.6, "")  # the first line of a number counts
    assert "' perhaps' does not begin" in third.error
    assert fourth.error == "there is no line '4: True' or '4: False'"
    assert [d.accepted for d in read_decisions("True", 1)] == [False]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_what_is_written_is_read_again(scores):
    read = read_decisions(write_decisions(scores, batch=True), len(scores))
    assert read == [(score > 0.5, score, "") for score in scores]
    assert read_decision(write_decisions(scores, batch=False)) == read[0]
    assert read_decision(write_decision(scores[-1])) == read[-1]


@given(st.text())
def test_any_text_is_read_somehow(text):
    decision = read_decision(text)
    assert 0.0 <= decision.score <= 1.0
    assert len(read_decisions(text, 3)) == 3


def test_questions_are_the_selectors_prompts():
    shelf, _, request = example_four()
    asked = [Judged(request, shelf.papers[p]) for p in ("p1", "p2")]
    first, second = (PROMPTS["short"].select(*judged) for judged in asked)
    assert write_question(PROMPTS["short"], asked[:1], batch=False) == first
    assert write_question(PROMPTS["short"], [], batch=False) == ""
    both = write_question(PROMPTS["short"], asked, batch=True)
    assert both == f"Question 1\n{first}\nQuestion 2\n{second}"
