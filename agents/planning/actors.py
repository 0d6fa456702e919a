"""Who proposes actions: a language model, here or behind a server, or a scripted policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ...envs.core.env import Policy
from ...envs.core.errors import BadValueError, ContextFullError
from ..engines.base import Engine, Request, Sampling
from ..prompting.text_model import Message, Prompt, TextModel
from ..rendering.factory import Renderer
from ..scripted import text_env
from .position import Position

REFLECT = (
    "\nStatus: fail. The attempt above did not do what was asked. Write a short new plan that "
    "avoids its mistakes.\nNew plan:"
)
"""Asks for a corrective plan, behind a failed attempt."""


class Ask(NamedTuple):
    """How an action is drawn.

    Attributes:
        temperature: 0 is greedy.
        seed: Of this action alone.
    """

    temperature: float
    seed: int


class Said(NamedTuple):
    """An action that was proposed.

    Attributes:
        text: The action.
        tokens: Tokens sampled for it.
        read: Tokens of its prompt.
        whole: False for an action that a length limit cut off.
        memory: What the actor wants to see again at the next position.
    """

    text: str
    tokens: int = 0
    read: int = 0
    whole: bool = True
    memory: Any = None


class Actor(Protocol):
    """Proposes actions at positions; asked again at the same position it may say other things."""

    @property
    def max_tokens(self) -> int:
        """Most tokens of one reply; 0 for an actor that samples none."""
        ...

    async def act(self, position: Position, ask: Ask) -> Said:
        """An action for ``position``.

        Raises:
            ContextFullError: The dialogue leaves the model no room.
        """
        ...

    async def reflect(self, position: Position, ask: Ask) -> Said:
        """A plan for the next attempt after the failed one that ends at ``position``.

        Raises:
            ContextFullError: The dialogue leaves the model no room.
        """
        ...

    def forget(self) -> None:
        """Nothing that was said so far in this search is gone on from."""
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

    async def act(self, position: Position, ask: Ask) -> Said:
        """The policy's action."""
        policy = self._policy_for(ask.seed if ask.temperature > 0 else 0)
        return Said(policy(position.env, position.observation, position.info))

    async def reflect(self, position: Position, ask: Ask) -> Said:  # noqa: ARG002
        """No plan."""
        return Said("")

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
        max_tokens: Most tokens of an action or a plan.

    Raises:
        BadValueError: ``max_tokens`` is not positive.
    """

    def __init__(self, engine: Engine, renderer: Renderer, max_tokens: int = 64) -> None:
        _check_tokens(max_tokens)
        self.max_tokens = max_tokens
        self._engine = engine
        self._renderer = renderer
        self._handles: list[int] = []

    def for_search(self) -> EngineActor:
        """An actor for another search."""
        return EngineActor(self._engine, self._renderer, self.max_tokens)

    async def act(self, position: Position, ask: Ask) -> Said:
        """Sample an action."""
        session = _session(position)
        contexts: Mapping[int, _Context] = position.memory or {}
        back = contexts.get(session)
        ids = self._ids(position, back)
        stop = text_env(position.env).stop
        done = await self._sample(ids, ask, stop, back.cache if back else None)
        said = done.ids.tolist()
        return Said(
            text=self._renderer.action(said),
            tokens=len(said),
            read=len(ids),
            whole=not (stop and done.stop == "length"),
            memory={**contexts, session: _Context(ids + said, done.cache)},
        )

    async def reflect(self, position: Position, ask: Ask) -> Said:
        """Let the model write a plan behind the dialogue."""
        contexts: Mapping[int, _Context] = position.memory or {}
        back = contexts.get(_session(position))
        before = self._ids(position, back)
        ids = before + self._renderer.write(REFLECT)
        if back is not None:  # the request goes into the observation's message
            shown = position.observation + REFLECT
            ids = back.ids + self._renderer.observe(shown, back.ids)
        done = await self._sample(ids, ask, ("\n\n",), None)
        said = done.ids.tolist()
        return Said(self._renderer.text(said).strip(), len(said), len(ids))

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
        self, ids: list[int], ask: Ask, stop: tuple[str, ...], cache: int | None
    ) -> Any:
        room = min(self.max_tokens, self._engine.max_context - len(ids))
        if room < 1:
            raise ContextFullError(
                f"planner: the dialogue has {len(ids)} tokens and the model's context "
                f"{self._engine.max_context}: no room for an action."
            )
        sampling = Sampling(max_tokens=room, temperature=ask.temperature, stop=stop)
        request = Request(ids=ids, sampling=sampling, seed=ask.seed, cache=cache)
        done = await self._engine.generate(request)
        if done.cache is not None:
            self._handles.append(done.cache)
        return done


class TextActor:
    """A text model, such as a server's: the dialogue as messages, or as one text.

    Args:
        model: Writes.
        max_tokens: Most tokens of an action or a plan.
        chat: Show the dialogue as messages; else as a text that the model goes on with.

    Raises:
        BadValueError: ``max_tokens`` is not positive, or a text for a model that only chats.
    """

    def __init__(self, model: TextModel, max_tokens: int = 512, chat: bool = True) -> None:
        _check_tokens(max_tokens)
        if not (chat or model.continues):
            raise BadValueError("TextActor: this model only answers dialogues; set chat.")
        self.max_tokens = max_tokens
        self._model = model
        self._chat = chat

    async def act(self, position: Position, ask: Ask) -> Said:
        """Let the model write an action."""
        texts = self._texts(position)
        said = await self._said(self._prompt(texts, ""), ask, text_env(position.env).stop)
        known: Mapping[int, tuple[str, ...]] = position.memory or {}
        return said._replace(memory={**known, _session(position): (*texts, said.text)})

    async def reflect(self, position: Position, ask: Ask) -> Said:
        """Let the model write a plan behind the dialogue."""
        said = await self._said(self._prompt(self._texts(position), REFLECT), ask, ("\n\n",))
        return said._replace(text=said.text.strip())

    def forget(self) -> None:
        """Nothing is kept."""

    async def _said(self, prompt: Prompt, ask: Ask, stop: tuple[str, ...]) -> Said:
        done = await self._model.complete(
            prompt,
            stop=stop,
            max_tokens=self.max_tokens,
            temperature=ask.temperature,
            seed=ask.seed,
        )
        if done.completion_tokens is None:
            raise BadValueError(
                "planner: the model's server does not report how many tokens it wrote, so that "
                "nothing can be planned within a budget; use a server that sends 'usage'."
            )
        whole = not (stop and done.stop_reason == "length")
        return Said(done.text, done.completion_tokens, done.prompt_tokens or 0, whole)

    def _texts(self, position: Position) -> tuple[str, ...]:
        """The present session: observations and actions by turns, an observation last."""
        known: Mapping[int, tuple[str, ...]] = position.memory or {}
        back = known.get(_session(position), ())
        if back:
            return (*back, position.observation)
        return (position.instructions + _shown(position),)

    def _prompt(self, texts: tuple[str, ...], last: str) -> Prompt:
        """The texts, the last one with ``last`` behind it."""
        whole = (*texts[:-1], texts[-1] + last)
        if not self._chat:
            return "".join(whole)
        return [
            Message("assistant" if place % 2 else "user", text) for place, text in enumerate(whole)
        ]


def _session(position: Position) -> int:
    return int(position.info["session"])


def _shown(position: Position) -> str:
    """A session's first observation; plans are shown in the episode's first session."""
    return ("" if position.moves else position.note) + position.observation


def _check_tokens(max_tokens: int) -> None:
    if max_tokens < 1:
        raise BadValueError(f"planner: max_tokens is {max_tokens}; expected at least 1.")
