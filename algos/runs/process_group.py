"""The processes of a run and their communication."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from ...envs.core.errors import BadValueError, TurngymError

T = TypeVar("T")
PATIENCE = timedelta(hours=2)
"""How long a process waits for the others: a step's longest episode may be slow."""
_GROUPS: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""By the group of all processes, which is another one where they part and meet again."""
_RUNS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""Number of runs that this process has begun, by the same."""

_MOST = 1000
"""Characters that a process tells of its fault."""
_LOST = ("closed by peer", "reset by peer", "Broken pipe")
"""What gloo says where another process is gone."""


class PeerEndedError(TurngymError, RuntimeError):
    """Another process of the run ended in the middle of it."""


@dataclass(frozen=True)
class Channel:
    """Collective communication between all processes.

    Attributes:
        rank: This process, from 0.
        world_size: Number of processes.
        group: torch's process group; None when there is one process only.
    """

    rank: int = 0
    world_size: int = 1
    group: Any = None

    def everyone(self, mine: T) -> list[T]:
        """All-gather a value; returns one per rank."""
        if self.world_size == 1:
            return [mine]
        found: list[Any] = [None] * self.world_size
        dist.all_gather_object(found, mine, group=self.group)
        return found

    def from_first(self, mine: T) -> T:
        """Broadcast the first process's value."""
        if self.world_size == 1:
            return mine
        box = [mine]
        dist.broadcast_object_list(box, src=0, group=self.group)
        return box[0]

    def mine(self, items: Sequence[T]) -> Sequence[T]:
        """Return this process's share of a list: every ``world_size``-th entry."""
        return items[self.rank :: self.world_size]

    def in_order(self, mine: Sequence[T]) -> list[T]:
        """All-gather the results of each share of :meth:`mine`, in the order of the whole list."""
        shares = self.everyone(list(mine))
        out: list[Any] = [None] * sum(len(share) for share in shares)
        for rank, share in enumerate(shares):
            out[rank :: self.world_size] = share
        return out


@dataclass(frozen=True)
class Ranks:
    """The processes of a run.

    Attributes:
        learner: For the thread that trains.
        runner: For the thread that plays, which may be another one.
    """

    learner: Channel = Channel()
    runner: Channel = Channel()

    @property
    def alone(self) -> bool:
        """Whether the run has one process."""
        return self.learner.world_size == 1

    @property
    def first(self) -> bool:
        """Whether this process writes files."""
        return self.learner.rank == 0


def join_ranks(device: str) -> Ranks:
    """Join the processes started by torchrun or accelerate; only this one where none did.

    Args:
        device: Of the run; on CUDA each process takes the card of its local rank.

    Raises:
        BadValueError: A launcher's variables are incomplete, or ``device`` names one card for all.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Ranks()
    missing = [n for n in ("RANK", "MASTER_ADDR", "MASTER_PORT") if n not in os.environ]
    if missing:
        raise BadValueError(
            f"training: WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} is not "
            "set. Start with torchrun or accelerate launch, or unset WORLD_SIZE."
        )
    if device not in ("auto", "cpu", "cuda"):
        raise BadValueError(
            f"training: device is {device!r}, but several processes run, each on a device of its "
            "own. Use 'auto', 'cuda' or 'cpu'."
        )
    on_cuda = device != "cpu" and torch.cuda.is_available()
    if on_cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_cuda else "gloo", timeout=PATIENCE)
    _meet()
    return Ranks(_channel("learner"), _channel("runner"))


def shared_channel() -> Channel:
    """Return one more channel between the processes of :func:`join_ranks`; all must ask."""
    return _channel("shared") if dist.is_initialized() else Channel()


def _channel(name: str) -> Channel:
    return Channel(dist.get_rank(), dist.get_world_size(), thread_group(name))


def _meet() -> None:
    """Wait until all processes begin this run.

    One that is ahead, as its last run failed where the others' goes on, would else answer in the
    groups what they asked in that run.
    """
    number = _RUNS[dist.group.WORLD] = _RUNS.get(dist.group.WORLD, 0) + 1
    store, name = dist.distributed_c10d._get_default_store(), f"turngym/run/{number}"
    if store.add(name, 1) == dist.get_world_size():
        store.set(f"{name}/all", "here")
    store.wait([f"{name}/all"], PATIENCE)


@contextmanager
def shared_faults() -> Iterator[None]:
    """Tell the other processes what ends this one's run.

    Raises:
        PeerEndedError: Another process is gone; says what it told.
    """
    try:
        yield
    except BaseException as fault:
        if not dist.is_initialized():
            raise
        store, rank = dist.distributed_c10d._get_default_store(), dist.get_rank()
        key = f"turngym/run/{_RUNS.get(dist.group.WORLD, 0)}/fault"
        own = isinstance(fault, TurngymError)  # an engine's server may hang up as well
        lost = not own and isinstance(fault, RuntimeError) and any(w in str(fault) for w in _LOST)
        reason = "one was killed, or its machine is gone"
        with suppress(RuntimeError):  # the store may be gone, too
            if not lost:
                mine = f"process {rank} raised {type(fault).__name__}: {fault}"
                store.compare_set(key, "", mine[:_MOST])
            elif store.check([key]):
                reason = store.get(key).decode()
        if not lost:
            raise
        raise PeerEndedError(
            f"training: process {rank} stopped, as the run lost another process: {reason}"
        ) from None


def thread_group(name: str) -> Any:
    """Return the process group of the threads of one kind; the first time all must ask.

    A group has three threads, one of which wakes a hundred times a second; so that a process that
    trains one run behind another has as many of them as one that trains a single run.

    Args:
        name: What the threads do: no two that are at work at once have the same.
    """
    whole = dist.group.WORLD
    made = _GROUPS.setdefault(whole, {})
    if name not in made:
        made[name] = dist.new_group(backend="gloo", timeout=PATIENCE)
    return made[name]


class SharedCounter:
    """Numbers that the processes take from one another: each is handed out once.

    Args:
        name: The same in all processes, and new for every list that is shared out.
    """

    def __init__(self, name: str) -> None:
        self._name = f"turngym/{name}"
        self._store = dist.distributed_c10d._get_default_store()

    def take(self) -> int:
        """Return the next number, from 0."""
        return int(self._store.add(self._name, 1)) - 1
