"""The one place that turns text into tokens into turns.

``task -> env.reset -> text -> ids -> engine -> action ids -> text -> env.step -> Turn``
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ...agents.engine import Completion, Engine, Request, Sampling
from ...agents.render import Renderer
from ...agents.scripted import text_env
from ...envs.api import Status, TextEnv
from ...envs.calls import call_env
from ...envs.errors import BadValueError, ContextFullError, EnvFault, EpisodeError
from ...envs.forking import fork
from ..contracts import Rollout, Start
from ..forest import ROOT, Edge, Group, Ids, Tree, Turn, last_token_reward
from .seeds import seed_at


@dataclass(slots=True)
class Context:
    """What one session's model has before it.

    Attributes:
        ids: Everything up to and including the last action.
        obs_ids: The observation that waits for an answer.
        parent: Turn that the next one hangs on.
        edge: How it hangs there.
        given: First tokens of the next action where they are fixed: a fork inside an action.
        cache: The engine's handle for ``ids``.
    """

    ids: list[int]
    obs_ids: list[int]
    parent: int = ROOT
    edge: Edge = Edge.CONTINUE
    given: list[int] = field(default_factory=list)
    cache: int | None = None

    def fork(self) -> Context:
        """An independent copy that shares the engine's cache."""
        return replace(self, ids=list(self.ids), obs_ids=list(self.obs_ids), given=list(self.given))


class Answer(NamedTuple):
    """One action that was sampled and taken, and what came back."""

    done: Completion
    ids: list[int]
    action: str
    version: int
    observation: str
    reward: float
    info: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Seat:
    """A live position: an environment, and the contexts of its sessions.

    Attributes:
        env: The environment at this position, owned by the seat.
        task_id: The environment's id of the task.
        seed: Of the episode.
        place: The forks that led here; with ``turns`` it seeds the next action.
        turns: Actions taken since the start.
        last: Index of the last turn in its tree.
        done: True when there is nothing left to answer.
        session: The session whose turn it is.
        contexts: By session.
        askers: By key of a session, the turn that asked for it.
        holders: How many contexts of this seat and its forks hold each engine cache.
    """

    env: gym.Env[Any, Any]
    task_id: str
    seed: int
    session: int
    contexts: dict[int, Context]
    place: tuple[int, ...] = ()
    turns: int = 0
    last: int = ROOT
    done: bool = False
    askers: dict[str, int] = field(default_factory=dict)
    holders: Counter[int] = field(default_factory=Counter)

    @property
    def now(self) -> Context:
        """The context of the session whose turn it is."""
        return self.contexts[self.session]

    def fork(self, branch: int) -> Seat:
        """An independent seat at this very position; nothing is executed again.

        Args:
            branch: Tells the copies apart: the same branch of the same seat samples the same
                tokens, another branch others.
        """
        contexts = {s: c.fork() for s, c in self.contexts.items()}
        for context in contexts.values():
            if context.cache is not None:
                self.holders[context.cache] += 1
        return replace(
            self,
            env=fork(self.env),
            contexts=contexts,
            askers=dict(self.askers),
            place=(*self.place, self.turns, branch),
        )


