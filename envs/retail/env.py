"""Retail-v0: an assistant with tools, a customer with goals, and the shop's policy between them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.env import TextEnv
from ..core.episode import Call, Episode, Outcome, Play, Verdict
from ..core.errors import BadValueError
from ..core.randomness import EpisodeRandom
from ..core.settings import check_bool
from ..core.tasks import Task
from ..tools.action_parsing import Unreadable
from .action_handlers import check_message, collect_messages, handle_call
from .build import build_customer, build_knowledge
from .customer.channels import Channel, Waveform, build_channel
from .customer.interface import ReplyRequest, UserTurn, serve_replies
from .customer.parser import strip_thoughts
from .customer.scenario import NOBODY
from .customer.scripted import hand_over
from .customer.wording import make_wording_key
from .expert import list_sensible_actions
from .knowledge import Knowledge
from .rewards import Score, score_visit
from .shop.overlay import Overlay
from .shop.policy import write_instructions
from .shop.tables import Shop
from .shop.toolset import CLOSE, MICRO, OPEN, get_toolset
from .state import RetailState
from .tasks.payload import RetailTask
from .tasks.solvability import SingleTaskSource, SolvabilityProof

_EXPECTED = (
    "Write a message to the customer, or one tool call: "
    '<tool_call>{"name": "tool name", "arguments": {}}</tool_call>.\n'
)


class Retail(TextEnv[RetailState, RetailTask]):
    """Serve a customer of an online shop by its tools and its policy (tau-bench's domain).

    Description:
        The first observation is the customer's first words. An action is a message to the
        customer, or ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, answered by
        ``Tool: …``; ``<think>`` before either is free. The customer ends the talk with a token
        alone: ``###STOP###`` or ``###TRANSFER###``. An invalid action consumes a turn and returns
        an error message.

        Customers, orders and goods are generated (train, dev, test and hard share none), or read
        from the files of tau-bench and tau2 with ``data``.

    Rewards:
        ``success``: 1 when exactly the right records differ in the right way, all that was asked
        for was told, every goal ended as it should (done, denied, handed over), denials and answers
        were well founded (the record was read), and no scored rule was broken.

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
            :class:`~.customer.interface.Customer`.
        strictness: What the customer's yes asks for: ``"lenient"``, ``"standard"``, ``"strict"``.
        patience_turns: Turns without progress before the customer gives up.
        channel: ``"text"``, ``"spoken"`` (ids spelled, slips of the tongue), ``"speech"`` (a
            waveform by espeak-ng) or a channel object.
        policy: Whether broken rules cost the success; by default in mode strict.
        data: Folder with the files of tau2 (``db.json``, ``tasks.json``) or tau-bench
            (``users.json``, ``orders.json``, ``products.json``, ``tasks_test.json``), or a
            :class:`~.knowledge.Knowledge` as it is.
        max_turns: Actions per episode; 60 in the full shop, 16 in the micro shop.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown value; the message names the nearest.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: A file that does not hold what it should.

    References:
        tau-bench, arXiv 2406.12045; tau2-bench, arXiv 2506.07982; TARL, arXiv 2509.14480.

    Version history:
        v0: first.
    """

    stop = (CLOSE,)

    def __init__(  # noqa: PLR0913 - the settings are what gym.make takes
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
        data: str | Path | Knowledge | None = None,
        max_turns: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.knowledge = knowledge = build_knowledge(
            data, mode, prove_solvable, size=size, tiers=tiers, world_seed=world_seed
        )
        prose = knowledge.size is None
        self.customer = build_customer(customer, strictness, patience_turns, prose=prose)
        self.channel = build_channel(channel)
        micro = knowledge.size == "micro"
        super().__init__(
            source=knowledge.source,
            max_turns=(16 if micro else 60) if max_turns is None else max_turns,
            render_mode=render_mode,
        )
        self.mode = knowledge.tools.semantics.name
        strict = self.mode == "strict"
        self.policy = strict if policy is None else check_bool("policy", policy, "Retail")
        usages = {tool.usage: tool.description for tool in knowledge.tools.tools.values()}
        self.instructions = write_instructions(usages, micro=micro, rules=knowledge.source.rules)
        self.tools = knowledge.tools.schemas
        self.tracks = getattr(self.customer, "tracks", True)
        self.blocking = self.customer.blocking or self.channel.blocking
        self.repeatable = not self.blocking or getattr(self.customer, "temperature", None) == 0.0

    def begin(self, task: Task[RetailTask], random: EpisodeRandom) -> tuple[RetailState, str]:
        """Return the state and the customer's first words."""
        payload = task.payload
        key = make_wording_key(random.seed, task.id)
        customer, turn = self.customer.begin(payload.scenario or NOBODY, key, payload.brief)
        overlay = Overlay(self.knowledge.source.shop(payload.shop))
        state = RetailState(overlay, customer, words=turn.text)
        return state, f"Customer: {self.channel.deliver(turn.text, key, 0)}\n"

    def play(self, episode: Episode[RetailState], action: str) -> Play:
        """Call a tool or answer the customer."""
        if OPEN in action or CLOSE in action:
            return self._call_tool(episode, action)
        message = strip_thoughts(action)
        if not message:
            return Outcome.unreadable(f"The message is empty. {_EXPECTED}", verdict=0)
        if self.customer.blocking:
            return self._wait_for_customer(episode, message)
        state, scenario = episode.state, episode.task.payload.scenario or NOBODY
        turn = self.customer.reply(scenario, state.customer, message, state.events)
        return self._finish_turn(episode, message, turn)

    def _call_tool(self, episode: Episode[RetailState], action: str) -> Outcome:
        call = self.knowledge.tools.parse(action)
        if isinstance(call, Unreadable):
            return Outcome.unreadable(f"Tool: {call.message}\n", verdict=0)
        text, verdict = handle_call(episode, self.knowledge, call, action, tracks=self.tracks)
        state = episode.state
        if state.transferred and self.mode == "tau1":
            state.customer.end = "transfer"
            scenario = episode.task.payload.scenario
            if self.tracks and scenario is not None:
                hand_over(scenario, state.customer)
            return self._end(episode, action, f"Tool: {text}\n", verdict)
        return Outcome.move(f"Tool: {text}\n", verdict=verdict)

    def _wait_for_customer(
        self, episode: Episode[RetailState], message: str
    ) -> Generator[Call, Any, Outcome]:
        state, scenario = episode.state, episode.task.payload.scenario or NOBODY
        request = ReplyRequest(
            self.customer, scenario, state.customer.fork(), message, state.events
        )
        turn, state.customer = yield Call(serve_replies, request)
        return self._finish_turn(episode, message, turn)

    def _finish_turn(self, episode: Episode[RetailState], message: str, turn: UserTurn) -> Outcome:
        state = episode.state
        verdict = check_message(episode, message, tracks=self.tracks)
        state.events = ()
        if turn.end:
            return self._end(episode, message, f"Customer: {turn.text}\n", verdict)
        state.words = turn.text
        words = self.channel.deliver(turn.text, state.customer.key, state.customer.turn)
        return Outcome.move(f"Customer: {words}\n", verdict=verdict)

    def _end(
        self, episode: Episode[RetailState], action: str, observation: str, verdict: Verdict | None
    ) -> Outcome:
        success = self.score(episode, action).success
        end = Outcome.solved if success else Outcome.failed
        return end(observation, {"success": float(success)}, verdict=verdict)

    def score(self, episode: Episode[RetailState], action: str | None = None) -> Score:
        """Return the parts of the success of a visit that is over.

        Args:
            episode: The episode.
            action: The last action, where the episode does not hold it yet.
        """
        task = episode.task.payload
        needed = task.outputs or not self.tracks
        return score_visit(
            task,
            episode.state,
            self.knowledge.find_right_states(episode.task.id, task),
            collect_messages(episode, action) if needed else [],
            tracks=self.tracks,
            policy=self.policy,
        )

    def sound(self) -> Waveform:
        """Return the customer's last message as sound (channel ``"speech"``).

        Raises:
            BadValueError: The channel has no sound.
        """
        speak = getattr(self.channel, "sound", None)
        if speak is None:
            raise BadValueError("Retail: there is no sound; expected channel='speech'.")
        state = self.episode.state
        return speak(state.words, state.customer.key, state.customer.turn)

    def fork_state(self, state: RetailState) -> RetailState:
        """Return a copy of the state; records, scenario and words are shared."""
        return state.fork()

    def identify_state(self, episode: Episode[RetailState]) -> Any:
        """Return the shop, what the assistant knows and did, and the customer's state.

        The customer's turns and wording, and calls that were refused, are left out. A read record
        that is read again changes nothing; a message that brings nothing forward wears out the
        customer's patience and so changes the state. The customer's last words are in it only where
        nothing else tells what was agreed (a customer without goals).
        """
        state = episode.state
        scripted = self.tracks and episode.task.payload.scenario is not None
        return (
            replace(state.customer, key=0, turn=0),
            (state.overlay, state.user_id, state.seen, state.events, state.calls),
            frozenset(rule for _, rule in state.violations),
            (bool(state.searches), state.transferred, state.blamed),
            "" if scripted else state.answer,
        )

    def hidden_answers(self, episode: Episode[RetailState]) -> Sequence[str]:
        """Return the customer's user id, and the items that the preferences mean."""
        scenario = episode.task.payload.scenario
        if scenario is None:
            return ()
        shown = scenario.opening and any(goal.ids for goal in scenario.goals)
        items = () if shown else [w.new_id for g in scenario.goals for w in g.wants if w.new_id]
        return (scenario.identity.user_id, *items)

    def metrics(self, episode: Episode[RetailState]) -> Mapping[str, float]:
        """Return the parts of the success, the tier, and counts of what was done."""
        state, task = episode.state, episode.task.payload
        over = bool(state.customer.end)
        score = self.score(episode) if over else Score(*([False] * 5))
        found = {
            "data": float(score.data),
            "communicated": float(score.communicated),
            "ended": float(score.ended),
            "evidence": float(score.evidence),
            "policy": float(score.policy),
            "writes": float(len(state.calls)),
            "tool_errors": float(state.errors),
            "customer_turns": float(state.customer.turn),
            "gave_up": float(state.customer.end == "gave_up"),
            "violations": float(len(state.violations)),
        }
        if task.tier:
            found["tier"] = float(task.tier)
            found[f"tier{task.tier}_success"] = float(over and score.success)
        if task.judged:
            found["judged_left_out"] = float(len(task.judged))
        return found

    def legal_actions(self) -> list[str] | None:
        """Return sensible calls and messages in the micro shop; None in the full one."""
        if self.knowledge.size != "micro":
            return None
        return list_sensible_actions(self.episode, self.knowledge)


def prove_solvable(size: str, world_seed: int, shop: Shop) -> SolvabilityProof:
    """Return the proof that the scripted assistant solves the tasks of a generated shop."""
    tools = get_toolset("strict", MICRO if size == "micro" else None)

    def build_env(source: SingleTaskSource) -> Retail:
        return Retail(data=Knowledge(size=size, source=source, tools=tools))

    return SolvabilityProof(build_env, shop, world_seed)
