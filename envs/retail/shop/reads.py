"""The tools that only look, and the two that do neither."""

from __future__ import annotations

from .calculator import computed
from .desk import Desk
from .refusals import Refused
from .tables import written

TRANSFERRED = "Transfer successful"


def find_user_id_by_email(desk: Desk, email: str) -> str:
    """Find a customer's user id by their email address.

    Parameters:
        email: The email address, such as 'name@example.com'.
    """
    if (found := desk.shop.by_email(email)) is None:
        raise Refused("user_unknown", email)
    return found


def find_user_id_by_name_zip(desk: Desk, first_name: str, last_name: str, zip: str) -> str:
    """Find a customer's user id by first name, last name and zip code of the default address.

    Parameters:
        first_name: First name, such as 'John'.
        last_name: Last name, such as 'Doe'.
        zip: Zip code, such as '12345'.
    """
    found = desk.shop.by_name(first_name, last_name, zip)
    if desk.users:  # a default address changed in this episode counts as it is now
        found = _renamed(desk, (first_name.lower(), last_name.lower(), zip), found)
    if found is None:
        raise Refused("user_unknown", f"{first_name} {last_name}, {zip}")
    return found


def _renamed(desk: Desk, wanted: tuple[str, str, str], found: str | None) -> str | None:
    if found in desk.users and desk.users[found]["address"]["zip"] != wanted[2]:
        found = None
    for user_id, user in desk.users.items():
        name = user["name"]
        key = (name["first_name"].lower(), name["last_name"].lower(), user["address"]["zip"])
        if key == wanted:
            return found or user_id
    return found


def get_user_details(desk: Desk, user_id: str) -> str:
    """Get a customer's record: name, address, email, payment methods, order ids.

    Parameters:
        user_id: The user id, such as 'sara_doe_496'.
    """
    if (changed := desk.users.get(user_id)) is not None:
        return written(changed)
    if (record := desk.shop.users.get(user_id)) is None:
        raise Refused("user_unknown", user_id)
    return desk.shop.text("user", user_id, record)


def get_order_details(desk: Desk, order_id: str) -> str:
    """Get an order: status, items, address, payments.

    Parameters:
        order_id: The order id, with the '#' in front, such as '#W0000000'.
    """
    if (changed := desk.orders.get(order_id)) is not None:
        return written(desk.shop.shown("order", changed))
    if (record := desk.shop.orders.get(order_id)) is None:
        known = f"#{order_id}" in desk.shop.orders
        raise Refused("order_unknown", order_id, hint=" (write the '#')" if known else "")
    return desk.shop.text("order", order_id, record)


def get_product_details(desk: Desk, product_id: str) -> str:
    """Get a product with all its variants: item ids, options, availability, prices.

    Parameters:
        product_id: The product id, such as '6086499569'. It is not an item id.
    """
    if (record := desk.shop.products.get(product_id)) is None:
        hint = " (this is an item id)" if product_id in desk.shop.variants else ""
        raise Refused("product_unknown", product_id, hint=hint)
    return desk.shop.text("product", product_id, record)


def get_item_details(desk: Desk, item_id: str) -> str:
    """Get one variant: its options, availability and price.

    Parameters:
        item_id: The item id, such as '6086499569'. It is not a product id.
    """
    if (record := desk.shop.variants.get(item_id)) is None:
        hint = " (this is a product id)" if item_id in desk.shop.products else ""
        raise Refused("item_unknown", item_id, hint=hint)
    return desk.shop.text("item", item_id, record)


def list_all_product_types(desk: Desk) -> str:
    """List the names of all product types with their product ids."""
    return desk.shop.product_types()


def calculate(desk: Desk, expression: str) -> str:  # noqa: ARG001 - tools are called alike
    """Compute an arithmetic expression.

    Parameters:
        expression: Digits, + - * / ( ) . and blanks, such as '(2 + 3) * 4'.
    """
    return computed(expression)


def think(desk: Desk, thought: str) -> str:  # noqa: ARG001 - tools are called alike
    """Think about something; nothing is looked up or changed.

    Parameters:
        thought: The thought.
    """
    return ""


def transfer_to_human_agents(desk: Desk, summary: str) -> str:  # noqa: ARG001 - called alike
    """Hand the customer over to a human agent, for what no other tool can do.

    Parameters:
        summary: What the customer wants, in short.
    """
    return TRANSFERRED
