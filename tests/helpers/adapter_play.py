"""Playing worlds by their experts, directly and through an adapter."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from turngym.envs import all_ids, find_environment
from turngym.envs.adapters.conversation import make_text_env, task_rows
from turngym.envs.core.errors import EnvFault
from turngym.envs.core.tasks import SPLITS

SESSIONS = ("PaperCrawler-v0", "Spawn-v0")
TALKING = [
    name for name in all_ids(hidden=True) if name not in SESSIONS and find_environment(name).builtin
]
_FEW = ("Game24-v0", "Retail-v0", "ScienceWorld-v0", "SearchQA-v0", "WebShop-v0")


def worlds_for(package: str) -> list[str]:
    """Every world where the real package is installed; one of each kind for the stub alone."""
    installed = importlib.util.find_spec(package) is not None
    return [name for name in TALKING if installed or name in _FEW]


MICRO = {"size": "micro"}
SEARCH = {"size": "micro", "hops": 1}


class Played(NamedTuple):
    row: dict[str, Any]
    prompt: str
    actions: list[str]
    observations: list[str]
    total: float
    terms: dict[str, float]
    status: str
    metrics: dict[str, float]


def a_row(env_id: str, index: int = 1, settings: Mapping[str, Any] = MICRO) -> dict[str, Any]:
    split = SPLITS[1]
    return list(task_rows(env_id, index + 1, split=split, seed=5, settings=settings))[index]


@lru_cache(maxsize=64)
def played(env_id: str) -> Played:
    """An episode of the expert, by gymnasium's own interface."""
    row = a_row(env_id)
    world = make_text_env(env_id, MICRO, where="test")
    options = {"split": row["split"], "task": row["task"]}
    observation, info = world.reset(seed=row["seed"], options=options)
    prompt, expert, over = world.instructions + observation, world.expert(), False
    actions, observations, terms, total = [], [], {}, 0.0
    while not over:
        actions.append(expert(world, observation, info))
        observation, reward, terminated, truncated, info = world.step(actions[-1])
        observations.append(observation)
        total += reward
        for name, value in info["reward_terms"].items():
            terms[name] = terms.get(name, 0.0) + value
        over = terminated or truncated
    return Played(row, prompt, actions, observations, total, terms, info["status"], info["metrics"])


_BLOCK = re.compile(r"<([a-z_]+)>(.*?)</\1>", re.DOTALL)


def as_call(action: str, tools: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The tool call that an expert's action is."""
    for tag, inside in _BLOCK.findall(action):
        if tag == "tool_call":
            call = json.loads(inside)
            return call["name"], call["arguments"]
        if tag in tools:
            (argument,) = tools[tag].parameters["properties"]
            return tag, {argument: inside.strip()}
    name = "say" if "say" in tools else "act"
    (argument,) = tools[name].parameters["properties"]
    return name, {argument: action}


def broken_world(conversation: Any) -> None:
    """Let the next search find its server down."""

    def down(action: str) -> Any:
        raise EnvFault("the retrieval server is down")

    conversation.env.play = lambda episode, action: down(action)


def loaded(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    adapter: str,
    package: str,
    stub: Callable[[], dict[str, ModuleType]] | None,
) -> ModuleType:
    """An adapter's module over the real package, or over a stub of its interface.

    Parametrise the fixture that calls it with "real" and "stub".
    """
    name = f"turngym.envs.adapters.{adapter}"
    if request.param == "real":
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; `make test-adapters` tests against it")
        return import_module(name)
    assert stub is not None
    for module, made in stub().items():
        monkeypatch.setitem(sys.modules, module, made)
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = import_module(name)
    request.addfinalizer(lambda: sys.modules.pop(name, None))
    return module


def modules(**contents: Mapping[str, Any]) -> dict[str, ModuleType]:
    """Stub modules: ``a__b={"Name": value}`` is module ``a.b``, with its parents."""
    made: dict[str, ModuleType] = {}
    for dotted, names in contents.items():
        parts = dotted.split("__")
        for end in range(1, len(parts) + 1):
            path = ".".join(parts[:end])
            made.setdefault(path, ModuleType(path))
        vars(made[".".join(parts)]).update(names)
    return made


def without(package: str, adapter: str) -> Iterator[None]:
    """Make an adapter's package unimportable while the generator is open."""
    name = f"turngym.envs.adapters.{adapter}"
    hidden = {k: v for k, v in sys.modules.items() if k == name or k.split(".")[0] == package}
    for key in hidden:
        del sys.modules[key]
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]
        sys.modules.pop(name, None)
        sys.modules.update(hidden)
