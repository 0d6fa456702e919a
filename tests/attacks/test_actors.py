"""Rollout actors on Ray that answer wrongly, raise, vanish, or are not ours."""

from __future__ import annotations

import asyncio
import copy
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.attack_cases import cases
from helpers.forests import tree, turn
from helpers.ray_stand_in import FakeActor, FakeRay, Fault, TaskError, works

from turngym.agents.engines.base import EngineStats
from turngym.algos.core.forest import Group
from turngym.algos.ray import RayRollouts
from turngym.algos.ray.pool import MAX_DEATHS, ActorPool
from turngym.algos.ray.work import PlayedGroup, check_answer, pack_weights, unpack_weights
from turngym.envs.core.errors import BadValueError, EngineFault

ARRAYS = "rewards", "logprobs", "entropies", "act_ids"
STORE = 80 * 2**20


def answer() -> PlayedGroup:
    grown = tree(turn(n=3), turn(1.0, n=3, parent=0, status="solved"))
    return PlayedGroup(Group("g0", "t", [grown]), "", EngineStats(sampled_tokens=6))


def changed(place: str, value: Any) -> Any:
    """The answer with one thing in it replaced."""
    if not place:
        return value
    made = copy.deepcopy(answer())
    *path, last = place.split(".")
    at: Any = made
    for name in path:
        at = at[int(name)] if isinstance(at, list) else getattr(at, name)
    if isinstance(at, list):
        at[int(last)] = value
        return made
    if last in ARRAYS and value is not None:
        value = np.array(value, np.int64 if last == "act_ids" else np.float32)
    object.__setattr__(at, last, value)
    return made


def pool_of(play: Any, limits: Any = (64, 10)) -> ActorPool:
    def make() -> Any:
        actor = FakeActor(set(), [])
        actor.play = SimpleNamespace(remote=play)
        actor.limits = SimpleNamespace(remote=lambda: limits)  # type: ignore[attr-defined]
        return actor

    return ActorPool(FakeRay(), make, 1, 2)


def test_the_answer_that_is_changed_is_taken() -> None:
    (work,) = works(1)
    assert check_answer(work, answer()).group.uid == "g0"


@pytest.mark.parametrize("case", cases("actors", "answer"))
def test_an_actor_that_answers_something_else(case: dict[str, Any]) -> None:
    async def play(work: Any) -> Any:
        return changed(case["place"], case["value"])

    with pytest.raises(EngineFault, match="same version of turngym") as caught:
        asyncio.run(pool_of(play).play(works(1), lambda: None))
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("case", cases("actors", "limits"))
def test_an_actor_with_limits_that_are_none(case: dict[str, Any]) -> None:
    given = case["value"]
    limits = tuple(given) if isinstance(given, list) else given
    with pytest.raises(EngineFault, match="expected two numbers"):
        pool_of(None, limits).limits()


def test_answers_that_are_lost_on_the_way_are_played_again() -> None:
    """As when a node dies between the end of a group and its arrival."""
    left = [Fault("the object is lost"), Fault("out of memory")]

    async def play(work: Any) -> Any:
        if left:
            raise left.pop()
        return PlayedGroup(Group(work.start.uid, "t"), "", EngineStats())

    pool = pool_of(play)
    answers = asyncio.run(pool.play(works(3), lambda: None))
    assert [a.group.uid for a in answers] == ["g0", "g1", "g2"]
    assert pool.lost == 2

    async def never(work: Any) -> Any:
        raise Fault("a package is missing here")

    with pytest.raises(EngineFault, match=f"{MAX_DEATHS + 1} rollout.*a package is missing"):
        asyncio.run(pool_of(never).play(works(2), lambda: None))


@pytest.mark.parametrize("own", [True, False])
def test_an_actor_that_refuses_the_weights_ends_the_run_with_its_reason(own: bool) -> None:
    cause = BadValueError("another model") if own else KeyError("head.weight")
    pool = pool_of(None)

    async def refuse(version: int, weights: Any) -> None:
        raise TaskError(cause)

    pool.slots[0].handle.take = SimpleNamespace(remote=refuse)
    with pytest.raises(BadValueError if own else TaskError):
        asyncio.run(pool.play(works(1), lambda: None))


