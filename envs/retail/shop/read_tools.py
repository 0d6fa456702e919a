"""The tools that change nothing: searches, records, the calculator, thoughts, the transfer."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from .overlay import Overlay
from .refusals import Refused
from .tables import to_json

TRANSFERRED = "Transfer successful"
_ARITHMETIC = frozenset("0123456789+-*/(). ")
_MAX_CHARS = 400
_MAX_VALUE = 1e15
_MAX_EXPONENT = 64
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def find_user_id_by_email(overlay: Overlay, email: str) -> str:
    """Find a customer's user id by their email address.

    Parameters:
        email: The email address, such as 'name@example.com'.
    """
    if (found := overlay.shop.by_email(email)) is None:
        raise Refused("user_unknown", email)
    return found


def find_user_id_by_name_zip(overlay: Overlay, first_name: str, last_name: str, zip: str) -> str:
    """Find a customer's user id by first name, last name and zip code of the default address.

    Parameters:
        first_name: First name, such as 'John'.
        last_name: Last name, such as 'Doe'.
        zip: Zip code, such as '12345'.
    """
    found = overlay.shop.by_name(first_name, last_name, zip)
    if overlay.users:  # a default address changed in this episode counts as it is now
        found = _find_after_moves(overlay, (first_name.lower(), last_name.lower(), zip), found)
    if found is None:
        raise Refused("user_unknown", f"{first_name} {last_name}, {zip}")
    return found


def _find_after_moves(
    overlay: Overlay, wanted: tuple[str, str, str], found: str | None
) -> str | None:
    if found in overlay.users and overlay.users[found]["address"]["zip"] != wanted[2]:
        found = None
    for user_id, user in overlay.users.items():
        name = user["name"]
        key = (name["first_name"].lower(), name["last_name"].lower(), user["address"]["zip"])
        if key == wanted:
            return found or user_id
    return found


def get_user_details(overlay: Overlay, user_id: str) -> str:
    """Get a customer's record: name, address, email, payment methods, order ids.

    Parameters:
        user_id: The user id, such as 'sara_doe_496'.
    """
    if (changed := overlay.users.get(user_id)) is not None:
        return to_json(changed)
    if (record := overlay.shop.users.get(user_id)) is None:
        raise Refused("user_unknown", user_id)
    return overlay.shop.record_json("user", user_id, record)


def get_order_details(overlay: Overlay, order_id: str) -> str:
    """Get an order: status, items, address, payments.

    Parameters:
        order_id: The order id, with the '#' in front, such as '#W0000000'.
    """
    if (changed := overlay.orders.get(order_id)) is not None:
        return to_json(overlay.shop.visible_part("order", changed))
    if (record := overlay.shop.orders.get(order_id)) is None:
        known = f"#{order_id}" in overlay.shop.orders
        raise Refused("order_unknown", order_id, hint=" (write the '#')" if known else "")
    return overlay.shop.record_json("order", order_id, record)


def get_product_details(overlay: Overlay, product_id: str) -> str:
    """Get a product with all its variants: item ids, options, availability, prices.

    Parameters:
        product_id: The product id, such as '6086499569'. It is not an item id.
    """
    if (record := overlay.shop.products.get(product_id)) is None:
        hint = " (this is an item id)" if product_id in overlay.shop.variants else ""
        raise Refused("product_unknown", product_id, hint=hint)
    return overlay.shop.record_json("product", product_id, record)


def get_item_details(overlay: Overlay, item_id: str) -> str:
    """Get one variant: its options, availability and price.

    Parameters:
        item_id: The item id, such as '6086499569'. It is not a product id.
    """
    if (record := overlay.shop.variants.get(item_id)) is None:
        hint = " (this is a product id)" if item_id in overlay.shop.products else ""
        raise Refused("item_unknown", item_id, hint=hint)
    return overlay.shop.record_json("item", item_id, record)


def list_all_product_types(overlay: Overlay) -> str:
    """List the names of all product types with their product ids."""
    return overlay.shop.product_types


def calculate(overlay: Overlay, expression: str) -> str:  # noqa: ARG001 - tools are called alike
    """Compute an arithmetic expression.

    Parameters:
        expression: Digits, + - * / ( ) . and blanks, such as '(2 + 3) * 4'.
    """
    return evaluate_expression(expression)


def think(overlay: Overlay, thought: str) -> str:  # noqa: ARG001 - tools are called alike
    """Think about something; nothing is looked up or changed.

    Parameters:
        thought: The thought.
    """
    return ""


def transfer_to_human_agents(overlay: Overlay, summary: str) -> str:  # noqa: ARG001 - called alike
    """Hand the customer over to a human agent, for what no other tool can do.

    Parameters:
        summary: What the customer wants, in short.
    """
    return TRANSFERRED


def evaluate_expression(expression: str) -> str:
    """Compute an expression, rounded to two decimals, and write it as Python writes a float.

    Raises:
        Refused: Other characters than digits and operators, or nothing that can be computed.
    """
    if not _ARITHMETIC.issuperset(expression):
        raise Refused("characters")
    if len(expression) > _MAX_CHARS:
        raise Refused("expression", f"it has more than {_MAX_CHARS} characters")
    try:
        value = _evaluate(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise Refused("expression", "it is no arithmetic expression") from None
    except ZeroDivisionError:
        raise Refused("expression", "it divides by zero") from None
    return str(round(float(value), 2))


def _evaluate(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return _check_bound(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        inner = _evaluate(node.operand)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        if (apply := _OPERATORS.get(type(node.op))) is not None:
            return _check_bound(apply(left, right))
    raise Refused("expression", "it is no arithmetic expression")


def _power(left: float, right: float) -> float:
    small = abs(right) <= _MAX_EXPONENT and (left == 0 or abs(math.log10(abs(left)) * right) <= 15)
    if not small or (left < 0 and right != int(right)):
        raise Refused("expression", "the power is too large")
    return _check_bound(left**right)


def _check_bound(value: float) -> float:
    if not abs(value) <= _MAX_VALUE:
        raise Refused("expression", "a number is too large")
    return value
