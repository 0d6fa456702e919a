"""Whole files; a full disk and a folder that cannot be written: one clear line each."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from turngym.envs.core.errors import DataError
from turngym.envs.utils.disk_errors import describe_disk_error, disk_errors, whole_file


def failing(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk(number: int) -> None:
    with (
        pytest.raises(DataError, match=r"^here: the disk is full\. Make room"),
        disk_errors("here"),
    ):
        raise failing(number)


@pytest.mark.parametrize(
    "number",
    [errno.EACCES, errno.EROFS, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP],
)
def test_a_folder_that_cannot_be_written(number: int) -> None:
    with (
        pytest.raises(DataError, match=rf"^a/b: cannot be used \({os.strerror(number)}\)\.$"),
        disk_errors("here"),
    ):
        raise failing(number, "a/b")


def test_a_limit_on_the_size_of_files_says_which_with_a_name_and_without() -> None:
    said = describe_disk_error(failing(errno.EFBIG)) or ""
    assert "ulimit -f" in said
    assert describe_disk_error(failing(errno.EFBIG), "here") == f"here: {said}"
    assert describe_disk_error(failing(errno.EFBIG, "a/b"), "here") == f"a/b: {said}"
    assert describe_disk_error(failing(errno.EACCES)) is None


def test_the_cause_is_found_behind_a_library_s_error() -> None:
    behind = RuntimeError("unexpected pos 6272 vs 6164")
    behind.__context__ = failing(errno.ENOSPC)
    with pytest.raises(DataError, match=r"^here: the disk is full"), disk_errors("here"):
        raise behind
    rust = RuntimeError("I/O error: No space left on device (os error 28)")
    assert "the disk is full" in (describe_disk_error(rust) or "")


def test_torch_s_writer_is_believed_only_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def save() -> None:
        with disk_errors(tmp_path, guess=True):
            raise RuntimeError("unexpected pos 6272 vs 6164")

    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**30))
    with pytest.raises(RuntimeError, match="unexpected pos"):
        save()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
    with pytest.raises(DataError, match="the disk is full"):
        save()


@pytest.mark.parametrize(
    "error",
    [failing(errno.ENOENT, "a"), failing(errno.EACCES), ValueError("os error"), DataError("x")],
)
def test_other_errors_stay(error: Exception) -> None:
    assert describe_disk_error(error) is None
    with pytest.raises(type(error)) as caught, disk_errors(""):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_is_whole_or_what_it_was(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "scores.json"
    with whole_file(path, sync=sync) as file:
        file.write("ä" * 100_000)
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "ä" * 100_000

    def broken() -> None:
        with whole_file(path, sync=sync) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert path.read_text(encoding="utf-8") == "ä" * 100_000
    assert os.listdir(tmp_path) == ["scores.json"]


def test_of_two_writers_at_once_the_last_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    with whole_file(path, alone=False) as first:
        first.write("first")
        with whole_file(path, alone=False) as second:
            second.write("2")
        assert path.read_text() == "2"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["scores.json"]


@pytest.mark.parametrize("name", ["a" * 250, "ä" * 125 + "b", "c" * 255])
@pytest.mark.parametrize("alone", [True, False])
def test_a_file_may_have_as_long_a_name_as_the_disk_takes(
    tmp_path: Path, name: str, alone: bool
) -> None:
    """What is half written has a longer name: scores of a whole evaluation were lost to it."""
    with whole_file(tmp_path / name, alone=alone) as file:
        file.write("whole")
    assert [path.name for path in tmp_path.iterdir()] == [name]
