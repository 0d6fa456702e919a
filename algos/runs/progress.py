"""Progress with remaining time: bars in a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ...envs.core.errors import BadValueError
from .console import PlainConsole

LINE_EVERY_S = 10.0


class Bar(Protocol):
    """The progress of one task."""

    def update(self, fraction: float, text: str = "") -> None:
        """Report that ``fraction`` in [0, 1] is done, with a short ``text``."""
        ...


class Reporter(Protocol):
    """Where a run reports its progress."""

    def note(self, text: str) -> None:
        """Print one permanent line, as it is."""
        ...

    def bar(self, label: str) -> AbstractContextManager[Bar]:
        """Show the progress of a task of known length within the context."""
        ...


class Silent:
    """A reporter without output."""

    def note(self, text: str) -> None:
        """Do nothing."""

    @contextmanager
    def bar(self, label: str) -> Iterator[Bar]:  # noqa: ARG002 - the protocol's
        """Do nothing."""
        yield self

    def update(self, fraction: float, text: str = "") -> None:
        """Do nothing."""


def check_reporter(report: Reporter | None) -> Reporter:
    """Return a reporter, a silent one for None.

    Raises:
        BadValueError: It is something else, such as ``print``.
    """
    if report is None:
        return Silent()
    if not all(callable(getattr(report, name, None)) for name in ("note", "bar")):
        raise BadValueError(
            f"report is {report!r:.100}; expected an object with the methods note and bar, as "
            "turngym.algos.runs.progress.reporter() returns one, or None."
        )
    return report


class Terminal:
    """Bars with elapsed and remaining time; nested tasks have one bar each."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            TextColumn("{task.fields[text]}", markup=False),
            console=console,
        )
        self._open = 0

    def note(self, text: str) -> None:
        """Print above the bars."""
        self._progress.console.print(text, highlight=False, markup=False)

    @contextmanager
    def bar(self, label: str) -> Iterator[Bar]:
        """Show a bar that disappears when it is done."""
        if self._open == 0:
            self._progress.start()
        self._open += 1
        task = self._progress.add_task(label, total=1.0, text="")
        try:
            yield _TerminalBar(self._progress, task)
        finally:
            self._progress.remove_task(task)
            self._open -= 1
            if self._open == 0:
                self._progress.stop()


class _TerminalBar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, fraction: float, text: str = "") -> None:
        self._progress.update(self._task, completed=min(fraction, 1.0), text=text)


class Lines:
    """For logs and pipes: a line at most every ten seconds per task, with the time left."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def note(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, label: str) -> Iterator[Bar]:
        """Show the progress of a task as lines."""
        yield _LinesBar(self, label)


class _LinesBar:
    def __init__(self, lines: Lines, label: str) -> None:
        self._lines = lines
        self._label = label
        self._shown = time.monotonic()
        self._marks: list[tuple[float, float]] = []  # when how much was done

    def update(self, fraction: float, text: str = "") -> None:
        now, fraction = time.monotonic(), min(fraction, 1.0)
        if not self._marks:  # a resumed task does not begin at 0
            self._marks.append((now, fraction))
        if now - self._shown < LINE_EVERY_S:
            return
        self._shown = now
        left = self._left(now, fraction)
        estimate = "" if left is None else f", about {clock(left)} left"
        self._marks.append((now, fraction))
        self._lines.note(f"{self._label}: {100 * fraction:.0f} %{estimate}  {text}".rstrip())

    def _left(self, now: float, fraction: float) -> float | None:
        """Return the seconds left at the speed of the latter half, or of all if that stood still.

        What is compiled or loaded at the beginning says nothing of what follows.
        """
        half = (self._marks[0][0] + now) / 2
        for began, before in (max(m for m in self._marks if m[0] <= half), self._marks[0]):
            if (done := fraction - before) > 0:
                return (now - began) * (1.0 - fraction) / done
        return None


def clock(seconds: float) -> str:
    """Return ``75`` as ``1:15``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def reporter() -> Reporter:
    """Return a reporter with bars on a terminal, with lines elsewhere."""
    console = PlainConsole(stderr=True)
    return Terminal(console) if sys.stderr.isatty() else Lines(console)
