"""bm25s without JAX, which takes three quarters of a graphics card when it is first used."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType

_LOADED = "bm25s"
_HIDDEN = ("jax", "jax.lax")
_ONE_AT_A_TIME = threading.Lock()


def import_bm25s() -> ModuleType:
    """Return the module bm25s, imported as where JAX is not installed.

    bm25s looks for JAX and computes something with it as it is imported. JAX then reserves 75 % of
    the card's memory for the rest of the process, which the language model beside it needs; here
    only indexes are built, and these are NumPy's. A JAX that the caller has imported, or imports
    later, is as it was; another thread that imports it meanwhile, for some tenths of a second, is
    told that there is none.
    """
    with _ONE_AT_A_TIME:
        if _LOADED in sys.modules:
            return import_module(_LOADED)  # waits where it is being imported
        kept = {name: sys.modules[name] for name in _HIDDEN if name in sys.modules}
        # Python raises ModuleNotFoundError for what stands here as None
        sys.modules.update(dict.fromkeys(_HIDDEN))  # pyright: ignore[reportArgumentType, reportCallIssue]
        try:
            return import_module(_LOADED)
        finally:
            for name in _HIDDEN:
                sys.modules.pop(name, None)
            sys.modules.update(kept)
