"""Which token is the verdict."""

from __future__ import annotations

import pytest
from helpers.small_models import CHATML, byte_level

from turngym.agents.models.random_init import word_tokenizer
from turngym.agents.paper_selector.decision import decision_of
from turngym.agents.paper_selector.examples import SelectorRow
from turngym.algos.training.supervised.selector import small_model
from turngym.envs.core.errors import BadValueError


@pytest.fixture(scope="module")
def trained():
    return small_model([SelectorRow("request: gold\nDecision:", True)])[1]


def test_the_token_that_follows_the_prompt(trained):
    found = decision_of(trained)
    start = trained.encode("paper: x\nDecision:")
    assert trained.encode("paper: x\nDecision: True") == [*start, found.true]
    assert trained.encode("paper: x\nDecision: False") == [*start, found.false]
    assert found.blank
    assert trained.decode([found.true]) == " True"


def test_without_a_blank_where_words_stand_alone():
    tokenizer = word_tokenizer(["True", "False", " ", "Decision", ":"], 64)
    assert decision_of(tokenizer) == (
        tokenizer.convert_tokens_to_ids("True"),
        tokenizer.convert_tokens_to_ids("False"),
        False,
    )
    with pytest.raises(BadValueError, match="' True' is 2 tokens"):
        decision_of(tokenizer, blank=True)


def test_in_a_chat_the_message_begins_with_it():
    tokenizer = byte_level(CHATML)
    tokenizer.add_tokens(["True", "False"])
    found = decision_of(tokenizer, chat=True)
    assert tokenizer.convert_ids_to_tokens([found.true, found.false]) == ["True", "False"]
    assert not found.blank


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        (lambda: byte_level(), "' True' is .* tokens"),
        (lambda: word_tokenizer(["Decision", ":"], 64), "'True' is unknown"),
        (lambda: word_tokenizer(["Decision", ":", "True"], 64), "'False' is unknown"),
    ],
)
def test_verdicts_of_several_tokens_are_refused(tokenizer, said):
    with pytest.raises(BadValueError, match=said):
        decision_of(tokenizer())
