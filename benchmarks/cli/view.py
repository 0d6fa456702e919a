"""`turngym view`: rollouts or episodes as one HTML page."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ...envs.core.errors import BadValueError
from ...envs.utils.disk_errors import write_whole
from ..viewer.page import page_data, render_page
from ..viewer.sources import read_source
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Command:
    """Write a run's rollouts, or recorded episodes, as one self-contained HTML page.

    Attributes:
        source: A run directory, a file of its folder trajectories, or a file of recorded episodes
            (RecordEpisodes, or the transcripts of `turngym eval --out`).
        out: The page; left out: view.html in the run directory, or beside the file.
        open: Show the page in the browser.
        limit: Maximum megabytes of rollouts in the page, which says what is left out.
        step: Only these training steps, repeatable or several.
        tokenizer: Folder of the tokenizer, where a file lies outside its run directory.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR|TRANSCRIPT")]
    out: str | None = None
    open: bool = False
    limit: float = 24.0
    step: tuple[int, ...] = ()
    tokenizer: str | None = None


def run(command: Command) -> None:
    """Write the page, say where it is, and show it if asked to.

    Raises:
        TurngymError: Nothing to view, damaged files, or a page that cannot be written.
    """
    if not command.limit > 0:
        raise BadValueError(f"view: --limit is {command.limit:g}; expected above 0 megabytes.")
    place = Path(command.source).expanduser()
    out = Path(command.out).expanduser() if command.out else beside(place)
    if out.resolve() == place.resolve():
        raise BadValueError(f"view: {out} is what is viewed; choose another file with --out.")
    source = read_source(command.source, command.step, command.tokenizer)
    data = page_data(source, command.limit * 1e6)
    html = render_page(data)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, html)
    except OSError as error:
        raise BadValueError(f"view: {out} cannot be written ({error}); choose --out.") from error
    for note in data["notes"]:
        say(note)
    groups = sum(len(step["groups"]) for step in data["steps"])
    size = f"{len(html) / 1e6:.1f} MB"
    say(f"{groups} groups of {len(data['steps'])} steps in {out} ({size})")
    if command.open:
        webbrowser.open(out.resolve().as_uri())


def beside(source: Path) -> Path:
    """Return where the page goes without --out."""
    if source.is_dir():
        return source / "view.html"
    return source.with_suffix(".html")
