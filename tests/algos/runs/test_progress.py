"""Progress in logs and pipes: the time that is left, as lines tell it."""

from __future__ import annotations

import io

import pytest

from turngym.algos.runs import progress
from turngym.algos.runs.console import PlainConsole
from turngym.algos.runs.progress import Lines, Silent, check_reporter
from turngym.envs.core.errors import BadValueError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that is set by hand."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def told(clock: list[float], course: list[tuple[float, float]]) -> list[str]:
    """The lines of a task that has done so much at these times."""
    file = io.StringIO()
    with Lines(PlainConsole(file=file)).bar("training") as bar:
        for clock[0], fraction in course:
            bar.update(fraction)
    return file.getvalue().splitlines()


def test_a_line_every_ten_seconds(clock: list[float]) -> None:
    steady = [(float(s), s / 100) for s in range(25)]
    assert told(clock, steady) == [
        "training: 10 %, about 1:30 left",
        "training: 20 %, about 1:20 left",
    ]


def test_what_is_compiled_at_first_is_forgotten(clock: list[float]) -> None:
    """Two steps took a minute each, which counted for what was left until the end."""
    slow = [(0.0, 0.0), (60.0, 0.01), (120.0, 0.02)]
    quick = [(120.0 + s, 0.02 + s / 200) for s in range(1, 131)]
    lines = told(clock, slow + quick)
    assert lines[1] == "training: 2 %, about 98:00 left"
    assert lines[-1] == "training: 67 %, about 1:06 left"  # 2:03 by the mean of all


def test_a_resumed_task_counts_what_was_done_here(clock: list[float]) -> None:
    assert told(clock, [(0.0, 0.5), (10.0, 0.6)]) == ["training: 60 %, about 0:40 left"]


def test_a_task_that_stands_still_tells_by_its_whole_course(clock: list[float]) -> None:
    course = [(0.0, 0.0), (10.0, 0.5), (20.0, 0.5), (30.0, 0.5), (40.0, 0.5)]
    assert told(clock, course)[-1] == "training: 50 %, about 0:40 left"
    assert told(clock, [(40.0, 0.2), (60.0, 0.2)]) == ["training: 20 %"]


def test_what_is_no_reporter_is_refused_in_words() -> None:
    assert isinstance(check_reporter(None), Silent)
    assert check_reporter(one := Silent()) is one
    with pytest.raises(
        BadValueError, match=r"report is <built-in function print>; expected an obj"
    ):
        check_reporter(print)  # type: ignore[arg-type]
