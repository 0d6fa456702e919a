"""Sealed seasons: worlds and tasks drawn from a secret whose commitment is published first.

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
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ..schema.base import Form, make_form, parse_form
from ..schema.suite import Cell, Digest, Slug, Suite
from .digests import Tick, make_world, with_digests
from .files import load_suite, write_suite

_HEAD = b"turngym season 1\n"
_WORLD_SEEDS, _SUITE_SEEDS, _ENDLESS = 2**31, 2**52, 2**20
PUBLIC, SECRET, SEALED, REVEALED = "season.json", "secret.json", "sealed", "revealed"
Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SeasonTerms(Form):
    """How a season is played.

    Attributes:
        session_s: Seconds after which an episode without a step is over, with an error.
        tell_rewards: Whether players see rewards, verdicts and measures.
    """

    session_s: float = Field(default=3600.0, gt=0)
    tell_rewards: bool = False


class SeasonCell(Form):
    """What everybody may know of one world of a season."""

    key: str
    env_id: str
    settings: dict[str, Any]
    split: str
    tasks: int
    trials: int
    max_turns: int


class Season(Form):
    """``season.json``: what is public from the first day.

    Attributes:
        format: Version of this layout.
        name: Its suite is ``NAME-v1``.
        base: Suite that it is drawn from.
        base_digest: That suite's digest.
        opened: Date.
        commitment: SHA-256 over nonce, secret, base and suite; fixed before anybody plays.
        terms: How it is played.
        cells: The worlds.
    """

    format: Literal[1] = 1
    name: Slug
    base: str
    base_digest: Digest
    opened: str
    commitment: Hex
    terms: SeasonTerms
    cells: tuple[SeasonCell, ...]

    @property
    def suite_id(self) -> str:
        """Id of the season's suite."""
        return f"{self.name}-v1"


class Secret(Form):
    """``secret.json``: what only the server knows until the end.

    Attributes:
        nonce: Keeps the commitment from being searched.
        secret: What worlds, tasks and seeds are drawn from.
    """

    nonce: Hex
    secret: Hex


def sealed_suite(base: Suite, name: str, secret: str, tell: Tick | None = None) -> Suite:
    """The suite of a season: the base's worlds with secret world seeds, tasks and episode seeds.

    A world that is generated from a seed gets a new one, so that nobody has seen its content; in a
    world of listed tasks other tasks of the same split are drawn.

    Args:
        base: The public suite.
        name: Of the season.
        secret: In hex.
        tell: Told the worlds that are done, and how many there are.
    """
    cells = tuple(_sealed_cell(cell, secret) for cell in base.cells)
    fields = dict(base) | {
        "name": name,
        "version": 1,
        "description": f"sealed season on the worlds of {base.id}",
        "seed": _drawn(secret, "suite") % _SUITE_SEEDS,
        "cells": cells,
    }
    return with_digests(make_form(Suite, "season", **fields), tell)


def _sealed_cell(cell: Cell, secret: str) -> Cell:
    world = make_world(cell)
    settings, tasks = dict(cell.settings), cell.tasks
    if "world_seed" in inspect.signature(type(world).__init__).parameters:
        settings["world_seed"] = _drawn(secret, f"world {cell.key}") % _WORLD_SEEDS
    else:
        size = world.source.sizes()[cell.split]
        rng = np.random.default_rng(_drawn(secret, f"tasks {cell.key}"))
        count = len(cell.tasks)
        drawn = rng.choice(_ENDLESS if size is None else size, count, replace=False)
        tasks = tuple(sorted(int(index) for index in drawn))
    world.close()
    return make_form(Cell, "season", **(dict(cell) | {"settings": settings, "tasks": tasks}))


def _drawn(secret: str, what: str) -> int:
    return int.from_bytes(hmac.digest(bytes.fromhex(secret), what.encode(), "sha256"), "big")


