"""What the scripted assistant says."""

from __future__ import annotations

from collections.abc import Mapping

from .customer.scenario import Goal
from .customer.scenario_text import describe_address, join_words

_FULL: tuple[Mapping[str, str], ...] = (
    {
        "ask_email": "I am happy to help. Could you tell me your email address, please?",
        "ask_name": "No problem. Could you tell me your full name and your zip code, please?",
        "ask_order": "Which order is it about? Please tell me the order number.",
        "ask": "Could you please tell me {slots}?",
        "propose": "{plan} Is that correct? Please answer yes to confirm.",
        "done": "{did} Is there anything else that I can do for you?",
        "deny": "I am sorry, but I cannot do that: {why}.",
        "tell": "{answer}.",
        "handed": "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.",
        "wait": "One moment please, I am looking into it.",
    },
    {
        "ask_email": "Of course. May I have your email address to find your account?",
        "ask_name": "That is fine. May I have your full name and zip code instead?",
        "ask_order": "May I have the order number, please?",
        "ask": "Please let me know {slots}.",
        "propose": "Let me sum up. {plan} Shall I go ahead? (yes/no)",
        "done": "{did} Can I help you with anything else?",
        "deny": "Unfortunately that is not possible, because {why}.",
        "tell": "I looked it up for you. {answer}.",
        "handed": "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.",
        "wait": "Let me check that for you.",
    },
)
_MICRO: Mapping[str, str] = {
    "ask_email": "What is your email?",
    "ask_name": "What is your name and zip?",
    "ask_order": "Which order number?",
    "ask": "Tell me {slots}?",
    "propose": "{plan} Shall I do it? yes or no?",
    "done": "Done. Anything else?",
    "deny": "Sorry, I cannot do that: {why}.",
    "tell": "{answer}.",
    "handed": "You are being transferred to a human agent.",
    "wait": "One moment please.",
}
_AGAIN = ("", "I understand. ", "I do understand your wish. ", "As I said. ")
_QUESTIONS = {
    "items": "which items you mean",
    "wants": "which options you would like for the new items",
    "method": "which payment method should be used",
    "reason": "the reason for the cancellation: no longer needed or ordered by mistake",
    "address": "the full new address with street, city, state and zip code",
}
_SHORT = {"items": "which items", "reason": "the reason"}
_WHY = {
    "cancel_status": "only pending orders can be cancelled",
    "wants_human": "only pending orders can be cancelled",
    "cancel_reason": "that reason does not count for a cancellation",
    "return_status": "only delivered orders can be returned",
    "exchange_status": "only delivered orders can be exchanged",
    "refund_third": "the refund has to go to the original method or to a gift card",
    "other_type": "an item can only be exchanged for another variant of the same product",
    "unavailable": "that variant is not available",
    "gift_low": "the gift card does not hold enough",
    "split_payment": "an order is paid by one single method",
    "partial_cancel": "only a whole order can be cancelled",
    "other_user": "that order does not belong to your account",
    "advice": "I am not allowed to give opinions",
    "second": "an order takes only one return or exchange",
    "after_modify": "an order cannot be cancelled after its items were changed",
}
_DID = {
    "cancel": "Order {order} has been cancelled.",
    "return": "The return for order {order} has been requested, you will receive an email.",
    "exchange": "The exchange for order {order} has been requested.",
    "modify": "The items of order {order} have been changed.",
    "payment": "The payment of order {order} has been changed.",
    "ship_to": "The address of order {order} has been changed.",
    "move": "Your default address has been updated.",
}


def choose_phrases(micro: bool, key: int) -> Mapping[str, str]:
    """Return one assistant's manner of speaking."""
    return _MICRO if micro else _FULL[key % len(_FULL)]


def word_questions(slots: list[str], *, micro: bool) -> str:
    """Return a question about one or two slots."""
    table = _SHORT if micro else _QUESTIONS
    return " and ".join(table[slot] for slot in slots)


def report_done(goal: Goal) -> str:
    """Return that a goal's write was made."""
    return _DID[goal.intent].format(order=goal.order_id)


def explain_denial(goal: Goal) -> str:
    """Return why a goal is denied."""
    return _WHY.get(goal.deny, "that is outside of what I am allowed to do")


def word_denial(phrases: Mapping[str, str], reason: str, times: int) -> str:
    """Return a denial, in other words each time that the customer insists."""
    return _AGAIN[times % len(_AGAIN)] + phrases["deny"].format(why=reason)


def word_answer(goal: Goal) -> str:
    """Return the answer to a question."""
    return f"The answer is ${goal.answer}" if goal.money else f"The answer is {goal.answer}"


def word_proposal(goal: Goal, method: str, micro: bool) -> str:
    """Return a proposal with all its details."""
    order = goal.order_id
    if goal.intent == "cancel":
        return f"I will cancel order {order}, reason: {goal.reason}."
    if goal.intent == "return":
        items = join_words([f"the {w.name.lower()} ({w.item_id})" for w in goal.wants])
        if micro:
            return f"I will return {items} of order {order}, refund to {method}."
        return f"I will return {items} of order {order}, with the refund to {method}."
    if goal.intent in ("exchange", "modify"):
        return _word_swap(goal, method)
    if goal.intent == "payment":
        return f"I will change the payment of order {order} to {method}."
    where = "your default address" if goal.intent == "move" else f"the address of order {order}"
    return f"I will change {where} to {describe_address(goal)}."


def _word_swap(goal: Goal, method: str) -> str:
    verb = "exchange" if goal.intent == "exchange" else "change"
    parts = [
        f"the {w.name.lower()} ({w.item_id}) to item {w.new_id} "
        f"({', '.join(f'{k} {v}' for k, v in w.new_options.items())})"
        for w in goal.wants
    ]
    sign = "you pay" if goal.value > 0 else "you get back"
    difference = f"price difference: {sign} ${abs(goal.value):.2f}"
    return (
        f"In order {goal.order_id} I will {verb} {join_words(parts)}, {difference}, "
        f"by {method}. Please make sure that every item is named."
    )
