"""Serve the calls of environments: one by one, or those of many copies in batches."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import gymnasium as gym

from .episode import Call, Outcome
from .errors import BadValueError, EnvFault

R = TypeVar("R")
Server = Callable[[Sequence[Any]], Sequence[Any]]


def serve_one_by_one(played: Generator[Call, Any, Outcome]) -> Outcome:
    """Drive an environment's generator, serving each call by itself."""
    reply: Any = None
    while True:
        try:
            call = _take_call(played, reply)
        except StopIteration as done:
            return done.value
        try:
            reply = serve(call.serve, [call.request])[0]
        except EnvFault as fault:
            reply = fault


def _take_call(played: Generator[Call, Any, Outcome], reply: Any) -> Call:
    """Return the next call of an environment's generator.

    Raises:
        TypeError: It yields something else.
    """
    call = played.throw(reply) if isinstance(reply, EnvFault) else played.send(reply)
    if not isinstance(call, Call):
        raise TypeError(
            f"{getattr(played, '__qualname__', played)!s} yielded a {type(call).__name__}; "
            "expected a Call, whose reply it receives."
        )
    return call


def serve(server: Server, requests: list[Any]) -> Sequence[Any]:
    """Return the replies of ``server``, one per request.

    Raises:
        BadValueError: The number of replies differs from the number of requests.
        EnvFault: All requests failed.
    """
    replies = server(requests)
    if len(replies) != len(requests):
        raise BadValueError(
            f"{getattr(server, '__qualname__', server)!s} returned {len(replies)} replies to "
            f"{len(requests)} requests; return one for each, in the same order."
        )
    return replies


def forward_calls(played: Generator[Call, Any, Outcome]) -> Generator[Call, Any, Outcome]:
    """Forward calls and replies; raise a reply that is an :class:`EnvFault` in the generator."""
    reply: Any = None
    while True:
        try:
            call = _take_call(played, reply)
        except StopIteration as done:
            return done.value
        reply = yield call


def drive_together(turns: Sequence[Generator[Call, Any, R]]) -> list[R]:
    """Run many generators to their ends, batching calls with an equal ``serve`` in each round.

    Args:
        turns: Generators of :meth:`TextEnv.open_step`, one per copy.

    Returns:
        Their return values, in the same order. A batch that raises :class:`EnvFault` ends only
        the copies with a call in it.
    """
    results: list[Any] = [None] * len(turns)
    replies: dict[int, Any] = dict.fromkeys(range(len(turns)))
    while replies:
        waiting: dict[Server, list[tuple[int, Any]]] = {}
        for place, reply in replies.items():
            try:
                call = turns[place].send(reply)
            except StopIteration as done:
                results[place] = done.value
            else:
                waiting.setdefault(call.serve, []).append((place, call.request))
        replies = {}
        for server, asked in waiting.items():
            try:
                served = serve(server, [request for _, request in asked])
            except EnvFault as fault:
                served = [fault] * len(asked)
            replies.update((place, reply) for (place, _), reply in zip(asked, served, strict=True))
    return results


def may_block(env: gym.Env[Any, Any]) -> bool:
    """Return whether a step or a reset of ``env`` may wait for something outside the process."""
    return getattr(env.unwrapped, "blocking", False)


async def call_env(env: gym.Env[Any, Any], do: Callable[[], R]) -> R:
    """Run a step or a reset of ``env``, in a thread if it may block the event loop."""
    if not may_block(env):
        return do()
    import asyncio  # it brings ssl along, which few environments need

    return await asyncio.to_thread(do)
