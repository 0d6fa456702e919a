"""Ray as a package: found, and started so that only those who have its token may speak to it."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from ...envs.core.errors import EngineFault, MissingExtraError


def import_ray(purpose: str, address: str | None) -> Any:
    """Return the package.

    Ray listens on all addresses of a machine, and whoever may speak to it runs code there. So a Ray
    that is started here (``address`` is None) asks for a token, which Ray writes itself, unless
    ``RAY_AUTH_MODE`` says otherwise, or a program imported Ray before: it reads the variable once.
    A cluster that runs already has settings of its own.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    if address is None and "ray" not in sys.modules:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        return import_module("ray")
    except ImportError as fault:
        raise MissingExtraError(purpose, "ray", "ray", fault) from fault


def join_ray(ray: Any, address: str | None, **here: Any) -> None:
    """Join the cluster at ``address``, or start Ray on this machine with the settings ``here``.

    Raises:
        EngineFault: There is no cluster, or Ray does not start.
    """
    try:
        ray.init(address=address, log_to_driver=False, **here)
    except Exception as fault:  # Ray raises bare ones too
        failed = "could not be started here" if address is None else f"cannot join {address!r}"
        lines = str(fault).strip().splitlines() or [type(fault).__name__]
        raise EngineFault(f"Ray {failed}: {lines[0]}") from fault
