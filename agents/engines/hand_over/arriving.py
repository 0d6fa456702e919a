"""A model whose weights come one at a time while an engine reads them.

An engine reads a learner's model in an order of its own: layer after layer, a norm before the
matrix behind it. The weights come in the order of a checkpoint. What is asked for is received, with
what comes before it; of a layer all is kept until the engine is at the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from ....envs.core.errors import EngineFault
from .forms import Form


class Arrivals:
    """Weights in the order in which they come.

    Args:
        forms: What comes.
        receive: Receives the next one.
        tied: Names of weights that are others', by name.
    """

    def __init__(
        self, forms: Sequence[Form], receive: Callable[[Form], Tensor], tied: Mapping[str, str]
    ) -> None:
        self._coming = iter(forms)
        self._names = {form.name for form in forms}
        self._receive = receive
        self._tied = {name: other for name, other in tied.items() if name not in self._names}
        self._shared = set(self._tied.values())
        self._held: dict[str, Tensor] = {}
        self.most_held = 0

    def comes(self, name: str) -> bool:
        """Return whether there is such a weight."""
        return name in self._names or name in self._tied

    def read(self, name: str, *, keep: bool) -> Tensor:
        """Return a weight, received now or before.

        Args:
            name: As in a checkpoint.
            keep: Whether it will be read again.

        Raises:
            EngineFault: It was not to be read again, or the sender is gone.
        """
        name = self._tied.get(name, name)
        while name not in self._held:
            form = next(self._coming, None)
            if form is None:
                raise EngineFault(f"engine: weight {name!r} was read twice, and came once.")
            self._held[form.name] = self._receive(form)
            self.most_held = max(self.most_held, sum(t.nbytes for t in self._held.values()))
        keep = keep or name in self._shared
        return self._held[name] if keep else self._held.pop(name)

    def forget(self, prefix: str) -> None:
        """Let the weights go whose names begin so."""
        self._held = {k: t for k, t in self._held.items() if not k.startswith(prefix)}

    def finish(self) -> None:
        """Receive what nobody asked for."""
        for form in self._coming:
            self._receive(form)
        self._held.clear()


class ArrivingModule:
    """A module as an engine reads it; see the module's text.

    Args:
        module: A module of the same form, whose own weights are not looked at.
        arrivals: Its weights, and those of the whole model.
        prefix: Of their names.
        in_layer: Whether it is in a list of layers.
    """

    def __init__(
        self, module: nn.Module, arrivals: Arrivals, prefix: str = "", *, in_layer: bool = False
    ) -> None:
        self._module, self._arrivals = module, arrivals
        self._prefix, self._in_layer = prefix, in_layer

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        full = self._prefix + name
        if isinstance(found, Tensor):
            if not self._arrivals.comes(full):
                return found
            # what is small is read again, as a norm that is folded into two matrices
            return self._arrivals.read(full, keep=self._in_layer or found.ndim < 2)
        if isinstance(found, nn.ModuleList):
            return _ArrivingLayers(found, self._arrivals, full + ".")
        if isinstance(found, nn.Module):
            return ArrivingModule(found, self._arrivals, full + ".", in_layer=self._in_layer)
        return found

    def state_dict(self) -> Mapping[str, Tensor]:
        """Return the weights by name, each received when it is read, which is once."""
        return _Arriving(self._module.state_dict(), self._arrivals, self._prefix)


class _ArrivingLayers:
    def __init__(self, layers: nn.ModuleList, arrivals: Arrivals, prefix: str) -> None:
        self._layers, self._arrivals, self._prefix = layers, arrivals, prefix

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[ArrivingModule]:
        for at, layer in enumerate(self._layers):
            prefix = f"{self._prefix}{at}."
            yield ArrivingModule(layer, self._arrivals, prefix, in_layer=True)
            self._arrivals.forget(prefix)


class _Arriving(Mapping[str, Tensor]):
    def __init__(self, found: Mapping[str, Tensor], arrivals: Arrivals, prefix: str) -> None:
        self._found, self._arrivals, self._prefix = found, arrivals, prefix

    def __getitem__(self, name: str) -> Tensor:
        full = self._prefix + name
        if not self._arrivals.comes(full):
            return self._found[name]
        return self._arrivals.read(full, keep=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def tied_to(model: nn.Module) -> dict[str, str]:
    """Return names of weights that are others', each with the name of the other."""
    first: dict[int, str] = {}
    found: dict[str, str] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        other = first.setdefault(id(value), name)
        if other != name:
            found[name] = other
    return found
