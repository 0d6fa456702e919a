"""The header of a GGUF file: what model it holds, and whether all of it is there."""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from ....envs.core.errors import BadValueError, DataError, MissingExtraError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
PLAIN_KINDS = ("F32", "F16", "BF16")
"""Kinds of tensors that hold numbers; all others hold blocks of quantised ones."""
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"}
_SCALARS |= {12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_DIMENSIONS = 8


@dataclass(frozen=True)
class GgufHeader:
    """What a GGUF file says of itself.

    Attributes:
        metadata: Its values by key; of an array, the number of entries.
        kinds: Number of tensors by the kind in which they are stored, as ``Q4_1``.
        weights: Number of weights by tensor.
    """

    metadata: Mapping[str, Any]
    kinds: Mapping[str, int]
    weights: Mapping[str, int]

    @property
    def architecture(self) -> str:
        """Return llama.cpp's name of the architecture."""
        return str(self.metadata["general.architecture"])

    @property
    def dtype(self) -> str:
        """Return the number format to keep the weights in.

        A file of plain numbers keeps its own. Quantised weights become bfloat16, in which such
        models are published and whose rounding is far below that of the quantisation.
        """
        if not set(self.kinds) <= set(PLAIN_KINDS):
            return "bfloat16"
        if "BF16" in self.kinds:
            return "bfloat16"
        return "float16" if "F16" in self.kinds else "float32"


def check_gguf_package() -> None:
    """Refuse to go on without the package that reads GGUF files.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import_module("gguf")
    except ImportError as fault:
        raise MissingExtraError("a GGUF file", "gguf", "gguf", fault) from fault


def read_header(path: Path) -> GgufHeader:
    """Read and check the header of a GGUF file.

    Raises:
        BadValueError: A kind of GGUF file that is no whole model, or tensors of a kind that cannot
            be read.
        DataError: No GGUF file, a damaged one, or one that is cut off.
        MissingExtraError: The package gguf is not installed.
    """
    check_gguf_package()
    size = path.stat().st_size
    with path.open("rb") as file:
        begin = file.read(4)
        if begin != MAGIC:
            raise DataError(f"{path}: no GGUF file: it begins with {begin!r}; expected {MAGIC!r}.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                header, end = _Reader(data).read()
            except (struct.error, UnicodeDecodeError, ValueError, OverflowError) as fault:
                raise DataError(
                    f"{path}: the header of this GGUF file cannot be read ({fault}); it is damaged "
                    "or cut off. Fetch it again."
                ) from fault
    if "general.architecture" not in header.metadata:
        raise DataError(f"{path}: this GGUF file does not name its architecture.")
    _check_kind(path, header)
    if size < end:
        raise DataError(
            f"{path}: the GGUF file is cut off: {size:,} bytes, expected {end:,}. Fetch it again."
        )
    return header


def _check_kind(path: Path, header: GgufHeader) -> None:
    """Refuse files that are no whole language model with its tokenizer."""
    kind = header.metadata.get("general.type", "model")
    if kind != "model":
        raise BadValueError(f"{path}: the GGUF file holds a {kind!r}; expected a whole 'model'.")
    if (pieces := header.metadata.get("split.count", 0)) > 1:
        raise BadValueError(
            f"{path}: is one of {pieces} pieces of a model; put them together first "
            "(llama-gguf-split --merge)."
        )
    if "tokenizer.ggml.tokens" not in header.metadata:
        raise BadValueError(
            f"{path}: the GGUF file of a {header.architecture!r} holds no tokenizer; expected one "
            "with its vocabulary in it."
        )
    if unknown := [kind for kind in header.kinds if not _can_dequantise(kind)]:
        raise BadValueError(
            f"{path}: {header.kinds[unknown[0]]} tensors are stored as {unknown[0]}, which the "
            "package gguf cannot dequantise. Take the model in another quantisation, as Q4_K_M "
            "or Q8_0."
        )


def _can_dequantise(kind: str) -> bool:
    if kind in PLAIN_KINDS:
        return True
    import numpy as np
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

    if kind not in GGMLQuantizationType.__members__:
        return False
    number = GGMLQuantizationType[kind]
    block = np.zeros((1, GGML_QUANT_SIZES[number][1]), dtype=np.uint8)
    try:
        quants.dequantize(block, number)
    except NotImplementedError:
        return False
    return True


class _Reader:
    """Reads a header from its first byte on; everything in GGUF files is little-endian."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, 4

    def read(self) -> tuple[GgufHeader, int]:
        """Return the header, and the number of bytes that the whole file must have."""
        version = self._one("I")
        if version not in VERSIONS:
            raise ValueError(f"version {version}, expected {' or '.join(map(str, VERSIONS))}")
        tensors, entries = self._one("Q"), self._one("Q")
        metadata: dict[str, Any] = {}
        for _ in range(entries):
            key = self._text()
            metadata[key] = self._value(self._one("I"))
        kinds: Counter[str] = Counter()
        weights: dict[str, int] = {}
        last = 0
        for _ in range(tensors):
            name = self._text()
            kind, weights[name], end = self._tensor()
            kinds[kind] += 1
            last = max(last, end)
        step = int(metadata.get("general.alignment", 32)) or 1
        start = -(-self._at // step) * step
        return GgufHeader(metadata, dict(kinds), weights), start + last

    def _tensor(self) -> tuple[str, int, int]:
        """Return how a tensor is stored, its size, and where it ends in the data section."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        dimensions = self._one("I")
        if dimensions > _MAX_DIMENSIONS:
            raise ValueError(f"a tensor of {dimensions} dimensions")
        shape = [self._one("Q") for _ in range(dimensions)]
        number, offset = self._one("I"), self._one("Q")
        if number not in GGMLQuantizationType._value2member_map_:
            return f"the unknown kind {number}", prod(shape), offset
        kind = GGMLQuantizationType(number)
        block, size = GGML_QUANT_SIZES[kind]
        return kind.name, prod(shape), offset + prod(shape) // block * size

    def _one(self, letter: str) -> Any:
        (value,) = struct.unpack_from(f"<{letter}", self._data, self._at)
        self._at += struct.calcsize(f"<{letter}")
        return value

    def _skip_text(self) -> tuple[int, int]:
        length = self._one("Q")
        begin, end = self._at, self._at + length
        if end > len(self._data):
            raise ValueError(f"a text of {length} bytes goes beyond the file's end")
        self._at = end
        return begin, end

    def _text(self) -> str:
        begin, end = self._skip_text()
        return self._data[begin:end].decode("utf-8")

    def _value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self._one(_SCALARS[kind])
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            raise ValueError(f"a value of the unknown type {kind}")
        of, count = self._one("I"), self._one("Q")
        if of in _SCALARS:
            self._at += count * struct.calcsize(f"<{_SCALARS[of]}")
            if self._at > len(self._data):
                raise ValueError(f"an array of {count} values goes beyond the file's end")
        elif of == _STRING:
            for _ in range(count):
                self._skip_text()
        else:
            raise ValueError(f"an array of the unknown type {of}")
        return count
