"""The learner's side of a group through which weights reach engine servers.

The HTTP call says only what comes: version, names, shapes, formats. The weights themselves are
broadcast, one after the other, by the first member of the group, which is the learner.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import torch

from ....envs.core.errors import EngineFault
from ....envs.utils.http import start_in_thread
from ..hand_over.forms import Form
from ..hand_over.group import (
    Backend,
    GroupError,
    Meeting,
    Membership,
    WeightGroup,
    card_of,
    group_backend,
    local_address,
)
from .server import EngineServer, LostCallError
from .settings import HttpSettings
from .wire import WeightsId

T = TypeVar("T")
JOIN_S = 60.0
"""Seconds in which all members of a group must be there."""


class GroupSender:
    """Sends weights to servers, in a group that is formed anew when one of them is gone.

    Args:
        servers: All servers; those that answer become members.
        settings: How to speak to them.
        device: Where the learner's weights are.
    """

    def __init__(
        self, servers: Sequence[EngineServer], settings: HttpSettings, device: torch.device
    ) -> None:
        self._servers, self._settings, self._device = servers, settings, device
        self._members: list[EngineServer] = []
        self._group: WeightGroup | None = None
        self._calls: list[Future[None]] = []

    def begin(self, weights: WeightsId, forms: Sequence[Form]) -> str:
        """Have the servers wait for weights, in a group with all that answer.

        Returns:
            Why they do not; empty where they do.

        Raises:
            EngineFault: No server answers, or one says that the weights do not fit.
        """
        there = self._each(self._servers, EngineServer.present)
        members = [server for server, found in zip(self._servers, there, strict=True) if found]
        if not members:
            problems = " ".join(server.problem for server in self._servers)
            raise EngineFault(f"engine http: no server took the weights. {problems}")
        try:
            if members != self._members or not self._offered(weights, forms):
                self._form(members)
                if not self._offered(weights, forms):
                    problems = " ".join(server.problem for server in members)
                    raise GroupError(f"group of weights: the servers do not wait. {problems}")
        except GroupError as fault:
            self.leave()
            return str(fault)
        self._calls = [start_in_thread(partial(s.take_sent, weights)) for s in members]
        return ""

    def send(self, weights: Iterable[tuple[str, torch.Tensor]], forms: Sequence[Form]) -> str:
        """Send weights as they are read; all are read even where sending fails.

        Args:
            weights: By name, in the order of ``forms``.
            forms: What was offered.

        Returns:
            Why they did not arrive; empty where they did.
        """
        group, problem = self._group, ""
        if group is not None:
            group.begin()
        for (name, tensor), form in zip(weights, forms, strict=True):
            if problem or group is None:
                continue
            if (found := Form.of(name, tensor)) != form:
                problem = f"the learner's weights changed their form: {form} is {found}."
                self.leave()
                continue
            problem = self._said(
                lambda there=tensor: group.broadcast(
                    there.to(group.device).contiguous(), self._in_vain
                )
            )
        if not problem and group is not None:
            problem = self._said(lambda: group.settle(self._in_vain))
        return problem

    def end(self, problem: str) -> str:
        """Wait until the servers have what was sent.

        Args:
            problem: What :meth:`send` returned.

        Returns:
            Why they have not; empty where they have.
        """
        if problem:
            self.leave()
        problems = [problem] if problem else []
        for server, call in zip(self._members, self._calls, strict=True):
            try:
                call.result()
            except EngineFault as fault:
                problems.append(str(fault))
            else:
                server.forgive()
        self._calls = []
        if problems:
            self.leave()
        return " ".join(problems)

    def leave(self) -> None:
        """Leave the group; the next weights go through a new one."""
        if self._group is not None:
            self._group.close()
        self._group = None
        if not self._calls:
            self._members = []

    # ------------------------------------------------------------------ the group

    def _offered(self, weights: WeightsId, forms: Sequence[Form]) -> bool:
        """Return whether all members wait for weights."""
        name = "" if self._group is None else self._group.place.name
        if not name:
            return False

        def one(server: EngineServer) -> bool:
            try:
                server.offer(weights, name, forms)
            except LostCallError as fault:
                server.problem = str(fault)
                return False
            return True

        return all(self._each(self._members, one))

    def _form(self, members: list[EngineServer]) -> None:
        """Form a group with these servers.

        Raises:
            GroupError: It does not come about.
        """
        self.leave()
        here = _common_address([local_address(_host(server.url)) for server in members])
        meeting = Meeting(here)

        def place(rank: int) -> Membership:
            return Membership(
                name=name,
                host=meeting.host,
                port=meeting.port,
                size=1 + sum(counts),
                rank=rank,
                backend=backend,
                join_s=min(JOIN_S, self._settings.weights_timeout_s),
                wait_s=self._settings.weights_timeout_s,
            )

        name = secrets.token_hex(8)
        backend: Backend = self._backend(members)
        counts = [len(server.facts.cards) for server in members]
        joining = [
            start_in_thread(partial(server.join, place(1 + sum(counts[:at]))))
            for at, server in enumerate(members)
        ]
        problems: list[str] = []
        try:
            self._group = WeightGroup(place(0), self._device, meeting)
        except GroupError as fault:
            problems.append(str(fault))
        for call in joining:
            try:
                call.result()
            except EngineFault as fault:
                problems.append(str(fault))
        if problems:
            raise GroupError(" ".join(problems))
        self._members = members

    def _backend(self, members: Sequence[EngineServer]) -> Backend:
        """Return what all can speak: NCCL where everybody is on a card of his own."""
        cards = [card for server in members for card in server.facts.cards]
        cards.append(card_of(self._device))
        able = group_backend(self._device) == "nccl" and all(
            server.facts.group == "nccl" for server in members
        )
        return "nccl" if able and len(set(cards)) == len(cards) else "gloo"

    def _in_vain(self) -> bool:
        """Return whether a server has given up already."""
        return any(call.done() and call.exception() is not None for call in self._calls)

    def _each(self, servers: Iterable[EngineServer], ask: Callable[[EngineServer], T]) -> list[T]:
        calls = [start_in_thread(partial(ask, server)) for server in servers]
        return [call.result() for call in calls]

    @staticmethod
    def _said(work: Callable[[], Any]) -> str:
        try:
            work()
        except GroupError as fault:
            return str(fault)
        return ""


def why_no_group(servers: Sequence[EngineServer]) -> str:
    """Return why weights cannot be sent to these servers through a group; empty where they can."""
    if group_backend(torch.device("cpu")) is None:
        return "this build of torch has no gloo"
    without = [server.url for server in servers if not server.facts.group]
    return f"{', '.join(without)} cannot join one" if without else ""


def _host(url: str) -> str:
    return urlsplit(url).hostname or url


def _common_address(addresses: Sequence[str]) -> str:
    """Return the address of this machine that all servers reach, those on this machine too."""
    return next(
        (one for one in addresses if not one.startswith("127.") and one != "::1"), addresses[0]
    )
