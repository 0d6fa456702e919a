"""Retail-v0: an assistant with tools, a customer with wishes, and the shop's rules between them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api import TextEnv
from ..episode import Call, Episode, Outcome, Play, Verdict
from ..errors import BadValueError
from ..grammar import ToolCall, Unreadable
from ..randomness import EpisodeRandom
from ..tasks import Task
from .channel import Channel, chosen_channel
from .customer.rules import RuleCustomer
from .customer.turns import Customer, UserTurn
from .customer.wording import key_of
from .moves import called, message_of, spoken, talked
from .policy import instructions
from .rewards import Score, scored
from .serving import Ask, serve_replies
from .setup import Knowledge, chosen_customer, generated
from .shop.desk import Desk
from .shop.semantics import semantics
from .shop.toolset import CLOSE, OPEN
from .state import RetailState
from .tasks.payload import RetailTask

if TYPE_CHECKING:
    from .speech import Waveform

_TURNS = {"full": 60, "micro": 16}
_EXPECTED = (
    "Write a message to the customer, or one tool call: "
    '<tool_call>{"name": "tool name", "arguments": {}}</tool_call>.\n'
)


class Retail(TextEnv[RetailState, RetailTask]):
    """Serve a customer of an online shop by its tools and rules (tau-bench's game).

    Description:
        The first observation is the customer's first words. An action is a message to the
        customer, or ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, answered by
        ``Tool: …``; ``<think>`` before either is free. The customer ends the talk with a token
        alone: ``###STOP###`` or ``###TRANSFER###``.

        Customers, orders and goods are generated (train, dev, test and hard share none), or read
        from the files of tau-bench and tau2 with ``data``.

    Rewards:
        ``success``: 1 when exactly the right records differ in the right way, all that was asked
        for was told, every wish ended as it should (done, denied, handed over), denials were well
        founded, and no scored rule was broken.

    Args:
        size: ``"full"`` (17 tools, 50 products, tiers 1 to 5) or ``"micro"`` (five tools, twelve
            products, short words, tiers 1 and 2).
        tiers: Difficulties to draw from: one number or several.
        world_seed: Seed of the generated shops and tasks.
        mode: ``"strict"``; ``"tau"`` and ``"tau1"`` are the tools exactly as published in tau2
            and tau-bench, with their defects.
        customer: ``"rules"``; ``{"url": ..., "model": ..., "cache": ...}`` for a language model
            behind an OpenAI-compatible address (settings of :class:`~.customer.chat.ChatEndpoint`
            and :class:`~.customer.llm.LlmCustomer`); or an object: see
            :class:`~.customer.turns.Customer`.
        strictness: What the customer's yes asks for: ``"lenient"``, ``"standard"``, ``"strict"``.
        patience_turns: Turns without progress before the customer gives up.
        channel: ``"text"``, ``"spoken"`` (ids spelled, slips of the tongue), ``"speech"`` (a
            waveform by espeak-ng) or a channel object.
        policy: Whether broken rules cost the success; by default in mode strict.
        data: Folder with the files of tau2 (``db.json``, ``tasks.json``) or tau-bench
            (``users.json``, ``orders.json``, ``products.json``, ``tasks_test.json``).
        max_turns: Actions per episode; 60 in the full shop, 16 in the micro shop.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown value; names the nearest.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: A file that does not hold what it should.

    References:
        tau-bench, arXiv 2406.12045; tau2-bench, arXiv 2506.07982; TARL, arXiv 2509.14480.

    Version history:
        v0: first.
    """

    stop = (CLOSE,)

    def __init__(  # noqa: PLR0913 - the knobs are what gym.make takes
        self,
        *,
        size: str | None = None,
        tiers: int | Sequence[int] | None = None,
        world_seed: int | None = None,
        mode: str | None = None,
        customer: Any = "rules",
        strictness: str = "standard",
        patience_turns: int = 6,
        channel: str | Channel = "text",
        policy: bool | None = None,
        data: str | Path | None = None,
        max_turns: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.customer = chosen_customer(customer, strictness, patience_turns)
        if data is None:
            mode = "strict" if mode is None else semantics(mode).name
            made = generated(size=size, tiers=tiers, world_seed=world_seed, mode=mode)
        else:
            from .files.folder import read_folder

            for name, value in (("size", size), ("tiers", tiers), ("world_seed", world_seed)):
                if value is not None:
                    raise BadValueError(f"Retail: {name} is about generated shops; data has one.")
            made = read_folder(data, mode)
            if customer == "rules":
                from .customer.listener import Listener

                self.customer = Listener()
        self.channel = chosen_channel(channel)
        self.set_up(made, max_turns=max_turns, policy=policy, render_mode=render_mode)

    def set_up(
        self,
        knowledge: Knowledge,
        *,
        max_turns: int | None = None,
        policy: bool | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Take up tasks and tools; the constructor's second half."""
        self.knowledge = knowledge
        self.customer: Customer = getattr(self, "customer", None) or RuleCustomer()
        self.channel: Channel = getattr(self, "channel", None) or chosen_channel("text")
        micro = knowledge.size == "micro"
        super().__init__(
            source=knowledge.source,
            max_turns=_TURNS["micro" if micro else "full"] if max_turns is None else max_turns,
            render_mode=render_mode,
        )
        self.strict = knowledge.tools.semantics.name == "strict"
        self.policy = self.strict if policy is None else policy
        usages = {tool.usage: tool.description for tool in knowledge.tools.tools.values()}
        rules = getattr(knowledge.source, "rules", "")
        self.instructions = instructions(usages, micro=micro, rules=rules)
        self.tools = knowledge.tools.schemas
        self.tracks = getattr(self.customer, "tracks", True)
        self.blocking = self.customer.blocking or self.channel.blocking

    # ------------------------------------------------------------------ the game

    def begin(self, task: Task[RetailTask], random: EpisodeRandom) -> tuple[RetailState, str]:
        """The customer's first words."""
        payload = task.payload
        key = key_of(random.seed, task.id)
        if payload.scenario is None:
            mind, turn = self.customer.begin(_NOBODY, key, payload.brief)
        else:
            mind, turn = self.customer.begin(payload.scenario, key, payload.brief)
        state = RetailState(Desk(self.knowledge.source.shop(payload.shop)), mind)
        state.words = turn.text
        return state, f"Customer: {self.channel.heard(turn.text, key, 0)}\n"

    def play(self, episode: Episode[RetailState], action: str) -> Play:
        """Call a tool or answer the customer."""
        if OPEN in action or CLOSE in action:
            return self._called(episode, action)
        message = message_of(action)
        if not message:
            return Outcome.unreadable(f"The message is empty. {_EXPECTED}", verdict=0)
        return self._said(episode, message)

    def _called(self, episode: Episode[RetailState], action: str) -> Outcome:
        call = self.knowledge.tools.read(action)
        if isinstance(call, Unreadable):
            return Outcome.unreadable(f"Tool: {call.message}\n", verdict=0)
        assert isinstance(call, ToolCall)
        text, verdict = called(episode, self.knowledge, call, action, tracks=self.tracks)
        state = episode.state
        if state.transferred and self.knowledge.tools.semantics.name == "tau1":
            state.mind.end = "transfer"
            return self._ended(episode, action, f"Tool: {text}\n", verdict)
        return Outcome.move(f"Tool: {text}\n", verdict=verdict)

    def _said(self, episode: Episode[RetailState], message: str) -> Play:
        state, scenario = episode.state, episode.task.payload.scenario or _NOBODY
        if self.customer.blocking:
            return self._asked(episode, message)
        turn = self.customer.reply(scenario, state.mind, message, state.events)
        return self._answered(episode, message, turn)

    def _asked(self, episode: Episode[RetailState], message: str) -> Generator[Call, Any, Outcome]:
        state, scenario = episode.state, episode.task.payload.scenario or _NOBODY
        ask = Ask(self.customer, scenario, state.mind.fork(), message, state.events)
        turn, state.mind = yield Call(serve_replies, ask)
        return self._answered(episode, message, turn)

    def _answered(self, episode: Episode[RetailState], message: str, turn: UserTurn) -> Outcome:
        state = episode.state
        verdict = talked(episode, message, tracks=self.tracks)
        state.events = ()
        if turn.end:
            return self._ended(episode, message, f"Customer: {turn.text}\n", verdict)
        state.words = turn.text
        heard = self.channel.heard(turn.text, state.mind.key, state.mind.turn)
        return Outcome.move(f"Customer: {heard}\n", verdict=verdict)

    def _ended(
        self, episode: Episode[RetailState], action: str, observation: str, verdict: Verdict | None
    ) -> Outcome:
        success = self.score(episode, action).success
        end = Outcome.solved if success else Outcome.failed
        return end(observation, {"success": float(success)}, verdict=verdict)

    # ------------------------------------------------------------------ what is said about it

    def score(self, episode: Episode[RetailState], action: str | None = None) -> Score:
        """The parts of the success of a visit that is over.

        Args:
            episode: The episode.
            action: The last action, where the episode does not hold it yet.
        """
        task = episode.task.payload
        messages = [] if self.tracks and not task.outputs else spoken(episode, action)
        return scored(
            task,
            episode.state,
            self.knowledge.right(episode.task.id, task),
            messages,
            tracks=self.tracks,
            policy=self.policy,
        )

    def sound(self) -> Waveform:
        """The customer's last message as sound (channel ``"speech"``).

        Raises:
            BadValueError: The channel has no sound.
        """
        speak = getattr(self.channel, "sound", None)
        if speak is None:
            raise BadValueError("Retail: there is no sound; expected channel='speech'.")
        state = self.episode.state
        return speak(state.words, state.mind.key, state.mind.turn)

    def fork_state(self, state: RetailState) -> RetailState:
        """A copy; records, scenario and words are shared."""
        return state.fork()

    def hidden_answers(self, episode: Episode[RetailState]) -> Sequence[str]:
        """The customer's user id, and the items that the wishes mean."""
        scenario = episode.task.payload.scenario
        if scenario is None:
            return ()
        shown = scenario.opening and any(goal.ids for goal in scenario.goals)
        items = () if shown else [w.new_id for g in scenario.goals for w in g.wants if w.new_id]
        return (scenario.identity.user_id, *items)

    def metrics(self, episode: Episode[RetailState]) -> Mapping[str, float]:
        """The parts of the success, the tier, and what was done."""
        state, task = episode.state, episode.task.payload
        over = bool(state.mind.end)
        score = self.score(episode) if over else Score(*([False] * 5))
        found = {
            "data": float(score.data),
            "told": float(score.told),
            "ended": float(score.ended),
            "evidence": float(score.evidence),
            "policy": float(score.policy),
            "writes": float(len(state.calls)),
            "tool_errors": float(state.errors),
            "customer_turns": float(state.mind.turn),
            "gave_up": float(state.mind.end == "gave_up"),
            "violations": float(len(state.violations)),
        }
        if task.tier:
            found["tier"] = float(task.tier)
            found[f"tier{task.tier}_success"] = float(over and score.success)
        if task.judged:
            found["judged_left_out"] = float(len(task.judged))
        return found

    def legal_actions(self) -> list[str] | None:
        """In the micro shop: calls with ids that were named, and messages that make sense."""
        if self.knowledge.size != "micro":
            return None
        from .expert import sensible_actions

        return sensible_actions(self)


def _nobody() -> Any:
    from .customer.scenario import Goal, Identity, Persona, Scenario

    who = Identity(user_id="", first="", last="", code="", email="")
    goal = Goal(intent="other", about="")
    return Scenario(identity=who, persona=Persona(), goals=(goal,))


_NOBODY = _nobody()
"""Stands for the scenario of a task that only prose describes."""
