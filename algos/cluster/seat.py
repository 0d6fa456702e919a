"""The place of one rollout actor: who sits there may change when an actor or its node dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ...envs.errors import EngineFault

MOST_DEATHS = 3
"""Actors in a row that may die in one place without having played a single group."""


class ActorSlot:
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
        self._sent: Any = None
        self._ready: Any = None
        self.handle: Any = make()

    @property
    def alive(self) -> bool:
        """True while the actor is known to be there with the newest weights."""
        return self._ready is self.handle

    def begin(self) -> None:
        """A new event loop runs; what an old one waited for is forgotten."""
        self._arriving = None

    def send(self) -> None:
        """There are newer weights: they go out now, and are waited for in :meth:`ready`."""
        self._ready = self._arriving = None
        self._sent = self._bring(self.handle)

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
                f"had played a group. The last one: {_first_line(why)} Look at its log in "
                "Ray's session folder, give actors more memory, or start fewer of them."
            ) from why
        self._ray.kill(handle)
        self.handle = self._make()
        self._sent = self._ready = self._arriving = None

    def served(self) -> None:
        """A group came from here."""
        self._deaths = 0

    async def ready(self) -> Any:
        """The actor, as soon as it is there and has the newest weights.

        Raises:
            EngineFault: Actors keep dying.
        """
        while not self.alive:
            handle = self.handle
            if self._arriving is None:
                self._sent = self._bring(handle) if self._sent is None else self._sent
                self._arriving = asyncio.ensure_future(_wait(self._sent))
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
