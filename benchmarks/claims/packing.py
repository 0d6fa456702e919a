"""Outcomes of claims in a folder, or packed into one file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ...envs.core.errors import DataError
from ...leaderboard.schema.base import parse_form
from ..matrix.matrix_files import read_lines, write_lines
from .catalogue import CLAIMS
from .outcome import Outcome

RESULTS = "results"
"""Subfolder with one file per claim."""
PACKED = (".jsonl", ".gz")
"""How the names of packed files end."""


def is_packed(path: Path) -> bool:
    """Return whether a file holds outcomes of claims, as :func:`write_outcomes` writes them."""
    if path.suffix not in PACKED or not path.is_file():
        return False
    return _is_outcome(read_lines(path))


def _is_outcome(lines: Sequence[str]) -> bool:
    return any('"claim":' in line for line in lines[:1])


def write_outcomes(outcomes: Sequence[Outcome], path: Path) -> Path:
    """Write outcomes as JSON lines, compressed where the name ends in ``.gz``.

    Raises:
        BadValueError: More than a megabyte without compression.
    """
    return write_lines((json.loads(outcome.model_dump_json()) for outcome in outcomes), path)


def read_outcomes(source: Path) -> list[Outcome]:
    """Read the outcomes of a folder or of a packed file, in the catalogue's order.

    Raises:
        DataError: There is none, or one is damaged.
    """
    if source.suffix == ".json":
        found = [Outcome.read(source)]
    elif source.suffix in PACKED:
        read = read_lines(source)
        if not _is_outcome(read):
            raise DataError(
                f"{source}: line 1 is no outcome of a claim; expected a file that "
                "`turngym claims --pack` wrote."
            )
        lines = enumerate(read, start=1)
        found = [parse_form(Outcome, line, f"{source}, line {n}") for n, line in lines]
    else:
        found = [Outcome.read(path) for path in sorted((source / RESULTS).glob("*.json"))]
    if not found and not source.exists():
        raise DataError(f"{source} does not exist; give a folder that `turngym claims` filled.")
    if not found:
        raise DataError(f"{source} has no outcome of a claim yet; run `turngym claims` first.")
    order = list(CLAIMS)
    return sorted(
        found,
        key=lambda o: order.index(o.claim.name) if o.claim.name in CLAIMS else len(order),
    )
