"""The leaderboard's pages: static HTML from the index, without a build step or outside request."""

from __future__ import annotations

from .build import build_site
from .settings import SiteSettings

__all__ = ["SiteSettings", "build_site"]
