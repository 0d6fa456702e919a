"""Sealed seasons: worlds generated from a secret that is committed to first.

A season's suite is a function of its base suite and the secret, so that the secret, once it is
published, proves that nothing was chosen after the fact, and lets anybody replay every entry.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import inspect
import os
import secrets
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.core.registration import environment_class
from ..schema.base import Form, OnProgress, make_form, parse_form
from ..schema.suite import Cell, Digest, Slug, Suite
from .digests import with_digests
from .files import load_suite, write_suite

_HEAD = b"turngym season 2\n"
PUBLIC, SECRET, SEALED, REVEALED = "season.json", "secret.json", "sealed", "revealed"
Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SeasonTerms(Form):
    """How a season is played.

    Attributes:
        session_s: Seconds without a step after which an episode ends with an error.
        show_rewards: Whether players see rewards, verdicts and metrics.
    """

    session_s: float = Field(default=3600.0, gt=0)
    show_rewards: bool = False


class SeasonCell(Form):
    """Public description of one environment of a season."""

    key: str
    env_id: str
    settings: dict[str, Any]
    split: str
    tasks: int
    trials: int
    max_turns: int


class Season(Form):
    """``season.json``: what is public from the start.

    Attributes:
        format: Version of this layout and of how seeds are drawn.
        name: Name of the season; its suite is ``NAME-v1``.
        base: Suite that it is drawn from.
        base_digest: That suite's digest.
        opened: Date.
        commitment: SHA-256 over nonce, secret, base and suite; fixed before anybody plays.
        terms: Rules of the season.
        cells: The environments.
        left_out: Keys of the base suite's environments that the season does not play, since their
            tasks are listed.
    """

    format: Literal[2] = 2
    name: Slug
    base: str
    base_digest: Digest
    opened: str
    commitment: Hex
    terms: SeasonTerms
    cells: tuple[SeasonCell, ...]
    left_out: tuple[str, ...] = ()

    @property
    def suite_id(self) -> str:
        """Id of the season's suite."""
        return f"{self.name}-v1"


class Secret(Form):
    """``secret.json``: known only to the server until the season ends.

    Attributes:
        nonce: Prevents searching for the secret behind the commitment.
        secret: Source of world seeds and episode seeds.
    """

    nonce: Hex
    secret: Hex


def sealed_suite(
    base: Suite, name: str, secret: str, on_progress: OnProgress | None = None
) -> Suite:
    """Make a season's suite: the base's generated environments with secret seeds.

    The world of each is generated from a seed of 256 bits, so that nobody has seen its content.
    Environments whose tasks are listed are left out: everybody has the list, and the answers.

    Args:
        base: The public suite.
        name: Of the season.
        secret: In hex.
        on_progress: Called with the number of finished environments and of all.

    Raises:
        BadValueError: No environment of the suite generates its world.
    """
    cells = tuple(_sealed_cell(cell, secret) for cell in base.cells if is_generated(cell))
    if not cells:
        raise BadValueError(
            f"season {name}: no environment of {base.id} makes its world from a seed "
            "(world_seed), so nothing of it can be kept secret; choose another suite."
        )
    fields = {name: getattr(base, name) for name in Suite.model_fields} | {
        "name": name,
        "version": 1,
        "description": f"sealed season on the environments of {base.id}",
        "seed": _drawn(secret, "suite"),
        "cells": cells,
    }
    return with_digests(make_form(Suite, "season", **fields), on_progress)


def is_generated(cell: Cell) -> bool:
    """Return whether a cell's environment makes its world from a seed (``world_seed``)."""
    return "world_seed" in inspect.signature(environment_class(cell.env_id)).parameters


def _sealed_cell(cell: Cell, secret: str) -> Cell:
    settings = dict(cell.settings) | {"world_seed": _drawn(secret, f"world {cell.key}")}
    return make_form(Cell, "season", **(dict(cell) | {"settings": settings}))


def _drawn(secret: str, what: str) -> int:
    """Return a seed of 256 bits; one of 31 was found by search, and the season's world with it."""
    return int.from_bytes(hmac.digest(bytes.fromhex(secret), what.encode(), "sha256"), "big")


def commitment(secret: Secret, base: Suite, suite: Suite) -> str:
    """Return the hash that is published when a season opens."""
    lines = (secret.nonce, secret.secret, base.digest, suite.digest)
    return hashlib.sha256(_HEAD + "\n".join(lines).encode()).hexdigest()


