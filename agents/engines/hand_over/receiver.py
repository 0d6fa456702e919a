"""How an engine's process takes weights that are sent through a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from .arriving import Arrivals, ArrivingModule, tied_to
from .forms import Form
from .group import Membership, WeightGroup, card_of, group_backend


class Receiver(Protocol):
    """The members of a group that belong to one engine: its process, or those of its cards.

    Attributes:
        backend: What they speak: gloo, nccl (and gloo); empty for nothing.
        cards: Their cards; an empty name is main memory.
        group: Name of the group that they are in; empty for none.
    """

    backend: str
    cards: Sequence[str]
    group: str

    def join(self, place: Membership) -> None:
        """Join a group; several members take the places from this one on.

        Raises:
            GroupError: The others were not there in time.
        """
        ...

    def incoming(self, forms: Sequence[Form]) -> tuple[Any, Callable[[], None]]:
        """Return what an engine syncs with to receive weights, and what is to be done afterwards.

        Both raise GroupError where the sender breaks off.
        """
        ...

    def leave(self) -> None:
        """Leave the group, if any."""
        ...


class OwnReceiver:
    """This process as the one member: it receives a weight while its engine asks for it.

    Args:
        device: Where weights arrive.
        shelf: A model of the same form.
    """

    def __init__(self, device: torch.device, shelf: Any) -> None:
        self.backend = group_backend(device) or ""
        self.cards = (card_of(device),)
        self.group = ""
        self._device, self._shelf = device, shelf
        self._joined: WeightGroup | None = None

    def join(self, place: Membership) -> None:
        """Join a group; see :class:`Receiver`."""
        self._joined = WeightGroup(place, self._device)
        self.group = place.name

    def incoming(self, forms: Sequence[Form]) -> tuple[Any, Callable[[], None]]:
        """Return a model whose weights come as they are read; see :class:`Receiver`."""
        joined = self._joined
        assert joined is not None, "join comes first"

        def receive(form: Form) -> torch.Tensor:
            return joined.broadcast(torch.empty(form.shape, dtype=form.dtype, device=joined.device))

        arrivals = Arrivals(forms, receive, tied_to(self._shelf))
        joined.begin()

        def settle() -> None:
            arrivals.finish()
            joined.settle()

        return ArrivingModule(self._shelf, arrivals), settle

    def leave(self) -> None:
        """Leave the group, if any."""
        if self._joined is not None:
            self._joined.close()
        self._joined, self.group = None, ""
