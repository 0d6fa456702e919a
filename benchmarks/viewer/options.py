"""Options of `turngym view`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class ViewCommand:
    """Write a run's rollouts, or recorded episodes, as one self-contained HTML page.

    Attributes:
        source: A run directory, a file of its folder trajectories, or a file of recorded episodes
            (RecordEpisodes, or the transcripts of `turngym eval --out`).
        out: Path of the page; by default view.html in the run directory, or beside the file.
        open: Show the page in the browser.
        limit: Maximum megabytes of rollouts in the page, which states what is omitted.
        step: Only these training steps; repeatable.
        tokenizer: Folder of the tokenizer, for a file outside its run directory.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR|TRANSCRIPT")]
    out: str | None = None
    open: bool = False
    limit: float = 24.0
    step: tuple[int, ...] = ()
    tokenizer: str | None = None
