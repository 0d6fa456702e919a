"""A stable hash of plain data: the same in every process, on every machine."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import struct
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from .errors import BadValueError

_Feed = Callable[[bytes], None]
_length = struct.Struct("<q").pack
_double = struct.Struct("<d").pack


def digest_of(value: Any) -> str:
    """Return the hex digest (32 characters) of nested plain data.

    Handles None, bool, int, float, str, bytes, enums, paths, lists, tuples, deques, sets, mappings,
    dataclasses, numpy scalars, arrays and generators, and any object with a ``digest()`` method or
    ``digest`` attribute. Lists and tuples of equal items are equal, as are mappings in whatever
    order, so that a trip through JSON changes nothing.

    Raises:
        BadValueError: A part has no stable form (an arbitrary object, a function).
    """
    h = hashlib.blake2b(digest_size=16)
    _feed(value, h.update)
    return h.hexdigest()


def _sized(tag: bytes, data: bytes, out: _Feed) -> None:
    out(tag + _length(len(data)) + data)


def _feed(value: Any, out: _Feed) -> None:
    kind = type(value)
    if kind is str:  # plain data first: most of any value
        data = value.encode("utf-8", "surrogatepass")
        out(b"s" + _length(len(data)) + data)
    elif kind is dict:
        _feed_mapping(value, out)
    elif kind is list or kind is tuple:
        out(b"l" + _length(len(value)))
        for item in value:  # here: a further call a level would halve how deep they may nest
            _feed(item, out)
    elif value is None or kind is bool:
        out(b"N" if value is None else b"T" if value else b"F")
    elif kind is int:
        data = str(value).encode()
        out(b"i" + _length(len(data)) + data)
    elif kind is float:
        out(b"f" + _double(value))
    else:
        _feed_other(value, out)


def _feed_other(value: Any, out: _Feed) -> None:
    if isinstance(value, enum.Enum):
        _sized(b"e", type(value).__qualname__.encode(), out)
        _feed(value.value, out)
    elif isinstance(value, str):
        _sized(b"s", value.encode("utf-8", "surrogatepass"), out)
    elif isinstance(value, (bool, np.bool_)):  # what says that it is one, such as a proxy
        out(b"T" if value else b"F")
    elif isinstance(value, (int, np.integer)):
        _sized(b"i", str(int(value)).encode(), out)
    elif isinstance(value, (float, np.floating)):
        out(b"f" + _double(float(value)))
    elif isinstance(value, (bytes, bytearray)):
        _sized(b"b", bytes(value), out)
    elif isinstance(value, (list, tuple, deque)):
        out(b"l" + _length(len(value)))
        for item in value:
            _feed(item, out)
    else:
        _feed_object(value, out)


def _feed_object(value: Any, out: _Feed) -> None:
    if isinstance(value, (set, frozenset)):
        _sized(b"S", "".join(sorted(digest_of(item) for item in value)).encode(), out)
    elif isinstance(value, Mapping):
        _feed_mapping(value, out)
    elif isinstance(value, np.ndarray):
        _feed_array(value, out)
    elif isinstance(value, np.random.Generator):
        _feed_mapping(value.bit_generator.state, out)
    elif isinstance(value, PurePath):
        _sized(b"p", value.as_posix().encode("utf-8", "surrogateescape"), out)
    elif (own := getattr(value, "digest", None)) is not None and not isinstance(value, type):
        _sized(b"d", str(own() if callable(own) else own).encode(), out)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _sized(b"D", type(value).__qualname__.encode(), out)
        for field in dataclasses.fields(value):
            _feed(getattr(value, field.name), out)
    else:
        raise BadValueError(
            f"digest: {type(value).__qualname__} has no stable form; "
            "use plain data, a dataclass, or give it a digest() method."
        )


def _feed_mapping(value: Mapping[Any, Any], out: _Feed) -> None:
    pairs = [
        (_name_digest(key) if type(key) is str else digest_of(key), item)
        for key, item in value.items()
    ]
    pairs.sort()  # keys that are alike (nan, nan) by their items, in whatever order they came
    out(b"m" + _length(len(pairs)))
    for key, item in pairs:
        _sized(b"k", key.encode(), out)
        _feed(item, out)


@functools.lru_cache(maxsize=4096)
def _name_digest(name: str) -> str:
    """Return :func:`digest_of` a string: the same fields are named again and again."""
    return digest_of(name)


def _feed_array(value: np.ndarray[Any, Any], out: _Feed) -> None:
    if value.dtype == object:
        _sized(b"o", str(value.shape).encode(), out)
        _feed(value.tolist(), out)
    else:
        fixed = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        _sized(b"a", f"{fixed.dtype.str}{value.shape}".encode(), out)
        _sized(b"v", fixed.tobytes(), out)
