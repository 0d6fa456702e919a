"""A scenario in prose, for customers that a language model or a person plays."""

from __future__ import annotations

from ..customer import phrases
from ..customer.scenario import Goal, Scenario

_SLOTS = {
    "cancel": "because {reason}",
    "return": "items: {items}; refund to {method}",
    "exchange": "items: {items}; you want {wants}; difference by {method}",
    "modify": "items: {items}; you want {wants}; difference by {method}",
    "payment": "to be paid by {method}",
    "ship_to": "to {address}",
    "move": "to {address}",
}


def _goal(goal: Goal) -> str:
    if goal.intent not in _SLOTS:
        text = f"You say or ask: {goal.ask or goal.about}"
    else:
        slots = dict(phrases.slots(goal))
        slots["method"] = slots["method"] or "whatever method is easiest"
        order = f" ({slots['order']})" if goal.order_id else ""
        text = f"You want to {slots['what']}{order}, {_SLOTS[goal.intent].format_map(slots)}."
        if goal.order_words:
            text += " You do not know the order number."
    if goal.limit is not None:
        text += f" Only if the {phrases.worth(goal)} is at most ${goal.limit:.2f}."
    if goal.insist:
        text += f" If it is denied, you insist {goal.insist} more times, then accept."
    if goal.fallback is not None:
        when = {
            "denied": "If that is not possible",
            "mind": "When the agent asks you to confirm it, you change your mind",
        }.get(goal.switch, "Otherwise")
        text += f" {when}: {_goal(goal.fallback)}"
    return text


def brief(scenario: Scenario) -> str:
    """Identity, manner, wishes."""
    who, persona = scenario.identity, scenario.persona
    known = []
    if who.knows_email:
        known.append(f"your email is {who.email}")
    if who.knows_name:
        known.append(f"your zip code is {who.code}")
    unknown = "" if who.knows_email else " You do not remember your email address."
    if not who.knows_name:
        unknown += " You do not give your name and zip code."
    facts = f" and {' and '.join(known)}" if known else ""
    goals = " ".join(_goal(goal) for goal in scenario.goals)
    tone = " and ".join(persona.tone) or "plain"
    return (
        f"You are {who.first} {who.last}{facts}.{unknown} You are {tone}, your style is "
        f"{persona.verbosity}. {goals}"
    )
