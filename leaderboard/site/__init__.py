"""The leaderboard's static HTML pages, made from the index without external resources."""

from __future__ import annotations

from .build import build_site
from .settings import SiteSettings

__all__ = ["SiteSettings", "build_site"]
