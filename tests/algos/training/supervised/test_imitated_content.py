"""Which files an environment's settings name, and what tells them apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.small_models import byte_level

from turngym.agents.scripted import text_env
from turngym.algos.training.config import EnvConfig
from turngym.algos.training.supervised.imitated_content import look_at_content


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tokenizer."""
    folder = tmp_path_factory.mktemp("tokenizer")
    byte_level(None).save_pretrained(folder)
    return str(folder)


def digest(model: str, settings: Any) -> str:
    env = text_env(EnvConfig(id="Letters-v0").prototype)
    return look_at_content(model, "auto", env, settings, [[("a", "b")]]).digest


def test_files_are_known_by_what_is_in_them_wherever_they_are_named(
    model: str, tmp_path: Path
) -> None:
    file = tmp_path / "index" / "part.jsonl"
    file.parent.mkdir()
    for settings in ({"data": {"train": [str(file)]}}, {"corpus": str(file.parent)}):
        file.write_text("one")
        first = digest(model, settings)
        file.write_text("two")
        assert digest(model, settings) != first
        file.write_text("one")
        assert digest(model, settings) == first


def test_the_scale_of_adapters_is_part_of_the_model(model: str, tmp_path: Path) -> None:
    adapters = Path(shutil.copytree(model, tmp_path / "adapters"))
    found = set()
    for alpha in (8, 16):
        settings = {"base_model_name_or_path": "base", "lora_alpha": alpha}
        (adapters / "adapter_config.json").write_text(json.dumps(settings))
        found.add(digest(str(adapters), {}))
    assert len(found) == 2


@pytest.mark.parametrize(
    "text",
    ["http://localhost:8000", "and/or " * 200, "~nobody-of-this-name/x", "a\0/b", "full", "/"],
)
def test_other_texts_are_no_files(model: str, text: str) -> None:
    assert digest(model, {"setting": text, "number": 3}) == digest(model, {})


def test_the_longest_action_is_counted_with_its_end(model: str) -> None:
    env = text_env(EnvConfig(id="Letters-v0").prototype)
    talks = [[("a", "bc"), ("d", "efghi")]]
    assert look_at_content(model, "auto", env, {}, talks).longest_action == 6
