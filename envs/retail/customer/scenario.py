"""What a customer wants, knows and is like: one schema for every kind of customer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

Intent = Literal[
    "cancel",
    "return",
    "exchange",
    "modify",
    "payment",
    "ship_to",
    "move",
    "info",
    "advice",
    "other",
]
"""``ship_to`` changes an order's address, ``move`` the customer's own; ``other`` has no tool."""
Expect = Literal["done", "denied", "transferred"]
WRITE_OF: dict[str, str] = {
    "cancel": "cancel_pending_order",
    "return": "return_delivered_order_items",
    "exchange": "exchange_delivered_order_items",
    "modify": "modify_pending_order_items",
    "payment": "modify_pending_order_payment",
    "ship_to": "modify_pending_order_address",
    "move": "modify_user_address",
}
"""The tool that fulfils an intent."""
SLOTS_OF: dict[str, tuple[str, ...]] = {
    "cancel": ("order", "items", "reason"),
    "return": ("order", "items", "method"),
    "exchange": ("order", "items", "wants", "method"),
    "modify": ("order", "items", "wants", "method"),
    "payment": ("order", "method"),
    "ship_to": ("order", "address"),
    "move": ("address",),
}
"""What a proposal of an intent must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """One line of an order, and what is to become of it.

    Attributes:
        item_id: The item that was ordered.
        name: Its product.
        options: Its options.
        set: Options that the new item must have.
        avoid: Options that it must not have.
        same: Whether all other options stay as they are.
        pick: ``"cheapest"`` or ``"dearest"`` of what is left; empty where one is left.
        new_id: The one available variant that this means; empty where there is none.
        new_options: Its options.
    """

    item_id: str
    name: str
    options: dict[str, str] = field(default_factory=dict)
    set: dict[str, str] = field(default_factory=dict)
    avoid: dict[str, str] = field(default_factory=dict)
    same: bool = False
    pick: str = ""
    new_id: str = ""
    new_options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Something that the customer wants.

    Attributes:
        intent: What kind of thing.
        order_id: The order that it is about; empty where it is about none.
        order_words: How the customer calls the order who does not know its id.
        wants: The lines that it is about; none for the cancellation of a whole order.
        method: Id of the payment method; empty where the customer has no preference.
        method_words: How the customer calls it.
        method_keys: Texts by which a proposal names it.
        others: Products of the order that the goal is not about.
        reason: Why the order is cancelled.
        address: The six fields of a new address.
        ids: Whether the customer knows item ids and method ids, and gives them.
        ask: What the customer wants to know, in words.
        answer: The value of that, as it must be told.
        money: Whether the answer is an amount.
        about: What the customer asks for, where no slot says it (advice, other).
        expect: How it should end.
        deny: Why it must be denied.
        record: The order or user id that must have been read before a denial.
        insist: How often the customer insists after a denial.
        limit: Maximum of the price difference or total; None for any. Below zero it is what the
            customer wants back at least.
        value: What it truly is.
        fallback: What is wanted instead, after ``switch``.
        switch: ``"denied"``, ``"limit"`` (the value is above the limit) or ``"mind"`` (changed at
            the first complete proposal).
        together: Whether the goal is named with the one before it.
    """

    intent: Intent
    order_id: str = ""
    order_words: str = ""
    wants: tuple[LineChange, ...] = ()
    method: str = ""
    method_words: str = ""
    method_keys: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    reason: str = ""
    address: dict[str, str] = field(default_factory=dict)
    ids: bool = False
    ask: str = ""
    answer: str = ""
    money: bool = False
    about: str = ""
    expect: Expect = "done"
    deny: str = ""
    record: str = ""
    insist: int = 0
    limit: float | None = None
    value: float = 0.0
    fallback: Goal | None = None
    switch: str = ""
    together: bool = False

    @property
    def tool(self) -> str:
        """Return the tool that fulfils the goal; empty where none does."""
        return WRITE_OF.get(self.intent, "")

    def stages(self) -> list[Goal]:
        """Return the goal, its fallback, the fallback's fallback and so on."""
        found, goal = [], self
        while goal is not None:
            found.append(goal)
            goal = goal.fallback
        return found

    def last(self) -> Goal:
        """Return what is wanted in the end, when all fallbacks were taken."""
        return self.stages()[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the customer is and what of it they can say.

    Attributes:
        user_id: The customer's record.
        first: First name.
        last: Last name.
        code: Zip code of the default address.
        email: Address.
        knows_email: Whether the customer remembers the email address.
        knows_name: Whether the customer gives name and zip code.
        valid: False for somebody whose answers lead to no record.
        volunteers: Whether the first message says it unasked.
    """

    user_id: str
    first: str
    last: str
    code: str
    email: str
    knows_email: bool = True
    knows_name: bool = True
    valid: bool = True
    volunteers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """What a customer is like.

    Attributes:
        verbosity: ``"terse"``, ``"plain"`` or ``"chatty"``.
        polite: Whether there is thanks and please.
        patience: 1 to 5: how often a wrong denial is contested.
        tone: Adjectives, for customers played by a language model.
        noise: Share of the words with a typing error.
        held_out: Whether wording is taken from the templates that training never shows.
    """

    verbosity: str = "plain"
    polite: bool = True
    patience: int = 3
    tone: tuple[str, ...] = ()
    noise: float = 0.0
    held_out: bool = False

    @property
    def slots(self) -> int:
        """Return the maximum number of facts in one message."""
        return {"terse": 1, "plain": 3, "chatty": 4}[self.verbosity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """All that a customer is: identity, manner, goals.

    Attributes:
        identity: Who.
        persona: What like.
        goals: What they want, in order.
        opening: Whether the first message gives all there is to say about the first goal.
    """

    identity: Identity
    persona: Persona
    goals: tuple[Goal, ...]
    opening: bool = False


NOBODY = Scenario(
    identity=Identity(user_id="", first="", last="", code="", email=""),
    persona=Persona(),
    goals=(Goal(intent="other", about=""),),
)
"""Stands for the scenario of a task that only prose describes."""
_SCENARIO: TypeAdapter[Scenario] = TypeAdapter(Scenario)


def scenario_json(scenario: Scenario) -> Any:
    """Return a scenario as plain data."""
    return _SCENARIO.dump_python(scenario, mode="json", exclude_defaults=True)


def read_scenario(data: Any) -> Scenario:
    """Return the scenario that :func:`scenario_json` wrote."""
    return _SCENARIO.validate_python(data)


def build_call(goal: Goal, user_id: str, method: str) -> tuple[str, dict[str, Any]]:
    """Return the write that fulfils a goal: tool and arguments.

    Args:
        goal: A goal whose intent has a tool.
        user_id: The customer.
        method: The payment method, for a goal without preference.
    """
    given: dict[str, Any] = {"order_id": goal.order_id}
    pays = goal.method or method
    if goal.intent == "cancel":
        given["reason"] = goal.reason
    elif goal.intent == "move":
        given = {"user_id": user_id, **goal.address}
    elif goal.intent == "ship_to":
        given |= goal.address
    elif goal.intent == "payment":
        given["payment_method_id"] = pays
    else:
        given["item_ids"] = [want.item_id for want in goal.wants]
        if goal.intent != "return":
            given["new_item_ids"] = [want.new_id for want in goal.wants]
        given["payment_method_id"] = pays
    return goal.tool, given
