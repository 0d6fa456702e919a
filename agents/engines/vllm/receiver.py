"""The processes of vLLM's cards as members of a group: each receives all, and keeps its part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from ..hand_over.forms import Form
from ..hand_over.group import GroupError, Membership, WeightGroup, card_of, group_backend
from .weights import reload_from

_KEPT = "turngym_weight_group"


class CardsReceiver:
    """One member per process of an engine that is cut up over several cards.

    Args:
        call: vLLM's ``collective_rpc``: runs a function in all of them.
    """

    def __init__(self, call: Callable[..., list[Any]]) -> None:
        self._call = call
        found = call(describe)
        backends = {backend for backend, _ in found}
        self.backend = backends.pop() if len(backends) == 1 else ""
        self.cards = tuple(card for _, card in found)
        self.group = ""

    def join(self, place: Membership) -> None:
        """Have all join; see :class:`~turngym.agents.engines.hand_over.receiver.Receiver`."""
        self._checked(join, place)
        self.group = place.name

    def incoming(self, forms: Sequence[Form]) -> tuple[Any, Callable[[], None]]:
        """Return what has all of them receive; nothing is left to do afterwards."""
        return SentToCards(lambda: self._checked(receive, tuple(forms))), lambda: None

    def leave(self) -> None:
        """Have all leave."""
        if self.group:
            self._call(leave)
        self.group = ""

    def _checked(self, work: Callable[..., str], *given: Any) -> None:
        # a process that raises would leave the answers of the others in their queues
        problems = [problem for problem in self._call(work, args=given) if problem]
        if problems:
            raise GroupError(" ".join(dict.fromkeys(problems)))


class SentToCards:
    """Weights that go past this process, to those of its cards.

    Args:
        arrive: Returns once they are there.
    """

    def __init__(self, arrive: Callable[[], None]) -> None:
        self.arrive = arrive


def describe(worker: Any) -> tuple[str, str]:
    """Return what a card's process speaks, and its card; runs there."""
    return group_backend(worker.device) or "", card_of(worker.device)


def join(worker: Any, place: Membership) -> str:
    """Join a group; runs in a card's process. Returns why that failed."""
    leave(worker)
    try:
        group = WeightGroup(replace(place, rank=place.rank + worker.rank), worker.device)
    except Exception as fault:  # noqa: BLE001 - said where somebody hears it
        return str(fault)
    setattr(worker, _KEPT, group)
    return ""


def receive(worker: Any, forms: Sequence[Form]) -> str:
    """Receive all weights, and load this card's part; runs there. Returns why that failed."""
    group: WeightGroup = getattr(worker, _KEPT)

    def weights() -> Iterator[tuple[str, torch.Tensor]]:
        for form in forms:
            empty = torch.empty(form.shape, dtype=form.dtype, device=group.device)
            yield form.name, group.broadcast(empty)

    try:
        group.begin()
        coming = weights()
        reload_from(worker, coming)
        for _ in coming:  # what vLLM did not ask for
            pass
        group.settle()
    except Exception as fault:  # noqa: BLE001 - said where somebody hears it
        leave(worker)
        return f"{type(fault).__name__}: {fault}"
    return ""


def leave(worker: Any) -> None:
    """Leave the group, if any; runs in a card's process."""
    group = getattr(worker, _KEPT, None)
    if group is not None:
        group.close()
        setattr(worker, _KEPT, None)
