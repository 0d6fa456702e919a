"""The original engine's process: what it needs, how it is started so that runs repeat, its pool."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..errors import BadValueError, EnvFault, MissingExtraError
from .source import WHERE

OPTIONS_NAME = "JAVA_TOOL_OPTIONS"
SAME_ORDER = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
"""The registry's engine (1.2.3) walks sets in the order of identity hashes, which Java draws at
random. With one and the same hash for all objects a set keeps the order of insertion, so that the
same inputs give the same texts in every process. Runtimes without the option ignore it."""
NO_LIMIT = 10**9
"""Steps after which the engine itself would end an episode."""
MOST_IDLE = 4
"""Engines that are kept for further worlds; one takes a second to start and 200 MB and more."""
_IDLE: list[Any] = []


def check_java() -> None:
    """See that the engine can start.

    Raises:
        MissingExtraError: The engine's package is not installed.
        BadValueError: There is no Java runtime.
    """
    engine_class()
    if shutil.which("java") is None:
        raise BadValueError(
            f"{WHERE}: backend 'jvm' needs a Java runtime, and there is no program 'java' on the "
            "path. Install one, for example the package default-jre-headless (Debian, Ubuntu) or "
            "openjdk (conda-forge), or use backend='python', which needs none."
        )


def engine_class() -> Callable[..., Any]:
    """The package's environment.

    Raises:
        MissingExtraError: The package is not installed.
    """
    try:
        return import_module("scienceworld").ScienceWorldEnv
    except ImportError as error:
        raise MissingExtraError(f"{WHERE}: backend 'jvm'", "scienceworld", "science-jvm") from error


def start_engine() -> Any:
    """A fresh engine, in a Java process of its own.

    Raises:
        EnvFault: It does not start.
    """
    made = engine_class()
    before = os.environ.get(OPTIONS_NAME)
    os.environ[OPTIONS_NAME] = SAME_ORDER if before is None else f"{before} {SAME_ORDER}"
    try:
        return made(envStepLimit=NO_LIMIT)
    except engine_faults() as error:
        raise EnvFault(f"{WHERE}: the Java engine does not start: {error}") from error
    finally:
        if before is None:
            del os.environ[OPTIONS_NAME]
        else:
            os.environ[OPTIONS_NAME] = before


def borrow_engine() -> Any:
    """An idle engine, or a fresh one."""
    return _IDLE.pop() if _IDLE else start_engine()


def give_back(engine: Any) -> None:
    """Keep an engine for the next world; one too many ends with its last reference."""
    if len(_IDLE) < MOST_IDLE:
        _IDLE.append(engine)


def engine_faults() -> tuple[type[Exception], ...]:
    """What a broken engine raises."""
    try:
        return OSError, RuntimeError, import_module("py4j.protocol").Py4JError
    except ImportError:
        return OSError, RuntimeError
