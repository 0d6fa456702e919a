"""Rendering: ids only grow, text is exactly what the model wrote."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from helpers.chat_templates import FORGETFUL
from helpers.small_models import CHATML, GEMMA, LLAMA3, NO_END, THINKING, byte_level, metaspace
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing

from turngym.agents.rendering.factory import (
    ChatRenderer,
    PlainRenderer,
    end_of_message,
    make_renderer,
)
from turngym.agents.rendering.token_text import TokenText
from turngym.envs.core.errors import BadValueError, UnknownNameError

PLAIN = byte_level()
CHATS = {"qwen": CHATML, "llama3": LLAMA3, "gemma": GEMMA}
BLANKS = metaspace()


@given(st.text(max_size=40))
def test_byte_level_text_survives_both_ways(text: str) -> None:
    exact = TokenText(PLAIN)
    assert exact.decode(exact.encode(text)) == text


@given(
    st.lists(st.sampled_from(["the", "red", " lamp", " ", "Ada", "  born", "door "]), min_size=2)
)
def test_pieces_join_even_where_the_tokenizer_adds_blanks(pieces: list[str]) -> None:
    exact = TokenText(BLANKS)
    ids = [i for piece in pieces for i in exact.encode(piece)]
    assert exact.decode(ids) == "".join(pieces)
    assert BLANKS.decode(BLANKS.encode("red", add_special_tokens=False) * 2) != "redred"


def test_what_is_remembered_cannot_be_changed_from_outside() -> None:
    exact = TokenText(BLANKS)
    first = exact.encode("red lamp")
    kept = list(first)
    first.append(0)
    assert exact.encode("red lamp") == kept
    assert pickle.loads(pickle.dumps(exact)).encode("red lamp") == kept


def test_a_tokenizer_that_somebody_set_to_cut_still_encodes_whole_texts() -> None:
    shared = byte_level()
    exact = TokenText(shared)
    assert len(shared("red lamp", truncation=True, max_length=2).input_ids) == 2
    assert shared.backend_tokenizer.truncation
    assert exact.decode(exact.encode("red lamp")) == "red lamp"


def test_a_tokenizer_with_an_encoding_of_its_own_is_asked_itself() -> None:
    class Loud(type(PLAIN)):
        def encode(self, text: str, **more: Any) -> list[int]:  # type: ignore[override]
            return super().encode(text.upper(), **more)

    loud = Loud(tokenizer_object=PLAIN.backend_tokenizer, eos_token="<eos>")
    assert TokenText(PLAIN).decode(TokenText(loud).encode("red")) == "RED"


def test_half_a_character_is_shown_as_such_and_completes() -> None:
    exact = TokenText(PLAIN)
    ids = exact.encode("漢")
    assert len(ids) > 1
    assert exact.decode(ids[:-1]).startswith("\ufffd")
    assert exact.decode(ids) == "漢"


def test_plain_tokenises_each_text_on_its_own() -> None:
    render = make_renderer(PLAIN)
    assert isinstance(render, PlainRenderer)
    assert PLAIN.decode(render.open("the red ", "lamp")) == "the red lamp"
    assert render.observe("\n\nlamp") == PLAIN.encode("\n\nlamp", add_special_tokens=False)
    assert (render.eos_id, render.pad_id) == (1, 0)


def test_a_begin_of_text_token_stands_before_the_first_prompt_alone() -> None:
    plain = make_renderer(PLAIN).open("the red ", "lamp")
    tokenizer = byte_level(bos_token="<eos>")
    assert make_renderer(tokenizer).open("the red ", "lamp") == plain  # it is never written here
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<eos> $A", special_tokens=[("<eos>", 1)]
    )
    render = make_renderer(tokenizer)
    assert render.open("the red ", "lamp") == [1, *plain]
    assert render.observe("lamp") == make_renderer(PLAIN).observe("lamp")
    assert render.write("lamp") == make_renderer(PLAIN).write("lamp")


def test_text_leaves_out_only_a_final_end_of_text() -> None:
    render = make_renderer(PLAIN)
    ids = PLAIN.encode("<search> Ada </search>", add_special_tokens=False)
    assert render.text([*ids, 1]) == "<search> Ada </search>"
    assert render.text([*ids, 0]) == "<search> Ada </search><pad>"
    assert render.text([1, *ids]) == "<eos><search> Ada </search>"
    assert render.text([1]) == ""
    assert render.text([]) == ""


def test_decoding_never_cleans_blanks_up() -> None:
    render = make_renderer(byte_level(clean_up_tokenization_spaces=True))
    text = "the lamp , is n't red . Or ?"
    assert render.text(render.observe(text)) == text


@pytest.mark.parametrize("style", CHATS)
def test_growing_ids_equal_the_template_s_own_rendering(style: str) -> None:
    tokenizer = byte_level(CHATS[style])
    render = make_renderer(tokenizer)
    assert isinstance(render, ChatRenderer)
    talk = [
        {"role": "user", "content": "Find the lamp."},
        {"role": "assistant", "content": "Ada"},
        {"role": "user", "content": "a red door"},
        {"role": "assistant", "content": "Lum"},
        {"role": "user", "content": "no"},
    ]
    grown = render.open("Find ", "the lamp.")
    for i in (1, 3):
        action = tokenizer.encode(talk[i]["content"], add_special_tokens=False)
        grown += [*action, *render.observe(talk[i + 1]["content"], action)]
    text = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    assert grown == tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(grown) == text


@pytest.mark.parametrize("style", CHATS)
def test_a_message_that_the_model_closed_is_not_closed_again(style: str) -> None:
    tokenizer = byte_level(CHATS[style])
    render = make_renderer(tokenizer)
    action = tokenizer.encode("Ada", add_special_tokens=False)
    open_way = action + render.observe("no", action)
    closed = [*action, render.eos_id]
    closed_way = closed + render.observe("no", closed)
    assert open_way == closed_way
    assert render.eos_id == end_of_message(tokenizer)
    assert tokenizer.convert_ids_to_tokens(render.eos_id) in (
        "<|im_end|>",
        "<|eot_id|>",
        "<end_of_turn>",
    )
    assert render.text([*action, render.eos_id]) == "Ada"


def test_a_dialogue_begins_with_one_bos_only() -> None:
    tokenizer = byte_level(LLAMA3, bos_token="<|begin_of_text|>")
    ids = make_renderer(tokenizer).open("x", "y")
    assert ids.count(tokenizer.bos_token_id) == 1


def test_inline_observations_go_on_in_the_assistant_s_message() -> None:
    tokenizer = byte_level(THINKING)
    render = make_renderer(tokenizer, observations="inline")
    assert tokenizer.decode(render.open("a ", "b")).endswith("<think>\n")
    assert tokenizer.decode(render.observe("\n<information>x</information>\n")) == (
        "\n<information>x</information>\n"
    )


@pytest.mark.parametrize(
    ("template", "said", "read"),
    [
        (THINKING, "a lamp\n</think>\n\nHello", "<think>\na lamp\n</think>\n\nHello"),
        (THINKING, "<think>a lamp</think>Hello", "<think>a lamp</think>Hello"),
        (THINKING, "Hello", "Hello"),
        (CHATML, "a lamp</think>Hello", "a lamp</think>Hello"),
    ],
)
def test_inline_a_thought_that_the_prompt_opened_is_read_as_one(
    template: str, said: str, read: str
) -> None:
    tokenizer = byte_level(template)
    render = make_renderer(tokenizer, observations="inline")
    act = tokenizer.encode(said, add_special_tokens=False)
    assert render.action(act) == read
    assert render.text(act) == said


def test_system_message_and_its_refusal() -> None:
    tokenizer = byte_level(CHATML)
    opened = make_renderer(tokenizer, system=True).open("rules", "question")
    assert "<|im_start|>system\nrules<|im_end|>" in tokenizer.decode(opened)
    with pytest.raises(BadValueError, match="System role not supported"):
        make_renderer(byte_level(GEMMA), system=True)


def test_templates_that_rewrite_the_past_are_refused_with_the_reason() -> None:
    with pytest.raises(BadValueError, match="rewrites what came before"):
        make_renderer(byte_level(FORGETFUL))
    with pytest.raises(BadValueError, match="without a special token"):
        make_renderer(byte_level(NO_END))
    with pytest.raises(BadValueError, match="no chat template"):
        make_renderer(PLAIN, "chat")


def test_unknown_names_suggest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'plain'"):
        make_renderer(PLAIN, "plane")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="Did you mean 'inline'"):
        make_renderer(byte_level(CHATML), observations="in-line")  # type: ignore[arg-type]


def test_a_tokenizer_without_end_of_text_is_refused() -> None:
    with pytest.raises(BadValueError, match="no end-of-text token"):
        make_renderer(byte_level(eos_token=None))
