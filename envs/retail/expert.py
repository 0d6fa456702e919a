"""The scripted assistant: it knows the goals, and still asks, reads and waits for a yes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.episode import Episode
from ..core.noisy_expert import NoisyExpert
from ..core.settings import check_number
from . import expert_utterances as utterances
from .customer.scenario import Goal, Identity, build_call
from .customer.scripted import get_active_goal
from .knowledge import Knowledge
from .shop.payments import find_original_method
from .shop.toolset import TRANSFER
from .shop.write_tools import CANCEL_REASONS
from .state import RetailState

_ASKED = {
    "cancel": ("reason",),
    "return": ("items", "method"),
    "exchange": ("items", "wants", "method"),
    "modify": ("items", "wants", "method"),
    "payment": ("method",),
    "ship_to": ("address",),
    "move": ("address",),
}
_DENIED_SLOTS = (
    "cancel_reason",
    "refund_third",
    "other_type",
    "unavailable",
    "gift_low",
    "split_payment",
)
"""Denials whose reason lies in a slot that must be asked for."""


class Expert(NoisyExpert):
    """A policy for Retail that knows the goals: it asks, reads, proposes, writes, answers, denies.

    Args:
        mistakes: Probability per action of a plausible wrong one: a wrong record, an idle message,
            a wrong proposal, a wrong denial, a change without a yes.
        seed: Seed of the mistakes and of the haste.
        haste: Probability, where a change is to be proposed, of making it without asking. It is a
            wrong strategy, not a slip: the rules ask for a yes, so the episode is lost.

    Raises:
        BadValueError: ``mistakes`` or ``haste`` is no probability.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0, haste: float = 0.0) -> None:
        super().__init__(mistakes, seed)
        self.haste = check_number("haste", haste, "expert", min=0, max=1)

    def choose_action(self, env: Any) -> str:
        """Return the next action of the episode in ``env``."""
        episode: Episode[RetailState] = env.episode
        if episode.task.payload.scenario is None:
            return _replay_gold(episode, env.knowledge)
        decision = _Decision(episode, env.knowledge)
        if self.draw_mistake():
            return decision.act_wrongly(self._rng)
        return decision.act(self._hurries)

    def _hurries(self) -> bool:
        """Whether to make a change without asking; nothing is drawn without haste."""
        return bool(self.haste) and self._rng.random() < self.haste


def _replay_gold(episode: Episode[RetailState], knowledge: Knowledge) -> str:
    """Play a published task: its gold calls, then everything in one message."""
    gold = episode.task.payload.gold
    if len(episode.steps) < len(gold):
        return knowledge.tools.write(*gold[len(episode.steps)])
    outputs = "; ".join(episode.task.payload.outputs)
    return f"That is done. {outputs}" if outputs else "That is done."


