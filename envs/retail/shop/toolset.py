"""The seventeen tools together: their schemas, and how an action is parsed and executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ...core.fork import Shared
from ...tools.action_parsing import ToolCall, ToolGrammar, Unreadable
from ...tools.schema import Tool, make_tool
from . import read_tools, write_tools
from .overlay import Overlay
from .refusals import Refused
from .semantics import MODES, Semantics
from .tables import Record, to_json

_READS = (
    read_tools.find_user_id_by_email,
    read_tools.find_user_id_by_name_zip,
    read_tools.get_user_details,
    read_tools.get_order_details,
    read_tools.get_product_details,
    read_tools.get_item_details,
    read_tools.list_all_product_types,
    read_tools.calculate,
    read_tools.think,
    read_tools.transfer_to_human_agents,
)
_WRITES = (
    write_tools.cancel_pending_order,
    write_tools.modify_pending_order_address,
    write_tools.modify_pending_order_items,
    write_tools.modify_pending_order_payment,
    write_tools.modify_user_address,
    write_tools.return_delivered_order_items,
    write_tools.exchange_delivered_order_items,
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
    """What a tool returned.

    Attributes:
        text: The words for the agent.
        refused: Key of :data:`~.refusals.REASONS`; empty where it worked.
    """

    text: str
    refused: str = ""


class Toolset(Shared):
    """The tools of one mode; read-only and shared.

    Args:
        semantics: How they behave.
        names: Which there are; None for all of the mode.
    """

    def __init__(self, semantics: Semantics, names: tuple[str, ...] | None = None) -> None:
        self.semantics = semantics
        made = [(f, make_tool(f, given=("overlay",))) for f in _READS]
        made += [(f, make_tool(f, given=("overlay", "semantics"))) for f in _WRITES]
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

    def __reduce__(self) -> Any:
        return get_toolset, (self.semantics.name, tuple(self.tools))

    @property
    def schemas(self) -> tuple[Mapping[str, Any], ...]:
        """Return the JSON Schemas of the tools in the form of OpenAI functions."""
        return tuple(tool.schema for tool in self.tools.values())

    def parse(self, action: str) -> ToolCall | Unreadable:
        """Return the call in an action with ``<tool_call>``, exactly as the grammar parses it."""
        start = action.find(OPEN)
        stop = action.find(CLOSE, start)
        if 0 <= start < stop:
            try:
                call = _decode_json(action[start + len(OPEN) : stop])
            except (ValueError, RecursionError):
                call = None
            if type(call) is dict and self._is_plain(call):
                return ToolCall(call["name"], call.get("arguments", {}))
        return self.grammar.parse(action)

    def _is_plain(self, call: dict[str, Any]) -> bool:
        """Tell whether a call is plainly valid; all others go to the grammar for its messages."""
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
        return _is_ascii(given)

    def call(self, overlay: Overlay, name: str, arguments: Mapping[str, Any]) -> Result:
        """Call a tool with parsed arguments."""
        try:
            output = self.execute(overlay, name, arguments)
        except Refused as refused:
            return Result(f"Error: {refused}", refused.reason)
        if isinstance(output, str):
            return Result(output)
        kind = "user" if name == "modify_user_address" else "order"
        return Result(to_json(overlay.shop.visible_part(kind, output)))

    def execute(self, overlay: Overlay, name: str, arguments: Mapping[str, Any]) -> str | Record:
        """Return what a tool gives: the text of a read, the record that a write changed.

        Raises:
            Refused: The call is refused and changes nothing.
        """
        if name in WRITES:
            return self._functions[name](overlay, self.semantics, **arguments)
        return self._functions[name](overlay, **arguments)

    def write(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the action that :meth:`parse` reads as this call."""
        return self.grammar.write(name, **arguments)


_decode_json = json.JSONDecoder().decode
"""Does what ``json.loads`` does for text, without looking at its options."""


def _is_ascii(given: Mapping[str, Any]) -> bool:
    """Return False where an escape may have made a lone surrogate, which the grammar refuses."""
    for value in given.values():
        for text in value if type(value) is list else (value,):
            if not text.isascii():
                return False
    return True


@lru_cache(maxsize=16)
def get_toolset(mode: str, names: tuple[str, ...] | None = None) -> Toolset:
    """Return the tools of a mode, which are made once per process."""
    return Toolset(MODES[mode], names)
