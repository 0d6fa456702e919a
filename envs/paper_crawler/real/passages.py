"""The papers as a passage file, from which ``turngym index build`` makes an index."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import DataError, EnvFault
from ...index.files import disk_errors
from ...index.progress import Progress, silent
from .database import PaperDatabase

_TICK = 1_000


def write_passages(
    database: PaperDatabase, path: str | Path, progress: Progress = silent
) -> tuple[int, int]:
    """Write ``{"id", "title", "text"}`` per paper, the text being its abstract.

    Papers without a member, or with a damaged one, have no text.

    Args:
        database: The papers.
        path: The file; it must not exist.
        progress: Told how far it is.

    Returns:
        Papers that were written, and those of them with a damaged member.

    Raises:
        DataError: The file is there, or cannot be written.
    """
    out, damaged = Path(path), 0
    if out.exists():
        raise DataError(f"{out}: is there; name a new file, or remove it.")
    scratch = out.with_name(f".{out.name}-unfinished")
    with disk_errors(out.parent):
        try:
            with scratch.open("w", encoding="utf-8") as file:
                for row, paper_id in enumerate(database.titles.ids):
                    if row % _TICK == 0:
                        progress("papers", row, len(database))
                    title, text = database.titles.titles[row], ""
                    try:
                        record = database.record(row)
                        text = "" if record is None else record.abstract
                    except EnvFault:
                        damaged += 1
                    passage = {"id": paper_id, "title": title, "text": text}
                    file.write(json.dumps(passage, ensure_ascii=False) + "\n")
            scratch.replace(out)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
    progress("papers", len(database), len(database))
    return len(database), damaged
