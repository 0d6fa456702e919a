"""What compiled loops are made of: number formats, exponentials, the greatest of a row.

Arrays are float32 or the bits of bfloat16 in uint16 (numpy has no such format); arithmetic is
float32 throughout. What was compiled is kept until the file of the loop or this one changes: a part
that loops of several files have belongs here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
import torch
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys
from numba.extending import overload

from ....envs.utils.disk_cache import source_digest

if vars(config)["DISABLE_JIT"]:  # loops would stay Python, and what `overload` makes has no body
    # who imports loops takes torch where numba is not there
    raise ImportError("NUMBA_DISABLE_JIT is set, so that numba compiles nothing")


def _skip_look_for_blas() -> None:
    """Import what of numba's compiler looks for scipy's BLAS, without importing that.

    All of scipy's linear algebra, a tenth of a second, for the answer that scipy is there. Whoever
    multiplies matrices in compiled code imports it then.
    """
    if "numba.np.arraymath" in sys.modules or find_spec("scipy") is None:
        return
    from numba.np import linalg

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        arrays: Any = importlib.import_module("numba.np.arraymath")
        arrays.ensure_blas = look
    finally:
        linalg.ensure_blas = look


_FAST = {"contract", "reassoc", "arcp", "nsz"}  # sums in any order; NaN and infinity stay true
LOWEST = np.float32(-87.0)
"""The exponential of less is below the normal numbers: 0 here."""
_LOG2_E = np.float32(1.4426950408889634)
_LOG_2 = np.float32(0.6931471805599453)


class _KeptLoops(FunctionCache):
    """numba's store of what was compiled, read without all that compiling needs.

    numba would first import and register its implementations of Python's and numpy's functions, a
    quarter of a second on a slow processor. Machine code that is there needs its runtime alone;
    whoever has to compile after all registers the rest by himself.

    Each version of the code has files of its own. numba tells versions by the file of the loop
    alone, so that one with other parts got the old loops, and it names a file for the machine code
    before the new code is in it: a process that was killed, or that met a full disk, in between
    left the name of the new loop on the old code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        digest = source_digest(Path(), function.__code__.co_filename, __file__)
        self._cache_file = IndexDataCacheFile(
            cache_path=self.cache_path,
            filename_base=f"{self._impl.filename_base}-{digest}",
            source_stamp=digest,
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read the loop of a signature; None where it was not compiled yet, or is damaged."""
        rtsys.initialize(target_context)
        try:
            found = self._load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - half a pickle raises anything
            with suppress(OSError):
                self.flush()
            found = None
        if found is not None and found.signature.args != tuple(sig):
            found = None  # two processes at once may give loops of two signatures one file
        if found is None:
            _skip_look_for_blas()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a loop, where there is room for it."""
        with suppress(OSError):
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:
    """Make a loop of a Python function, which is kept for later processes.

    Where neither its folder nor the account's cache can be written, each process compiles it.
    """
    loop: Any = nb.njit(fastmath=_FAST, error_model="numpy", nogil=True)(function)
    with suppress(RuntimeError, OSError):
        loop._cache = _KeptLoops(function)  # what cache=True does, with a store of its own
    return loop


part = nb.njit(fastmath=_FAST, error_model="numpy", inline="always")
"""Makes a part of loops. Parts are inlined where sums may come in any order: as functions of their
own they would be compiled twice, alone and within the loop; the process that compiles would call
the one, whoever loads the result the other, which adds up in another order."""
subroutine = nb.njit(fastmath=False, error_model="numpy")
"""Makes a function of its own, called from loops, which adds up in the order that is written. One
that does not say so may take any order from within a loop, and none when it is compiled alone."""


def widen(x: Any) -> Any:
    """Return a stored number as float32; for use in compiled code."""
    raise NotImplementedError(x)


def narrow(x: Any, like: Any) -> Any:
    """A float32 as it is stored in the array that holds ``like``, rounded to nearest even."""
    raise NotImplementedError(x, like)


@overload(widen, strict=False)
def _widen(x: Any) -> Any:
    if isinstance(x, nb.types.Integer):
        return lambda x: np.uint32(np.uint32(x) << np.uint32(16)).view(np.float32)
    return lambda x: x


@overload(narrow, strict=False)
def _narrow(x: Any, like: Any) -> Any:  # noqa: ARG001 - types alone decide
    if isinstance(like, nb.types.Integer):

        def rounded(x: Any, like: Any) -> Any:  # noqa: ARG001
            bits = np.float32(x).view(np.uint32)
            odd = (bits >> np.uint32(16)) & np.uint32(1)
            near = np.uint16((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))
            return near if x == x else np.uint16(0x7FC0)  # NaN differs from itself

        return rounded
    return lambda x, like: x  # noqa: ARG005


@part
def exp_of_negative(x: Any) -> Any:
    """``exp(x)`` for x up to 0 to 1e-7, without a branch; NaN stays NaN."""
    held = LOWEST if x < LOWEST else x
    z = held * _LOG2_E
    k = np.floor(z + np.float32(0.5))
    r = (z - k) * _LOG_2
    p = np.float32(1 / 5040)
    p = p * r + np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(0.5)
    p = p * r + np.float32(1)
    p = p * r + np.float32(1)
    power = np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0) if x < LOWEST else p * power


@subroutine
def highest(row: Any, n: int) -> Any:
    """The greatest of the first ``n``, by whole numbers in the same order: those vectorise."""
    numbers = row.view(np.int32)
    top = numbers[0] ^ ((numbers[0] >> np.int32(31)) & np.int32(0x7FFFFFFF))
    for i in range(n):
        key = numbers[i] ^ ((numbers[i] >> np.int32(31)) & np.int32(0x7FFFFFFF))
        top = key if key > top else top
    return np.int32(top ^ ((top >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


def bits(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """Return the memory of a CPU tensor, float32 or bfloat16, as the kernels take it."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()
