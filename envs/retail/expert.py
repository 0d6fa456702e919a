"""The scripted assistant: knows the wishes, and still asks, reads and waits for a yes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
import numpy as np

from ..erring import Erring
from . import speeches as say
from .customer.rules import active
from .customer.scenario import Goal, Identity, call_of
from .shop.money import original_method
from .shop.toolset import TRANSFER

if TYPE_CHECKING:
    from .env import Retail
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


class Expert(Erring):
    """A policy for :class:`Retail` that knows the customer's wishes.

    Args:
        mistakes: Probability per action of a plausible wrong one: a wrong record, an idle message,
            a wrong proposal, a wrong denial, a change without a yes.
        seed: Seed of the mistakes.
    """

    def __call__(
        self,
        env: gym.Env[str, str],
        observation: str,  # noqa: ARG002 - the expert reads the hidden state instead
        info: Mapping[str, Any],  # noqa: ARG002
    ) -> str:
        """The next action of the episode in ``env``."""
        world = cast("Retail", env.unwrapped)
        if world.episode.task.payload.scenario is None:
            return _gold_step(world)
        plan = _Plan(world)
        if self.errs():
            return plan.wrong(self._rng)
        return plan.step()


def _gold_step(env: Retail) -> str:
    """Plays a published task: its gold calls, then everything in one message."""
    episode = env.episode
    gold = episode.task.payload.gold
    tools = env.knowledge.tools
    if len(episode.steps) < len(gold):
        return tools.write(*gold[len(episode.steps)])
    told = "; ".join(episode.task.payload.outputs)
    return f"That is done. {told}" if told else "That is done."


class _Plan:
    """One decision."""

    def __init__(self, env: Retail) -> None:
        self.env = env
        self.micro = env.knowledge.size == "micro"
        self.task = env.episode.task.payload
        self.state: RetailState = env.episode.state
        assert self.task.scenario is not None
        self.scenario = self.task.scenario
        self.mind = self.state.mind
        self.goal = active(self.scenario, self.mind, self.mind.at)
        self.words = say.words(self.micro, self.mind.key)

    def call(self, name: str, **given: Any) -> str:
        return self.env.knowledge.tools.write(name, given)

    def step(self) -> str:
        """The right next action."""
        if self.state.transferred:
            return self.words["handed"]
        who = self.scenario.identity
        if not self.state.user_id:
            return self.identify(who)
        goal = self.goal
        if any(event.tool == goal.tool for event in self.state.events):
            return self.words["done"].format(did=say.did(goal))
        look = self.look(goal)
        if look is not None:
            return look
        if goal.expect == "transferred":
            return self.call(TRANSFER, summary="help" if self.micro else goal.about)
        if goal.expect == "denied":
            return self.deny(say.why(goal))
        if goal.ask:
            return self.words["tell"].format(answer=say.answer(goal))
        if (self.mind.at, self.mind.stage[self.mind.at]) in self.mind.granted:
            return self.call(*self.written(goal)[:1], **self.written(goal)[1])
        return self.propose(goal)

    # ---------------------------------------------------------------- identity

    def identify(self, who: Identity) -> str:
        given, finds = self.mind.given, self.state.searches
        if not who.valid:
            return self.stranger(who)
        if "email" in given and who.knows_email and finds == 0:
            return self.call("find_user_id_by_email", email=who.email)
        if "name" in given:
            return self.by_name(who)
        asked_name = "no_email" in given or (not who.knows_email and "no_name" not in given)
        return self.words["ask_name" if asked_name and "no_email" in given else "ask_email"]

    def by_name(self, who: Identity) -> str:
        return self.call(
            "find_user_id_by_name_zip", first_name=who.first, last_name=who.last, zip=who.code
        )

    def stranger(self, who: Identity) -> str:
        """Somebody who cannot be found: both ways are tried, then denied."""
        given, finds = self.mind.given, self.state.searches
        if "email" in given and finds == 0:
            return self.call("find_user_id_by_email", email=who.email)
        if "name" in given and finds <= 1 and "email" in given:
            return self.by_name(who)
        if "email" not in given:
            return self.words["ask_email"]
        if "name" not in given and self.scenario.identity.knows_name:
            return self.words["ask_name"]
        return self.deny("I could not find your account")

    def deny(self, reason: str) -> str:
        return say.denial(self.words, reason, self.mind.pressed[self.mind.at])

    # ---------------------------------------------------------------- reading

    def look(self, goal: Goal) -> str | None:
        """The next question or record that the goal still needs; None when all is known."""
        state = self.state
        if not self.micro and state.user_id not in state.seen:
            return self.call("get_user_details", user_id=state.user_id)
        place = f"{self.mind.at}.{self.mind.stage[self.mind.at]}"
        if goal.tool and goal.order_id and not self.given(place, "order"):
            return self.words["ask_order"]
        if goal.order_words and goal.order_id not in state.seen:
            user = state.desk.user(state.user_id)
            assert user is not None
            unread = [i for i in user["orders"] if i not in state.seen]
            return self.call("get_order_details", order_id=unread[0])
        for order_id in (goal.order_id, goal.record):
            known = order_id in state.seen or state.desk.order(order_id) is None
            if order_id.startswith("#") and not known:
                return self.call("get_order_details", order_id=order_id)
        return self.product(goal) or self.slots(goal, place)

    def given(self, place: str, slot: str) -> bool:
        """Whether the customer has told a slot, of this goal or of the one it comes after."""
        at, _, stage = place.partition(".")
        told = self.mind.given
        earlier = [f"{at}.{n}.{slot}" for n in range(int(stage) + 1)]
        same = self.scenario.goals[self.mind.at].order_id == self.goal.order_id
        if slot != "order" or not same:
            earlier = earlier[-1:]
        return any(name in told for name in earlier)

    def product(self, goal: Goal) -> str | None:
        if "get_product_details" not in self.env.knowledge.tools.tools:
            return None
        shop = self.state.desk.shop
        wanted = [shop.product_of[w.item_id] for w in goal.wants if goal.intent != "return"]
        wanted += [goal.record] if goal.record in shop.products else []
        unread = [i for i in wanted if i not in self.state.seen]
        if not unread or goal.intent == "cancel":
            return None
        return self.call("get_product_details", product_id=unread[0])

    def slots(self, goal: Goal, place: str) -> str | None:
        """A question about what the customer has not told yet."""
        needs = _ASKED.get(goal.intent, ()) if goal.expect == "done" or self.cares(goal) else ()
        missing = [
            slot
            for slot in needs
            if not self.given(place, slot) and not (self.micro and slot == "method")
        ]
        if not missing:
            return None
        return self.words["ask"].format(slots=say.questions(missing[:2], micro=self.micro))

    @staticmethod
    def cares(goal: Goal) -> bool:
        """Whether what is denied lies in a slot that must be asked for."""
        return goal.deny in (
            "cancel_reason",
            "refund_third",
            "other_type",
            "unavailable",
            "gift_low",
            "split_payment",
        )

    # ---------------------------------------------------------------- writing

    def method(self, goal: Goal) -> str:
        """The method of a goal without preference: one that is accepted."""
        if goal.method or goal.intent not in ("return", "exchange", "modify", "payment"):
            return goal.method
        for way in self.task.accepted:
            for name, given in way:
                if name == goal.tool and given.get("order_id") == goal.order_id:
                    return given["payment_method_id"]
        order = self.state.desk.order(goal.order_id)
        return original_method(order) if order else ""

    def written(self, goal: Goal) -> tuple[str, dict[str, Any]]:
        return call_of(goal, self.state.user_id, self.method(goal))

    def propose(self, goal: Goal) -> str:
        return self.words["propose"].format(plan=say.plan(goal, self.method(goal), self.micro))

    # ---------------------------------------------------------------- mistakes

    def wrong(self, rng: np.random.Generator) -> str:
        """A plausible wrong action."""
        kind = int(rng.integers(6))
        others = [
            i
            for i in self.state.desk.shop.orders
            if not self.state.user_id
            or self.state.desk.shop.orders[i]["user_id"] == self.state.user_id
        ]
        other = others[int(rng.integers(len(others)))] if others else "#W1"
        if kind == 0:
            return self.words["wait"]
        if kind == 1:
            return self.call("get_order_details", order_id=other)
        if kind == 2 and self.goal.tool:
            return self.propose(_spoiled(self.goal, other))
        if kind == 3:
            return self.deny("that is not possible")
        if kind == 4 and self.goal.tool in self.env.knowledge.tools.tools and self.goal.wants:
            return self.call(*self.written(self.goal)[:1], **self.written(self.goal)[1])
        return self.words["ask_email"]


def _spoiled(goal: Goal, order_id: str) -> Goal:
    from dataclasses import replace

    if goal.intent == "cancel":
        reasons = ("no longer needed", "ordered by mistake")
        return replace(goal, reason=reasons[goal.reason == reasons[0]])
    return replace(goal, order_id=order_id) if goal.order_id else goal


def sensible_actions(env: Retail) -> list[str]:
    """Calls with ids that were named, and messages that make sense."""
    state, words = env.episode.state, say.words(True, 0)
    call = env.knowledge.tools.write
    texts = [words[key] for key in ("ask_email", "ask_order", "wait", "handed")]
    texts.append(words["deny"].format(why="that is not possible"))
    scenario = env.episode.task.payload.scenario
    if scenario is not None and "email" in state.mind.given:
        texts.append(call("find_user_id_by_email", {"email": scenario.identity.email}))
    user = state.desk.user(state.user_id)
    for order_id in [] if user is None else user["orders"]:
        texts.append(call("get_order_details", {"order_id": order_id}))
        if order_id in state.seen:
            texts += [
                call("cancel_pending_order", {"order_id": order_id, "reason": reason})
                for reason in ("no longer needed", "ordered by mistake")
            ]
    texts.append(call(TRANSFER, {"summary": "help"}))
    return texts
