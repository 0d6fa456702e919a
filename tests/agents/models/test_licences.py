"""Licence texts go with what is made of a model: a policy's folder, a merged one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from turngym.agents.models.export import export_merged
from turngym.agents.models.licences import is_licence, keep_licences
from turngym.agents.models.loading import load_model
from turngym.agents.models.lora import LoraSettings, with_lora
from turngym.algos.training.policy_files import save_policy

TEXTS = {"LICENSE": "Apache", "NOTICE.md": "made by others", "GEMMA_TERMS.html": "<p>terms"}


@pytest.fixture
def base(tiny_model: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    shutil.copytree(tiny_model, folder)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if is_licence(path)}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *((name, True) for name in (*TEXTS, "licence.txt", "LICENSE-MIT", "USE_POLICY.md")),
        *((name, True) for name in ("LICENSE.Apache-2.0", "LICENSE.MIT", "COPYING.LESSER")),
        *((name, False) for name in ("license.py", "config.json", "README.md", "terms.bin")),
        *((name, False) for name in ("LICENSE.pkl", "MIT", "notice.1x")),
    ],
)
def test_names_of_licence_texts(name: str, kept: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    assert is_licence(tmp_path / name) == kept


def test_only_small_files_are_copied_and_nothing_is_overwritten(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "LICENSE.d").mkdir(parents=True)
    new.mkdir()
    (old / "LICENSE").write_text("old")
    (old / "NOTICE").write_bytes(b"x" * (2**20 + 1))
    (new / "LICENSE").write_text("new")
    keep_licences(old, new)
    assert texts(new) == {"LICENSE": "new"}
    keep_licences("lab/on-a-hub", new)
    keep_licences("", new)
    assert [path.name for path in new.iterdir()] == ["LICENSE"]


def test_a_policy_s_folder_has_them_and_what_is_made_of_that(base: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    save_policy(load_model(base), first)
    assert texts(first) == TEXTS
    shutil.rmtree(base)
    save_policy(load_model(first), second)
    assert texts(second) == TEXTS


def test_adapters_and_what_they_are_merged_into_have_them(base: Path, tmp_path: Path) -> None:
    adapters, out = tmp_path / "adapters", tmp_path / "out"
    adapters.mkdir()
    save_policy(with_lora(load_model(base), LoraSettings(rank=2)), adapters)
    assert texts(adapters) == TEXTS
    shutil.copy(base / "tokenizer.json", adapters)
    shutil.copy(base / "tokenizer_config.json", adapters)
    export_merged(adapters, out)
    assert texts(out) == TEXTS