@pytest.mark.parametrize(
    ("sent", "other"),
    [
        (torch.float32, torch.nn.ModuleDict({"b": torch.nn.Linear(2, 2)})),
        (torch.float32, torch.nn.ModuleDict({"a": torch.nn.Linear(3, 2)})),
        (torch.bfloat16, torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2)})),
    ],
    ids=["other names", "another shape", "another format"],
)
def test_weights_of_another_model_change_nothing(sent: torch.dtype, other: Any) -> None:
    packed = pack_weights(torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2, dtype=sent)}))
    before = {name: value.clone() for name, value in other.state_dict().items()}
    with pytest.raises(BadValueError, match="same on every node"):
        unpack_weights(packed, other)
    assert all(torch.equal(before[name], value) for name, value in other.state_dict().items())


@pytest.mark.parametrize(
    ("address", "set_before", "mode"),
    [(None, None, "token"), (None, "disabled", "disabled"), ("auto", None, None)],
)
def test_a_ray_of_ours_asks_for_a_token(
    address: str | None, set_before: str | None, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr("turngym.algos.ray.joining.import_module", lambda name: FakeRay())
    monkeypatch.setenv("RAY_AUTH_MODE", set_before or "")
    if set_before is None:
        monkeypatch.delenv("RAY_AUTH_MODE")
    RayRollouts(1, address=address)
    assert os.environ.get("RAY_AUTH_MODE") == mode
    monkeypatch.setitem(sys.modules, "ray", FakeRay())  # type: ignore[arg-type]
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    RayRollouts(1)  # Ray has read the variable; a change now would lock this process out
    assert "RAY_AUTH_MODE" not in os.environ


# ------------------------------------------------------------------ a real Ray


class Peer:
    """An actor of Ray that does what its orders say, one a group; then it plays."""

    def __init__(self, orders: dict[str, str]) -> None:
        self.orders = orders

    async def limits(self) -> tuple[int, int]:
        return 64, 10

    async def take(self, version: int, weights: Any) -> None:
        return None

    async def play(self, work: Any) -> Any:
        order = self.orders.get(work.start.uid, "")
        if order == "vanish":
            os._exit(1)
        if order == "raise":
            raise Unpicklable
        if order == "null":
            return None
        if order == "lie":
            return PlayedGroup(Group("g9", "t"), "", EngineStats())
        if order == "trap":
            return Trap()
        return PlayedGroup(Group(work.start.uid, "t"), "", EngineStats())


class Unpicklable(Exception):
    """An error that does not travel."""

    def __reduce__(self) -> Any:
        raise TypeError("stays here")


class Trap:
    """An answer that cannot be read where it arrives."""

    def __reduce__(self) -> Any:
        return (int, ("no number",))


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    if find_spec("ray") is None:
        pytest.skip("ray is not installed; make test-adapters has it")
    RayRollouts(1)  # sets what a Ray of ours starts with
    import ray as real

    real.init(num_cpus=2, include_dashboard=False, object_store_memory=STORE, log_to_driver=False)
    real.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no actor finds this file
    yield real
    real.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "fault"),
    [
        ("vanish", "rollout actors in a row died"),
        ("raise", "stays here|Unpicklable|Peer.play"),
        ("null", "with a NoneType"),
        ("lie", "with group 'g9'"),
        ("trap", "no number|rollout actors in a row died"),
    ],
)
def test_real_actors_that_are_wrong(ray: Any, order: str, fault: str) -> None:
    remote = ray.remote(num_cpus=0.1)(Peer)
    pool = ActorPool(ray, lambda: remote.remote({"g1": order}), 1, 2)
    try:
        assert pool.limits() == (64, 10)
        with pytest.raises(Exception, match=fault):
            asyncio.run(pool.play(works(3), lambda: None))
    finally:
        pool.close()


@pytest.mark.slow
def test_strangers_on_ray_s_ports(ray: Any) -> None:
    """Without the token nobody joins, and noise on every port stops nobody."""
    address = ray.get_runtime_context().gcs_address
    join = f"import ray; ray.init(address={address!r}, log_to_driver=False); print('joined')"
    stranger = os.environ | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    refused = subprocess.run(
        [sys.executable, "-c", join], env=stranger, capture_output=True, text=True, timeout=120
    )
    assert "joined" not in refused.stdout
    assert refused.returncode != 0
    host, port = address.rsplit(":", 1)
    for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096, os.urandom(4096), b"PRI * HTTP/2.0"):
        with socket.create_connection((host, int(port)), timeout=10) as link:
            link.sendall(noise)
    remote = ray.remote(num_cpus=0.1)(Peer)
    pool = ActorPool(ray, lambda: remote.remote({}), 1, 2)
    answers = asyncio.run(pool.play(works(4), lambda: None))
    pool.close()
    assert [a.group.uid for a in answers] == ["g0", "g1", "g2", "g3"]
