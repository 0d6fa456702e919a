"""Writes the site for a server: `python -m turngym.leaderboard.site.process`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..ranking.index import read_index
from ..verification.checks import known_suites
from .build import SiteSettings, build_site


def main() -> None:
    """Write the site that the arguments name."""
    parser = argparse.ArgumentParser()
    for name in ("--entries", "--index", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--suite-file", type=Path, action="append", default=[])
    given = parser.parse_args()
    settings = SiteSettings(
        entries=given.entries, suites=known_suites(given.suite_file), out=given.out, uploads=True
    )
    print(f"{build_site(read_index(given.index), settings)} files")


if __name__ == "__main__":
    main()