def commitment(secret: Secret, base: Suite, suite: Suite) -> str:
    """The hash that is published when a season opens."""
    lines = (secret.nonce, secret.secret, base.digest, suite.digest)
    return hashlib.sha256(_HEAD + "\n".join(lines).encode()).hexdigest()


def open_season(
    root: Path, name: str, base: Suite, terms: SeasonTerms, tell: Tick | None = None
) -> Season:
    """Draw a secret, make the season's suite, and write both with the commitment.

    Args:
        root: The server's folder of seasons.
        name: Of the season.
        base: The public suite.
        terms: How it is played.
        tell: Told the worlds that are done, and how many there are.

    Raises:
        BadValueError: The name is taken, or no name of a suite.
    """
    folder = root / name
    if folder.exists():
        raise BadValueError(f"{folder}: there is a season of this name already.")
    secret = Secret(nonce=secrets.token_hex(32), secret=secrets.token_hex(32))
    suite = sealed_suite(base, name, secret.secret, tell)
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
            for cell, public_cell in zip(suite.cells, base.cells, strict=True)
        ),
    )
    folder.mkdir(parents=True, mode=0o700)
    (folder / SEALED).mkdir(mode=0o700)
    _write_private(folder / SEALED / SECRET, secret.model_dump_json(indent=1) + "\n")
    _write_private(folder / SEALED / f"{base.id}.json", base.model_dump_json(indent=1) + "\n")
    write_suite(suite, folder / SEALED).chmod(0o600)
    (folder / PUBLIC).write_text(public.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return public


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def read_season(root: Path, name: str) -> Season:
    """The public side of a season.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in season_names(root):
        raise UnknownNameError("season", name, season_names(root))
    path = root / name / PUBLIC
    return parse_form(Season, path.read_bytes(), str(path))


def season_names(root: Path) -> list[str]:
    """Names of all seasons, open and revealed, sorted."""
    return sorted(path.parent.name for path in root.glob(f"*/{PUBLIC}"))


def is_revealed(root: Path, name: str) -> bool:
    """Whether a season is over."""
    return (root / name / REVEALED / SECRET).is_file()


def suite_file(root: Path, name: str) -> Path:
    """File of a season's suite: among the sealed files until it is revealed."""
    part = REVEALED if is_revealed(root, name) else SEALED
    return root / name / part / f"{name}-v1.json"


def reveal(root: Path, name: str, tell: Tick | None = None) -> Path:
    """Publish a season's secret and suite, after checking both against the commitment.

    Args:
        root: The server's folder of seasons.
        name: Of the season.
        tell: Told the worlds that are checked, and how many there are.

    Returns:
        Folder of what is public: ``secret.json``, the season's suite, and the base suite.

    Raises:
        UnknownNameError: There is no such season.
        DataError: The files do not fit the commitment.
    """
    public, sealed, revealed = read_season(root, name), root / name / SEALED, root / name / REVEALED
    if not is_revealed(root, name):
        check_revealed(public, sealed, tell)
        revealed.mkdir(exist_ok=True)
        for file in (f"{public.base}.json", f"{public.suite_id}.json", SECRET):
            (revealed / file).write_bytes((sealed / file).read_bytes())
    return revealed


def check_revealed(public: Season, folder: Path, tell: Tick | None = None) -> Suite:
    """Make a season's suite anew from the published secret and compare it with the commitment.

    Args:
        public: What was published when the season opened.
        folder: Holds ``secret.json`` and the two suites.
        tell: Told the worlds that are done, and how many there are.

    Returns:
        The season's suite.

    Raises:
        DataError: Something is other than was committed to.
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
    again = sealed_suite(base, public.name, secret.secret, tell)
    if again != suite:
        raise DataError(
            f"{folder}: the secret makes another suite (digest {again.digest}) than the season "
            f"played ({suite.digest}); the worlds were changed, or the suite was not drawn from it."
        )
    return suite
