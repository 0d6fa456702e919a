"""A group of processes through which a learner sends its weights: the learner is the first member.

It is none of torch's default groups, which a learner of several processes has already, but one of
its own between the first of them and its engine servers (as in OpenRLHF, arXiv 2405.11143, and in
verl, arXiv 2409.19256). Between cards it speaks NCCL, otherwise gloo.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from ....envs.core.errors import EngineFault

_c10d: Any = dist  # parts of it are not declared
Backend = Literal["gloo", "nccl"]
MAX_SIZE = 4096
"""Most members of a group."""
MAX_WAIT_S, MAX_JOIN_S = 24 * 3600.0, 600.0
"""Most seconds that a member waits for a tensor, and for the others at the beginning."""
_HELLO = 0x7475726E  # what the first member says when all are there
_PEEK_S = 0.0005
_MAX_PORT = 65535


class GroupError(EngineFault):
    """A group that did not come about, or broke: a member is gone, too slow, or another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A member's place in a group.

    Attributes:
        name: Of the group.
        host: Address where its members meet, one of the first member's machine.
        port: Port there.
        size: Number of members.
        rank: This one, from 0.
        backend: What the members speak.
        join_s: Seconds to wait for all others at the beginning.
        wait_s: Seconds that one tensor may take.
    """

    name: str
    host: str
    port: int
    size: int
    rank: int
    backend: Backend
    join_s: float
    wait_s: float

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)

    @classmethod
    def read(cls, found: Any) -> Membership:
        """Return what JSON data says.

        Raises:
            ValueError: It describes no member but the first.
        """
        match found:
            case {
                "name": str() as name,
                "host": str() as host,
                "port": int() as port,
                "size": int() as size,
                "rank": int() as rank,
                "backend": "gloo" | "nccl" as backend,
                "join_s": int() | float() as join_s,
                "wait_s": int() | float() as wait_s,
            } if (
                0 < len(name) <= 100
                and 0 < len(host) <= 255
                and 0 < port <= _MAX_PORT
                and 1 < size <= MAX_SIZE
                and 0 < rank < size
                and 0 < join_s <= MAX_JOIN_S
                and 0 < wait_s <= MAX_WAIT_S
            ):
                return cls(
                    name=name,
                    host=host,
                    port=port,
                    size=size,
                    rank=rank,
                    backend=backend,
                    join_s=float(join_s),
                    wait_s=float(wait_s),
                )
        raise ValueError(f"the place {str(found)[:200]!r} in a group")


class Meeting:
    """The place where members meet, opened by the first one.

    Args:
        host: Address to listen at; nobody reaches it at any other.

    Raises:
        GroupError: It cannot be listened at.
    """

    def __init__(self, host: str) -> None:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, 0), family=kind, backlog=256)
            self.host, self.port = host, int(listening.getsockname()[1])
            self.store = _c10d.TCPStore(
                host,
                self.port,
                is_master=True,
                wait_for_workers=False,
                master_listen_fd=listening.detach(),
            )
        except (OSError, RuntimeError) as fault:
            raise GroupError(
                f"group of weights: {host} cannot be listened at ({_first_line(fault)})."
            ) from None


class WeightGroup:
    """A member of a group, once all others are there.

    Args:
        place: This member's.
        device: Where tensors are sent from and received; a card with NCCL.
        meeting: The place, for the first member.

    Raises:
        GroupError: The others are not there in time, or do not fit.
    """

    def __init__(
        self, place: Membership, device: torch.device, meeting: Meeting | None = None
    ) -> None:
        self.place = place
        self.device = device if place.backend == "nccl" else torch.device("cpu")
        self._group: Any = None
        self._store: Any = None
        hello = torch.tensor([_HELLO if place.rank == 0 else 0], device=self.device)
        if why := self._problem(lambda: self._meet(meeting, hello)):
            self.close()
            raise GroupError(
                f"group of weights: {place.size} processes did not meet at {place.host}:"
                f"{place.port} within {place.join_s:.0f} s ({why}). Are all servers there, and may "
                "they connect to the learner's machine?"
            )
        if int(hello) != _HELLO:
            self.close()
            raise GroupError("group of weights: the first member is no learner of this version.")
        self._sum = torch.zeros(1, dtype=torch.int64, device=self.device)

    def begin(self) -> None:
        """Begin with the first tensor of new weights."""
        self._sum.zero_()

    def broadcast(self, tensor: Tensor, stop: Callable[[], bool] = lambda: False) -> Tensor:
        """Send a tensor from the first member, or receive into it; return it.

        Args:
            tensor: Contiguous, on :attr:`device`.
            stop: Whether somebody else knows that it is in vain.

        Raises:
            GroupError: A member is gone or too slow. The group cannot be used any more.
        """
        data = tensor.detach().reshape(-1).view(torch.uint8)
        if len(data):
            self._checked_send(data, stop)
            self._sum.mul_(31).add_(_folded(data))
        return tensor

    def settle(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Compare what came with what was sent, once it is all there.

        Raises:
            GroupError: It differs, or a member is gone.
        """
        theirs = self._sum.clone()
        self._checked_send(theirs, stop)
        if not torch.equal(theirs, self._sum):
            raise GroupError("group of weights: other numbers came than were sent.")

    def close(self) -> None:
        """Leave; the other members notice at once, or after their time with NCCL."""
        group, self._group, self._store = self._group, None, None
        if group is not None and self.place.backend == "nccl":
            group.abort()
        # with gloo sockets are closed together with the last reference

    def _meet(self, meeting: Meeting | None, hello: Tensor) -> None:
        self._store = _store(self.place, meeting)
        self._group = _process_group(self.place, self._store)
        self._send(hello, self.place.join_s, lambda: False)

    @staticmethod
    def _problem(work: Callable[[], None]) -> str:
        """Return why something failed; no trace of it stays, which would keep sockets open."""
        try:
            work()
        except (RuntimeError, ValueError, OSError) as fault:
            return _first_line(fault)
        return ""

    def _checked_send(self, data: Tensor, stop: Callable[[], bool]) -> None:
        if self._group is None:
            raise GroupError("group of weights: it was left.")
        if why := self._problem(lambda: self._send(data, self.place.wait_s, stop)):
            self.close()
            raise GroupError(
                f"group of weights: a member is gone, or took more than {self.place.wait_s:.0f} s "
                f"({why})."
            )

    def _send(self, data: Tensor, limit_s: float, stop: Callable[[], bool]) -> None:
        how = dist.BroadcastOptions()
        how.rootRank = how.rootTensor = 0
        how.timeout = timedelta(seconds=limit_s)
        if stop():
            raise RuntimeError("given up")
        work = self._group.broadcast([data], how)
        if self.place.backend == "gloo":
            work.wait(how.timeout)
            return
        # with NCCL waiting would be the card's affair, and end the process after its time
        end = time.monotonic() + limit_s
        while not work.is_completed():
            if stop() or time.monotonic() > end:
                raise RuntimeError("given up" if stop() else "no answer in time")
            time.sleep(_PEEK_S)
        work.wait()


