"""Plays turns: converts text to tokens, samples, steps the environment, records turns.

``task -> env.reset -> text -> ids -> engine -> action ids -> text -> env.step -> Turn``
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ...agents.engines.base import Completion, Engine, Request, Sampling, sample
from ...agents.rendering.factory import Renderer
from ...agents.scripted import text_env
from ...envs.core.batched_calls import call_env, may_block
from ...envs.core.env import Status, TextEnv
from ...envs.core.errors import BadValueError, ContextFullError, EnvFault, EpisodeError
from ...envs.core.fork import fork
from ..core.forest import ROOT, Edge, Group, Ids, Tree, Turn, last_token_reward
from ..core.kinds import play_group
from ..core.privileged import ContextLogprobs
from ..core.protocols import Rollout, Start
from .expert_hints import demonstrate
from .moments import Moment, may_share, take_turn
from .seeds import seed_at
from .session_context import Context

_DEMONSTRATION = -3
_NONE: Ids = np.zeros(0, dtype=np.int64)


class StepResult(NamedTuple):
    """One sampled action and the environment's response."""

    done: Completion
    ids: list[int]
    action: str
    version: int
    observation: str
    reward: float
    info: Mapping[str, Any]
    state: str = ""
    hinted_prompt: Sequence[int] = ()