class Player:
    """Plays turns in copies of one environment.

    A context that has no room for one more action token ends the episode: the last turn gets
    status ``truncated`` and ``overflow``, its rewards stay what the world gave. The world itself
    is not told, as with Gymnasium's own time limit.

    Args:
        env: The prototype; every start plays in a fork of it.
        engine: Samples actions.
        renderer: Text to ids and back.
        sampling: How to sample; stop strings default to the environment's.
        max_context: Most tokens of context and action together; None for the engine's limit.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        engine: Engine,
        renderer: Renderer,
        sampling: Sampling,
        max_context: int | None = None,
    ) -> None:
        world = text_env(env)
        if max_context is not None and not 1 < max_context <= engine.max_context:
            raise BadValueError(
                f"Player: max_context is {max_context}; expected 2 to {engine.max_context}, the "
                "engine's limit."
            )
        self.env = env
        self.engine = engine
        self.renderer = renderer
        self.sampling = sampling if sampling.stop else replace(sampling, stop=world.stop)
        self.max_context = max_context or engine.max_context
        self.fault = ""  # what the world said when it broke last

    async def open(self, start: Start) -> Seat:
        """Begin the episode of ``start``: one reset, and the first prompt.

        Raises:
            EnvFault: The environment is broken.
            ContextFullError: The first prompt leaves no room for an action.
        """
        env = fork(self.env)
        options = {"split": start.split, "task": start.task}
        observation, info = await call_env(env, lambda: env.reset(seed=start.seed, options=options))
        first = Context([], self.renderer.open(text_env(env).instructions, observation))
        if len(first.obs_ids) >= self.max_context:
            raise ContextFullError(
                f"task {info['task_id']}: the first prompt has {len(first.obs_ids)} tokens, but "
                f"context and action together may have {self.max_context}. Use a model with a "
                "longer context or shorter instructions."
            )
        return Seat(env, info["task_id"], start.seed, info["session"], {info["session"]: first})

    async def groups(
        self, rollout: Rollout, starts: Sequence[Start], tick: Callable[[], None] = lambda: None
    ) -> list[Group]:
        """One group per start, all at the same time; ``tick`` is called after each."""

        async def one(start: Start) -> Group:
            group = await rollout(self, start)
            tick()
            return group

        return list(await asyncio.gather(*(one(start) for start in starts)))

    async def turn(self, seat: Seat, tree: Tree) -> Turn:
        """Sample one action, take it, and append the turn to ``tree``.

        Raises:
            EpisodeError: The episode is over.
        """
        return self.append(seat, tree, await self.answer(seat))

    async def answer(self, seat: Seat, top_logprobs: int = 0) -> Answer:
        """Sample one action and take it; :meth:`append` then puts it into a tree.

        Apart, so that seats which share a tree can play side by side and append in a fixed order.

        Args:
            seat: Where to play.
            top_logprobs: How many of the likeliest tokens' log-probabilities to bring along.

        Raises:
            EpisodeError: The episode is over.
        """
        if seat.done:
            raise EpisodeError(f"task {seat.task_id}: a turn after the end of the episode.")
        return await self.act(seat, await self._sample(seat, top_logprobs))

    async def act(self, seat: Seat, done: Completion) -> Answer:
        """Take the action that ``done`` holds, whoever wrote it."""
        context, version = seat.now, self.engine.version
        action = self.renderer.action(context.given + done.ids.tolist())
        observation, reward, _, _, info = await call_env(seat.env, lambda: seat.env.step(action))
        seat.turns += 1
        if info["status"] == "env_error":
            self.fault = observation
        ids = context.ids + context.obs_ids + context.given
        return Answer(done, ids, action, version, observation, float(reward), info)

    def append(self, seat: Seat, tree: Tree, answer: Answer, cuts: Sequence[int] = ()) -> Turn:
        """Put an answer into the tree and get the seat ready for the next observation.

        Args:
            seat: The seat that gave it.
            tree: The tree that the seat's turns are in.
            answer: What :meth:`answer` returned.
            cuts: Places ``0 < cut < n`` among the ``[n]`` sampled tokens where the action is cut
                into partial turns, ascending.

        Returns:
            The last turn that was added.
        """
        context, done, info = seat.now, answer.done, answer.info
        last = Turn(
            parent=context.parent,
            edge=context.edge,
            obs_ids=np.asarray([] if context.given else context.obs_ids, dtype=np.int64),
            act_ids=done.ids,
            logprobs=done.logprobs,
            entropies=done.entropies,
            rewards=last_token_reward(answer.reward, len(done.ids)),
            verdict=int(info["verdict"] or 0),
            status=info["status"],
            version=answer.version,
            action=answer.action,
            valid=info["valid_action"],
            reward_terms=tuple(info["reward_terms"].items()),
            metrics=tuple(info["metrics"].items()),
            stop=done.stop,
            previous=None if seat.last == context.parent else seat.last,
            spawned=self._spawned(seat, len(tree.turns) + len(cuts)),
            account=_account(text_env(seat.env)),
        )
        for part in _parts(last, cuts, len(tree.turns)) if cuts else [last]:
            if part.partial:
                tree.add(part)
            last = part
        context.ids = answer.ids + done.ids.tolist()
        context.given = []
        context.parent = seat.last = len(tree.turns)
        context.edge = Edge.CONTINUE
        if last.status == "running" and not self._prepare(seat, answer.observation, info):
            status, metrics = cut_short(text_env(seat.env))
            last = replace(last, status=status, overflow=True, metrics=metrics)
        tree.add(last)
        if last.status != "running":
            self.leave(seat)
        return last

    def switch(self, seat: Seat, key: str) -> bool:
        """Go to a waiting session, out of the world's order; it hangs on the turn that asked.

        Returns:
            False when its first prompt leaves no room for an action; the seat is then left.
        """
        observation, info = seat.env.get_wrapper_attr("open_session")(key)
        if self._prepare(seat, observation, info):
            return True
        self.leave(seat)
        return False

    def _spawned(self, seat: Seat, at: int) -> tuple[Ids, ...]:
        """First prompts of the sessions that the last action, turn ``at``, asked for."""
        asked = seat.env.get_wrapper_attr("asked")()
        if not asked:
            return ()
        for opening in asked:
            seat.askers.setdefault(opening.key, at)
        instructions = text_env(seat.env).instructions
        return tuple(
            np.asarray(self.renderer.open(instructions, opening.observation), dtype=np.int64)
            for opening in sorted(asked, key=lambda opening: -opening.score)
        )

    def leave(self, seat: Seat) -> None:
        """Give a seat up: its episode is over, or nobody will go on from it."""
        seat.done = True
        for context in seat.contexts.values():
            self._release(seat, context)

    async def _sample(self, seat: Seat, top_logprobs: int) -> Completion:
        context, sampling = seat.now, self.sampling
        ids = context.ids + context.obs_ids + context.given
        room = min(self.max_context - len(ids), sampling.max_tokens - len(context.given))
        if (room, top_logprobs) != (sampling.max_tokens, sampling.top_logprobs):
            sampling = replace(sampling, max_tokens=room, top_logprobs=top_logprobs)
        seed = seed_at(seat.seed, *seat.place, seat.turns)
        done = await self.engine.generate(
            Request(ids=ids, sampling=sampling, seed=seed, cache=context.cache)
        )
        if done.cache is not None:  # first, since the engine may have continued the old one
            seat.holders[done.cache] += 1
        self._release(seat, context)
        context.cache = done.cache
        return done

    def _prepare(self, seat: Seat, observation: str, info: Mapping[str, Any]) -> bool:
        """Put the next observation where it belongs; False when there is no room to answer it."""
        asking, session = info["parent_session"], info["session"]
        back = seat.contexts.get(session)
        if back is not None and back.ids:
            back.obs_ids = self.renderer.observe(observation, back.ids)
        else:
            asker = seat.contexts[seat.session if asking is None else asking].parent
            parent = seat.askers.get(seat.env.get_wrapper_attr("session_key")(), asker)
            opened = self.renderer.open(text_env(seat.env).instructions, observation)
            seat.contexts[session] = Context([], opened, parent, Edge.SPAWN)
        seat.session = session
        return len(seat.now.ids) + len(seat.now.obs_ids) < self.max_context

    def _release(self, seat: Seat, context: Context) -> None:
        """Drop a context's cache handle; the last of the seats that share it frees it."""
        handle, context.cache = context.cache, None
        if handle is None:
            return
        seat.holders[handle] -= 1
        if seat.holders[handle] == 0:
            del seat.holders[handle]
            self.engine.release(handle)


