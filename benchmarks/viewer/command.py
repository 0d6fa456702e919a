"""`turngym view`: rollouts or episodes as one HTML page."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from rich.console import Console

from ...envs.core.errors import BadValueError
from .options import ViewCommand
from .packing import page_data
from .page import render_page
from .sources import read_source


def run(command: ViewCommand) -> None:
    """Write the page, print its path, and open it on request.

    Raises:
        TurngymError: There is nothing to view, a file is damaged, or the page cannot be written.
    """
    if not command.limit > 0:
        raise BadValueError(f"view: --limit is {command.limit:g}; expected above 0 megabytes.")
    source = read_source(command.source, command.step, command.tokenizer)
    data = page_data(source, command.limit * 1e6)
    out = Path(command.out) if command.out else beside(Path(command.source))
    html = render_page(data)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(html, encoding="utf-8", newline="\n")
    except OSError as error:
        raise BadValueError(f"view: {out} cannot be written ({error}); choose --out.") from error
    console = Console()
    for note in data["notes"]:
        console.print(note, markup=False, highlight=False)
    groups = sum(len(step["groups"]) for step in data["steps"])
    console.print(
        f"{groups} groups of {len(data['steps'])} steps in {out} ({len(html) / 1e6:.1f} MB)",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if command.open:
        webbrowser.open(out.resolve().as_uri())


def beside(source: Path) -> Path:
    """Return the default path of the page."""
    if source.is_dir():
        return source / "view.html"
    return source.with_suffix(".html")
