"""Tools from typed functions: schema, checked calls, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from turngym.envs.core.errors import BadValueError
from turngym.envs.tools.schema import make_tool, tool_schema


@dataclass
class Address:
    street: str
    number: int = 1


class Customer(BaseModel):
    name: str


class Item(TypedDict):
    id: str
    count: int


def order(
    state: Any,
    item: Item,
    to: Address,
    buyer: Customer,
    speed: Literal["slow", "fast"] = "slow",
    note: Optional[str] = None,  # noqa: UP045 - both spellings must work
    tags: list[str] = [],  # noqa: B006
    prices: dict[str, float] | None = None,
    copy: bool = False,
    schema: float = 1.0,
) -> str:
    """Order an item for a customer,
    now.

    A second paragraph that no model needs.

    Args:
        item (Item): What to send,
            over two lines: yes.
        to: Where to.
        copy: Send a copy.

    Returns:
        note: not an argument.
    """
    return f"{state} {item['id']} {to.street} {buyer.name} {speed} {note} {tags} {prices} {copy}"


ORDER = make_tool(order, given=("state",))


def test_the_schema_is_the_openai_form() -> None:
    schema = tool_schema(order, given=("state",))
    assert schema["type"] == "function"
    function = schema["function"]
    assert function["name"] == "order"
    assert function["description"] == "Order an item for a customer, now."
    parameters = function["parameters"]
    assert parameters["type"] == "object"
    assert parameters["required"] == ["item", "to", "buyer"]
    properties = parameters["properties"]
    assert list(properties) == [
        "item", "to", "buyer", "speed", "note", "tags", "prices", "copy", "schema",
    ]  # fmt: skip
    assert properties["item"]["description"] == "What to send, over two lines: yes."
    assert properties["speed"] == {"default": "slow", "enum": ["slow", "fast"], "type": "string"}
    assert properties["note"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "default": None,
    }
    assert properties["tags"] == {"default": [], "items": {"type": "string"}, "type": "array"}
    assert properties["copy"] == {
        "default": False,
        "description": "Send a copy.",
        "type": "boolean",
    }
    assert parameters["$defs"]["Address"]["required"] == ["street"]


def test_a_parameter_may_be_called_title() -> None:
    def read(title: str) -> None:
        """Read a book."""

    assert tool_schema(read)["function"]["parameters"]["properties"] == {
        "title": {"type": "string"}
    }


def test_a_tool_without_parameters() -> None:
    def look() -> str:
        """Look around."""
        return "a room"

    tool = make_tool(look)
    assert tool.parameters == {"type": "object", "properties": {}}
    assert tool.call({}) == "a room"
    assert tool.usage == "look()"


def test_a_call_is_checked_and_gets_python_values() -> None:
    arguments = {
        "item": {"id": "i1", "count": 2}, "to": {"street": "Elm"}, "buyer": {"name": "Ada"},
        "schema": 3,
    }  # fmt: skip
    checked = ORDER.check(arguments)
    assert checked["to"] == Address("Elm", 1)
    assert checked["buyer"] == Customer(name="Ada")
    assert checked["schema"] == 3.0
    assert ORDER.call(arguments, state="S") == "S i1 Elm Ada slow None [] None False"


def test_defaults_are_not_shared_between_calls() -> None:
    arguments = {"item": {"id": "i", "count": 1}, "to": {"street": "E"}, "buyer": {"name": "A"}}
    ORDER.check(arguments)["tags"].append("x")
    assert ORDER.check(arguments)["tags"] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"item": None}, "argument 'item' is null"),
        ({"item": {"id": "i1"}}, "argument 'item.count' is missing"),
        ({"to": {"street": 3}}, "argument 'to.street' is 3"),
        ({"to": {"street": "E", "number": "4"}}, "argument 'to.number' is \"4\""),
        ({"speed": "quick"}, "argument 'speed' is \"quick\": input should be 'slow' or 'fast'"),
        ({"tags": "a"}, "argument 'tags' is \"a\""),
        ({"copy": 1}, "argument 'copy' is 1"),
        ({"state": 1}, "there is no argument 'state'"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, Any], words: str) -> None:
    good = {"item": {"id": "i1", "count": 2}, "to": {"street": "E"}, "buyer": {"name": "A"}}
    with pytest.raises(BadValueError, match=r"^order: ") as caught:
        ORDER.check({**good, **change})
    assert words in str(caught.value)
    assert "Expected order(item: object" in str(caught.value)


def test_methods_lose_their_self() -> None:
    class Shop:
        def price(self, item: str) -> str:
            """Price of an item."""
            return f"{item}: 3"

    tool = make_tool(Shop().price)
    assert list(tool.parameters["properties"]) == ["item"]
    assert tool.call({"item": "tea"}) == "tea: 3"


def bad(kind: str) -> Any:
    def untyped(x) -> None:  # type: ignore[no-untyped-def]
        """Do it."""

    def variadic(*x: int) -> None:
        """Do it."""

    def keywords(**x: int) -> None:
        """Do it."""

    def positional(x: int, /) -> None:
        """Do it."""

    def silent(x: int) -> None:
        pass

    def misnamed(x: int) -> None:
        """Do it.

        Args:
            y: The number.
        """

    def shapeless(x: Bench) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Do it."""

    def unknown(x: Plain) -> None:
        """Do it."""

    return locals()[kind]


class Plain:
    """No JSON form."""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("untyped", "parameter 'x' has no type"),
        ("variadic", "takes anything"),
        ("keywords", "takes anything"),
        ("positional", "positional only"),
        ("silent", "no docstring"),
        ("misnamed", "describes 'y', which is no parameter; expected x"),
        ("shapeless", "must be importable"),
        ("unknown", "no JSON Schema"),
    ],
)
def test_functions_that_are_no_tools_are_refused(kind: str, words: str) -> None:
    with pytest.raises(BadValueError, match=words):
        make_tool(bad(kind))


def test_python_without_docstrings_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With -OO the shop's own tools were said to have none, and nothing said why."""
    with pytest.raises(BadValueError, match="no docstring") as usual:
        make_tool(bad("silent"))
    assert "-OO" not in str(usual.value)
    without = SimpleNamespace(flags=SimpleNamespace(optimize=2))
    monkeypatch.setattr("turngym.envs.tools.schema.sys", without)
    with pytest.raises(BadValueError, match="run it without -OO, or PYTHONOPTIMIZE below 2"):
        make_tool(bad("silent"))
