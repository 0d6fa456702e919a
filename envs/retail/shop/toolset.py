"""The seventeen tools under one roof: schemas, reading of actions, calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ...grammar import ToolCall, ToolGrammar, Unreadable
from ...tools import Tool, make_tool
from . import reads, writes
from .desk import Desk
from .refusals import Refused
from .semantics import MODES, Semantics
from .tables import Record, written

_READS = (
    reads.find_user_id_by_email,
    reads.find_user_id_by_name_zip,
    reads.get_user_details,
    reads.get_order_details,
    reads.get_product_details,
    reads.get_item_details,
    reads.list_all_product_types,
    reads.calculate,
    reads.think,
    reads.transfer_to_human_agents,
)
_WRITES = (
    writes.cancel_pending_order,
    writes.modify_pending_order_address,
    writes.modify_pending_order_items,
    writes.modify_pending_order_payment,
    writes.modify_user_address,
    writes.return_delivered_order_items,
    writes.exchange_delivered_order_items,
)
WRITES = frozenset(tool.__name__ for tool in _WRITES)
"""Names of the tools that change something."""
FINDERS = ("find_user_id_by_email", "find_user_id_by_name_zip")
TRANSFER = "transfer_to_human_agents"
MICRO = (
    "find_user_id_by_email",
    "get_order_details",
    "cancel_pending_order",
    "return_delivered_order_items",
    TRANSFER,
)
"""The tools of the micro shop."""
OPEN, CLOSE = "<tool_call>", "</tool_call>"


class Result(NamedTuple):
    """What a tool said.

    Attributes:
        text: The words for the agent.
        refused: Key of :data:`~.refusals.REASONS`; empty where it worked.
    """

    text: str
    refused: str = ""


class Toolset:
    """The tools of one mode; read-only and shared.

    Args:
        semantics: How they behave.
        names: Which there are; None for all of the mode.
    """

    def __init__(self, semantics: Semantics, names: tuple[str, ...] | None = None) -> None:
        self.semantics = semantics
        made = [(f, make_tool(f, given=("desk",))) for f in _READS]
        made += [(f, make_tool(f, given=("desk", "semantics"))) for f in _WRITES]
        kept = [
            (function, tool)
            for function, tool in made
            if tool.name not in semantics.without and (names is None or tool.name in names)
        ]
        self.tools: dict[str, Tool] = {tool.name: tool for _, tool in kept}
        self.grammar = ToolGrammar(self.tools.values())
        self._functions: dict[str, Any] = {tool.name: function for function, tool in kept}
        self._kinds = {
            name: {
                parameter: list if schema.get("type") == "array" else str
                for parameter, schema in tool.parameters["properties"].items()
            }
            for name, tool in self.tools.items()
        }

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Toolset:
        return self

    def __reduce__(self) -> Any:
        return toolset, (self.semantics.name, tuple(self.tools))

    @property
    def schemas(self) -> tuple[Mapping[str, Any], ...]:
        """JSON Schemas, in the OpenAI function form."""
        return tuple(tool.schema for tool in self.tools.values())

    def read(self, action: str) -> ToolCall | Unreadable:
        """The call in an action that holds ``<tool_call>``; equal to the grammar's reading."""
        start = action.find(OPEN)
        stop = action.find(CLOSE, start)
        if 0 <= start < stop:
            try:
                call = _decoded(action[start + len(OPEN) : stop])
            except (ValueError, RecursionError):
                call = None
            if type(call) is dict and self._plain(call):
                return ToolCall(call["name"], call.get("arguments", {}))
        return self.grammar.parse(action)

    def _plain(self, call: dict[str, Any]) -> bool:
        """Whether a call is right beyond doubt; all else is for the grammar, which teaches."""
        name, given = call.get("name"), call.get("arguments", {})
        if len(call) > 2 or type(name) is not str or (len(call) == 2 and "arguments" not in call):
            return False
        kinds = self._kinds.get(name)
        if kinds is None or type(given) is not dict or len(given) != len(kinds):
            return False
        for key, value in given.items():
            kind = kinds.get(key)
            if kind is None or type(value) is not kind:
                return False
            if kind is list and not all(type(item) is str for item in value):
                return False
        return _encodable(given)

    def call(self, desk: Desk, name: str, arguments: Mapping[str, Any]) -> Result:
        """Call a tool with arguments that were read."""
        try:
            said = self.done(desk, name, arguments)
        except Refused as refused:
            return Result(f"Error: {refused}", refused.reason)
        if isinstance(said, str):
            return Result(said)
        kind = "user" if name == "modify_user_address" else "order"
        return Result(written(desk.shop.shown(kind, said)))

    def done(self, desk: Desk, name: str, arguments: Mapping[str, Any]) -> str | Record:
        """What a tool gives: the words of a read, the record that a write changed.

        Raises:
            Refused: It changes nothing.
        """
        if name in WRITES:
            return self._functions[name](desk, self.semantics, **arguments)
        return self._functions[name](desk, **arguments)

    def write(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The action that :meth:`read` reads as this call."""
        return self.grammar.write(name, **arguments)


_decoded = json.JSONDecoder().decode
"""What ``json.loads`` comes to for text, without its options."""


def _encodable(given: Mapping[str, Any]) -> bool:
    """False where a lone surrogate came out of an escape; the grammar refuses such texts."""
    for value in given.values():
        for text in value if type(value) is list else (value,):
            if not text.isascii():
                return False
    return True


@lru_cache(maxsize=16)
def toolset(mode: str, names: tuple[str, ...] | None = None) -> Toolset:
    """The tools of a mode; made once per process."""
    return Toolset(MODES[mode], names)
