"""Settings of a site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..schema.suite import Suite


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """Sources and destination of a site.

    Attributes:
        entries: Folder of entries; their actions are replayed for the transcripts.
        suites: Suites by id.
        out: Folder of the site; unchanged pages of an earlier build are reused.
        uploads: Whether the site is served with pages for uploads.
        transcripts: Whether pages with transcripts are written.
    """

    entries: Path
    suites: Mapping[str, Suite]
    out: Path
    uploads: bool = False
    transcripts: bool = True
