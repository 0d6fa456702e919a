"""Model folders: whole or not at all, every file of them checked."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors import SafetensorError

from turngym.agents.models import export
from turngym.agents.models.built_folder import build_once, is_intact, whole_or_nothing
from turngym.agents.models.export import export_merged
from turngym.agents.models.loading import load_model
from turngym.agents.models.lora import LoraSettings, with_lora
from turngym.algos.training.policy_files import save_policy
from turngym.envs.core.errors import DataError


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_files_in_folders_are_sealed_and_checked_too(tmp_path: Path) -> None:
    """A tokenizer with several templates writes some of them into a folder."""
    inner = Path("additional_chat_templates") / "tool_use.jinja"

    def build(draft: Path) -> dict[str, int]:
        (draft / "weights").write_text("w")
        (draft / inner).parent.mkdir()
        (draft / inner).write_text("{{ tools }}")
        return {"version": 1}

    folder = build_once(tmp_path / "m", "manifest.json", build, "a model")
    assert is_intact(folder, "manifest.json")
    for spoil in ((folder / inner).unlink, lambda: (folder / inner).write_text("other")):
        spoil()
        assert not is_intact(folder, "manifest.json")
        build_once(folder, "manifest.json", build, "a model")
        assert (folder / inner).read_text() == "{{ tools }}"


def test_a_full_disk_is_told_as_one(tmp_path: Path) -> None:
    """Weights are written in Rust, whose error is no OSError."""

    def write(draft: Path) -> dict[str, int]:
        (draft / "config.json").write_text("{}")
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with pytest.raises(DataError, match=rf"^{tmp_path}: the disk is full"):
        build_once(tmp_path / "m", "manifest.json", write, "a model")
    with (
        pytest.raises(DataError, match=rf"^{tmp_path}: the disk is full"),
        whole_or_nothing(tmp_path / "out") as draft,
    ):
        write(draft)
    assert names(tmp_path) == ["m.lock"]


def test_what_is_replaced_stays_until_the_new_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_or_nothing(out, replace=True) as draft:
        (draft / "old").write_text("o")

    def fail() -> None:
        with whole_or_nothing(out, replace=True) as draft:
            (draft / "new").write_text("n")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert names(tmp_path) == ["out", "out/old"]
    with whole_or_nothing(out, replace=True) as draft:
        (draft / "new").write_text("n")
        assert names(out) == ["old"]
    assert names(tmp_path) == ["out", "out/new"]


@pytest.mark.parametrize("name", ["a" * 255, "ä" * 120])
def test_a_folder_may_have_as_long_a_name_as_the_disk_takes(tmp_path: Path, name: str) -> None:
    with whole_or_nothing(tmp_path / name) as draft:
        (draft / "file").write_text("f")
    assert names(tmp_path) == [name, f"{name}/file"]


def interrupted(out: Path) -> None:
    with whole_or_nothing(out) as draft:
        (draft / "half").write_text("x")
        raise KeyboardInterrupt


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_cache_that_may_only_be_read_says_what_to_do(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so what others are told is put in the lock's mouth."""

    def refuse(lock: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / "m.lock"))

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    says = rf"a model is not in the cache, .*m\.lock.*\({os.strerror(number)}\).*Set TURNGYM_CACHE"
    with pytest.raises(DataError, match=says):
        build_once(tmp_path / "m", "manifest.json", lambda draft: {}, "a model")


def test_a_file_that_a_build_may_not_read_is_not_the_cache_s(tmp_path: Path) -> None:
    def build(draft: Path) -> dict[str, int]:
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/questions")

    with pytest.raises(DataError, match=r"^/elsewhere/questions: cannot be used"):
        build_once(tmp_path / "m", "manifest.json", build, "a model")


@pytest.mark.parametrize("there", [False, True])
def test_an_error_leaves_the_folder_as_it_was(tmp_path: Path, there: bool) -> None:
    out = tmp_path / "new" / "out"
    if there:
        out.mkdir(parents=True)
    with pytest.raises(KeyboardInterrupt):
        interrupted(out)
    assert names(out.parent) == ["out"] * there
    with whole_or_nothing(out) as draft:
        (draft / "sub").mkdir()
        (draft / "sub" / "file").write_text("x")
    assert names(out.parent) == ["out", "out/sub", "out/sub/file"]


