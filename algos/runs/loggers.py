"""Where a run's metrics go besides its folder: two methods, and the services that have them.

A logger is anything with ``log(step, row)`` and ``close()``. The run directory is one (JSON lines),
TensorBoard's events are written beside it, and ``turngym train --log NAME`` or
``train(..., loggers=[...])`` adds more, by a name of :data:`LOGGERS` or as an object of your own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...envs.core.errors import (
    BadValueError,
    MissingExtraError,
    UnknownNameError,
    check_package,
)
from .interrupts import uninterrupted

PROJECT = "turngym"
"""Name of the project that services put a run into."""


class Logger(Protocol):
    """Takes rows of metrics as they are measured."""

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Take a row; several may come with one step, and steps never go down.

        After an interrupted run was resumed, steps since its last checkpoint come again.
        """
        ...

    def close(self) -> None:
        """Write what is left; nothing is logged afterwards."""
        ...


class LoggedRun(NamedTuple):
    """What a logger is told about its run.

    Attributes:
        root: The run directory.
        config: The resolved configuration as JSON data.
        step: Step from which the run goes on; 0 for a new one.
    """

    root: Path
    config: Mapping[str, Any]
    step: int

    @property
    def id(self) -> str:
        """Return an identifier that is the same when the run is resumed in its folder."""
        return hashlib.sha256(str(self.root.resolve()).encode()).hexdigest()[:16]


class TensorBoard:
    """Events for TensorBoard, in ``tensorboard/`` of the run directory.

    Args:
        run: The run; events of later steps in older files are hidden, they are written again.
    """

    def __init__(self, run: LoggedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter  # the picture needs no torch

        purge = run.step + 1 if run.step else None
        self._writer = SummaryWriter(str(run.root / "tensorboard"), purge_step=purge)

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Add a scalar per metric."""
        with uninterrupted():  # in the middle of its queue, closing would wait for minutes
            for key, value in row.items():
                self._writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Flush and close; in a folder that was removed there is nothing left to write."""
        with suppress(FileNotFoundError):
            self._writer.close()


class WeightsAndBiases:
    """A run of Weights & Biases (extra wandb); its own variables choose account and mode.

    ``WANDB_MODE=offline`` writes into the run directory, for ``wandb sync`` later.

    Args:
        run: The run; resumed in its folder, it goes on in the same run there.

    Raises:
        MissingExtraError: The package is not installed.
    """

    def __init__(self, run: LoggedRun) -> None:
        wandb = _package("wandb")
        self._run = wandb.init(
            project=PROJECT,
            name=run.root.name,
            id=run.id,
            resume="allow",
            dir=str(run.root),
            config=dict(run.config),
        )

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Log a row."""
        self._run.log(dict(row), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


class Trackio:
    """A run of trackio (extra trackio), kept on this machine; ``trackio show`` shows it.

    Args:
        run: The run; resumed in its folder, it goes on in the same run there.

    Raises:
        MissingExtraError: The package is not installed.
    """

    def __init__(self, run: LoggedRun) -> None:
        self._trackio = _package("trackio")
        self._run = self._trackio.init(
            project=PROJECT,
            name=f"{run.root.name}-{run.id[:6]}",
            resume="allow",
            config=dict(run.config),
            embed=False,
        )

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Log a row."""
        self._run.log(dict(row), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


LOGGERS: dict[str, Callable[[LoggedRun], Logger]] = {
    "wandb": WeightsAndBiases,
    "trackio": Trackio,
}
"""Loggers by name, which is their package's too; a plugin adds its own."""


def check_loggers(names: Sequence[str | Logger]) -> None:
    """Refuse names of loggers that could not be made when the run begins, and what is no logger.

    Raises:
        BadValueError: It is a name in place of a list of them, or an object is no logger.
        UnknownNameError: There is no such logger.
        MissingExtraError: Its package is not installed.
    """
    if isinstance(names, str):
        raise BadValueError(f"loggers is {names!r}; expected a list, such as [{names!r}].")
    for name in names:
        if not isinstance(name, str):
            whole = hasattr(name, "log") and hasattr(name, "close")
            if isinstance(name, type) or not whole:
                raise BadValueError(
                    f"loggers: {name!r:.100} is no logger; expected a name, or an object with "
                    "log(step, row) and close()."
                )
            continue
        if name not in LOGGERS:
            raise UnknownNameError("logger", name, LOGGERS)
        if LOGGERS[name] in (WeightsAndBiases, Trackio) and find_spec(name) is None:
            raise MissingExtraError(f"--log {name}", name, name)


def check_record_packages(records: str) -> None:
    """Refuse a run whose events or curve could not be written, before anything is done.

    Args:
        records: What the run directory gets, as ``TrainConfig.records``: only ``"all"`` has them.

    Raises:
        MissingExtraError: tensorboard or matplotlib is not installed.
    """
    if records == "all":
        for package in ("tensorboard", "matplotlib"):
            check_package("a run directory with events and a curve", package, "train")


def make_logger(logger: str | Logger, run: LoggedRun) -> Logger:
    """Return the logger of this name for a run; an object is one already."""
    return LOGGERS[logger](run) if isinstance(logger, str) else logger


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as fault:
        raise MissingExtraError(f"--log {name}", name, name, fault) from fault
