"""What a site is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..schema.suite import Suite


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """What the site is made from.

    Attributes:
        entries: Folder of entries; their actions are replayed for the transcripts.
        suites: Suites by id.
        out: Folder of the site. Pages of an earlier build that are still right stay.
        uploads: Whether a server with pages for uploads serves it.
        transcripts: Whether episodes get pages.
    """

    entries: Path
    suites: Mapping[str, Suite]
    out: Path
    uploads: bool = False
    transcripts: bool = True
