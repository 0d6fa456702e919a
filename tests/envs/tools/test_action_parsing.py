"""Reading actions: worked example E26, what counts, and errors that teach."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError
from turngym.envs.tools.action_parsing import (
    Tagged,
    TagGrammar,
    ToolCall,
    ToolGrammar,
    Unreadable,
    find_blocks,
    replace_blocks,
)
from turngym.envs.tools.schema import make_tool

SEARCH = TagGrammar({"search": "query", "answer": "answer"})


def test_e26() -> None:
    assert SEARCH.parse("<answer>A</answer> blah <search>q</search>") == Tagged("answer", "A")
    assert SEARCH.parse("<search></search>") == Tagged("search", "")
    assert isinstance(SEARCH.parse("<search>q"), Unreadable)
    assert isinstance(SEARCH.parse("<answer>x</search>"), Unreadable)


@pytest.mark.parametrize(
    ("text", "tag", "content"),
    [
        ("<think> so <b> </think>\n<search> Ada\n Brook </search>", "search", "Ada\n Brook"),
        ("<search>a</search><answer>b</answer>", "search", "a"),
        ("</search><answer>b</answer>", "answer", "b"),
        ("<search> <answer> b </answer>", "answer", "b"),
        ("<search>a</answer></search>", "search", "a</answer>"),
        ("<search><search>q</search>", "search", "<search>q"),
        ("<answer>0</answer>", "answer", "0"),
    ],
)
def test_the_first_complete_block_counts(text: str, tag: str, content: str) -> None:
    assert SEARCH.parse(text) == Tagged(tag, content)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "The action is empty."),
        (" \n", "The action is empty."),
        ("hello", "The action holds no <search> and no <answer> block."),
        ("<search> q", "<search> is not closed by </search>."),
        ("<answer>x</search>", "<answer> is closed by </search> instead of </answer>."),
        ("q </search>", "</search> closes a <search> that was never opened."),
        ("<serach>q</serach>", "<serach> is not a tag here; did you mean <search>?"),
        ("<SEARCH>q</SEARCH>", "<SEARCH> is not a tag here; did you mean <search>?"),
        ("<zzz>q</zzz>", "The action holds no <search> and no <answer> block."),
    ],
)
def test_unreadable_actions_are_told_what_was_wrong_and_expected(text: str, fault: str) -> None:
    parsed = SEARCH.parse(text)
    assert isinstance(parsed, Unreadable)
    assert parsed.message == (
        f"{fault} Write <search> query </search> or <answer> answer </answer>."
    )


@given(st.text())
def test_any_text_is_read_or_told(text: str) -> None:
    parsed = SEARCH.parse(text)
    assert isinstance(parsed, Tagged) or "<search> query </search>" in parsed.message


@given(st.sampled_from(["search", "answer"]), st.text().filter(lambda t: "</" not in t))
def test_what_is_written_is_read(tag: str, content: str) -> None:
    assert SEARCH.parse(SEARCH.write(tag, content)) == Tagged(tag, content.strip())


def test_the_stop_strings_are_the_closing_tags() -> None:
    assert SEARCH.stop == ("</search>", "</answer>")


@pytest.mark.parametrize("tags", [{}, {"a b": "x"}, {"<a>": "x"}, {"": "x"}, {"1a": "x"}])
def test_bad_tags_are_refused(tags: dict[str, str]) -> None:
    with pytest.raises(BadValueError, match="TagGrammar"):
        TagGrammar(tags)


def find_order(order_id: str, verbose: bool = False) -> str:
    """Look up an order.

    Args:
        order_id: Such as "#W12".
        verbose: Tell everything.
    """
    return f"{order_id} {verbose}"


def cancel(order_id: str, count: int) -> str:
    """Cancel an order."""
    return f"{order_id} {count}"


TOOLS = ToolGrammar([make_tool(find_order), make_tool(cancel)])


def test_a_call_is_read_with_its_defaults() -> None:
    body = '{"name": "find_order", "arguments": {"order_id": "#W1"}}'
    call = TOOLS.parse(f"I look. <tool_call>\n{body}\n</tool_call>")
    assert call == ToolCall("find_order", {"order_id": "#W1", "verbose": False})
    assert TOOLS.parse(TOOLS.write("cancel", order_id="ß", count=2)) == ToolCall(
        "cancel", {"order_id": "ß", "count": 2}
    )
    assert TOOLS.stop == ("</tool_call>",)


@pytest.mark.parametrize("value", ["a </tool_call> b", '</tool_call>"}', "<\\/tool_call>", "</b>"])
def test_a_closing_tag_in_a_value_does_not_end_the_call(value: str) -> None:
    written = TOOLS.write("cancel", order_id=value, count=2)
    assert TOOLS.parse(written) == ToolCall("cancel", {"order_id": value, "count": 2})
    assert written.count("</tool_call>") == 1
    assert ("</b>" in written) == (value == "</b>")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"name": "cancel"', ["not valid JSON", "character 17", "tool_call"]),
        ("{'name': 'cancel'}", ["not valid JSON"]),
        ("[" * 100_000, ["cannot be read"]),
        ("[1]", ['needs a "name"', "find_order, cancel"]),
        ('{"arguments": {}}', ['needs a "name"']),
        ('{"name": 3}', ['needs a "name"']),
        ('{"name": "cancel", "order_id": "1"}', ["unknown key 'order_id'", '"arguments"']),
        ('{"name": "cancle", "arguments": {}}', ["no tool 'cancle'", "Did you mean 'cancel'"]),
        ('{"name": "zzzz"}', ["no tool 'zzzz'", "Tools: find_order, cancel"]),
        ('{"name": "cancel", "arguments": [1]}', ["is a list", "cancel(order_id: string"]),
        ('{"name": "cancel"}', ["'order_id' is missing", "'count' is missing"]),
        (
            '{"name": "cancel", "arguments": {"order_id": "1", "count": "2"}}',
            ["argument 'count' is \"2\"", "valid integer", "count: integer"],
        ),
        (
            '{"name": "cancel", "arguments": {"order_id": "1", "count": 2, "why": "x"}}',
            ["no argument 'why'"],
        ),
        ('{"name": "cancel", "arguments": {"order_id": null, "count": 2}}', ["'order_id' is null"]),
        ('{"name": "cancel", "arguments": {"order_id": "1", "count": true}}', ["'count' is true"]),
    ],
)  # fmt: skip
def test_wrong_calls_teach(content: str, words: list[str]) -> None:
    parsed = TOOLS.parse(f"<tool_call>{content}</tool_call>")
    assert isinstance(parsed, Unreadable)
    for word in words:
        assert word in parsed.message


def test_text_without_a_call_is_told_the_form() -> None:
    parsed = TOOLS.parse("hello")
    assert isinstance(parsed, Unreadable)
    assert "<tool_call>" in parsed.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["name", "arguments", "a"]), inner)
    ),
)


@given(JSON)
def test_no_json_crashes_the_reader(value: object) -> None:
    text = json.dumps(value)
    parsed = TOOLS.parse(f"<tool_call>{text}</tool_call>")
    assert isinstance(parsed, (ToolCall, Unreadable))


def test_grammars_without_tools_or_with_twins_are_refused() -> None:
    with pytest.raises(BadValueError, match="no tool"):
        ToolGrammar([])
    with pytest.raises(BadValueError, match="two tools are called 'cancel'"):
        ToolGrammar([make_tool(cancel), make_tool(cancel)])


PIECES = st.lists(
    st.sampled_from(["<a>", "</a>", "<ab>", "</ab>", "<c>", "<", ">", "/", "a", " ", "\n"]),
    max_size=12,
).map("".join)
LETTERS = TagGrammar({"a": "x", "ab": "y"})
OLD_BLOCK = re.compile(r"<(a|ab)>(.*?)</\1>", re.DOTALL)
OLD_INNER = re.compile(r"<a>(.*?)</a>", re.DOTALL)


@given(PIECES)
def test_the_linear_grammar_reads_what_the_pattern_read(text: str) -> None:
    found = OLD_BLOCK.search(text)
    read = LETTERS.parse(text)
    if found is None:
        assert isinstance(read, Unreadable)
    else:
        assert read == Tagged(found[1], found[2].strip())
    assert find_blocks(text, "<a>", "</a>") == OLD_INNER.findall(text)
    assert replace_blocks(text, "<a>", "</a>", "!") == OLD_INNER.sub("!", text)


@pytest.mark.parametrize(
    "unit", ["<search>", "<search><answer>", "</search>", "<x>", "<", "<a", "<ab> "]
)
def test_long_texts_are_read_in_linear_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    begun = time.process_time()
    assert isinstance(SEARCH.parse(text), Unreadable)
    assert find_blocks(text, "<search>", "</search>") == []
    assert replace_blocks(text, "<search>", "</search>", "") == text
    assert time.process_time() - begun < 1.0  # 6 s with the pattern
