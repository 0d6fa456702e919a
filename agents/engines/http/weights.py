"""Weights on their way to engine servers: a safetensors file, its digest, and taking it in."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ....envs.core.errors import DataError
from ...models.built_folder import held_scratch
from ..hand_over.forms import check_fits, tied_names
from ..vllm.weights import plain_weights

_EDGE = 4096
"""Bytes at either end of a tensor that the fingerprint of a starting model reads."""


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """Weights of one version as a file.

    Attributes:
        path: Where it lies.
        digest: ``sha256:`` and the hash of its bytes.
        size: Its bytes.
    """

    path: Path
    digest: str
    size: int


class WeightsSpool:
    """A temporary folder of weights on their way; what killed processes left goes when one is made.

    Attributes:
        path: The folder.
    """

    def __init__(self) -> None:
        self._held = ExitStack()
        scratch = held_scratch(Path(tempfile.gettempdir()), "turngym-weights-")
        self.path = self._held.enter_context(scratch) / "files"
        self.path.mkdir()

    def close(self) -> None:
        """Delete it."""
        self._held.close()


def read_weights(model: Any, dtype: torch.dtype, *, keep: bool) -> dict[str, torch.Tensor]:
    """Return the model's weights in main memory, by name as in a checkpoint, adapters merged.

    Args:
        model: The policy, or a view of one that is gathered as it is read.
        dtype: Number format of floating point weights.
        keep: Off, the weights are read and nothing is kept: so a process takes part in gathering.
    """
    tied = tied_names(model)
    found: dict[str, torch.Tensor] = {}
    for name, tensor in plain_weights(model):
        if keep and name not in tied:
            kind = dtype if tensor.is_floating_point() else tensor.dtype
            found[name] = tensor.to("cpu", kind).contiguous()
    return found


def write_weights(weights: dict[str, torch.Tensor], path: Path) -> WeightsFile:
    """Write weights as a safetensors file, which has its name once it is whole."""
    from safetensors.torch import save_file

    coming = path.with_name(path.name + f".{os.getpid()}.part")
    # a tensor that shares memory with another one cannot be written
    seen: set[int] = set()
    for name, tensor in weights.items():
        if tensor.data_ptr() in seen:
            weights[name] = tensor.clone()
        seen.add(tensor.data_ptr())
    save_file(weights, coming)
    coming.replace(path)
    return WeightsFile(path, file_digest(path), path.stat().st_size)


def file_digest(path: Path) -> str:
    """Return ``sha256:`` and the hash of a file's bytes."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(model: Any) -> str:
    """Return ``start:`` and a hash of the beginnings and ends of a model's weights."""
    total = hashlib.sha256()
    for name, p in model.named_parameters():
        total.update(f"{name} {tuple(p.shape)} {p.dtype}".encode())
        data = p.detach().reshape(-1)
        for part in (data[:_EDGE], data[-_EDGE:]):
            total.update(part.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return "start:" + total.hexdigest()[:32]


def tokenizer_digest(tokenizer: Any) -> str:
    """Return a hash of a tokenizer's vocabulary."""
    words = sorted(tokenizer.get_vocab().items(), key=lambda item: (item[1], item[0]))
    return hashlib.sha256(repr(words).encode("utf-8", "replace")).hexdigest()[:32]


def load_weights(path: Path, shelf: Any) -> None:
    """Put the weights of a file into a model in main memory, all of them or none.

    Args:
        path: The file.
        shelf: The model; it takes over the file's number formats.

    Raises:
        BadValueError: The file has other weights than the model.
        DataError: It is no safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            check_fits(_header(file), shelf, path.name)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as fault:
        raise DataError(f"{path.name}: no weights in safetensors form ({fault}).") from None
    for name, tensor in _targets(shelf):
        if name in tensors:
            tensor.data = tensors[name]


def _targets(shelf: Any) -> Iterator[tuple[str, torch.Tensor]]:
    yield from shelf.named_parameters()
    saved = shelf.state_dict().keys()
    yield from ((name, b) for name, b in shelf.named_buffers() if name in saved)


def _header(file: Any) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return shapes and formats by name; no number of the file has been read."""
    found = {}
    for name in file.keys():  # noqa: SIM118 - no mapping
        part = file.get_slice(name)
        found[name] = tuple(part.get_shape()), str(part.get_dtype())
    return found
