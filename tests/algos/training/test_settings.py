"""Settings of a run that Python gives: a value that nothing knows is refused, as on a command line.

Each of these was taken, and something else was done: precision "bf16" trained in float32.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.training_runs import config

from turngym.agents.engines.http.settings import HttpSettings
from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.agents.models.lora import LoraSettings
from turngym.agents.models.random_init import BlankSettings
from turngym.algos.core.annotators import OldLogprobs
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.training.config import Budget, EnvConfig, EvalConfig
from turngym.algos.training.settings import TrainSettings, WarmStartSettings
from turngym.envs.core.errors import BadValueError

WRONG: list[tuple[type, dict[str, Any], str]] = [
    (LearnerSettings, {"precision": "bf16"}, "'auto' or 'float32' or 'bfloat16'"),
    (LearnerSettings, {"critic": "seperate"}, "'own' or 'shared'"),
    (LearnerSettings, {"optimizer": "adam8bit"}, "'adamw' or 'adamw8bit'"),
    (LearnerSettings, {"micro_batch_tokens": 512.5}, "an integer"),
    (TrainSettings, {"records": "al"}, "'all' or 'metrics'"),
    (TrainSettings, {"weights": "float16"}, "'float32' or 'bfloat16'"),
    (TrainSettings, {"attention": "flash"}, "'auto' or 'flash_attention_2'"),
    (TrainSettings, {"render": "xx"}, "'auto' or 'plain' or 'chat' or 'inline'"),
    (TrainSettings, {"engine_dtype": "float64"}, "'auto' or 'float32' or 'bfloat16' or 'float16'"),
    (TrainSettings, {"max_lag": 1.5}, "an integer, or None"),
    (TrainSettings, {"keep_rollouts": 1.5}, "an integer"),
    (TrainSettings, {"seed": True}, "an integer"),
    (WarmStartSettings, {"episodes": 8, "render": "xx"}, "'auto' or 'plain'"),
    (WarmStartSettings, {"episodes": 8.5}, "an integer"),
    (HttpSettings, {"weights_by": "file"}, "'auto' or 'group' or 'files'"),
    (VllmSettings, {"lora_rank": 8.0}, "an integer"),
    (LoraSettings, {"rank": 8.0}, "an integer"),
    (BlankSettings, {"vocabulary": "byte"}, "'auto' or 'words' or 'bytes'"),
    (OldLogprobs, {"source": "sampeld"}, "'learner' or 'sampled'"),
    (Budget, {"steps": 1.5}, "an integer, or None"),
    (Budget, {"tokens": "4"}, "an integer, or None"),
    (EvalConfig, {"env": EnvConfig(id="Letters-v0"), "n": 2.5}, "an integer"),
]


@pytest.mark.parametrize(("kind", "given", "known"), WRONG)
def test_a_value_that_is_none_of_its_choices_is_refused(
    kind: type, given: dict[str, Any], known: str
) -> None:
    *_, (name, value) = given.items()
    with pytest.raises(BadValueError) as caught:
        kind(**given)
    assert f"{kind.__name__}.{name} is {value!r}; expected {known}" in str(caught.value)


def test_a_run_s_configuration_checks_what_it_inherits(tiny_model: Path) -> None:
    with pytest.raises(BadValueError, match=r"TrainConfig\.max_lag is 1\.5; expected an integer"):
        config(tiny_model, max_lag=1.5)
    with pytest.raises(BadValueError, match=r"TrainConfig\.records is 'some'"):
        config(tiny_model, records="some")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lora": 4}, r"lora is 4; expected LoraSettings\(\.\.\.\), or None"),
        ({"learner": {"liger": True}}, r"learner is \{'liger': True\}; expected LearnerSettings"),
        ({"vllm": True}, "vllm is True; expected VllmSettings"),
        ({"env": "Letters-v0"}, "env is 'Letters-v0'; expected EnvConfig"),
        ({"recipe": "grpo"}, "recipe is 'grpo'; expected Recipe"),
        ({"evals": EvalConfig(env=EnvConfig(id="A-v0"))}, r"expected a tuple of EvalConfig\("),
        ({"evals": ["dev"]}, r"evals is \['dev'\]; expected a tuple of EvalConfig"),
    ],
)
def test_a_part_of_a_configuration_that_is_something_else_is_refused(
    tiny_model: Path, given: dict[str, Any], expected: str
) -> None:
    with pytest.raises(BadValueError, match=expected):
        config(tiny_model, **given)
    with pytest.raises(BadValueError, match=r"EvalConfig\.env is 'A-v0'; expected EnvConfig"):
        EvalConfig(env="A-v0")  # type: ignore[arg-type]


def test_a_critic_s_kind_is_refused_without_a_critic(tiny_model: Path) -> None:
    shared = LearnerSettings(critic="shared")
    assert config(tiny_model, recipe=make_recipe("ppo"), learner=shared).learner == shared
    with pytest.raises(BadValueError, match=r"learner\.critic is 'shared', but there is no critic"):
        config(tiny_model, recipe=make_recipe("grpo"), learner=shared)


def test_a_run_s_file_holds_numpy_s_numbers_and_says_what_it_cannot_hold(tiny_model: Path) -> None:
    """Both ended in "Object of type … is not JSON serializable", which names no setting."""
    settings = {"words": np.array([1, 2]), "share": np.float32(0.5)}
    given = config(tiny_model, env=EnvConfig(id="Letters-v0", settings=settings))
    found = json.loads(json.dumps(given.resolved("digest")))
    assert found["env"]["settings"] == {"words": [1, 2], "share": 0.5}
    wrong = config(tiny_model, env=EnvConfig(id="Letters-v0", settings={"data": [{"a"}]}))
    with pytest.raises(
        BadValueError, match=r"training\.env\.settings\.data\[0\] .* a set; expected"
    ):
        wrong.resolved("digest")
