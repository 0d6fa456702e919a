"""What weights are before they come: names, shapes and number formats, and a digest of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from ....envs.core.errors import BadValueError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Number formats of sampling."""
_KINDS = {
    **DTYPES,
    **{
        str(kind).removeprefix("torch."): kind
        for kind in (torch.float64, torch.int64, torch.int32, torch.int16, torch.int8)
    },
    "uint8": torch.uint8,
    "bool": torch.bool,
}
_FLOATING = frozenset({*DTYPES, "F32", "BF16", "F16"})
_MAX_NAME, _MAX_DIMS = 1000, 8


class Form(NamedTuple):
    """A weight without its numbers.

    Attributes:
        name: As in a checkpoint.
        shape: Of the tensor.
        kind: Number format by name, as ``bfloat16``.
    """

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def dtype(self) -> torch.dtype:
        """The number format."""
        return _KINDS[self.kind]

    @classmethod
    def of(cls, name: str, tensor: torch.Tensor, dtype: torch.dtype | None = None) -> Form:
        """Return a tensor's form, or that which it would have with floating point numbers so."""
        kind = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
        return cls(name, tuple(tensor.shape), str(kind).removeprefix("torch."))

    @classmethod
    def read(cls, found: Any) -> Form:
        """Return what JSON data says.

        Raises:
            ValueError: It is none.
        """
        match found:
            case [str() as name, list() as shape, str() as kind]:
                whole = all(type(n) is int and 0 <= n < 2**40 for n in shape)
                if len(name) <= _MAX_NAME and len(shape) <= _MAX_DIMS and whole and kind in _KINDS:
                    return cls(name, tuple(shape), kind)
        raise ValueError(f"the form {str(found)[:80]!r}; expected a name, a shape and a format")


def digest_of(forms: Iterable[Form], version: int, run: str) -> str:
    """Return ``group:`` and a hash of what is sent: run, version, names, shapes, formats."""
    text = json.dumps([run, version, *forms], separators=(",", ":"))
    return "group:" + hashlib.sha256(text.encode()).hexdigest()


def check_fits(came: Mapping[str, tuple[tuple[int, ...], str]], model: Any, where: str) -> None:
    """Refuse weights of another model than the one here.

    Args:
        came: Shape and number format by name, as torch or safetensors call it.
        model: The model here.
        where: What they came in, for the message.

    Raises:
        BadValueError: Names or shapes differ, or a weight is in no floating point format.
    """
    known = dict(model.state_dict())
    needed = {name for name, _ in model.named_parameters()}
    if wrong := sorted(came.keys() - known.keys()) + sorted(needed - came.keys()):
        raise BadValueError(
            f"{where}: weights of another model; {len(wrong)} names differ, such as "
            f"{wrong[0][:200]!r}. Serve the model that is trained."
        )
    for name, (shape, kind) in came.items():
        here = known[name]
        if shape != tuple(here.shape) or (here.is_floating_point() and kind not in _FLOATING):
            raise BadValueError(
                f"{where}: weight {name!r} has shape {shape} in {kind}; the model here has "
                f"{tuple(here.shape)} in a floating point format."
            )


def tied_names(model: Any) -> frozenset[str]:
    """Return names of weights that are others' too, which travel once."""
    config = getattr(model, "config", None)
    if not getattr(config, "tie_word_embeddings", False):
        return frozenset()
    return frozenset(getattr(model, "_tied_weights_keys", None) or ())


def checkpoint_weights(
    weights: Iterable[tuple[str, torch.Tensor]], tied: frozenset[str], dtype: torch.dtype
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield weights as they travel: tied ones once, floating point numbers in one format.

    Args:
        weights: Of a model by name; all of them are read, so that processes gather alike.
        tied: Names that are left out.
        dtype: Number format of floating point weights.
    """
    for name, tensor in weights:
        if name not in tied:
            yield name, tensor.to(dtype) if tensor.is_floating_point() else tensor
