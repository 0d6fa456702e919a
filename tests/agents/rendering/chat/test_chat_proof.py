"""Ids only grow with templates of every kind, or the template is refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.chat_templates import FORGETFUL, GEMMA3, HERMES, LLAMA32, QWEN3, QWEN3_THINKING, TOOL
from helpers.small_models import byte_level
from hypothesis import given
from hypothesis import strategies as st

from turngym.agents.rendering.factory import ChatRenderer, make_renderer
from turngym.envs.core.errors import BadValueError, UnknownNameError

KINDS = {
    "hermes": (HERMES, "user"),
    "qwen3": (QWEN3, "tool"),
    "qwen3-thinking": (QWEN3_THINKING, "tool"),
    "llama32": (LLAMA32, "user"),
    "gemma3": (GEMMA3, "user"),
}
TOKENIZERS = {name: byte_level(kind) for name, (kind, _) in KINDS.items()}
RENDERERS: dict[tuple[str, bool], Any] = {}


def renderer(name: str, *, tools: bool = False) -> ChatRenderer:
    if (name, tools) not in RENDERERS:
        RENDERERS[name, tools] = make_renderer(TOKENIZERS[name], tools=[TOOL] if tools else ())
    return RENDERERS[name, tools]


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_proved_in_its_role(name: str, tools: bool) -> None:
    assert renderer(name, tools=tools).role == KINDS[name][1]


@pytest.mark.parametrize("name", KINDS)
@given(
    actions=st.lists(st.text("ab <>/\n", min_size=1, max_size=12), min_size=1, max_size=4),
    closed=st.booleans(),
)
def test_what_was_sampled_stays_as_it_was(name: str, actions: list[str], closed: bool) -> None:
    render = renderer(name)
    ids = render.open("rules ", "go")
    for text in actions:
        wrote = [ord(c) % 200 + 30 for c in text]  # not the ids of any encoded text
        wrote += [render.eos_id] if closed else []
        before = [*ids, *wrote]
        ids = before + render.observe("seen", wrote)
        assert ids[: len(before)] == before
        assert ids[len(before) - closed :].count(render.eos_id) >= 2


def test_a_thought_stays_and_equals_the_templates_own_rendering() -> None:
    tokenizer = TOKENIZERS["qwen3"]
    render = renderer("qwen3")
    said = "<think>\nlet me see\n</think>\n\nlook"
    act = tokenizer.encode(said, add_special_tokens=False)
    grown = render.open("", "go") + act + render.observe("a lamp", act)
    talk = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": said},
        {"role": "tool", "content": "a lamp"},
    ]
    whole = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    assert tokenizer.decode(grown) == whole
    assert "let me see" in whole
    talk[2]["role"] = "user"
    dropped = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    assert "let me see" not in dropped


def test_a_world_sees_the_thought_that_the_prompt_opened() -> None:
    tokenizer, render = TOKENIZERS["qwen3-thinking"], renderer("qwen3-thinking")
    assert tokenizer.decode(render.open("", "go")).endswith("assistant\n<think>\n")
    act = tokenizer.encode("hm\n</think>\n\nlook", add_special_tokens=False)
    assert render.text(act) == "hm\n</think>\n\nlook"
    assert render.action(act) == "<think>\nhm\n</think>\n\nlook"
    assert render.action(render.write("look")) == "<think>\n\n</think>\n\nlook"


def test_a_template_that_drops_old_thoughts_is_refused() -> None:
    with pytest.raises(BadValueError) as refused:
        make_renderer(byte_level(FORGETFUL))
    said = str(refused.value)
    assert "drops thoughts of earlier turns" in said
    assert "'thoughts'" in said
    assert "first at position" in said
    assert "let me see" in said


def test_the_position_is_the_first_that_differs() -> None:
    tokenizer = byte_level(FORGETFUL)
    talk = [
        {"role": "user", "content": "rules first"},
        {"role": "assistant", "content": "<think>\nlet me see 0\n</think>\n\nreply 0"},
        {"role": "user", "content": 'second, "quoted"'},
    ]
    ours = tokenizer.apply_chat_template(talk[:1], tokenize=False, add_generation_prompt=True)
    position = len(tokenizer.encode(ours, add_special_tokens=False))
    with pytest.raises(BadValueError, match=rf"differ first at position {position}:"):
        make_renderer(tokenizer)


def test_a_role_can_be_demanded_and_is_then_proved_alone() -> None:
    with pytest.raises(BadValueError, match="drops thoughts"):
        make_renderer(TOKENIZERS["qwen3"], role="user")
    with pytest.raises(BadValueError, match="must alternate"):
        make_renderer(TOKENIZERS["gemma3"], role="tool")
    with pytest.raises(BadValueError, match="once and unchanged"):
        make_renderer(TOKENIZERS["llama32"], role="tool")
    with pytest.raises(UnknownNameError, match="Did you mean 'tool'"):
        make_renderer(TOKENIZERS["qwen3"], role="tol")  # type: ignore[arg-type]


def test_tokens_that_merge_across_the_border_are_refused() -> None:
    odd = HERMES.replace(
        "'<|im_start|>assistant\n' }}{% endif %}", "'<|im_start|>assist' }}{% endif %}"
    )
    assert odd != HERMES
    tokenizer = byte_level(HERMES)
    tokenizer.chat_template = odd
    with pytest.raises(BadValueError, match="rewrites what came before"):
        make_renderer(tokenizer)
