"""Typed Python functions made from tool schemas, for trainers that read signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union

from .tool_view import ActionTool

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


def tool_method(tool: ActionTool, run: Callable[[Any, str], Any]) -> Callable[..., Any]:
    """A method with the tool's name, typed parameters and a Google docstring.

    It takes any named arguments, so that a wrong call is an action as well: the world says what
    was wrong with it, and it costs a turn.

    Args:
        tool: The tool.
        run: Gets the object that the method belongs to and the action.
    """

    def method(self: Any, **arguments: Any) -> Any:
        return run(self, tool.write(arguments))

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    required = tool.parameters.get("required", ())
    lines = []
    # Python wants the parameters without a default first.
    properties = tool.parameters.get("properties", {})
    for name in sorted(properties, key=lambda name: name not in required):
        schema = properties[name]
        default = inspect.Parameter.empty if name in required else schema.get("default")
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=python_type(schema),
            )
        )
        lines.append(f"    {name}: {schema.get('description') or f'The {name}.'}")
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = "\n".join([tool.description, "", *(["Args:", *lines] if lines else [])])
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)
    method.__annotations__ = {p.name: p.annotation for p in parameters[1:]} | {"return": str}
    return method


def python_type(schema: Mapping[str, Any]) -> Any:
    """The Python type of a JSON Schema."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "const" in schema:
        return Literal[schema["const"]]
    if "anyOf" in schema:
        return Union[tuple(python_type(option) for option in schema["anyOf"])]  # noqa: UP007
    if schema.get("type") == "array":
        return list[python_type(schema["items"])] if "items" in schema else list
    return _TYPES.get(schema.get("type", ""), dict)
