"""Scripted customers: one that plays any scenario by rules, and a stub for tasks in prose.

The rules, in order: who is asked for something known gives exactly that; a complete and right
proposal gets a yes, a wrong one the slot corrected, an incomplete one a question; a denial is
accepted, contested or leads to the fallback; agreement is not completion; a question is settled by
its value, told among few numbers; when nothing is left to want, the stop token ends the talk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .interface import STOP, TRANSFERRED, CustomerState, Event, UserTurn
from .parser import ParsedMessage, parse_message
from .proposals import ProposalFit, Strictness, compare_proposal, states_amount
from .scenario import SLOTS_OF, Goal, Identity, Scenario
from .scenario_text import fill_slots
from .wording import add_fillers, add_typos, drop_politeness, write_act

PATIENCE_TURNS = 6
"""Turns without progress that anybody bears."""
MAX_NUMBERS = 4
"""Numbers in a message that still answers a question."""
_MAX_REPEATS = 3
_ENDED = ("done", "denied", "transferred", "dropped", "claimed", "untold", "wrongly_denied")
_TRANSFER_TOOL = "transfer_to_human_agents"
_ASKS = ("order", "items", "options", "payment", "reason", "address")
_SLOT_OF = {"options": "wants", "payment": "method"}


def get_active_goal(scenario: Scenario, state: CustomerState, at: int | None = None) -> Goal:
    """Return the present goal, or the one at a place, after the fallbacks that were taken."""
    at = state.at if at is None else at
    goal = scenario.goals[at]
    for _ in range(state.stage[at]):
        assert goal.fallback is not None
        goal = goal.fallback
    return goal


def hand_over(scenario: Scenario, state: CustomerState, *, claimed: bool = False) -> None:
    """End every open goal by a transfer to a human, or by words that merely claim one."""
    for at in range(state.goals):
        if state.phase[at] not in _ENDED:
            wanted = get_active_goal(scenario, state, at).expect == "transferred"
            state.phase[at] = "transferred" if wanted and not claimed else "wrongly_denied"


@dataclass(frozen=True, slots=True)
class RuleCustomer:
    """Plays any scenario.

    Attributes:
        strictness: What a yes asks for: ``"lenient"`` the order, ``"standard"`` all slots,
            ``"strict"`` the price difference as well, and who pays it.
        patience_turns: Turns without progress before giving up.
    """

    strictness: Strictness = "standard"
    patience_turns: int = PATIENCE_TURNS
    blocking: bool = False

    def begin(self, scenario: Scenario, key: int, brief: str) -> tuple[CustomerState, UserTurn]:  # noqa: ARG002
        """Return the first goal in headlines, or all of it where the scenario says so."""
        state = CustomerState(key, len(scenario.goals))
        talk = _Reply(scenario, state, self)
        goal = get_active_goal(scenario, state)
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
        return state, UserTurn(talk.text(max_parts=9), "", tuple(talk.acts))

    def reply(
        self, scenario: Scenario, state: CustomerState, message: str, events: Sequence[Event]
    ) -> UserTurn:
        """Return the answer to a message of the assistant."""
        state.turn += 1
        return _Reply(scenario, state, self).answer(parse_message(message), message, events)


class _Reply:
    """One turn of the customer in the making."""

    __slots__ = ("acts", "customer", "parts", "progress", "scenario", "state")

    def __init__(self, scenario: Scenario, state: CustomerState, customer: RuleCustomer) -> None:
        self.scenario, self.state, self.customer = scenario, state, customer
        self.parts: list[str] = []
        self.acts: list[str] = []
        self.progress = False

    def say(self, act: str, goal: Goal, **more: str) -> None:
        persona = self.scenario.persona
        terse = persona.verbosity == "terse"
        style = "terse" if terse else "held_out" if persona.held_out else "plain"
        slots = {**fill_slots(goal), **more}
        self.parts.append(write_act(self.state.key, self.state.turn, act, style, slots))
        self.acts.append(act)

    def text(self, max_parts: int = 2) -> str:
        persona, state = self.scenario.persona, self.state
        text = " ".join(self.parts[:max_parts])
        if not persona.polite:
            text = drop_politeness(text)
        if persona.verbosity == "chatty":
            text = add_fillers(state.key, state.turn, text)
        if persona.noise:
            text = add_typos(state.key, state.turn, text, persona.noise)
        return text

    def end(self, end: str, token: str = STOP) -> UserTurn:
        self.state.end = end
        return UserTurn(token, end, (end,))

    def answer(self, it: ParsedMessage, message: str, events: Sequence[Event]) -> UserTurn:
        state = self.state
        state.repeats = state.repeats + 1 if message == state.last else 0
        state.last = message
        written = self.note_writes(events)
        if any(event.tool == _TRANSFER_TOOL and event.ok for event in events):
            return self.transfer()
        if "transfer" in it.acts and not it.acts & {"propose", "deny"}:
            return self.transfer(claimed=True)
        if state.repeats + 1 >= _MAX_REPEATS:
            return self.end("gave_up")
        identity = it.asks("email") or it.asks("name")
        if identity:
            self.answer_identity(it)
        goal = get_active_goal(self.scenario, state)
        if state.phase[state.at] not in _ENDED:
            self.pursue(goal, it, written, identity)
        if (turn := self.move_on()) is not None:
            return turn
        return self.close(it)

    def close(self, it: ParsedMessage) -> UserTurn:
        """Finish the turn; a customer who got nowhere says again what they want."""
        state = self.state
        state.idle = 0 if self.progress else state.idle + 1
        if state.idle >= self.customer.patience_turns:
            return self.end("gave_up")
        if not self.parts:
            goal = get_active_goal(self.scenario, state)
            if goal.intent in SLOTS_OF:
                self.say("sorry" if "unparsed" in it.acts else "again", goal)
            else:
                self.say("again_say", goal)
        return UserTurn(self.text(), "", tuple(self.acts))

    def note_writes(self, events: Sequence[Event]) -> bool:
        """Note the writes that happened and tell whether the present goal's was among them."""
        state, now = self.state, False
        for event in events:
            if not event.ok:
                continue
            for at in range(state.goals):
                goal = get_active_goal(self.scenario, state, at)
                fits = goal.tool == event.tool and event.order_id in (goal.order_id, "")
                if fits and state.phase[at] in ("open", "agreed"):
                    if at == state.at:
                        now = True
                    else:
                        state.phase[at] = "done"
                    break
        return now

    def transfer(self, *, claimed: bool = False) -> UserTurn:
        hand_over(self.scenario, self.state, claimed=claimed)
        return self.end("transfer", TRANSFERRED)

    def move_on(self) -> UserTurn | None:
        """Begin the next goal after one has ended; return the stop token after the last."""
        state = self.state
        if state.phase[state.at] not in _ENDED:
            return None
        while state.at < state.goals and state.phase[state.at] in _ENDED:
            state.at += 1
        if state.at == state.goals:
            state.at -= 1
            return self.end("stop")
        goal = get_active_goal(self.scenario, state)
        self.say("next" if goal.intent in SLOTS_OF else "next_say", goal)
        state.doubted = False
        self.progress = True
        return None

    def answer_identity(self, it: ParsedMessage) -> None:
        who = self.scenario.identity
        if it.asks("email") and who.knows_email:
            self.identify("email")
        elif it.asks("name") and who.knows_name:
            self.identify("name")
        else:
            self.offer_other_identity(it, who)

    def offer_other_identity(self, it: ParsedMessage, who: Identity) -> None:
        """Offer the other way of being identified, once."""
        wanted = "email" if it.asks("email") else "name"
        if f"no_{wanted}" in self.state.given or not (who.knows_email or who.knows_name):
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
        if what not in self.state.given:
            self.state.given |= {what}
            self.progress = True

    def pursue(self, goal: Goal, it: ParsedMessage, written: bool, identity: bool) -> None:
        state = self.state
        if written:
            self.set_phase("done")
            return
        asked = self.answer_slots(goal, it)
        if goal.ask and self.settle_question(goal, it):
            return
        if "propose" in it.acts and self.answer_proposal(goal, it):
            return
        if it.acts & {"deny", "unavailable"} and not asked and not identity:
            self.answer_denial(goal)
        elif "done" in it.acts and state.phase[state.at] == "agreed" and not asked:
            self.doubt(goal)
        elif "ask_confirm" in it.acts and state.phase[state.at] == "agreed":
            self.say("yes", goal)

    def answer_slots(self, goal: Goal, it: ParsedMessage) -> bool:
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
        state = self.state
        if slot == "method" and not goal.method:
            self.say("no_preference", goal)
        elif slot == "items" and not goal.wants:
            self.say("whole", goal)
        elif slot == "order" and goal.order_words:
            self.say("order_words", goal)
        else:
            self.say(slot, goal)
        self.mark(f"{state.at}.{state.stage[state.at]}.{slot}")

    def set_phase(self, name: str) -> None:
        self.state.phase[self.state.at] = name
        self.progress = True

    def settle_question(self, goal: Goal, it: ParsedMessage) -> bool:
        """Tell whether a question was settled."""
        if goal.money:
            value = states_amount(it, float(goal.answer))
        elif goal.answer.isdigit():
            value = goal.answer in it.numbers or goal.answer in it.items
        else:
            value = goal.answer.lower() in it.text
        if not value:
            return False
        if len(it.numbers) > MAX_NUMBERS:
            self.say("too_many", goal)
            return True
        self.set_phase("done")
        return True

    def answer_proposal(self, goal: Goal, it: ParsedMessage) -> bool:
        """Answer a proposal; False where it is none of this goal's and may be a denial.

        Beside a denial only a right proposal of what can be done is answered, as the denial is then
        about something else ("this cannot be undone"); beside words that something is sold out,
        only a proposal of what can be done.
        """
        known = self.list_known(it)
        fit = compare_proposal(goal, it, known, self.customer.strictness)
        feasible = goal.expect == "done"
        if "deny" in it.acts and not (feasible and fit.fit == "right"):
            return False
        if "unavailable" in it.acts and not feasible:
            return False
        if fit.fit == "other":
            if it.acts & {"unavailable", "ask_more"}:
                return False
            self.say("decline", goal) if goal.intent in SLOTS_OF else self.say("again_say", goal)
            return True
        if fit.fit == "right":
            self.agree(goal, it, known)
        else:
            self.correct(goal, fit)
        return True

    def list_known(self, it: ParsedMessage) -> frozenset[str]:
        """Return the orders of all open goals, and what is wanted of those that ``it`` names."""
        state, known = self.state, set[str]()
        for at in range(state.goals):
            if state.phase[at] in _ENDED:
                continue
            goal = get_active_goal(self.scenario, state, at)
            known |= {goal.order_id.lower()}
            if goal.order_id.lower() in it.orders:
                for want in goal.wants:
                    known |= {want.item_id, want.new_id, want.name.lower()}
        return frozenset(known)

    def agree(self, goal: Goal, it: ParsedMessage, known: frozenset[str]) -> None:
        """Answer a right proposal; a yes is one to every open goal that the message proposes."""
        state = self.state
        if goal.switch == "mind":
            self.switch("mind", goal)
        elif goal.limit is not None and goal.value > goal.limit:
            self.say("below_limit" if goal.limit < 0 else "above_limit", goal)
            if goal.fallback is None:
                self.set_phase("dropped")
            else:
                self.switch("fallback", goal)
        else:
            self.say("yes", goal)
            for at in range(state.goals):
                if at == state.at or self.is_proposed_beside(at, it, known):
                    self.grant(at)

    def is_proposed_beside(self, at: int, it: ParsedMessage, known: frozenset[str]) -> bool:
        """Tell whether a message also proposes another open goal, which a yes would settle."""
        if self.state.phase[at] != "open":
            return False
        goal = get_active_goal(self.scenario, self.state, at)
        over = goal.limit is not None and goal.value > goal.limit
        if goal.expect != "done" or goal.switch == "mind" or over:
            return False
        level = self.customer.strictness
        full: Strictness = "standard" if level == "lenient" else level
        return compare_proposal(goal, it, known, full).fit == "right"

    def grant(self, at: int) -> None:
        """Note that a goal got its yes."""
        state = self.state
        place = (at, state.stage[at])
        if place not in state.granted:
            state.granted |= {place}
            state.phase[at] = "agreed"
            self.progress = True

    def switch(self, act: str, goal: Goal) -> None:
        """Want the fallback from here on."""
        state = self.state
        assert goal.fallback is not None
        state.stage[state.at] += 1
        state.pressed[state.at] = 0
        new = goal.fallback
        self.say(act, new)
        if act == "mind" or new.intent == goal.intent:
            uses = SLOTS_OF.get(new.intent, ())
            slot = next((s for s in ("wants", "address", "method", "reason") if s in uses), "")
            if slot:
                self.give(slot, new)
        self.set_phase("open")

    def correct(self, goal: Goal, fit: ProposalFit) -> None:
        slot = fit.slot
        unsaid = slot == "method" and not goal.method
        if fit.fit == "missing" or unsaid or (slot == "items" and not goal.wants):
            self.say(f"missing_{slot}", goal)
        else:
            self.say(f"wrong_{slot}", goal)
        place = f"{self.state.at}.{self.state.stage[self.state.at]}.{slot}.corrected"
        self.mark(place)

    def answer_denial(self, goal: Goal) -> None:
        """Insist, accept or contest a denial, or go over to the fallback."""
        state, at = self.state, self.state.at
        state.pressed[at] += 1
        pressed = state.pressed[at]
        if goal.expect == "denied":
            if pressed <= goal.insist:
                self.say("insist", goal)
                self.progress = True
            elif goal.fallback is not None:
                if goal.fallback.intent in SLOTS_OF:
                    self.switch("fallback", goal)
                else:
                    self.ask_for_human(goal)
            else:
                self.say("accept", goal)
                self.set_phase("denied")
        elif pressed <= self.scenario.persona.patience:
            self.say("contest" if goal.expect == "done" else "insist", goal)
        else:
            self.set_phase("wrongly_denied")

    def ask_for_human(self, goal: Goal) -> None:
        """Ask for what the fallback says, in its own words."""
        state = self.state
        assert goal.fallback is not None
        state.stage[state.at] += 1
        state.pressed[state.at] = 0
        self.say("next_say", goal.fallback)
        self.set_phase("open")

    def doubt(self, goal: Goal) -> None:
        """Ask once whether it went through: the assistant says so, and nothing happened."""
        if self.state.doubted:
            self.set_phase("claimed")
        else:
            self.state.doubted = True
            self.say("went_through", goal)


class SilentCustomer:
    """Tells the whole instruction at once and stops at the assistant's first message.

    It is a stub: nothing is asked and nothing confirmed, so the score is about the shop's state
    and the words of one message alone.
    """

    blocking = False
    tracks = False
    plays_prose = True

    def begin(self, scenario: Scenario, key: int, brief: str) -> tuple[CustomerState, UserTurn]:  # noqa: ARG002
        """Return the instruction."""
        return CustomerState(key, 1), UserTurn(brief)

    def reply(
        self,
        scenario: Scenario,  # noqa: ARG002 - one answer fits all
        state: CustomerState,
        message: str,
        events: Sequence[Event],
    ) -> UserTurn:
        """End the conversation."""
        state.turn += 1
        state.last = message
        handed = any(event.tool == _TRANSFER_TOOL for event in events)
        state.end = "transfer" if handed else "stop"
        return UserTurn(TRANSFERRED if handed else STOP, state.end)
