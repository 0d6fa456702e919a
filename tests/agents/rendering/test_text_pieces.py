"""Texts encoded by remembered pieces have the ids that the tokenizer gives them."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.small_models import byte_level, metaspace
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from turngym.agents.models import random_init, tokenizer
from turngym.agents.rendering import text_pieces
from turngym.agents.rendering.text_pieces import SIGNS, WORDS, TextPieces
from turngym.agents.rendering.token_text import TokenText

TEXTS = ("The red lamp of Ada Fox stands in room 12.\n", "<search> red lamp </search>", "It's 9!")
TRAINED = tokenizer.train_tokenizer(TEXTS * 5, vocab_size=300, max_length=64)
SPELLED = random_init.word_tokenizer(sorted({"The", "red", "lamp", " ", ".", "1"}), 64)
EXACT = {"bytes": TokenText(TRAINED), "words": TokenText(SPELLED)}
PARTS = st.sampled_from(
    ["<search>", "</search>", "<", "search>", " red", "lamp", "  ", "\n", "\x0b", "\x1c", "_", "12"]
)


def by_itself(exact: TokenText, text: str) -> list[int]:
    return exact._backend.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", EXACT)
@given(st.lists(st.one_of(PARTS, st.text(st.characters(max_codepoint=127), max_size=6))))
def test_ids_are_the_tokenizers_own(kind: str, parts: list[str]) -> None:
    exact, text = EXACT[kind], "".join(parts)
    assert exact._pieces is not None
    assert exact._pieces.encode(text) == exact.encode(text) == by_itself(exact, text)


@pytest.mark.parametrize("kind", EXACT)
def test_other_letters_are_left_to_the_tokenizer(kind: str) -> None:
    exact = EXACT[kind]
    assert exact._pieces is not None
    assert exact._pieces.encode("Zoë") is None
    assert exact.encode("Zoë") == by_itself(exact, "Zoë")


def test_the_patterns_are_those_of_the_tokenizers_that_are_made_here() -> None:
    assert (tokenizer._PIECES, random_init._WORDS) == (WORDS, SIGNS)


def no_step(_: Any) -> None:
    """The tokenizer cuts otherwise."""


def cut_blanks_off(made: Any) -> None:
    made.backend_tokenizer.add_tokens([AddedToken("<mask>", lstrip=True)])


@pytest.mark.parametrize(
    ("made", "change"),
    [(byte_level(), no_step), (metaspace(), no_step), (SPELLED, cut_blanks_off)],
)
def test_tokenizers_that_work_otherwise_have_none(made: Any, change: Any) -> None:
    change(made)
    assert TokenText(made)._pieces is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_pieces, "_REMEMBERED", 3)
    exact = TokenText(TRAINED)
    pieces = exact._pieces
    assert isinstance(pieces, TextPieces)
    for text in TEXTS:
        assert exact.encode(text) == by_itself(exact, text)
        assert len(pieces._known) <= 3