def open_season(
    root: Path, name: str, base: Suite, terms: SeasonTerms, on_progress: OnProgress | None = None
) -> Season:
    """Draw a secret, make the season's suite, and write both with the commitment.

    Args:
        root: The server's folder of seasons.
        name: Of the season.
        base: The public suite.
        terms: Rules of the season.
        on_progress: Called with the number of finished environments and of all.

    Raises:
        BadValueError: The name is taken or invalid, or no environment of the suite generates its
            world.
    """
    folder = root / name
    if folder.exists():
        raise BadValueError(f"{folder}: a season of this name exists; choose another name.")
    if f"{name}-v1" == base.id:
        raise BadValueError(
            f"season {name}: its suite would have the id of its base suite, {base.id}; choose "
            "another name."
        )
    secret = Secret(nonce=secrets.token_hex(32), secret=secrets.token_hex(32))
    suite = sealed_suite(base, name, secret.secret, on_progress)
    played = [cell for cell in base.cells if cell.key in suite.by_key()]
    public = Season(
        name=name,
        base=base.id,
        base_digest=base.digest,
        opened=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        commitment=commitment(secret, base, suite),
        terms=terms,
        cells=tuple(
            SeasonCell(
                key=cell.key,
                env_id=cell.env_id,
                settings=public_cell.settings,
                split=cell.split,
                tasks=len(cell.tasks),
                trials=cell.trials,
                max_turns=cell.max_turns,
            )
            for cell, public_cell in zip(suite.cells, played, strict=True)
        ),
        left_out=tuple(cell.key for cell in base.cells if cell not in played),
    )
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".opening-") as room:
        draft = Path(room) / name
        draft.mkdir(mode=0o700)
        (draft / SEALED).mkdir(mode=0o700)
        _write_private(draft / SEALED / SECRET, secret.model_dump_json(indent=1) + "\n")
        _write_private(draft / SEALED / f"{base.id}.json", base.model_dump_json(indent=1) + "\n")
        write_suite(suite, draft / SEALED).chmod(0o600)
        (draft / PUBLIC).write_text(public.model_dump_json(indent=1) + "\n", encoding="utf-8")
        draft.rename(folder)
    return public


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def read_season(root: Path, name: str) -> Season:
    """Read the public part of a season.

    Raises:
        UnknownNameError: There is no season of this name.
    """
    if name not in season_names(root):
        raise UnknownNameError("season", name, season_names(root))
    path = root / name / PUBLIC
    return parse_form(Season, path.read_bytes(), str(path))


def season_names(root: Path) -> list[str]:
    """Return the names of all seasons, open and revealed, sorted."""
    return sorted(path.parent.name for path in root.glob(f"*/{PUBLIC}"))


def is_revealed(root: Path, name: str) -> bool:
    """Return whether a season is over and its secret published."""
    return (root / name / REVEALED / SECRET).is_file()


def suite_file(root: Path, name: str) -> Path:
    """Return the file of a season's suite: among the sealed files until it is revealed."""
    part = REVEALED if is_revealed(root, name) else SEALED
    return root / name / part / f"{name}-v1.json"


def reveal(root: Path, name: str, on_progress: OnProgress | None = None) -> Path:
    """Publish a season's secret and suite, after checking both against the commitment.

    Args:
        root: The server's folder of seasons.
        name: Of the season.
        on_progress: Called with the number of checked environments and of all.

    Returns:
        Folder of the public files: ``secret.json``, the season's suite and the base suite.

    Raises:
        UnknownNameError: There is no such season.
        DataError: The files do not match the commitment.
    """
    public, sealed, revealed = read_season(root, name), root / name / SEALED, root / name / REVEALED
    if not is_revealed(root, name):
        check_revealed(public, sealed, on_progress)
        revealed.mkdir(exist_ok=True)
        for file in (f"{public.base}.json", f"{public.suite_id}.json", SECRET):
            part = revealed / f"{file}.part"
            part.write_bytes((sealed / file).read_bytes())
            part.replace(revealed / file)
    return revealed


def check_revealed(public: Season, folder: Path, on_progress: OnProgress | None = None) -> Suite:
    """Rebuild a season's suite from the published secret and compare it with the commitment.

    Args:
        public: Public part of the season, published when it opened.
        folder: Folder with ``secret.json`` and the two suites.
        on_progress: Called with the number of finished environments and of all.

    Returns:
        The season's suite.

    Raises:
        DataError: Something differs from the commitment.
    """
    path = folder / SECRET
    secret = parse_form(Secret, path.read_bytes(), str(path))
    base = load_suite(folder / f"{public.base}.json")
    suite = load_suite(folder / f"{public.suite_id}.json")
    if base.digest != public.base_digest:
        raise DataError(f"{folder}: the base suite is not that of the season {public.name}.")
    found = commitment(secret, base, suite)
    if found != public.commitment:
        raise DataError(
            f"{folder}: secret and suite give the commitment {found}; published was "
            f"{public.commitment}."
        )
    again = sealed_suite(base, public.name, secret.secret, on_progress)
    if again != suite:
        raise DataError(
            f"{folder}: the secret makes another suite (digest {again.digest}) than the season "
            f"played ({suite.digest}); the environments changed, or the suite has another source."
        )
    return suite
