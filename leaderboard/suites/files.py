"""Read and write frozen suites as JSON files."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

from ...envs.core.errors import DataError, UnknownNameError
from ...envs.utils.disk_errors import write_whole
from ..schema.base import parse_form
from ..schema.suite import Suite, SuitePart, parts_of

FOLDER = Path(__file__).parent


def suite_ids() -> list[str]:
    """Return the ids of the suites that come with the package, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@functools.cache
def load_suite(name: str | Path) -> Suite:
    """Load a suite by its id or from a file.

    Args:
        name: An id of :func:`suite_ids`, one of their parts (see
            :func:`~turngym.leaderboard.schema.suite.parts_of`), or the path of a JSON file.

    Raises:
        UnknownNameError: There is no such suite or file.
        DataError: The file is not a suite, or its id differs from the file's name.
    """
    parts = {} if str(name).endswith(".json") else _parts()
    if str(name) in parts:
        return parts[str(name)]
    path = Path(name) if str(name).endswith(".json") else FOLDER / f"{name}.json"
    if str(name) not in suite_ids() and not (path.suffix == ".json" and path.is_file()):
        raise UnknownNameError("suite", name, [*suite_ids(), *parts])
    data = path.read_bytes()
    suite = parse_form(SuitePart if _is_part(data) else Suite, data, str(path))
    if path.stem != suite.id:
        raise DataError(f"{path}: contains the suite {suite.id}; expected {path.stem}.")
    return suite


def known_suites(extra: Sequence[Path] = ()) -> dict[str, Suite]:
    """Return the package's suites with their parts, and those of further files, by id."""
    found = {name: load_suite(name) for name in suite_ids()} | _parts()
    for path in extra:
        suite = load_suite(path)
        found[suite.id] = suite
    return found


def _is_part(data: bytes) -> bool:
    """Return whether a file's text is a part of a suite, as a season's files keep their base."""
    try:
        found = json.loads(data)
    except ValueError:  # which the parser of forms tells
        return False
    return isinstance(found, dict) and "base" in found


@functools.cache
def _parts() -> dict[str, Suite]:
    """Return the suites of one environment each, out of those of the package."""
    wholes = (parse_form(Suite, p.read_bytes(), str(p)) for p in sorted(FOLDER.glob("*.json")))
    return {part.id: part for whole in wholes for part in parts_of(whole)}


def write_suite(suite: Suite, folder: Path) -> Path:
    """Write a suite to ``folder`` under its id.

    Raises:
        DataError: A different suite with this id exists: a frozen suite is never overwritten.
    """
    path = folder / f"{suite.id}.json"
    if path.exists() and (have := parse_form(Suite, path.read_bytes(), str(path))) != suite:
        raise DataError(
            f"{path}: contains a different suite with this id (digest {have.digest}, the new one "
            f"has {suite.digest}). A published suite is frozen; give the new one another version."
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, suite.model_dump_json(indent=1) + "\n")
    return path
