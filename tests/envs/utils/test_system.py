"""What stands in for the calls that macOS and Windows lack."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from turngym.envs.core.errors import BadValueError
from turngym.envs.utils import system


def test_processors_of_a_system_that_has_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(system, "_cpu_quota", lambda: None)
    assert system.count_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert system.count_cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert system.count_cores() == 1


@pytest.mark.parametrize(("quota", "cores"), [(64.0, 3), (2.0, 2), (1.5, 2), (0.1, 1)])
def test_no_more_processors_than_a_container_has_time_of(
    quota: float, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(system, "_cpu_quota", lambda: quota)
    assert system.count_cores() == cores


def test_memory_of_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert system.memory_bytes() == 0


def test_space_is_reserved_where_the_system_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    path = tmp_path / "holes"
    size = 2 * 2**20 + 5
    with path.open("wb") as file:
        file.write(b"head")
        file.truncate(size)
    with path.open("r+b") as file:
        system.reserve_space(file)
    assert path.read_bytes() == b"head" + bytes(size - 4)
    assert path.stat().st_blocks * 512 >= size


def test_a_file_system_without_locks_is_not_a_lock_of_somebody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(file: object, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        (tmp_path / "lock").open("a") as file,
        pytest.raises(BadValueError, match=r"lock cannot be locked \(No locks available\)"),
    ):
        system.try_lock(file, "this")


def test_a_lock_is_held_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    with path.open("a") as first, path.open("a") as second:
        assert system.try_lock(first, "this")
        assert not system.try_lock(second, "this")
        monkeypatch.setitem(sys.modules, "fcntl", None)
        with pytest.raises(BadValueError, match="this needs Linux or macOS; on Windows use WSL 2"):
            system.try_lock(second, "this")
