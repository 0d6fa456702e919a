"""Copies of an episode that have done the same so far: what they do alike is played once.

Copies of one start see the same prompt, and a policy that has learned something answers it alike
more often than not. An environment that draws nothing (:attr:`TextEnv.chance`) and asks nothing
that draws (:attr:`TextEnv.repeatable`) answers the same action in the same state alike too, so one
copy takes the action, and the others that sampled the same tokens take over what came of it, the
turn itself included (with their own log-probabilities, where those of batched arithmetic differ).
What is sampled, and with which seeds, does not change.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import gymnasium as gym

from ...agents.engines.base import Completion, Engine
from ...agents.scripted import text_env
from ...envs.core.fork import fork
from ..core.forest import Edge, Tree, Turn
from .session_context import Context

Key = tuple[bytes, str, int]
AHEAD = 8
"""Turns that a copy may be ahead of one that may still follow it. Environments are kept for so
many; whoever is further ahead plays for itself, and those behind do likewise."""


@dataclass(slots=True, eq=False)
class Moment:
    """A position of an episode at which handles stand that have one environment together.

    Attributes:
        standing: Handles that have not acted from here yet.
        before: The moment that led here, as long as somebody may come from it.
        played: What became of an action, by its tokens, why its sampling ended and the version of
            the weights; None where the environment failed.
        prompt: The context of whoever stands here, once one of them has asked for an action.
    """

    standing: int
    before: Moment | None = None
    played: dict[Key, asyncio.Future[Played | None]] = field(default_factory=dict)
    prompt: list[int] | None = None

    def kept_for(self) -> int | None:
        """Return how many moments away the furthest handle stands that can come here.

        0 where one stands here, None where nobody can come any more.
        """
        far, last, at, away = None, self, self, 0
        while at is not None:
            if at.standing:
                far, last = away, at
            at, away = at.before, away + 1
        last.before = None
        return far


@dataclass(slots=True, eq=False)
class Played:
    """What came of an action, for whoever samples it too.

    Attributes:
        turn: The turn as it stands in a tree.
        after: Where it leads.
        env: The environment there.
        ids: The context of the session that acted, its action included.
        session: The session whose turn is next.
        obs_ids: What it observes.
        first: The same as text where this opens the session, else None.
        parent: Turn that the session's next one hangs on where this opens it.
        askers: As of :class:`~.episode_runner.EpisodeHandle`.
    """

    turn: Turn
    after: Moment
    env: gym.Env[Any, Any]
    ids: list[int]
    session: int
    obs_ids: list[int]
    first: str | None
    parent: int
    askers: dict[str, int]


class Copy(Protocol):
    """What of an :class:`~.episode_runner.EpisodeHandle` is read and written here."""

    env: gym.Env[Any, Any]
    session: int
    contexts: dict[int, Context]
    turns: int
    last: int
    askers: dict[str, int]
    moment: Moment | None

    @property
    def now(self) -> Context:
        """The context of the session whose turn it is."""
        ...


class Player(Protocol):
    """What of an :class:`~.episode_runner.EpisodeRunner` is asked here."""

    engine: Engine

    async def act(self, handle: Any, done: Completion) -> Any:
        """Take an action."""
        ...

    def append(self, handle: Any, tree: Tree, result: Any) -> Turn:
        """Put what came of it into a tree."""
        ...

    def leave(self, handle: Any) -> None:
        """Release a handle."""
        ...


def may_share(env: gym.Env[Any, Any]) -> bool:
    """Return whether copies that do the same may be played as one.

    Not where the environment draws, or asks what may answer otherwise the next time; nor where a
    wrapper owns something outside (a file of transcripts), to which every copy adds.
    """
    while isinstance(env, gym.Wrapper):
        if hasattr(env, "fork_wrapper"):
            return False
        env = env.env
    inner = text_env(env)
    return inner.repeatable and not inner.chance


async def take_turn(runner: Player, handle: Copy, tree: Tree, done: Completion) -> Turn:
    """Take the action that a handle sampled, or take over what came of it for another handle.

    Args:
        runner: Plays.
        handle: Stands at a moment.
        tree: Holds the handle's turns, and nobody else's.
        done: What was sampled for it.
    """
    moment = handle.moment
    assert moment is not None
    key = (done.ids.tobytes(), done.stop, runner.engine.version)
    if (known := moment.played.get(key)) is not None:
        # whoever gives up leaves it to the others
        played = known.result() if known.done() else await asyncio.shield(known)
        if played is not None:
            moment.standing -= 1
            return _follow(runner, handle, tree, played, done)
    after = Moment(standing=1, before=moment)
    promise = moment.played[key] = asyncio.get_running_loop().create_future()
    moment.standing -= 1
    away = moment.kept_for()
    if away is not None:
        handle.env = fork(handle.env)
    handle.moment, acting = after, handle.now
    try:
        turn = runner.append(handle, tree, await runner.act(handle, done))
    except BaseException as error:
        if isinstance(error, Exception):
            promise.set_exception(error)
            promise.exception()  # whoever waits gets it; nobody has to
        else:
            promise.set_result(None)  # it was interrupted, and others may go on
        raise
    if turn.status == "env_error":  # another try may work
        promise.set_result(None)
        return turn
    if away is not None and away >= AHEAD:
        handle.moment = None
        promise.set_result(None)
        return turn
    now = handle.now
    promise.set_result(
        Played(
            turn=turn,
            after=after,
            env=handle.env,
            ids=acting.ids,
            session=handle.session,
            obs_ids=now.obs_ids,
            first=None if now.ids else now.first,
            parent=now.parent,
            askers=dict(handle.askers),
        )
    )
    return turn


def _follow(runner: Player, handle: Copy, tree: Tree, played: Played, done: Completion) -> Turn:
    """Go where another handle went from the same moment by the same action."""
    turn = played.turn
    if not (
        done.logprobs.tobytes() == turn.logprobs.tobytes()
        and done.entropies.tobytes() == turn.entropies.tobytes()
    ):
        turn = replace(turn, logprobs=done.logprobs, entropies=done.entropies)
    acting, at = handle.now, tree.add(turn, checked=turn is played.turn)
    handle.env, handle.turns = played.env, handle.turns + 1
    acting.ids, acting.given, acting.edge = played.ids, [], Edge.CONTINUE
    acting.parent = handle.last = at
    if turn.status != "running":
        runner.leave(handle)
        return turn
    if played.first is None:
        handle.contexts[played.session].obs_ids = played.obs_ids
    else:
        opened = Context([], played.obs_ids, played.parent, Edge.SPAWN, played.first)
        handle.contexts[played.session] = opened
    handle.session, handle.askers = played.session, dict(played.askers)
    played.after.standing += 1
    handle.moment = played.after
    return turn
