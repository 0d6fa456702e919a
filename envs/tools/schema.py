"""Tools made from typed Python functions: the JSON Schema that a model reads, and checked calls."""

from __future__ import annotations

import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from ..core.errors import BadValueError

_SECTION = re.compile(r"^[A-Z][A-Za-z ]*:\s*$")
_ARGUMENT = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_INNER = "argument_"  # pydantic's models own names such as "copy" and "schema"; tools may use them


@dataclass(frozen=True)
class Tool:
    """A callable tool; make it with :func:`make_tool`.

    Attributes:
        name: The function's name.
        description: First paragraph of its docstring.
        parameters: JSON Schema of its arguments, an object.
        function: What :meth:`call` calls.
        model: Pydantic model that checks the arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    model: type[BaseModel]

    @property
    def schema(self) -> dict[str, Any]:
        """The OpenAI function form, which chat templates take as well."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}

    @property
    def usage(self) -> str:
        """The call in one line: ``search(query: string, top_k: integer = 3)``."""
        properties = self.parameters["properties"]
        parts = []
        for name, schema in properties.items():
            text = f"{name}: {_describe_type(schema)}"
            parts.append(
                f"{text} = {json.dumps(schema['default'])}" if "default" in schema else text
            )
        return f"{self.name}({', '.join(parts)})"

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as Python values, defaults filled in.

        Types are JSON's own: the text ``"3"`` is not an integer, the integer 3 is a number.

        Raises:
            BadValueError: Wrong type, missing or unknown argument; the message names each.
        """
        try:
            checked = self.model.model_validate_json(json.dumps(arguments), strict=True)
        except ValidationError as error:
            faults = "; ".join(_describe_fault(fault) for fault in error.errors())
            raise BadValueError(f"{self.name}: {faults}. Expected {self.usage}.") from None
        return {
            str(field.alias): getattr(checked, inner)
            for inner, field in self.model.model_fields.items()
        }

    def call(self, arguments: Mapping[str, Any], **given: Any) -> Any:
        """Check the arguments and call the function; ``given`` is what the environment fills in."""
        return self.function(**given, **self.check(arguments))


def make_tool(function: Callable[..., Any], *, given: tuple[str, ...] = ()) -> Tool:
    """Make a tool from a function with type hints and a Google docstring.

    Args:
        function: Takes ``str``, ``int``, ``float``, ``bool``, ``list``, ``dict``, ``Literal``,
            ``Optional``, dataclasses, ``TypedDict`` (of ``typing_extensions`` before Python 3.12)
            or pydantic models.
        given: Parameters that the environment fills in itself; the model never sees them.

    Raises:
        BadValueError: An untyped or variadic parameter, a type without JSON form, no docstring, or
            a docstring about a parameter that does not exist.
    """
    name = getattr(function, "__name__", type(function).__name__)
    description, about = _read_docstring(function, name)
    hints = _get_hints(function, name)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in given:
            continue
        fields[f"{_INNER}{parameter.name}"] = _make_field(
            parameter, hints, about.pop(parameter.name, ""), name
        )
    if about:
        raise BadValueError(
            f"tool {name}: the docstring describes {sorted(about)[0]!r}, which is no parameter; "
            f"expected {', '.join(n.removeprefix(_INNER) for n in fields) or 'none'}."
        )
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        parameters = _without_titles(model.model_json_schema())
    except PydanticUserError as error:
        raise BadValueError(f"tool {name}: a type has no JSON Schema: {error.message}") from error
    parameters.setdefault("properties", {})
    parameters.pop("additionalProperties", None)
    parameters.pop("description", None)
    return Tool(name, description, parameters, function, model)


def tool_schema(function: Callable[..., Any], *, given: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a typed function's JSON Schema in the OpenAI form; see :func:`make_tool`."""
    return make_tool(function, given=given).schema


def _get_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadValueError(
            f"tool {name}: {error}; a parameter's type must be importable in its module."
        ) from error


def _make_field(
    parameter: inspect.Parameter, hints: Mapping[str, Any], about: str, tool: str
) -> tuple[Any, Any]:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise BadValueError(
            f"tool {tool}: parameter *{parameter.name} takes anything; expected named parameters."
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise BadValueError(
            f"tool {tool}: parameter {parameter.name!r} is positional only; calls go by name."
        )
    if parameter.name not in hints:
        raise BadValueError(
            f"tool {tool}: parameter {parameter.name!r} has no type; write one, e.g. "
            f"'{parameter.name}: str'."
        )
    default = ... if parameter.default is parameter.empty else parameter.default
    return hints[parameter.name], Field(default, alias=parameter.name, description=about or None)


def _read_docstring(function: Callable[..., Any], name: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph, and the text of the ``Args:`` section by parameter."""
    text = inspect.getdoc(function)
    if not text:
        dropped = "Python drops docstrings here: run it without -OO, or PYTHONOPTIMIZE below 2."
        raise BadValueError(
            f"tool {name}: no docstring; the model reads what the tool does from it."
            + (f" {dropped}" if sys.flags.optimize > 1 else "")
        )
    lines = text.splitlines()
    first: list[str] = []
    for line in lines:
        if not line.strip() or _SECTION.match(line):
            break
        first.append(line.strip())
    return " ".join(first), _read_arguments(lines)


def _read_arguments(lines: list[str]) -> dict[str, str]:
    about: dict[str, str] = {}
    inside, indent, current = False, 0, ""
    for line in lines:
        if _SECTION.match(line):
            inside, indent = line.strip() in ("Args:", "Arguments:", "Parameters:"), 0
            continue
        if not inside or not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        indent = indent or depth
        found = _ARGUMENT.match(line.strip())
        if depth <= indent and found:
            current = found[1]
            about[current] = found[2].strip()
        elif current:
            about[current] = f"{about[current]} {line.strip()}".strip()
    return about


def _without_titles(schema: Any) -> Any:
    """Remove pydantic's titles; a parameter may itself be called "title"."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _describe_type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return " | ".join(_describe_type(option) for option in schema["anyOf"])
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_describe_type(schema['items'])}"
    return str(schema.get("type", "object"))


def _describe_fault(fault: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in fault["loc"]) or "arguments"
    if fault["type"] == "missing":
        return f"argument {place!r} is missing"
    if fault["type"] == "extra_forbidden":
        return f"there is no argument {place!r}"
    shown = json.dumps(fault["input"], ensure_ascii=False, default=str)[:60]
    return f"argument {place!r} is {shown}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
