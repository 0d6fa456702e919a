"""The rollout actors of a run, and their queue of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ...envs.core.errors import EngineFault, TurngymError
from .work import Packed, PlayedGroup, Work, check_answer

START_S = 600.0
"""How long may pass without any answer while no actor is alive, in seconds."""


class ActorPool:
    """Plays groups on actors; groups of an actor that died are played again.

    Each group of a call is a numbered piece of work. It is given to another actor when its actor
    died, and the first answer to a number is the only one that counts.

    Args:
        ray: The package.
        make: Starts an actor.
        count: Actors.
        at_once: Most groups that one actor plays side by side.
    """

    def __init__(self, ray: Any, make: Callable[[], Any], count: int, at_once: int) -> None:
        self._ray = ray
        self._at_once = at_once
        self._weights: tuple[int, Any] = (0, None)
        self.slots = [ActorSlot(ray, make, self._bring) for _ in range(count)]
        self.lost = 0

    def limits(self) -> tuple[int, int]:
        """Return context and vocabulary of the actors' engines; waits until the first is there.

        Raises:
            EngineFault: It could not be started.
        """
        try:
            found = self._ray.get(self.slots[0].handle.limits.remote(), timeout=START_S)
        except self._ray.exceptions.GetTimeoutError as fault:
            raise EngineFault(
                f"Ray: no rollout actor could be started within {START_S:.0f} s. The cluster has "
                f"{self._ray.cluster_resources()}; ask for fewer processors or GPUs per actor."
            ) from fault
        except self._ray.exceptions.RayActorError as fault:
            raise EngineFault(f"Ray: a rollout actor cannot be started. {fault}") from fault
        match found:
            case (int() as context, int() as vocabulary) if context > 0 < vocabulary:
                return context, vocabulary
        raise EngineFault(
            f"Ray: a rollout actor says that its engine takes {str(found)[:60]}; expected two "
            "numbers, of context and vocabulary. Have all nodes the same version of turngym?"
        )

    def take(self, version: int, weights: Packed) -> None:
        """Send new weights to all actors through the object store."""
        self._weights = version, self._ray.put(weights)
        for slot in self.slots:
            slot.send()

    async def play(self, works: Sequence[Work], tick: Callable[[], None]) -> list[PlayedGroup]:
        """Return one result per work item, in order; ``tick`` is called after each.

        Raises:
            EngineFault: Actors keep dying, or one answered something else.
            TurngymError: What an actor raised.
        """
        found: dict[int, PlayedGroup] = {}
        if not works:
            return []
        todo: asyncio.Queue[int] = asyncio.Queue()
        for number in range(len(works)):
            todo.put_nowait(number)
        done = asyncio.Event()

        async def lane(slot: ActorSlot) -> None:
            while True:
                handle = await slot.ready()
                number = await todo.get()
                try:
                    answer = await handle.play.remote(works[number])
                except self._ray.exceptions.RayTaskError as fault:
                    raise _cause(fault) from fault
                except self._ray.exceptions.RayError as death:  # or the answer died with its node
                    self.lost += 1
                    todo.put_nowait(number)
                    slot.died(handle, death)
                    continue
                slot.served()
                if number not in found:
                    found[number] = check_answer(works[number], answer)
                    tick()
                if len(found) == len(works):
                    done.set()

        await self._until(done, lane, min(self._at_once, -(-len(works) // len(self.slots))))
        return [found[number] for number in range(len(works))]

    async def _until(self, done: asyncio.Event, lane: Any, lanes: int) -> None:
        """Run so many lanes per actor until all is done, or one of them fails."""
        for slot in self.slots:
            slot.begin()
        running = [asyncio.ensure_future(lane(s)) for s in self.slots for _ in range(lanes)]
        end = asyncio.ensure_future(done.wait())
        try:
            while not await self._ended([end, *running]):
                pass
            for task in running:
                if task.done():
                    task.result()
        finally:
            for task in (end, *running):
                task.cancel()
            await asyncio.gather(end, *running, return_exceptions=True)

    async def _ended(self, tasks: Sequence[asyncio.Task[Any]]) -> bool:
        """Wait until one has ended; refuses to wait for actors that nobody can start."""
        done, _ = await asyncio.wait(tasks, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        if not done and not any(slot.alive for slot in self.slots):
            raise EngineFault(
                f"Ray: no rollout actor is alive, and for {START_S:.0f} s none could be started. "
                "Add a node, or ask for fewer processors or GPUs per actor; the same call resumes."
            )
        return bool(done)

    def _bring(self, handle: Any) -> Any:
        version, weights = self._weights
        return handle.take.remote(version, weights)

    def close(self) -> None:
        """End all actors."""
        for slot in self.slots:
            self._ray.kill(slot.handle)


MAX_DEATHS = 3
"""Actors in a row that may die in one place without having played a single group."""


class ActorSlot:
    """Holds an actor, and replaces it after its death.

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
        """Whether the actor is alive with the newest weights."""
        return self._ready is self.handle

    def begin(self) -> None:
        """Begin with a new event loop; forget what an old one waited for."""
        self._arriving = None

    def send(self) -> None:
        """Send newer weights now; :meth:`ready` waits for them."""
        self._ready = self._arriving = None
        self._sent = self._bring(self.handle)

    def died(self, handle: Any, why: BaseException) -> None:
        """Replace an actor that died, once per death.

        Raises:
            EngineFault: They keep dying.
        """
        if handle is not self.handle:
            return
        self._deaths += 1
        if self._deaths > MAX_DEATHS:
            raise EngineFault(
                f"Ray: {self._deaths} rollout actors in a row died in the same place before they "
                f"had played a group. The last one: {_first_line(why)} Look at its log in "
                "Ray's session folder, give actors more memory, or start fewer of them."
            ) from why
        self._ray.kill(handle)
        self.handle = self._make()
        self._sent = self._ready = self._arriving = None

    def served(self) -> None:
        """Note that the actor returned a group."""
        self._deaths = 0

    async def ready(self) -> Any:
        """Return the actor as soon as it is alive and has the newest weights.

        Raises:
            EngineFault: Actors keep dying.
            TurngymError: The actor refused the weights.
        """
        while not self.alive:
            handle = self.handle
            if self._arriving is None:
                self._sent = self._bring(handle) if self._sent is None else self._sent
                self._arriving = asyncio.ensure_future(_wait(self._sent))
            try:
                await asyncio.shield(self._arriving)
            except self._ray.exceptions.RayTaskError as fault:
                raise _cause(fault) from fault
            except self._ray.exceptions.RayError as death:
                self.died(handle, death)
            else:
                if handle is self.handle:
                    self._ready = handle
        return self.handle


def _cause(fault: Any) -> BaseException:
    """Return what an actor raised: errors of this project as they were, others with their trace."""
    return fault.cause if isinstance(fault.cause, TurngymError) else fault


async def _wait(ref: Any) -> None:
    await ref


def _first_line(fault: BaseException) -> str:
    return next((line.strip() for line in str(fault).splitlines() if line.strip()), "unknown.")