def test_a_folder_in_a_place_that_cannot_be_written_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr("os.access", lambda *_: False)
    with whole_or_nothing(out) as draft:
        assert out in draft.parents
        (draft / "file").write_text("x")
    assert names(out) == ["file"]


@pytest.mark.parametrize("beside", [False, True])
def test_a_move_that_is_cut_off_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    out, move = tmp_path / "out", shutil.move
    out.mkdir()

    def cut(source: Path, target: Path) -> None:
        move(source, target)
        if source.name == "b":
            (out / "other").write_text("somebody else's")
            raise OSError(errno.ENOSPC, "No space left on device")

    def fill() -> None:
        with whole_or_nothing(out) as draft:
            for name in ("a", "b", "c"):
                (draft / name).mkdir()
                (draft / name / "file").write_text("x")

    monkeypatch.setattr("os.access", lambda *_: beside)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "move", cut)
        with pytest.raises(DataError, match="the disk is full"):
            fill()
    assert [path.name for path in out.iterdir()] == ["other"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    fill()
    assert [path.name for path in sorted(out.iterdir())] == ["a", "b", "c", "other"]


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_another_process_fills_meanwhile_keeps_its_files(
    tmp_path: Path, there: bool
) -> None:
    """Of two submits to one folder both said that they were done; it held a mixture of both."""
    out = tmp_path / "out"
    if there:
        out.mkdir()

    def fill(text: str, after: Callable[[], None]) -> None:
        with whole_or_nothing(out) as draft:
            (draft / "episodes").mkdir()
            (draft / "episodes" / "file").write_text(text)
            after()

    with pytest.raises(DataError, match=r"another process has written there .* in .*out-2\."):
        fill("second", lambda: fill("first", lambda: None))
    assert names(out) == ["episodes", "episodes/file"]
    assert (out / "episodes" / "file").read_text() == "first"
    assert (tmp_path / "out-2" / "episodes" / "file").read_text() == "second"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-2"]


def test_a_folder_that_is_filled_at_the_very_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, exists = tmp_path / "out", Path.exists

    def fill() -> None:
        with whole_or_nothing(out) as draft:
            (draft / "file").write_text("second")
            monkeypatch.setattr(Path, "exists", too_early)

    def too_early(path: Path) -> bool:
        if path == out / "file":
            out.mkdir()
            path.write_text("first")
            return False
        return exists(path)

    with pytest.raises(DataError, match=r"out-2\."):
        fill()
    assert (out / "file").read_text() == "first"
    assert (tmp_path / "out-2" / "file").read_text() == "second"


def test_a_merge_that_fails_can_be_tried_again(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "lora", tmp_path / "out"
    folder.mkdir()
    save_policy(with_lora(load_model(tiny_model), LoraSettings(rank=2)), folder)
    read = export.load_tokenizer
    monkeypatch.setattr(export, "load_tokenizer", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_merged(folder, out)
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["lora"]
    monkeypatch.setattr(export, "load_tokenizer", lambda _, **more: read(tiny_model, **more))
    export_merged(folder, out)
    load_model(out)


KILLED = """
import os, signal, sys
from pathlib import Path
from turngym.agents.models.built_folder import whole_or_nothing

with whole_or_nothing(Path(sys.argv[1])) as draft:
    (draft / "model").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_deleted_by_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
        assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    with whole_or_nothing(tmp_path / "other"):  # of another folder
        assert left.exists()
    with whole_or_nothing(out) as draft:
        (draft / "model").write_text("whole")
        assert not left.exists()
        with whole_or_nothing(out) as beside:  # which leaves alone what is written still
            (beside / "second").write_text("")
        shutil.rmtree(out)
    assert {path.name for path in tmp_path.iterdir()} == {"out", "other"}
    assert (out / "model").read_text() == "whole"
