"""Who proposes actions: a language model, here or behind a server, or a scripted policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ...envs.core.env import Policy
from ...envs.core.errors import BadValueError, ContextFullError
from ...envs.core.settings import check_integer
from ..engines.base import Engine, Request, Sampling, sample
from ..prompting.parsing import spoken
from ..prompting.text_model import Message, Prompt, TextModel
from ..rendering.factory import PlainRenderer, Renderer
from ..scripted import text_env
from .position import Position

REFLECT = (
    "\nStatus: fail. The attempt above did not do what was asked. Write a short new plan that "
    "avoids its mistakes.\nNew plan:"
)
"""Asks for a corrective plan, behind a failed attempt."""


class ProposalSettings(NamedTuple):
    """How an action is drawn.

    Attributes:
        temperature: 0 is greedy.
        seed: Of this action alone.
    """

    temperature: float
    seed: int


class Proposal(NamedTuple):
    """A proposed action, or a plan.

    Attributes:
        text: The action.
        sampled_tokens: Tokens sampled for it.
        prompt_tokens: Tokens of its prompt.
        complete: False for an action that a length limit cut off.
        memory: What the actor wants to see again at the next position.
    """

    text: str
    sampled_tokens: int = 0
    prompt_tokens: int = 0
    complete: bool = True
    memory: Any = None


class Actor(Protocol):
    """Proposes actions at positions; asked again at the same position it may propose others."""

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of one reply; 0 for an actor that samples none."""
        ...

    async def act(self, position: Position, settings: ProposalSettings) -> Proposal:
        """Return an action for ``position``.

        Raises:
            ContextFullError: The dialogue leaves the model no room.
        """
        ...

    async def reflect(self, position: Position, settings: ProposalSettings) -> Proposal:
        """Return a plan for the next attempt after the failed one that ends at ``position``.

        Raises:
            ContextFullError: The dialogue leaves the model no room.
        """
        ...

    def forget(self) -> None:
        """Drop what is kept of this search: none of its positions is resumed."""
        ...


