"""Which files an environment's settings name, and what tells them apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from helpers.chat_templates import HERMES, LLAMA32, TOOL
from helpers.small_models import byte_level

from turngym.agents.scripted import text_env
from turngym.agents.warm_start.thoughts import with_thought
from turngym.algos.training.config import EnvConfig
from turngym.algos.training.supervised.imitated_content import look_at_content
from turngym.envs.tools.action_parsing import write_call

CALL = write_call("look", {"thing": "a lamp"})


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


@pytest.mark.parametrize(
    ("template", "taught", "ended"),
    [
        (HERMES, with_thought(CALL, [TOOL]), 0),
        (LLAMA32, '{"name": "look", "parameters": {"thing": "a lamp"}}', 1),
    ],
)
def test_the_longest_call_is_counted_as_the_model_writes_it(
    tmp_path: Path, template: str, taught: str, ended: int
) -> None:
    """For models of Llama's kind a thought was counted that their calls have no room for."""
    tokenizer = byte_level(template)
    tokenizer.save_pretrained(tmp_path)
    env = cast("Any", SimpleNamespace(tools=[TOOL], stop=["</tool_call>"], instructions="Look."))
    found = look_at_content(str(tmp_path), "auto", env, {}, [[("a", CALL)]])
    assert found.longest_action == len(tokenizer.encode(taught)) + ended
