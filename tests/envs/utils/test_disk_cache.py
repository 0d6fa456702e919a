"""The cache folder: closed to other accounts, unless somebody shares it on purpose."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.agents.models.built_folder import build_once
from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.disk_cache import (
    cache_arrays,
    cache_dir,
    cache_text,
    make_folder,
    name_seed,
)
from turngym.envs.utils.system import try_lock


def arrays() -> dict[str, np.ndarray]:
    return {"a": np.arange(3)}


def build(folder: Path) -> dict[str, Any]:
    (folder / "weights").write_text("1")
    return {}


USES: list[Callable[[], object]] = [
    lambda: cache_arrays("numbers", arrays),
    lambda: cache_text(cache_dir() / "texts" / "one", lambda: "text"),
    lambda: build_once(cache_dir() / "starters" / "one", "manifest.json", build, "a model"),
]


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TURNGYM_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".cache" / "turngym"


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("before", [None, 0o755, 0o777])
def test_the_default_folder_is_closed(
    default: Path, use: Callable[[], object], before: int | None
) -> None:
    if before is not None:
        default.mkdir(parents=True)
        default.chmod(before)
    use()
    assert any(default.iterdir())
    assert mode(default) == 0o700


def test_a_folder_that_is_only_read_is_closed_too(default: Path) -> None:
    cache_arrays("numbers", arrays)
    default.chmod(0o755)
    assert cache_arrays("numbers", dict)["a"].tolist() == [0, 1, 2]
    assert mode(default) == 0o700


@pytest.mark.parametrize("use", USES)
def test_a_folder_that_is_shared_stays_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[], object]
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o775)
    monkeypatch.setenv("TURNGYM_CACHE", str(shared))
    use()
    assert mode(shared) == 0o775
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "new"))
    use()
    assert mode(tmp_path / "new") == 0o700


def test_a_file_in_the_place_of_the_cache_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for named in ("file", "file/below"):
        monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / named))
        with pytest.raises(BadValueError, match=f"TURNGYM_CACHE is '.*{named}'.* cannot be made"):
            USES[2]()
        assert [use() for use in USES[:2]][1] == "text"  # made without being kept
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    (tmp_path / "starters").write_text("")
    with pytest.raises(BadValueError, match=r"starters cannot be made .*Set TURNGYM_CACHE"):
        USES[2]()


def test_a_text_of_another_account_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    assert cache_text(tmp_path / "one", lambda: "first") == "first"
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert cache_text(tmp_path / "one", lambda: "again") == "again"


@pytest.mark.parametrize(
    ("umask", "seed", "kept"),
    [(0o002, 7, 0o664), (0o022, 7, 0o644), (0o077, 7, 0o600), (0o002, 2**200, 0o600)],
)
def test_a_shared_folder_has_files_that_others_may_read(
    umask: int, seed: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what a secret seed made: whoever reads that has the answers."""
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    before = os.umask(umask)
    try:
        cache_arrays(f"world-s{name_seed(seed)}-abc-bm25", arrays)
        cache_text(tmp_path / "texts" / "one", lambda: "what a model said")
    finally:
        os.umask(before)
    (file,) = tmp_path.glob("*.arrays")
    assert mode(file) == kept
    assert mode(tmp_path / "texts" / "one") == 0o600


def test_an_interrupt_leaves_no_half_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(scratch: str, path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("turngym.envs.utils.disk_cache.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache_text(tmp_path / "one", lambda: "text")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal
import numpy as np
from turngym.envs.utils import disk_cache

disk_cache.os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
if {held}:  # killed before its file is closed
    disk_cache.os.fdopen = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
disk_cache.cache_arrays("killed", lambda: dict(a=np.arange(3)))
"""


@pytest.mark.parametrize("held", [False, True])
def test_what_a_killed_process_left_is_deleted(
    held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED.format(held=held)], check=False)
        assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1  # the second has deleted the first's
    alive = tmp_path / "alive.arrays0123456789abcdef"
    with alive.open("wb") as file:
        assert try_lock(file, "the test")
        cache_arrays("whole", arrays)
        assert {path.name for path in tmp_path.iterdir()} == {"whole.arrays", alive.name}


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("long" * 100)):
        with pytest.raises(BadValueError, match=rf"{re.escape(str(folder))}: cannot be a folder"):
            make_folder(folder)
    assert make_folder(tmp_path / "new" / "below").is_dir()


def test_the_target_of_a_link_keeps_its_mode(default: Path, tmp_path: Path) -> None:
    target = tmp_path / "scratch"
    target.mkdir()
    target.chmod(0o755)
    default.parent.mkdir()
    default.symlink_to(target)
    cache_arrays("numbers", arrays)
    assert mode(target) == 0o755


@pytest.fixture(params=[None, "~no-such-account/cache"])
def homeless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """An account that is a number alone, as in many containers, or a home that is not known."""

    def unknown(number: int) -> object:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.delenv("TURNGYM_CACHE", raising=False)
    if request.param:
        monkeypatch.setenv("TURNGYM_CACHE", request.param)
    return request.param


def test_without_a_home_arrays_are_built_and_not_kept(homeless: str | None, tmp_path: Path) -> None:
    assert cache_arrays("numbers", arrays)["a"].tolist() == [0, 1, 2]
    assert make_folder(tmp_path / "runs" / "one").is_dir()


def test_without_a_home_the_cache_is_asked_for(homeless: str | None) -> None:
    with pytest.raises(BadValueError, match=r"the account has none .*Set TURNGYM_CACHE to"):
        cache_dir()
