"""The calculator: plain arithmetic, with bounds that keep it quick."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from .refusals import Refused

_ALLOWED = frozenset("0123456789+-*/(). ")
_LONGEST = 400
_LARGEST = 1e15
_HIGHEST = 64
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def computed(expression: str) -> str:
    """The value of an expression, rounded to two decimals, as Python writes a float.

    Raises:
        Refused: Other characters than digits and operators, or nothing that can be computed.
    """
    if not _ALLOWED.issuperset(expression):
        raise Refused("characters")
    if len(expression) > _LONGEST:
        raise Refused("expression", f"it has more than {_LONGEST} characters")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise Refused("expression", "it is no arithmetic expression") from None
    except ZeroDivisionError:
        raise Refused("expression", "it divides by zero") from None
    return str(round(float(value), 2))


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return _bounded(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        inner = _value(node.operand)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        if (apply := _OPERATORS.get(type(node.op))) is not None:
            return _bounded(apply(left, right))
    raise Refused("expression", "it is no arithmetic expression")


def _power(left: float, right: float) -> float:
    small = abs(right) <= _HIGHEST and (left == 0 or abs(math.log10(abs(left)) * right) <= 15)
    if not small or (left < 0 and right != int(right)):
        raise Refused("expression", "the power is too large")
    return _bounded(left**right)


def _bounded(value: float) -> float:
    if not abs(value) <= _LARGEST:
        raise Refused("expression", "a number is too large")
    return value