def cut_short(world: TextEnv[Any, Any]) -> tuple[Status, tuple[tuple[str, float], ...]]:
    """Status and measures of a running episode that the context's limit ends.

    The status is ``truncated``, or ``env_error`` without measures where they cannot be taken.
    """
    episode = world.episode
    try:
        own = world.metrics(episode)
    except EnvFault:
        return "env_error", ()
    return "truncated", (
        ("success", 0.0),
        ("return", episode.total_reward),
        ("turns", float(episode.turn)),
        ("invalid_actions", float(episode.invalid_actions)),
        *((name, float(value)) for name, value in own.items()),
    )


def _account(world: TextEnv[Any, Any]) -> Mapping[str, Any]:
    episode = world.episode
    return {} if episode.status == "env_error" else dict(world.debug_info(episode))


def _parts(turn: Turn, cuts: Sequence[int], at: int) -> list[Turn]:
    """The turn cut into partial turns, the first of which will be turn ``at`` of its tree."""
    parts, edges = [], [0, *cuts, len(turn.act_ids)]
    for number, (start, stop) in enumerate(pairwise(edges)):
        first, last = number == 0, stop == len(turn.act_ids)
        part = replace(
            turn,
            act_ids=turn.act_ids[start:stop],
            logprobs=turn.logprobs[start:stop],
            entropies=turn.entropies[start:stop],
            rewards=turn.rewards[start:stop],
        )
        if not first:
            none = np.zeros(0, dtype=np.int64)
            part = replace(
                part, parent=at + number - 1, edge=Edge.CONTINUE, obs_ids=none, previous=None
            )
        if not last:
            part = replace(part, partial=True, status="running", metrics=(), reward_terms=())
            part = replace(part, verdict=0, valid=True, action="", stop="length")
            part = replace(part, spawned=(), account={})
        parts.append(part)
    return parts
