"""The customer's reading takes linear time, and splits sentences where it always did."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.retail.customer.lexicon import SENTENCE
from turngym.envs.retail.customer.parser import normalize, parse_message

OLD_SENTENCE = re.compile(r"(?<=[.!?])[\"')]*\s+|\s*\n+\s*(?:[-•]\s+|\d\.\s+)?")
OLD_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)
CHARS = st.text(alphabet=" \n\t\x0b\u00a0.!?\"')-•1a", max_size=14)


@given(CHARS)
def test_sentences_end_where_they_ended(text: str) -> None:
    assert SENTENCE.split(text) == OLD_SENTENCE.split(text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n"]), max_size=9).map("".join))
def test_thoughts_are_dropped_as_they_were(text: str) -> None:
    assert normalize(text) == OLD_THINKING.sub(" ", text).strip()


@pytest.mark.parametrize("unit", ["x" + " " * 49_998 + "y", "<think>", '"\n', ". ", "\n- ", "!'"])
def test_long_messages_are_read_in_linear_time(unit: str) -> None:
    text = (unit * (50_000 // len(unit) + 1))[:50_000]
    begun = time.process_time()
    parse_message(text)
    assert time.process_time() - begun < 1.0  # 26 s for the blanks before
