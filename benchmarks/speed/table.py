"""`turngym bench --speed`: the pytest-benchmark files as one table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from ...envs.core.errors import DataError, MissingExtraError, UnknownNameError
from ...envs.utils.disk_errors import whole_file
from ...envs.utils.system import count_cores
from ..matrix.machine_info import memory_gb, processor

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
KINDS = (
    ("environment steps", ("step", "turn", "episode", "read", "scoring", "search")),
    ("resets and building", ("reset", "build", "make", "making")),
    ("forks", ("fork",)),
    ("memory", ("memory",)),
    ("engine, learner and training", ("token", "update", "grpo", "paths")),
)
"""Groups of the table, each with words of the test names that belong to it; the last first."""
PEERS = ("trl", "verl", "vllm", "openrlhf", "scienceworld", "ray")


@dataclass(frozen=True)
class Speed:
    """One measurement.

    Attributes:
        file: Its file, without ``test_speed_`` and ``.py``.
        name: Test and parameters.
        median: Seconds of a round.
        spread: Interquartile range of the rounds, in seconds.
        rounds: How many.
        figures: What the test counted besides: steps a second, bytes, ratios to peers.
    """

    file: str
    name: str
    median: float
    spread: float
    rounds: int
    figures: Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """What a run of the speed files gave.

    Attributes:
        speeds: The measurements.
        failed: Tests that failed (a missed target, an error).
        skipped: Tests that were skipped (a peer that is not installed).
    """

    speeds: list[Speed]
    failed: list[str]
    skipped: list[str]


def write_speed(out: Path, only: Sequence[str], console: Console) -> None:
    """Run the speed files and write the table.

    Args:
        out: File of the table.
        only: ``file=NAME`` words; all files when empty.
        console: Where progress is packages.

    Raises:
        UnknownNameError: No such speed file.
        MissingExtraError: pytest-benchmark is not installed.
        DataError: The tests could not be run.
    """
    files = speed_files(only)
    before = os.getloadavg()[0]
    speeds: list[Speed] = []
    failed: list[str] = []
    skipped: list[str] = []
    for number, file in enumerate(files, start=1):
        console.print(f"{number} of {len(files)}  {file.name}", highlight=False)
        measured = measure(file)
        speeds += measured.speeds
        failed += measured.failed
        skipped += measured.skipped
    out.parent.mkdir(parents=True, exist_ok=True)
    text = section(Measured(speeds, failed, skipped), before)
    with whole_file(out) as file:
        file.write(text)
    console.print(f"{len(speeds)} measurements in {out}", highlight=False, soft_wrap=True)


def speed_files(only: Sequence[str]) -> list[Path]:
    """The speed files, or those that ``file=NAME`` words name.

    Raises:
        UnknownNameError: No such file, or another kind of word.
    """
    known = {p.stem.removeprefix("test_speed_"): p for p in sorted(FOLDER.glob("test_speed_*.py"))}
    if not only:
        return list(known.values())
    chosen = []
    for word in only:
        kind, _, name = word.partition("=")
        if kind != "file":
            raise UnknownNameError("filter", kind, ["file"], "--speed --only")
        if name not in known:
            raise UnknownNameError("speed file", name, known)
        chosen.append(known[name])
    return chosen


def measure(file: Path) -> Measured:
    """Run one speed file in a process of its own.

    Raises:
        MissingExtraError: pytest or pytest-benchmark is not installed.
        DataError: The tests could not be run at all.
    """
    if find_spec("pytest_benchmark") is None:
        raise MissingExtraError("measuring speed", "pytest-benchmark", "dev")
    with tempfile.TemporaryDirectory() as scratch:
        numbers = Path(scratch) / "numbers.json"
        command = [sys.executable, "-m", "pytest", str(file), "--benchmark-only", "-q", "-rfEs"]
        command += ["-m", "not gpu", f"--benchmark-json={numbers}", "--benchmark-disable-gc"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist"]
        own = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=own
        )
        if done.returncode not in (0, 1, 5):  # all passed, some failed, none there
            end = "\n".join((done.stdout + done.stderr).splitlines()[-8:])
            raise DataError(f"{file}: pytest ended with status {done.returncode}:\n{end}")
        try:
            read = json.loads(numbers.read_text(encoding="utf-8"))["benchmarks"]
        except (OSError, ValueError, KeyError):
            read = []  # every test failed or was skipped: the lines below say so
    lines = done.stdout.splitlines()
    return Measured(
        speeds=[_speed(file, entry) for entry in read],
        failed=[line.split(" ", 1)[1] for line in lines if line.startswith(("FAILED ", "ERROR "))],
        skipped=[line.split(" ", 1)[1] for line in lines if line.startswith("SKIPPED ")],
    )


def section(measured: Measured, load: float) -> str:
    """The table with date and machine, in Markdown.

    Args:
        measured: What came of the files.
        load: Processes that wanted the cores when it began, the mean of a minute.
    """
    cores = count_cores()
    peers = {name: version for name in PEERS if (version := _version(name))}
    packages = ", ".join(f"{name} {version}" for name, version in peers.items()) or "none"
    lines = [
        f"# Speed ({time.strftime('%Y-%m-%d', time.gmtime())})",
        "",
        f"{processor()}, {cores} cores, {memory_gb():g} GB, Python {sys.version.split()[0]}; load "
        f"{load:.1f} when it began. Peers installed: {packages}. Written by "
        "`turngym bench --speed`; medians of pytest-benchmark, spread is the interquartile range.",
        "",
        "| what | file | test | median | spread | rounds | figures |",
        "|---|---|---|---|---|---|---|",
    ]
    order = [kind for kind, _ in KINDS]
    rows = sorted(measured.speeds, key=lambda s: (order.index(kind_of(s.name)), s.file, s.name))
    for speed in rows:
        cells = (
            kind_of(speed.name),
            speed.file,
            f"`{speed.name}`",
            duration(speed.median),
            duration(speed.spread),
            str(speed.rounds),
            ", ".join(figure(name, value) for name, value in speed.figures.items()),
        )
        lines.append("| " + " | ".join(cells) + " |")
    for head, tests in (("Failed", measured.failed), ("Skipped", measured.skipped)):
        if tests:
            lines += ["", f"{head}:", "", *(f"- {_plain(test)}" for test in tests)]
    return "\n".join(lines) + "\n"


def kind_of(name: str) -> str:
    """The group of the table that a test belongs to."""
    test = name.partition("[")[0]
    for kind, words in reversed(KINDS):
        if any(word in test for word in words):
            return kind
    return KINDS[-1][0]


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def figure(name: str, value: Any) -> str:
    """What a test counted, in words: ``steps_per_s`` as steps a second."""
    words = name.replace("_per_s", " a second").replace("_", " ")
    return f"{words} {value:,.4g}" if isinstance(value, (int, float)) else f"{words} {value}"


def _speed(file: Path, entry: Mapping[str, Any]) -> Speed:
    stats = entry["stats"]
    return Speed(
        file=file.stem.removeprefix("test_speed_"),
        name=str(entry["name"]).removeprefix("test_"),
        median=float(stats["median"]),
        spread=float(stats["iqr"]),
        rounds=int(stats["rounds"]),
        figures=dict(entry.get("extra_info", {})),
    )


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _plain(line: str) -> str:
    return line.replace(f"{ROOT}/", "")