class PolicyActor:
    """A scripted policy: a new one, seeded by the action's seed, for every action.

    It must read all that it needs off the environment; at temperature 0 its seed is always 0. It
    writes no plans.

    Args:
        policy_for: Makes a policy from a seed.
    """

    max_tokens = 0

    def __init__(self, policy_for: Callable[[int], Policy]) -> None:
        self._policy_for = policy_for

    async def act(self, position: Position, settings: ProposalSettings) -> Proposal:
        """Return the policy's action."""
        policy = self._policy_for(settings.seed if settings.temperature > 0 else 0)
        return Proposal(policy(position.env, position.observation, position.info))

    async def reflect(self, position: Position, settings: ProposalSettings) -> Proposal:  # noqa: ARG002
        """No plan."""
        return Proposal("")

    def forget(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class _Context:
    """One session's dialogue up to the last action, and the engine's handle for it."""

    ids: list[int]
    cache: int | None


class EngineActor:
    """A local model: token ids that only grow, and its key-value cache continued.

    One actor belongs to one search at a time; :meth:`for_search` makes further ones that share the
    engine.

    Args:
        engine: Samples.
        renderer: Text to ids and back.
        max_tokens: Maximum tokens of an action or a plan.

    Raises:
        BadValueError: ``max_tokens`` is not positive.
    """

    def __init__(self, engine: Engine, renderer: Renderer, max_tokens: int = 64) -> None:
        check_integer("max_tokens", max_tokens, "planner", min=1)
        self.max_tokens = max_tokens
        self._engine = engine
        self._renderer = renderer
        self._talks = not isinstance(renderer, PlainRenderer)
        self._handles: list[int] = []

    def for_search(self) -> EngineActor:
        """Return an actor for another search."""
        return EngineActor(self._engine, self._renderer, self.max_tokens)

    async def act(self, position: Position, settings: ProposalSettings) -> Proposal:
        """Sample an action."""
        session = _session(position)
        contexts: Mapping[int, _Context] = position.memory or {}
        back = contexts.get(session)
        ids = self._ids(position, back)
        stop = text_env(position.env).stop
        done = await self._sample(ids, settings, stop, back.cache if back else None)
        action = done.ids.tolist()
        return Proposal(
            text=self._renderer.action(done.written),
            sampled_tokens=len(action),
            prompt_tokens=len(ids),
            complete=not (stop and done.stop == "length"),
            memory={**contexts, session: _Context(ids + action, done.cache)},
        )

    async def reflect(self, position: Position, settings: ProposalSettings) -> Proposal:
        """Let the model write a plan behind the dialogue."""
        contexts: Mapping[int, _Context] = position.memory or {}
        back = contexts.get(_session(position))
        before = self._ids(position, back)
        ids = before + self._renderer.write(REFLECT)
        if back is not None:  # the request goes into the observation's message
            shown = position.observation + REFLECT
            ids = back.ids + self._renderer.observe(shown, back.ids)
        done = await self._sample(ids, settings, _plan_ends(self._talks), None)
        return Proposal(spoken(self._renderer.text(done.written)), len(done.ids), len(ids))

    def forget(self) -> None:
        """Give the engine's caches back."""
        for handle in self._handles:
            self._engine.release(handle)
        self._handles.clear()

    def _ids(self, position: Position, back: _Context | None) -> list[int]:
        if back is not None:
            return back.ids + self._renderer.observe(position.observation, back.ids)
        return self._renderer.open(position.instructions, _shown(position))

    async def _sample(
        self, ids: list[int], settings: ProposalSettings, stop: tuple[str, ...], cache: int | None
    ) -> Any:
        room = min(self.max_tokens, self._engine.max_context - len(ids))
        if room < 1:
            raise ContextFullError(
                f"planner: the dialogue has {len(ids)} tokens and the model's context "
                f"{self._engine.max_context}: no room for an action."
            )
        sampling = Sampling(max_tokens=room, temperature=settings.temperature, stop=stop)
        request = Request(ids=ids, sampling=sampling, seed=settings.seed, cache=cache)
        done = await sample(self._engine, request)
        if done.cache is not None:
            self._handles.append(done.cache)
        return done


class TextActor:
    """A text model, such as a server's: the dialogue as messages, or as one text.

    Args:
        model: Writes.
        max_tokens: Maximum tokens of an action or a plan.
        chat: Show the dialogue as messages; else as a text that the model continues.

    Raises:
        BadValueError: ``max_tokens`` is not positive, or a text for a model that only chats.
    """

    def __init__(self, model: TextModel, max_tokens: int = 512, chat: bool = True) -> None:
        check_integer("max_tokens", max_tokens, "planner", min=1)
        if not (chat or model.continues):
            raise BadValueError("TextActor: this model only answers dialogues; set chat.")
        self.max_tokens = max_tokens
        self._model = model
        self._chat = chat

    async def act(self, position: Position, settings: ProposalSettings) -> Proposal:
        """Let the model write an action."""
        texts = self._texts(position)
        proposal = await self._complete(
            self._prompt(texts, ""), settings, text_env(position.env).stop
        )
        known: Mapping[int, tuple[str, ...]] = position.memory or {}
        return proposal._replace(memory={**known, _session(position): (*texts, proposal.text)})

    async def reflect(self, position: Position, settings: ProposalSettings) -> Proposal:
        """Let the model write a plan behind the dialogue."""
        proposal = await self._complete(
            self._prompt(self._texts(position), REFLECT), settings, _plan_ends(self._chat)
        )
        return proposal._replace(text=spoken(proposal.text))

    def forget(self) -> None:
        """Nothing is kept."""

    async def _complete(
        self, prompt: Prompt, settings: ProposalSettings, stop: tuple[str, ...]
    ) -> Proposal:
        done = await self._model.complete(
            prompt,
            stop=stop,
            max_tokens=self.max_tokens,
            temperature=settings.temperature,
            seed=settings.seed,
        )
        if done.completion_tokens is None:
            raise BadValueError(
                "planner: the model's server does not report how many tokens it wrote, so that "
                "nothing can be planned within a budget; use a server that sends 'usage'."
            )
        complete = not (stop and done.stop_reason == "length")
        return Proposal(done.text, done.completion_tokens, done.prompt_tokens or 0, complete)

    def _texts(self, position: Position) -> tuple[str, ...]:
        """Return the present session: observations and actions by turns, an observation last."""
        known: Mapping[int, tuple[str, ...]] = position.memory or {}
        back = known.get(_session(position), ())
        if back:
            return (*back, position.observation)
        return (position.instructions + _shown(position),)

    def _prompt(self, texts: tuple[str, ...], last: str) -> Prompt:
        """Return the texts, the last one with ``last`` behind it."""
        whole = (*texts[:-1], texts[-1] + last)
        if not self._chat:
            return "".join(whole)
        return [
            Message("assistant" if place % 2 else "user", text) for place, text in enumerate(whole)
        ]


def _plan_ends(talks: bool) -> tuple[str, ...]:
    """Return what ends a plan: a text that goes on does at a paragraph, a message by itself."""
    return () if talks else ("\n\n",)


def _session(position: Position) -> int:
    return int(position.info["session"])


def _shown(position: Position) -> str:
    """Return a session's first observation; plans are shown in the episode's first session."""
    return ("" if position.moves else position.note) + position.observation
