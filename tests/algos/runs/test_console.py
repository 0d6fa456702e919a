"""The console: what people of unknown intent wrote does not control the terminal."""

from __future__ import annotations

import errno
import io
import os
import re
from pathlib import Path

import pytest
from rich.console import RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from turngym.algos.runs.console import PlainConsole
from turngym.algos.runs.progress import Lines, Terminal, reporter

ROOT = Path(__file__).parents[3]
EVIL = "\x1b[2J\x9b31m\x07\x08\x85\u202ehidden\r"
CONTROLS = set(EVIL) - set("[2J31mhidden")


def cell(text: str) -> Table:
    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    return table


@pytest.mark.parametrize(
    "shown",
    [EVIL, escape(EVIL), Text(EVIL), Panel(Text(EVIL), title=EVIL), cell(EVIL), f"[bold]{EVIL}[/]"],
)
def test_no_control_character_comes_out(shown: RenderableType) -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, width=200)
    console.print(shown)
    console.print(shown, soft_wrap=True, highlight=False)
    assert out.getvalue().count("hidden") >= 2
    assert not CONTROLS & set(out.getvalue())


def test_rich_s_own_codes_do() -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, width=200, force_terminal=True, color_system="standard")
    console.print("[bold]loud[/]\tand plain\nline")
    assert "\x1b[1mloud\x1b[0m" in out.getvalue()
    assert out.getvalue().endswith("and plain\nline\n")


@pytest.mark.parametrize("kind", [Terminal, Lines])
def test_progress_neither(kind: type[Terminal | Lines]) -> None:
    out = io.StringIO()
    reporter = kind(PlainConsole(file=out, width=200))
    reporter.note(EVIL)
    with reporter.bar(EVIL) as bar:
        bar.update(1.0, EVIL)
    assert "hidden" in out.getvalue()
    assert not CONTROLS & set(out.getvalue())


def test_nothing_prints_through_another_console() -> None:
    """A plain ``Console`` or ``print`` would let them through."""
    other = re.compile(r"(?<![\w.])(Console|print)\(")
    allowed = {"algos/__init__.py", "algos/api.py"}  # examples in their documentation
    sources = [
        path.relative_to(ROOT)
        for folder in ("algos", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if not path.is_relative_to(ROOT / "benchmarks" / "speed")
    ]
    found = {str(p) for p in sources if other.search((ROOT / p).read_text(encoding="utf-8"))}
    assert found - allowed == set()


class Unread(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_work_goes_on_where_nobody_reads_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Unread())
    report = reporter()
    report.note("one")
    report.note("two")


def test_nobody_who_reads_the_result_is_for_the_command_line_to_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdout", Unread())
    with pytest.raises(BrokenPipeError):
        PlainConsole().print("one")


NAME = "[bold]a[/] :key: [1] \\[b]"
"""What rich reads as styles, as an emoji and as an escape."""


def test_words_between_colons_stay_words() -> None:
    out = io.StringIO()
    table = Table("[bold]:key:[/]")
    table.add_row(":book:")
    PlainConsole(file=out, width=200).print("runs/a:100:b", table)
    assert re.findall(r":\w+:", out.getvalue()) == [":100:", ":key:", ":book:"]


@pytest.mark.parametrize("kind", [Terminal, Lines])
def test_notes_and_bars_show_names_as_they_are(
    kind: type[Terminal | Lines], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.algos.runs.progress.LINE_EVERY_S", 0.0)
    out = io.StringIO()
    reporter = kind(PlainConsole(file=out, width=200, force_terminal=kind is Terminal))
    with reporter.bar(f"label {NAME}") as bar:
        bar.update(0.5, f"text {NAME}")
        reporter.note(f"note {NAME}.")
        with reporter.bar("one more"):  # is drawn beside the first one
            pass
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    for what in ("note", "label", "text"):
        assert f"{what} {NAME}" in shown
