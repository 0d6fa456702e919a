"""Texts of tokens in a row are those that the tokenizer gives them."""

from __future__ import annotations

from helpers.small_models import byte_level, metaspace
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from turngym.agents.rendering.token_bytes import token_bytes
from turngym.agents.rendering.token_text import TokenText

TOKENIZER = byte_level()
TOKENIZER.add_tokens([AddedToken("<a b>"), AddedToken("é漢Ġ"), AddedToken("Ġé")])
EXACT = TokenText(TOKENIZER)
SIZE = len(TOKENIZER)
IDS = st.lists(st.integers(0, SIZE), max_size=12)  # one more than there are


def by_itself(ids: list[int]) -> str:
    return EXACT._backend.decode(ids, skip_special_tokens=False)


@given(IDS)
def test_texts_are_the_tokenizers_own(ids: list[int]) -> None:
    assert EXACT.decode(ids) == by_itself(ids)


@given(st.binary(max_size=12))
def test_bytes_that_are_no_character_become_the_same_signs(raw: bytes) -> None:
    assert EXACT._bytes is not None
    whose = {EXACT._bytes[token]: token for token in reversed(range(SIZE))}
    ids = [whose[bytes([byte])] for byte in raw]
    assert EXACT.decode(ids) == by_itself(ids) == raw.decode("utf-8", "replace")


def test_other_tokenizers_decode_themselves() -> None:
    assert token_bytes(TokenText(metaspace())._backend) is None
    assert token_bytes(None) is None
