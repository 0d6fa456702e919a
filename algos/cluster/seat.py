"""The place of one rollout actor: who sits there may change when an actor or its node dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ...envs.errors import EngineFault

MOST_DEATHS = 3
"""Actors in a row that may die in one place without having played a single group."""


class ActorSeat:
    """Holds an actor, and another one after its death.

    Args:
        ray: The package.
        make: Starts an actor.
        bring: Sends it the newest weights, and returns the reference to wait for.
    """

    def __init__(self, ray: Any, make: Callable[[], Any], bring: Callable[[Any], Any]) -> None:
        self._ray = ray
        self._make = make
        self._bring = bring
        self._deaths = 0
        self._arriving: asyncio.Task[None] | None = None
        self._ready: Any = None
        self.handle: Any = make()

    def begin(self) -> None:
        """A new event loop runs; what an old one waited for is forgotten."""
        self._arriving = None

    def stale(self) -> None:
        """There are newer weights than the actor's."""
        self._ready = None

    def bring(self) -> Any:
        """Send the newest weights; the reference to hand to :meth:`brought`."""
        return self._bring(self.handle)

    def brought(self, ref: Any) -> None:
        """Wait until the actor has them; one that died is replaced when it is needed."""
        try:
            self._ray.get(ref)
        except self._ray.exceptions.RayActorError:
            return
        self._ready = self.handle

    def died(self, handle: Any, why: BaseException) -> None:
        """An actor is gone; another takes its place, once for each that died.

        Raises:
            EngineFault: They keep dying.
        """
        if handle is not self.handle:
            return
        self._deaths += 1
        if self._deaths > MOST_DEATHS:
            raise EngineFault(
                f"Ray: {self._deaths} rollout actors in a row died in the same place before they "
                f"had played a group. The last one: {_first_line(why)} Look at its log under "
                "/tmp/ray, give actors more memory, or start fewer of them."
            ) from why
        self._ray.kill(handle)
        self.handle = self._make()
        self._ready = self._arriving = None

    def served(self) -> None:
        """A group came from here."""
        self._deaths = 0

    async def ready(self) -> Any:
        """The actor, as soon as it is there and has the newest weights.

        Raises:
            EngineFault: Actors keep dying.
        """
        while self._ready is not self.handle:
            handle = self.handle
            if self._arriving is None:
                self._arriving = asyncio.ensure_future(_wait(self._bring(handle)))
            try:
                await asyncio.shield(self._arriving)
            except self._ray.exceptions.RayActorError as death:
                self.died(handle, death)
            else:
                if handle is self.handle:
                    self._ready = handle
        return self.handle


async def _wait(ref: Any) -> None:
    await ref


def _first_line(fault: BaseException) -> str:
    return next((line.strip() for line in str(fault).splitlines() if line.strip()), "unknown.")