class _Decision:
    """The choice of one action."""

    def __init__(self, episode: Episode[RetailState], knowledge: Knowledge) -> None:
        self.tools = knowledge.tools
        self.micro = knowledge.size == "micro"
        self.task = episode.task.payload
        self.state = episode.state
        assert self.task.scenario is not None
        self.scenario = self.task.scenario
        self.customer = self.state.customer
        self.goal = get_active_goal(self.scenario, self.customer)
        self.phrases = utterances.choose_phrases(self.micro, self.customer.key)

    def act(self, hurries: Callable[[], bool]) -> str:
        """Return the right next action, or a change that nobody agreed to where one hurries."""
        if self.state.transferred:
            return self.phrases["handed"]
        if not self.state.user_id:
            return self.identify(self.scenario.identity)
        goal = self.goal
        if any(event.tool == goal.tool for event in self.state.events):
            return self.phrases["done"].format(did=utterances.report_done(goal))
        if (action := self.inquire(goal)) is not None:
            return action
        if goal.expect == "transferred":
            return self.call(TRANSFER, summary="help" if self.micro else goal.about)
        if goal.expect == "denied":
            return self.deny(utterances.explain_denial(goal))
        if goal.ask:
            return self.phrases["tell"].format(answer=utterances.word_answer(goal))
        if (self.customer.at, self.customer.stage[self.customer.at]) in self.customer.granted:
            return self.fulfil(goal)
        return self.fulfil(goal) if hurries() else self.propose(goal)

    def call(self, name: str, **given: Any) -> str:
        return self.tools.write(name, given)

    def identify(self, who: Identity) -> str:
        """Ask who the customer is, or search for them."""
        given, searches = self.customer.given, self.state.searches
        if not who.valid:
            return self.identify_unknown(who)
        if "email" in given and who.knows_email and searches == 0:
            return self.call("find_user_id_by_email", email=who.email)
        if "name" in given:
            return self.search_by_name(who)
        return self.phrases["ask_name" if "no_email" in given else "ask_email"]

    def search_by_name(self, who: Identity) -> str:
        return self.call(
            "find_user_id_by_name_zip", first_name=who.first, last_name=who.last, zip=who.code
        )

    def identify_unknown(self, who: Identity) -> str:
        """Try both ways for somebody who cannot be found, then deny."""
        given, searches = self.customer.given, self.state.searches
        if "email" in given and searches == 0:
            return self.call("find_user_id_by_email", email=who.email)
        if "name" in given and searches <= 1 and "email" in given:
            return self.search_by_name(who)
        if "email" not in given:
            return self.phrases["ask_email"]
        if "name" not in given and who.knows_name:
            return self.phrases["ask_name"]
        return self.deny("I could not find your account")

    def deny(self, reason: str) -> str:
        return utterances.word_denial(self.phrases, reason, self.customer.pressed[self.customer.at])

    def inquire(self, goal: Goal) -> str | None:
        """Return the question or the read that the goal still needs; None when all is known."""
        state = self.state
        if not self.micro and state.user_id not in state.seen:
            return self.call("get_user_details", user_id=state.user_id)
        if goal.tool and goal.order_id and not self.is_given("order"):
            return self.phrases["ask_order"]
        if goal.order_words and goal.order_id not in state.seen:
            user = state.overlay.user(state.user_id)
            assert user is not None
            unread = [i for i in user["orders"] if i not in state.seen]
            return self.call("get_order_details", order_id=unread[0])
        for order_id in (goal.order_id, goal.record):
            known = order_id in state.seen or state.overlay.order(order_id) is None
            if order_id.startswith("#") and not known:
                return self.call("get_order_details", order_id=order_id)
        return self.read_product(goal) or self.ask_slots(goal)

    def is_given(self, slot: str) -> bool:
        """Tell whether the customer has told a slot, of this goal or of one that it replaces."""
        at, stage = self.customer.at, self.customer.stage[self.customer.at]
        same = self.scenario.goals[at].order_id == self.goal.order_id
        first = 0 if slot == "order" and same else stage
        return any(f"{at}.{n}.{slot}" in self.customer.given for n in range(first, stage + 1))

    def read_product(self, goal: Goal) -> str | None:
        """Return the next read of a product that the goal is about."""
        if "get_product_details" not in self.tools.tools or goal.intent == "cancel":
            return None
        shop = self.state.overlay.shop
        wanted = [shop.product_of[w.item_id] for w in goal.wants if goal.intent != "return"]
        wanted += [goal.record] if goal.record in shop.products else []
        unread = [i for i in wanted if i not in self.state.seen]
        return self.call("get_product_details", product_id=unread[0]) if unread else None

    def ask_slots(self, goal: Goal) -> str | None:
        """Return a question about what the customer has not told yet."""
        if goal.expect != "done" and goal.deny not in _DENIED_SLOTS:
            return None
        missing = [
            slot
            for slot in _ASKED.get(goal.intent, ())
            if not self.is_given(slot) and not (self.micro and slot == "method")
        ]
        if not missing:
            return None
        question = utterances.word_questions(missing[:2], micro=self.micro)
        return self.phrases["ask"].format(slots=question)

    def choose_method(self, goal: Goal) -> str:
        """Return a goal's payment method; one that is accepted where there is no preference."""
        if goal.method or goal.intent not in ("return", "exchange", "modify", "payment"):
            return goal.method
        for way in self.task.accepted:
            for name, given in way:
                if name == goal.tool and given.get("order_id") == goal.order_id:
                    return given["payment_method_id"]
        order = self.state.overlay.order(goal.order_id)
        return find_original_method(order) if order else ""

    def fulfil(self, goal: Goal) -> str:
        """Return the write that fulfils a goal."""
        call = build_call(goal, self.state.user_id, self.choose_method(goal))
        return self.tools.write(*call)

    def propose(self, goal: Goal) -> str:
        plan = utterances.word_proposal(goal, self.choose_method(goal), self.micro)
        return self.phrases["propose"].format(plan=plan)

    def act_wrongly(self, rng: np.random.Generator) -> str:
        """Return a plausible wrong action."""
        kind = int(rng.integers(6))
        orders, user_id = self.state.overlay.shop.orders, self.state.user_id
        ids = [i for i, order in orders.items() if not user_id or order["user_id"] == user_id]
        order_id = ids[int(rng.integers(len(ids)))] if ids else "#W1"
        if kind == 0:
            return self.phrases["wait"]
        if kind == 1:
            return self.call("get_order_details", order_id=order_id)
        if kind == 2 and self.goal.tool:
            return self.propose(_spoil(self.goal, order_id))
        if kind == 3:
            return self.deny("that is not possible")
        if kind == 4 and self.goal.tool in self.tools.tools and self.goal.wants:
            return self.fulfil(self.goal)
        return self.phrases["ask_email"]


def _spoil(goal: Goal, order_id: str) -> Goal:
    """Return a goal with another reason or another order."""
    if goal.intent == "cancel":
        return replace(goal, reason=CANCEL_REASONS[goal.reason == CANCEL_REASONS[0]])
    return replace(goal, order_id=order_id) if goal.order_id else goal


def list_sensible_actions(episode: Episode[RetailState], knowledge: Knowledge) -> list[str]:
    """Return calls with ids that were named, and messages that make sense."""
    state, phrases = episode.state, utterances.choose_phrases(True, 0)
    call = knowledge.tools.write
    texts = [phrases[key] for key in ("ask_email", "ask_order", "wait", "handed")]
    texts.append(phrases["deny"].format(why="that is not possible"))
    scenario = episode.task.payload.scenario
    if scenario is not None and "email" in state.customer.given:
        texts.append(call("find_user_id_by_email", {"email": scenario.identity.email}))
    user = state.overlay.user(state.user_id)
    for order_id in [] if user is None else user["orders"]:
        texts.append(call("get_order_details", {"order_id": order_id}))
        if order_id in state.seen:
            texts += [
                call("cancel_pending_order", {"order_id": order_id, "reason": reason})
                for reason in CANCEL_REASONS
            ]
    texts.append(call(TRANSFER, {"summary": "help"}))
    return texts
