"""Driving environments that ask questions: one at a time, or those of many copies together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import gymnasium as gym

from .episode import Call, Outcome
from .errors import BadValueError, EnvFault

R = TypeVar("R")
Server = Callable[[Sequence[Any]], Sequence[Any]]


def serve_one_by_one(played: Generator[Call, Any, Outcome]) -> Outcome:
    """Drive an environment's generator, serving every call by itself."""
    turn = forward_calls(played)
    reply: Any = None
    while True:
        try:
            call = turn.send(reply)
        except StopIteration as done:
            return done.value
        try:
            reply = serve(call.serve, [call.request])[0]
        except EnvFault as fault:
            reply = fault


def serve(server: Server, requests: list[Any]) -> Sequence[Any]:
    """Return the replies of ``server``, one per request.

    Raises:
        BadValueError: The number of answers differs from the number of requests.
        EnvFault: Nothing could be served.
    """
    replies = server(requests)
    if len(replies) != len(requests):
        raise BadValueError(
            f"{getattr(server, '__qualname__', server)!s} gave {len(replies)} answers to "
            f"{len(requests)} requests; expected one each, in the same order."
        )
    return replies


def forward_calls(played: Generator[Call, Any, Outcome]) -> Generator[Call, Any, Outcome]:
    """Pass calls out and answers in; an :class:`EnvFault` that came as an answer is raised."""
    reply: Any = None
    while True:
        try:
            call = played.throw(reply) if isinstance(reply, EnvFault) else played.send(reply)
        except StopIteration as done:
            return done.value
        reply = yield call


def drive_together(turns: Sequence[Generator[Call, Any, R]]) -> list[R]:
    """Run many generators to their ends; in every round, calls with an equal ``serve`` go as one.

    Args:
        turns: What :meth:`TextEnv.open_step` gave, one per copy.

    Returns:
        Their return values, in the same order. A batch that raises :class:`EnvFault` ends only
        the copies that asked in it.
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


async def call_env(env: gym.Env[Any, Any], do: Callable[[], R]) -> R:
    """Run a step or a reset of ``env``, in a thread when it may wait for something outside.

    So the event loop stays free meanwhile.
    """
    import asyncio  # it brings ssl along, which few environments need

    blocking = getattr(env.unwrapped, "blocking", False)
    return await asyncio.to_thread(do) if blocking else do()
