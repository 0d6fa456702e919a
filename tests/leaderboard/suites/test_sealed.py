"""Sealed seeds: as long as the secret, nowhere narrowed, in no file name."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.disk_cache import name_seed
from turngym.leaderboard.schema.base import parse_form
from turngym.leaderboard.schema.entry import Episode
from turngym.leaderboard.schema.suite import Cell, Suite
from turngym.leaderboard.suites.digests import with_digests
from turngym.leaderboard.suites.files import load_suite
from turngym.leaderboard.suites.sealed import SECRET as SECRET_FILE
from turngym.leaderboard.suites.sealed import (
    SeasonTerms,
    check_revealed,
    is_revealed,
    open_season,
    reveal,
    sealed_suite,
    season_names,
    suite_file,
)

SECRET = "5a" * 32
MICRO = load_suite("micro-v3")
LISTED = {"Game24-v0", "ScienceWorld-v0"}
MATH = MICRO.by_key()["MathWord-v0"]
BITS = 128


def one_task(*cells: Cell) -> Suite:
    """A public suite of one task per environment."""
    first = [
        Cell(**(dict(c) | {"tasks": (0,), "trials": 1, "digests": ("0" * 32,)})) for c in cells
    ]
    return Suite(name="base", version=1, description="for tests", cells=tuple(first))


@pytest.fixture
def entropies(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What every random stream is seeded with from here on."""
    seen: list[Any] = []

    def recorded(kind: Any) -> Any:
        def make(seed: Any = None, **others: Any) -> Any:
            if not isinstance(seed, np.random.SeedSequence | np.random.BitGenerator):
                seen.append((seed, sys._getframe(1).f_code.co_filename))
            return kind(seed, **others)

        return make

    for name in ("default_rng", "PCG64"):
        monkeypatch.setattr(np.random, name, recorded(getattr(np.random, name)))

    class Recorded(np.random.SeedSequence):  # a class, since numpy asks for instances
        def __init__(self, entropy: Any = None, **others: Any) -> None:
            seen.append((entropy, sys._getframe(1).f_code.co_filename))
            super().__init__(entropy, **others)

    monkeypatch.setattr(np.random, "SeedSequence", Recorded)
    return seen


def numbers(entropy: Any) -> Iterator[int]:
    for one in entropy if isinstance(entropy, tuple | list) else (entropy,):
        yield int(one)


def test_no_stream_of_a_sealed_world_has_fewer_bits(
    entropies: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    base = one_task(*MICRO.cells)
    season = sealed_suite(base, "spring", SECRET)
    assert len(entropies) > len(season.cells)
    assert {cell.key for cell in season.cells} == {cell.key for cell in base.cells} - LISTED
    for entropy, where in entropies:
        if where.endswith("noisy_expert.py"):  # of the proof that a task can be solved
            continue
        assert max(numbers(entropy)) >= 2 ** (BITS - 8), (entropy, where)
    assert season.seed >= 2**200
    for cell in season.cells:
        assert cell.settings["world_seed"] >= 2**200
        assert all(season.seed_of(slot) >= 2**100 for slot in cell.slots())
    told = [path.name for path in (tmp_path / "cache").rglob("*")]
    assert len(told) > 4
    assert not any(re.search(r"\d{20}", name) for name in told)
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("bit", [0, 31, 52, 63, 64, 127, 128, 255])
def test_every_bit_of_a_seed_makes_another_world(bit: int) -> None:
    cell = MATH

    def digests(seed: int) -> list[tuple[str, ...]]:
        settings = dict(cell.settings) | {"world_seed": seed}
        fields = {"settings": settings, "tasks": (0, 1), "trials": 1, "digests": ("0" * 32,) * 2}
        suite = Suite(name="one", version=1, description="", cells=(Cell(**(dict(cell) | fields)),))
        return [one.digests for one in with_digests(suite).cells]

    seed = int(SECRET, 16)
    assert digests(seed) != digests(seed ^ (1 << bit))


def test_long_seeds_survive_files(tmp_path: Path) -> None:
    cell = MATH
    open_season(tmp_path, "spring", with_digests(one_task(cell)), SeasonTerms())
    suite = load_suite(suite_file(tmp_path, "spring"))
    assert suite.cells[0].settings["world_seed"] >= 2**200
    [slot] = suite.slots()
    fields = {"env": cell.key, "task": 0, "task_id": "x", "task_digest": "0" * 32, "trial": 0}
    made = Episode(**fields, seed=suite.seed_of(slot), actions=(), chain=("0" * 16,))
    assert parse_form(Episode, made.model_dump_json(), "here") == made


def test_listed_tasks_are_left_out_and_named(tmp_path: Path) -> None:
    base = one_task(MATH, MICRO.by_key()["Game24-v0"])
    public = open_season(tmp_path, "spring", base, SeasonTerms())
    assert public.left_out == ("Game24-v0",)
    assert [cell.key for cell in public.cells] == ["MathWord-v0"]
    with pytest.raises(BadValueError, match="choose another suite"):
        sealed_suite(one_task(MICRO.by_key()["Game24-v0"]), "spring", SECRET)


def test_a_part_of_a_suite_is_a_base_too(tmp_path: Path) -> None:
    base = load_suite("micro-mathword-v3")
    public = open_season(tmp_path, "spring", base, SeasonTerms())
    assert (public.base, public.base_digest) == (base.id, base.digest)
    folder = reveal(tmp_path, "spring")
    assert check_revealed(public, folder).id == "spring-v1"
    assert load_suite(folder / f"{base.id}.json") == base


def test_a_season_does_not_take_its_base_suites_id(tmp_path: Path) -> None:
    base = one_task(MATH)
    with pytest.raises(BadValueError, match=f"its base suite, {base.id}; choose another name"):
        open_season(tmp_path, base.name, base, SeasonTerms())
    assert not list(tmp_path.iterdir())  # the name is free still


def test_a_season_that_was_cut_off_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = with_digests(one_task(MATH))
    write = Path.write_text

    def cut(path: Path, text: str, **settings: Any) -> int:
        write(path, text[:20], **settings)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", cut)
        with pytest.raises(OSError, match="No space left"):
            open_season(tmp_path, "spring", base, SeasonTerms())
    assert season_names(tmp_path) == []
    open_season(tmp_path, "spring", base, SeasonTerms())  # the name is free still
    assert season_names(tmp_path) == ["spring"]


def test_a_reveal_that_was_cut_off_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = open_season(tmp_path, "spring", with_digests(one_task(MATH)), SeasonTerms())
    write = Path.write_bytes

    def cut(path: Path, data: bytes) -> int:
        if not path.name.startswith(SECRET_FILE):
            return write(path, data)
        write(path, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", cut)
        with pytest.raises(OSError, match="No space left"):
            reveal(tmp_path, "spring")
    assert not is_revealed(tmp_path, "spring")
    assert check_revealed(public, reveal(tmp_path, "spring")).id == "spring-v1"


def test_public_seeds_stay_short_and_readable() -> None:
    assert all(MICRO.seed_of(slot) < 2**52 for slot in MICRO.slots())
    assert name_seed(7) == "7"
    assert re.fullmatch("[0-9a-f]{32}", name_seed(2**53))
    assert name_seed(2**200) != name_seed(2**200 + 1)