@dataclass(slots=True, eq=False)
class EpisodeHandle:
    """A live episode: an environment, and the contexts of its sessions.

    Attributes:
        env: The environment at this position, owned by the handle.
        task_id: The environment's id of the task.
        seed: Of the episode.
        place: The forks that led here; with ``turns`` it seeds the next action.
        turns: Actions taken since the start.
        last: Index of the last turn in its tree.
        done: True when the episode is over.
        session: The session whose turn it is.
        contexts: By session.
        askers: By key of a session, the turn that asked for it.
        sharers: How many contexts beside the first hold an engine cache, of this handle and its
            forks; without those that one alone holds.
        moment: The position that it shares with others, None for a handle by itself.
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
    sharers: dict[int, int] = field(default_factory=dict)
    moment: Moment | None = None

    @property
    def now(self) -> Context:
        """The context of the session whose turn it is."""
        return self.contexts[self.session]

    def fork(self, branch: int, *, redraw: bool = True) -> EpisodeHandle:
        """Return an independent handle at the same position; nothing is executed again.

        Args:
            branch: Distinguishes the copies: the same branch of the same handle samples the same
                tokens, another branch others.
            redraw: Whether the copy's environment draws random numbers of its own, where what an
                action brings is drawn at all (:attr:`TextEnv.chance`); False for the original's.
        """
        env, place = fork(self.env), (*self.place, self.turns, branch)
        if redraw and text_env(env).chance:
            text_env(env).redraw(seed_at(self.seed, *place))
        return self._twin(env, place)

    def share(self, count: int) -> list[EpisodeHandle]:
        """Return handles at the same position that play together what they do alike.

        They are as forks 0 to ``count - 1``, each for a tree of its own that begins here; this
        handle is used up. Only for an environment in which nothing is drawn.
        """
        moment = Moment(standing=count)
        twins = [self._twin(self.env, (*self.place, self.turns, i)) for i in range(count)]
        for twin in twins:
            twin.moment = moment
        return twins

    def drop_cache(self, cache: int) -> bool:
        """Count one context fewer that holds an engine cache; return whether it was the last."""
        others = self.sharers.pop(cache, 0)
        if others > 1:
            self.sharers[cache] = others - 1
        return not others

    def _twin(self, env: gym.Env[Any, Any], place: tuple[int, ...]) -> EpisodeHandle:
        contexts = {s: c.fork() for s, c in self.contexts.items()}
        for context in contexts.values():
            if (cache := context.cache) is not None:
                self.sharers[cache] = self.sharers.get(cache, 0) + 1
        return EpisodeHandle(
            env=env,
            task_id=self.task_id,
            seed=self.seed,
            session=self.session,
            contexts=contexts,
            place=place,
            turns=self.turns,
            last=self.last,
            done=self.done,
            askers=dict(self.askers),
            sharers=self.sharers,
        )


class EpisodeRunner:
    """Plays turns in copies of one environment.

    A context that has no room for one more action token ends the episode: the last turn gets
    status ``truncated`` and ``overflow``, its rewards stay what the environment gave. It
    is not informed, as with Gymnasium's time limit.

    Args:
        env: The prototype; every start plays in a fork of it.
        engine: Samples actions.
        renderer: Converts text to token ids and back.
        sampling: How to sample; stop strings default to the environment's.
        max_context: Maximum tokens of context and action together; None for the engine's limit.
        record_states: Whether turns hold the digest of the state that they were taken in.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        engine: Engine,
        renderer: Renderer,
        sampling: Sampling,
        max_context: int | None = None,
        record_states: bool = False,
    ) -> None:
        base_env = text_env(env)
        if max_context is not None and not 1 < max_context <= engine.max_context:
            raise BadValueError(
                f"EpisodeRunner: max_context is {max_context}; expected 2 to "
                f"{engine.max_context}, the engine's limit."
            )
        self.env = env
        self.engine = engine
        self.renderer = renderer
        self.sampling = sampling if sampling.stop else replace(sampling, stop=base_env.stop)
        self.max_context = max_context or engine.max_context
        self.record_states = record_states
        self.max_open: int | None = getattr(engine, "max_open", None)
        self.record_gold = False  # whether contexts begin with the accepted final answers
        self.hints: ContextLogprobs | None = None  # what demonstrations turns hold, if any
        self.fault = ""  # the last error message of a failed environment

    def with_temperature(self, temperature: float) -> EpisodeRunner:
        """Return a runner of the same episodes that samples at another temperature."""
        other = copy(self)
        other.sampling = replace(self.sampling, temperature=temperature)
        return other

    async def open(self, start: Start) -> EpisodeHandle:
        """Begin the episode of ``start``: one reset, and the first prompt.

        Raises:
            EnvFault: The environment is broken.
            ContextFullError: The first prompt leaves no room for an action.
        """
        env = fork(self.env)
        options = {"split": start.split, "task": start.task}
        observation, info = await call_env(env, lambda: env.reset(seed=start.seed, options=options))
        opened = self.renderer.open(text_env(env).instructions, observation)
        first = Context([], opened, first=observation)
        if len(first.obs_ids) >= self.max_context:
            raise ContextFullError(
                f"task {info['task_id']}: the first prompt has {len(first.obs_ids)} tokens, but "
                f"context and action together may have {self.max_context}. Use a model with a "
                "longer context or shorter instructions."
            )
        return EpisodeHandle(
            env, info["task_id"], start.seed, info["session"], {info["session"]: first}
        )

    async def groups(
        self, rollout: Rollout, starts: Sequence[Start], tick: Callable[[], None] = lambda: None
    ) -> list[Group]:
        """Play one group per start concurrently; ``tick`` is called after each.

        Where the engine names a limit of open episodes, later groups begin as earlier ones end.
        """
        limit = self.max_open
        gate = None if limit is None else asyncio.Semaphore(max(1, limit // rollout.max_paths))

        async def one(start: Start) -> Group:
            async with gate or nullcontext():
                group = await play_group(rollout, self, start)
            tick()
            return group

        return list(await asyncio.gather(*(one(start) for start in starts)))

    def copies(self, handle: EpisodeHandle, count: int) -> list[EpisodeHandle]:
        """Return ``count`` copies of an episode that begins, each for a tree of its own.

        Copies that do the same get the same, where the environment repeats itself: one of them then
        plays it for all, see :mod:`.moments`. The handle itself is used up.
        """
        if count > 1 and self.hints is None and may_share(handle.env):
            return handle.share(count)
        return [handle.fork(i) for i in range(count)]

    async def turn(self, handle: EpisodeHandle, tree: Tree) -> Turn:
        """Sample one action, take it, and append the turn to ``tree``.

        Raises:
            EpisodeError: The episode is over.
        """
        if handle.moment is None:
            return self.append(handle, tree, await self.step(handle))
        self._check_running(handle)
        return await take_turn(self, handle, tree, await self._sample(handle, 0))

    async def step(self, handle: EpisodeHandle, top_logprobs: int = 0) -> StepResult:
        """Sample one action and take it; :meth:`append` then puts it into a tree.

        Apart, so that handles which share a tree can play side by side and append in a fixed order.

        Args:
            handle: Where to play.
            top_logprobs: How many of the likeliest tokens' log-probabilities to bring along.

        Raises:
            EpisodeError: The episode is over.
        """
        self._check_running(handle)
        return await self.act(handle, await self._sample(handle, top_logprobs))

    @staticmethod
    def _check_running(handle: EpisodeHandle) -> None:
        if handle.done:
            raise EpisodeError(f"task {handle.task_id}: a turn after the end of the episode.")

    async def act(self, handle: EpisodeHandle, done: Completion) -> StepResult:
        """Take the action that ``done`` holds, whoever wrote it."""
        context, version = handle.now, self.engine.version
        action = self.renderer.action(context.given + done.written)
        state = text_env(handle.env).state_digest() if self.record_states else ""
        hinted = await self._hinted_prompt(handle) if self.hints is not None else ()
        env = handle.env
        try:
            if may_block(env):  # few do; the others need neither a coroutine nor a closure
                taken = await call_env(env, lambda: env.step(action))
            else:
                taken = env.step(action)
        except Exception as fault:  # of the environment's own code: nobody could find it again
            where = f"task {handle.task_id}, episode seed {handle.seed}, turn {handle.turns + 1}"
            fault.add_note(f"{text_env(env).name}, {where}: the action was {action!r:.1000}")
            raise
        observation, reward, _, _, info = taken
        handle.turns += 1
        if info["status"] == "env_error":
            self.fault = observation
        ids = context.ids + context.obs_ids + context.given
        gain = float(reward)
        return StepResult(done, ids, action, version, observation, gain, info, state, hinted)

    def append(
        self, handle: EpisodeHandle, tree: Tree, result: StepResult, cuts: Sequence[int] = ()
    ) -> Turn:
        """Put a step's result into the tree and prepare the handle for the next observation.

        Args:
            handle: The handle that gave it.
            tree: The tree that the handle's turns are in.
            result: What :meth:`step` returned.
            cuts: Places ``0 < cut < n`` among the ``[n]`` sampled tokens where the action is cut
                into partial turns, ascending.

        Returns:
            The last turn that was added.
        """
        context, done, info = handle.now, result.done, result.info
        opener, gold = self._gold(handle) if self.record_gold and not context.ids else ([], ())
        inner = text_env(handle.env)
        debug_info, info = self._debug_info(inner, info)
        last = Turn(
            parent=context.parent,
            edge=context.edge,
            obs_ids=_ids([] if context.given else context.obs_ids),
            act_ids=done.ids,
            logprobs=done.logprobs,
            entropies=done.entropies,
            rewards=last_token_reward(result.reward, len(done.ids)),
            verdict=int(info["verdict"] or 0),
            status=info["status"],
            version=result.version,
            action=result.action,
            valid=info["valid_action"],
            reward_terms=tuple(info["reward_terms"].items()),
            metrics=tuple(info["metrics"].items()),
            stop=done.stop,
            previous=None if handle.last == context.parent else handle.last,
            spawned=self._spawned(handle, len(tree.turns) + len(cuts)),
            debug_info=debug_info,
            state=result.state,
            gold_opener=_ids(opener),
            gold=gold,
            hinted_prompt=_ids(result.hinted_prompt),
        )
        for part in _parts(last, cuts, len(tree.turns)) if cuts else [last]:
            if part.partial:
                tree.add(part)
            last = part
        context.ids = result.ids + done.ids.tolist()
        context.given = []
        context.parent = handle.last = len(tree.turns)
        context.edge = Edge.CONTINUE
        if last.status == "running" and not self._prepare(handle, result.observation, info):
            status, metrics = cut_short(inner)
            last = replace(last, status=status, overflow=True, metrics=metrics)
        if self.record_states and last.status not in ("running", "env_error"):
            last = replace(last, end_state=inner.state_digest())
        tree.add(last)
        if last.status != "running":
            self.leave(handle)
        return last

    def switch(self, handle: EpisodeHandle, key: str) -> bool:
        """Go to a waiting session out of order; it is attached to the turn that requested it.

        Returns:
            False when its first prompt leaves no room for an action; the handle is then left.
        """
        observation, info = handle.env.get_wrapper_attr("open_session")(key)
        if self._prepare(handle, observation, info):
            return True
        self.leave(handle)
        return False

    async def _hinted_prompt(self, handle: EpisodeHandle) -> list[int]:
        """Return the first prompt of the context with a demonstration; empty without room."""
        assert self.hints is not None
        context, instructions = handle.now, text_env(handle.env).instructions
        seed = seed_at(handle.seed, *handle.place, handle.turns, _DEMONSTRATION)
        shown = await demonstrate(handle.env, self.hints, seed)
        hinted = self.renderer.open(self.renderer.quote(shown) + instructions, context.first)
        more = len(hinted) - len(self.renderer.open(instructions, context.first))
        here = len(context.ids) + len(context.obs_ids) + more + self.sampling.max_tokens
        return hinted if here <= self.engine.max_context else []

    def _gold(self, handle: EpisodeHandle) -> tuple[list[int], tuple[Ids, ...]]:
        """Return the tokens before an accepted answer, and those of each answer.

        They are cut from one text where its tokens begin with the opener's, else made apart.

        Raises:
            BadValueError: The task has no accepted answers, or they differ in their opener.
        """
        env = text_env(handle.env)
        answers = env.gold_answers(env.episode)
        if len({answer.opener for answer in answers}) != 1:
            raise BadValueError(
                f"task {handle.task_id} of {env.name} has {len(answers)} accepted answers; "
                "expected at least one, all behind the same opener (gold_answers)."
            )
        opener = self.renderer.write(answers[0].opener) if answers[0].opener else []
        texts = []
        for answer in answers:
            whole = self.renderer.write(answer.opener + answer.text)
            together = whole[: len(opener)] == opener and len(whole) > len(opener)
            ids = whole[len(opener) :] if together else self.renderer.write(answer.text)
            texts.append(np.asarray(ids, dtype=np.int64))
        return opener, tuple(texts)

    def _debug_info(
        self, env: TextEnv[Any, Any], info: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the debug info of the last action, and the step's info with its final status."""
        if info["status"] == "env_error":
            return {}, info
        try:
            return env.take_debug_info(env.episode), info
        except EnvFault as fault:
            self.fault = str(fault)
            return {}, {**info, "status": "env_error", "metrics": {}}

    def _spawned(self, handle: EpisodeHandle, at: int) -> tuple[Ids, ...]:
        """Return the first prompts of the sessions that the last action, turn ``at``, requested."""
        asked = handle.env.get_wrapper_attr("asked")()
        if not asked:
            return ()
        for opening in asked:
            handle.askers.setdefault(opening.key, at)
        instructions = text_env(handle.env).instructions
        return tuple(
            np.asarray(self.renderer.open(instructions, opening.observation), dtype=np.int64)
            for opening in sorted(asked, key=lambda opening: -opening.score)
        )

    def leave(self, handle: EpisodeHandle) -> None:
        """Release a handle: its episode is over, or nobody will continue it."""
        handle.done = True
        self.forget_cache(handle)

    def forget_cache(self, handle: EpisodeHandle) -> None:
        """Release the engine's cache entries of an episode that goes on later."""
        for context in handle.contexts.values():
            self._release(handle, context)

    async def _sample(self, handle: EpisodeHandle, top_logprobs: int) -> Completion:
        context, sampling = handle.now, self.sampling
        moment = handle.moment
        if moment is None or (ids := moment.prompt) is None:
            ids = context.ids + context.obs_ids + context.given
            if moment is not None:
                moment.prompt = ids
        room = min(self.max_context - len(ids), sampling.max_tokens - len(context.given))
        if (room, top_logprobs) != (sampling.max_tokens, sampling.top_logprobs):
            sampling = replace(sampling, max_tokens=room, top_logprobs=top_logprobs)
        seed = seed_at(handle.seed, *handle.place, handle.turns)
        request = Request(ids=ids, sampling=sampling, seed=seed, cache=context.cache)
        done = await sample(self.engine, request)
        if done.cache != context.cache:  # else the engine has continued the old one
            self._release(handle, context)
            context.cache = done.cache
        return done

    def _prepare(self, handle: EpisodeHandle, observation: str, info: Mapping[str, Any]) -> bool:
        """Put the next observation where it belongs; False when there is no room to answer it."""
        asking, session = info["parent_session"], info["session"]
        back = handle.contexts.get(session)
        if back is not None and back.ids:
            back.obs_ids = self.renderer.observe(observation, back.ids)
        else:
            asker = handle.contexts[handle.session if asking is None else asking].parent
            parent = handle.askers.get(handle.env.get_wrapper_attr("session_key")(), asker)
            opened = self.renderer.open(text_env(handle.env).instructions, observation)
            handle.contexts[session] = Context([], opened, parent, Edge.SPAWN, observation)
        handle.session = session
        return len(handle.now.ids) + len(handle.now.obs_ids) < self.max_context

    def _release(self, handle: EpisodeHandle, context: Context) -> None:
        """Drop a context's cache; the last of the episode handles that share it frees it."""
        cache, context.cache = context.cache, None
        if cache is None:
            return
        if handle.drop_cache(cache):
            self.engine.release(cache)


def cut_short(env: TextEnv[Any, Any]) -> tuple[Status, tuple[tuple[str, float], ...]]:
    """Return status and metrics of a running episode that the context limit truncates.

    The status is ``truncated``, or ``env_error`` without measures where they cannot be taken.
    """
    episode = env.episode
    try:
        own = env.take_metrics(episode)
    except EnvFault:
        return "env_error", ()
    return "truncated", (
        ("success", 0.0),
        ("return", episode.total_reward),
        ("turns", float(episode.turn)),
        ("invalid_actions", float(episode.invalid_actions)),
        *own.items(),
    )


def _ids(given: Sequence[int]) -> Ids:
    return np.asarray(given, dtype=np.int64) if len(given) else _NONE


def _parts(turn: Turn, cuts: Sequence[int], at: int) -> list[Turn]:
    """Cut the turn into partial turns, the first of which will be turn ``at`` of its tree."""
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
            part = replace(
                part, parent=at + number - 1, edge=Edge.CONTINUE, obs_ids=_NONE, previous=None
            )
            part = replace(part, gold_opener=_NONE, gold=())
        if not last:
            part = replace(part, partial=True, status="running", metrics=(), reward_terms=())
            part = replace(part, verdict=0, valid=True, action="", stop="length")
            part = replace(part, spawned=(), debug_info={})
        parts.append(part)
    return parts