def local_address(host: str) -> str:
    """Return this machine's address on the way to another one; nothing is sent.

    Raises:
        GroupError: There is no way.
    """
    try:
        kind, _, _, _, there = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect(there)
            return str(probe.getsockname()[0])
    except OSError as fault:
        raise GroupError(f"group of weights: no way to {host} ({fault}).") from None


def _store(place: Membership, meeting: Meeting | None) -> Any:
    if meeting is not None:
        store: Any = meeting.store
    else:
        store = _c10d.TCPStore(
            place.host, place.port, wait_for_workers=False, timeout=timedelta(seconds=place.join_s)
        )
    store.set_timeout(timedelta(seconds=place.join_s))
    return _c10d.PrefixStore(place.name, store)


def _process_group(place: Membership, store: Any) -> Any:
    if place.backend == "nccl":
        how: Any = _c10d.ProcessGroupNCCL.Options()
        # its own watch ends the process; ours comes first
        how._timeout = timedelta(seconds=2 * max(place.join_s, place.wait_s) + 60)
        return _c10d.ProcessGroupNCCL(store, place.rank, place.size, how)
    gloo = _c10d.ProcessGroupGloo
    how = gloo._Options()
    how._timeout = timedelta(seconds=place.join_s)
    address = place.host if place.rank == 0 else local_address(place.host)
    how._devices = [gloo.create_device(hostname=address)]
    return gloo(store, place.rank, place.size, how)


def _folded(data: Tensor) -> Tensor:
    """Return the sum of bytes ``[n]`` as whole numbers of 8 bytes, and of those left over."""
    if data.data_ptr() % 8:
        data = data.clone()
    whole = len(data) // 8 * 8
    return data[:whole].view(torch.int64).sum() + data[whole:].sum(dtype=torch.int64)


def _first_line(fault: BaseException) -> str:
    lines = str(fault).strip().splitlines() or [type(fault).__name__]
    return lines[0].rpartition("] ")[2][:200] if lines[0].startswith("[/") else lines[0][:200]


def group_backend(device: torch.device) -> Backend | None:
    """Return what a process whose weights are on a device can speak; None for nothing."""
    if not dist.is_available():
        return None
    if device.type == "cuda" and dist.is_nccl_available():
        return "nccl"
    return "gloo" if dist.is_gloo_available() else None


def exact_device(device: torch.device) -> torch.device:
    """Return a device with its number, where it is a card."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def card_of(device: torch.device) -> str:
    """Return the name of a card in all the world; empty for a CPU."""
    if device.type != "cuda":
        return ""
    return str(getattr(torch.cuda.get_device_properties(device), "uuid", device))
