"""The customer by rules: deterministic, quick, and not to be talked over.

The rules, in order: who is asked for something known gives exactly that; a complete and right
proposal gets a yes, a wrong one the slot corrected, an incomplete one a question; a denial is
accepted, contested or leads to the fallback; agreement is not completion; a question is settled by
its value, told among few numbers; when nothing is left to want, the stop token ends the talk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import phrases
from .parser import Heard, heard
from .proposals import Compared, Strictness, compared, told_amount
from .scenario import SLOTS_OF, Goal, Identity, Scenario
from .turns import STOP, TRANSFERRED, Event, Mind, UserTurn
from .wording import curt, mistyped, rambled, said

PATIENCE_TURNS = 6
"""Turns without progress that anybody bears."""
MOST_NUMBERS = 4
"""Numbers in a message that still answers a question."""
_SAME = 3
_ENDED = ("done", "denied", "transferred", "dropped", "claimed", "untold", "wrongly_denied")
_TRANSFER_TOOL = "transfer_to_human_agents"
_ASKS = ("order", "items", "options", "payment", "reason", "address")
_SLOT_OF = {"options": "wants", "payment": "method"}


def active(scenario: Scenario, mind: Mind, at: int) -> Goal:
    """The goal at a place, after the fallbacks that were taken."""
    goal = scenario.goals[at]
    for _ in range(mind.stage[at]):
        assert goal.fallback is not None
        goal = goal.fallback
    return goal


@dataclass(frozen=True, slots=True)
class RuleCustomer:
    """Plays any scenario.

    Attributes:
        strictness: What a yes asks for: ``"lenient"`` the order, ``"standard"`` all slots,
            ``"strict"`` the price difference as well.
        patience_turns: Turns without progress before giving up.
    """

    strictness: Strictness = "standard"
    patience_turns: int = PATIENCE_TURNS
    blocking: bool = False

    def begin(self, scenario: Scenario, key: int, brief: str) -> tuple[Mind, UserTurn]:  # noqa: ARG002
        """The first goal in headlines, or all of it where the scenario says so."""
        mind = Mind(key, len(scenario.goals))
        talk = _Talk(scenario, mind, self)
        goal = active(scenario, mind, 0)
        talk.say(f"open_{goal.intent}", goal)
        for other in scenario.goals[1:]:
            if not other.together:
                break
            talk.say("also", other)
        if scenario.opening:
            for slot in SLOTS_OF.get(goal.intent, ()):
                if (slot != "items" or goal.wants) and (slot != "method" or goal.method):
                    talk.give(slot, goal)
        if scenario.identity.volunteers:
            talk.identify("email")
        return mind, UserTurn(talk.text(most=9), "", tuple(talk.acts))

    def reply(
        self, scenario: Scenario, mind: Mind, message: str, events: Sequence[Event]
    ) -> UserTurn:
        """Answer a message of the assistant."""
        mind.turn += 1
        return _Talk(scenario, mind, self).answer(heard(message), message, events)


class _Talk:
    """One turn of the customer."""

    __slots__ = ("acts", "customer", "mind", "parts", "progress", "scenario")

    def __init__(self, scenario: Scenario, mind: Mind, customer: RuleCustomer) -> None:
        self.scenario, self.mind, self.customer = scenario, mind, customer
        self.parts: list[str] = []
        self.acts: list[str] = []
        self.progress = False

    # ---------------------------------------------------------------- speaking

    def say(self, act: str, goal: Goal, **more: str) -> None:
        persona = self.scenario.persona
        terse = persona.verbosity == "terse"
        style = "terse" if terse else "held_out" if persona.held_out else "plain"
        slots = {**phrases.slots(goal), **more}
        self.parts.append(said(self.mind.key, self.mind.turn, act, style, slots))
        self.acts.append(act)

    def text(self, most: int = 2) -> str:
        persona, mind = self.scenario.persona, self.mind
        text = " ".join(self.parts[:most])
        if not persona.polite:
            text = curt(text)
        if persona.verbosity == "chatty":
            text = rambled(mind.key, mind.turn, text)
        if persona.noise:
            text = mistyped(mind.key, mind.turn, text, persona.noise)
        return text

    def ended(self, end: str, token: str = STOP) -> UserTurn:
        self.mind.end = end
        return UserTurn(token, end, (end,))

    # ---------------------------------------------------------------- the turn

    def answer(self, it: Heard, message: str, events: Sequence[Event]) -> UserTurn:
        mind = self.mind
        mind.repeats = mind.repeats + 1 if message == mind.last else 0
        mind.last = message
        written = self.note(events)
        if any(event.tool == _TRANSFER_TOOL and event.ok for event in events):
            return self.transferred("transferred")
        if "transfer" in it.acts and not it.acts & {"propose", "deny"}:
            return self.transferred("claimed")
        if mind.repeats + 1 >= _SAME:
            return self.ended("gave_up")
        identity = it.asks("email") or it.asks("name")
        if identity:
            self.identity(it)
        goal = active(self.scenario, mind, mind.at)
        if mind.phase[mind.at] not in _ENDED:
            self.about(goal, it, written, identity)
        if (turn := self.move_on()) is not None:
            return turn
        return self.closed(it)

    def closed(self, it: Heard) -> UserTurn:
        """The words of this turn; a customer who got nowhere says again what they want."""
        mind = self.mind
        mind.idle = 0 if self.progress else mind.idle + 1
        if mind.idle >= self.customer.patience_turns:
            return self.ended("gave_up")
        if not self.parts:
            goal = active(self.scenario, mind, mind.at)
            if goal.intent in SLOTS_OF:
                self.say("sorry" if "unparsed" in it.acts else "again", goal)
            else:
                self.say("again_say", goal)
        return UserTurn(self.text(), "", tuple(self.acts))

    def note(self, events: Sequence[Event]) -> bool:
        """Note the writes that happened; whether the present goal's was among them."""
        mind, now = self.mind, False
        for event in events:
            if not event.ok:
                continue
            for at in range(mind.goals):
                goal = active(self.scenario, mind, at)
                fits = goal.tool == event.tool and event.order_id in (goal.order_id, "")
                if fits and mind.phase[at] in ("open", "agreed"):
                    if at == mind.at:
                        now = True
                    else:
                        mind.phase[at] = "done"
                    break
        return now

    def transferred(self, kind: str) -> UserTurn:
        mind = self.mind
        for at in range(mind.goals):
            if mind.phase[at] not in _ENDED:
                wanted = active(self.scenario, mind, at).expect == "transferred"
                if not wanted or kind == "claimed":
                    mind.phase[at] = "wrongly_denied"
                else:
                    mind.phase[at] = "transferred"
        return self.ended("transfer", TRANSFERRED)

    def move_on(self) -> UserTurn | None:
        """After a goal's end the next one, or the stop token alone."""
        mind = self.mind
        if mind.phase[mind.at] not in _ENDED:
            return None
        while mind.at < mind.goals and mind.phase[mind.at] in _ENDED:
            mind.at += 1
        if mind.at == mind.goals:
            mind.at -= 1
            return self.ended("stop")
        goal = active(self.scenario, mind, mind.at)
        self.say("next" if goal.intent in SLOTS_OF else "next_say", goal)
        mind.doubted = False
        self.progress = True
        return None

    # ---------------------------------------------------------------- identity

    def identity(self, it: Heard) -> None:
        who = self.scenario.identity
        if it.asks("email") and who.knows_email:
            self.identify("email")
        elif it.asks("name") and who.knows_name:
            self.identify("name")
        else:
            self.unknown(it, who)

    def unknown(self, it: Heard, who: Identity) -> None:
        """The other route, offered once."""
        wanted = "email" if it.asks("email") else "name"
        if f"no_{wanted}" in self.mind.given or not (who.knows_email or who.knows_name):
            self.say("no_identity", self.scenario.goals[0])
            return
        self.mark(f"no_{wanted}")
        self.say(f"no_{wanted}", self.scenario.goals[0])

    def identify(self, how: str) -> None:
        who = self.scenario.identity
        slots = {"email": who.email, "first": who.first, "last": who.last, "code": who.code}
        self.say(how, self.scenario.goals[0], **slots)
        self.mark(how)

    def mark(self, what: str) -> None:
        if what not in self.mind.given:
            self.mind.given |= {what}
            self.progress = True

    # ---------------------------------------------------------------- the present goal

    def about(self, goal: Goal, it: Heard, written: bool, identity: bool) -> None:
        mind = self.mind
        if written:
            self.phase("done")
            return
        asked = self.slots(goal, it)
        if goal.ask and self.told(goal, it):
            return
        if "propose" in it.acts and self.proposed(goal, it):
            return
        if it.acts & {"deny", "unavailable"} and not asked and not identity:
            self.denied(goal)
        elif "done" in it.acts and mind.phase[mind.at] == "agreed" and not asked:
            self.claimed(goal)
        elif "ask_confirm" in it.acts and mind.phase[mind.at] == "agreed":
            self.say("yes", goal)

    def slots(self, goal: Goal, it: Heard) -> bool:
        """Give the slots that were asked for, as many as this customer names at once."""
        wanted = [_SLOT_OF.get(topic, topic) for topic in _ASKS if it.asks(topic)]
        uses = SLOTS_OF.get(goal.intent, ())
        mine = [slot for slot in wanted if slot in uses]
        for slot in mine[: self.scenario.persona.slots]:
            self.give(slot, goal)
        if wanted and not mine and "propose" not in it.acts:
            if wanted[0] == "order":
                self.say("no_order", goal)
            elif goal.intent in SLOTS_OF:
                self.say("no_preference", goal)
        return bool(mine)

    def give(self, slot: str, goal: Goal) -> None:
        mind = self.mind
        if slot == "method" and not goal.method:
            self.say("no_preference", goal)
        elif slot == "items" and not goal.wants:
            self.say("whole", goal)
        elif slot == "order" and goal.order_words:
            self.say("order_words", goal)
        else:
            self.say(slot, goal)
        self.mark(f"{mind.at}.{mind.stage[mind.at]}.{slot}")

    def phase(self, name: str) -> None:
        self.mind.phase[self.mind.at] = name
        self.progress = True

    def told(self, goal: Goal, it: Heard) -> bool:
        """Whether a question was settled."""
        if goal.money:
            value = told_amount(it, float(goal.answer))
        elif goal.answer.isdigit():
            value = goal.answer in it.numbers or goal.answer in it.items
        else:
            value = goal.answer.lower() in it.text
        if not value:
            if it.acts & {"deny"}:
                self.denied(goal)
            return False
        if len(it.numbers) > MOST_NUMBERS:
            self.say("too_many", goal)
            return True
        self.phase("done")
        return True

    def proposed(self, goal: Goal, it: Heard) -> bool:
        """Answer a proposal; False where it is none of this goal's and may be a denial."""
        mind = self.mind
        known = frozenset(
            other.order_id.lower()
            for at in range(mind.goals)
            if mind.phase[at] not in _ENDED and (other := active(self.scenario, mind, at)).order_id
        )
        fit = compared(goal, it, known, self.customer.strictness)
        if fit.fit == "other":
            if it.acts & {"deny", "unavailable", "ask_more"}:
                return False
            self.say("decline", goal) if goal.intent in SLOTS_OF else self.say("again_say", goal)
            return True
        if fit.fit == "right":
            self.agree(goal)
        else:
            self.correct(goal, fit)
        return True

    def agree(self, goal: Goal) -> None:
        mind = self.mind
        if goal.switch == "mind":
            self.switch("mind", goal)
        elif goal.limit is not None and goal.value > goal.limit:
            self.say("above_limit", goal)
            if goal.fallback is None:
                self.phase("dropped")
            else:
                self.switch("fallback", goal)
        else:
            self.say("yes", goal)
            place = (mind.at, mind.stage[mind.at])
            if place not in mind.granted:
                mind.granted |= {place}
                self.phase("agreed")

    def switch(self, act: str, goal: Goal) -> None:
        """Want the fallback from here on."""
        mind = self.mind
        assert goal.fallback is not None
        mind.stage[mind.at] += 1
        mind.pressed[mind.at] = 0
        new = goal.fallback
        self.say(act, new)
        if act == "mind" or new.intent == goal.intent:
            uses = SLOTS_OF.get(new.intent, ())
            slot = next((s for s in ("wants", "address", "method", "reason") if s in uses), "")
            if slot:
                self.give(slot, new)
        self.phase("open")

    def correct(self, goal: Goal, fit: Compared) -> None:
        slot = fit.slot
        unsaid = slot == "method" and not goal.method
        if fit.fit == "missing" or unsaid or (slot == "items" and not goal.wants):
            self.say(f"missing_{slot}", goal)
        else:
            self.say(f"wrong_{slot}", goal)
        place = f"{self.mind.at}.{self.mind.stage[self.mind.at]}.{slot}.corrected"
        self.mark(place)

    def denied(self, goal: Goal) -> None:
        """Insist, accept or contest; or want the fallback."""
        mind, at = self.mind, self.mind.at
        mind.pressed[at] += 1
        pressed = mind.pressed[at]
        if goal.expect == "denied":
            if pressed <= goal.insist:
                self.say("insist", goal)
                self.progress = True
            elif goal.fallback is not None:
                if goal.fallback.intent in SLOTS_OF:
                    self.switch("fallback", goal)
                else:
                    self.human(goal)
            else:
                self.say("accept", goal)
                self.phase("denied")
        elif pressed <= self.scenario.persona.patience:
            self.say("contest" if goal.expect == "done" else "insist", goal)
        else:
            self.phase("wrongly_denied")

    def human(self, goal: Goal) -> None:
        """Ask for what the fallback says, in its own words."""
        mind = self.mind
        assert goal.fallback is not None
        mind.stage[mind.at] += 1
        mind.pressed[mind.at] = 0
        self.say("next_say", goal.fallback)
        self.phase("open")

    def claimed(self, goal: Goal) -> None:
        """The assistant says done, and nothing happened: ask once."""
        if self.mind.doubted:
            self.phase("claimed")
        else:
            self.mind.doubted = True
            self.say("went_through", goal)
