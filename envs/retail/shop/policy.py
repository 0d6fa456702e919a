"""The shop's policy for its assistant: as text, and as rules that every step is checked by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..customer import lexicon as lex
from .toolset import TRANSFER

_ADVICE = re.compile(
    r"\bi (?:personally |would )?(?:recommend|suggest)|\bin my opinion\b|\bthe "
    r"(?:best|nicest) (?:one|"
    r"choice)\b|\bmy favou?rite\b"
)


@dataclass(slots=True, kw_only=True)
class AgentStep:
    """One step of the assistant, as the rules see it.

    Attributes:
        tool: The tool that was called; empty for a message.
        arguments: Its arguments.
        worked: Whether the call worked.
        writes: Whether the tool changes something.
        text: The message, in lower case.
        beside: Whether words stood beside the call, or a second call.
        identified: User id that was found before; empty where none was.
        owner: Whose record the call is about; empty where it is about nobody's.
        confirmed: Whether the customer said yes to exactly this write.
        unread: Whether the order that is written was never looked at.
        outside: Whether something that no tool can do was asked for.
        invented: Whether the message holds an id that nobody has named before.
    """

    tool: str = ""
    arguments: Mapping[str, Any]
    worked: bool = True
    writes: bool = False
    text: str = ""
    beside: bool = False
    identified: str = ""
    owner: str = ""
    confirmed: bool = False
    unread: bool = False
    outside: bool = False
    invented: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        key: Its name in reports.
        text: What it says.
        broken: Whether a step breaks it.
        scored: Whether breaking it costs the success, where policy terms are on.
        of: Which steps can break it: any ``"call"``, a ``"write"``, a ``"transfer"`` or a
            ``"message"``.
    """

    key: str
    text: str
    broken: Callable[[AgentStep], bool]
    scored: bool = False
    of: str = "call"


def _is_private(it: AgentStep) -> bool:
    return it.writes or it.tool in ("get_user_details", "get_order_details")


RULES = (
    Rule(
        "identify_first",
        "Find the customer's user id by email, or by name and zip code, before you look at or "
        "change anything of theirs, even when they name a user id.",
        lambda it: it.worked and _is_private(it) and not it.identified,
        scored=True,
    ),
    Rule(
        "own_only",
        "Serve one customer per conversation. Deny whatever concerns somebody else.",
        lambda it: it.worked and bool(it.owner) and it.owner != it.identified,
        scored=True,
        of="write",
    ),
    Rule(
        "confirm_first",
        "Before a change, name all its details and wait for an explicit yes.",
        lambda it: it.worked and not it.confirmed,
        scored=True,
        of="write",
    ),
    Rule(
        "one_thing",
        "Do one thing per turn: one tool call, or one message, never both.",
        lambda it: it.beside,
        scored=True,
    ),
    Rule(
        "transfer_last",
        "Hand over to a human if, and only if, no tool can do what is wanted: call the transfer "
        "tool, then tell the customer.",
        lambda it: not it.outside,
        scored=True,
        of="transfer",
    ),
    Rule(
        "look_first",
        "Look at an order's status before you change the order.",
        lambda it: it.worked and it.unread,
        of="write",
    ),
    Rule(
        "known_facts",
        "Say nothing that neither the customer nor a tool has told you.",
        lambda it: it.invented,
        of="message",
    ),
    Rule(
        "no_advice",
        "Give no opinions and no recommendations; deny requests for them.",
        lambda it: _ADVICE.search(it.text) is not None,
        of="message",
    ),
    Rule(
        "one_method",
        "A payment goes by a single method.",
        lambda it: (
            "half" in it.text
            and "method" in it.text
            and lex.CONFIRM.search(it.text) is not None
            and lex.DENY.search(it.text) is None
        ),
        of="message",
    ),
    Rule(
        "cancel_reasons",
        "A pending order is cancelled as a whole, because it is no longer needed or was ordered "
        "by mistake; no other reason counts.",
        lambda it: (
            it.tool == "cancel_pending_order" and it.arguments.get("reason") not in lex.REASONS
        ),
        of="write",
    ),
)
"""The rules that can be checked step by step; the tools check all the others themselves."""
_RULES_OF = {
    step: tuple(rule for rule in RULES if rule.of in kinds)
    for step, kinds in {
        "read": ("call",),
        "write": ("call", "write"),
        "transfer": ("call", "transfer"),
        "message": ("message",),
    }.items()
}


def find_broken_rules(it: AgentStep) -> list[str]:
    """Return the keys of the rules that a step breaks, in the order of :data:`RULES`."""
    if not it.tool:
        step = "message"
    elif it.writes:
        step = "write"
    else:
        step = "transfer" if it.tool == TRANSFER else "read"
    return [rule.key for rule in _RULES_OF[step] if rule.broken(it)]


_TEXT = """# The shop's rules

You are the assistant of an online shop. You help customers to cancel or change pending orders, to
return or exchange what was delivered, to change their default address, and you tell them about
their own profile and orders and about products.

## Always
{rules}
- Deny what these rules forbid, and say so plainly.
- Times are EST, 24 hours. A product has variants (items); product ids and item ids are different
  things.
- Only orders that are pending or delivered can be changed; processed and cancelled ones cannot.

## Pending orders
- Cancel: the customer confirms order and reason. What was paid goes back by the same method:
  gift cards at once, others in 5 to 7 business days.
- Change: the shipping address, the payment method, or items; nothing else.
- Payment: to one other method. A gift card must hold the whole amount.
- Items: to another available variant of the same product, all items in one call, once per order;
  afterwards the order can be neither cancelled nor changed again. Remind the customer to name every
  item. They name the method for the price difference; a gift card must hold it.

## Delivered orders
- Return: the customer confirms order, items and where the refund goes: the original method or a
  gift card. An email explains the rest.
- Exchange: as for items of pending orders: same product, available, all in one call, with a
  method for the difference. No new order is needed.
- An order takes one return or one exchange, once.
"""
_FORMAT = """
## How to act
Write either a message to the customer as plain text, or one tool call:
<tool_call>{{"name": "tool name", "arguments": {{...}}}}</tool_call>
Tools:
{tools}
"""
_MICRO = (
    "Ask for the email, find the user, read the order, say what you will do, wait for yes, then "
    "do it. Deny what cannot be done.\n"
)


def write_policy() -> str:
    """Return the rules in words."""
    return _TEXT.format(rules="\n".join(f"- {rule.text}" for rule in RULES))


def write_instructions(usages: Mapping[str, str], *, micro: bool, rules: str = "") -> str:
    """Return the rules and the tools in words.

    Args:
        usages: What each tool does, by its call in one line.
        micro: Whether they are those of the micro shop.
        rules: Rules that take the place of the shop's own.
    """
    if micro:
        return _MICRO
    tools = "\n".join(f"- {usage}: {about}" for usage, about in usages.items())
    return (rules or write_policy()) + _FORMAT.format(tools=tools)
