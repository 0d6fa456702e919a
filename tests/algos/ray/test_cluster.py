"""Rollouts on Ray: nodes that die, actors that die, equal runs, the queue, and refusals."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from helpers.ray_stand_in import FakeActor, FakeRay, TaskError, works

from turngym.algos.ray import RayRollouts
from turngym.algos.ray.engine import RemoteEngine
from turngym.algos.ray.pool import MAX_DEATHS, ActorPool
from turngym.algos.ray.work import PlayedGroup, Work, pack_weights, unpack_weights
from turngym.envs.core.errors import BadValueError, EngineFault, EpisodeError, MissingExtraError


def pool_of(dies_at: set[str], actors: int = 2) -> tuple[ActorPool, FakeRay, list[str]]:
    ray, log = FakeRay(), []
    return ActorPool(ray, lambda: FakeActor(dies_at, log), actors, 2), ray, log


def play(pool: ActorPool, n: int, version: int = 0) -> list[str]:
    return [a.group.uid for a in asyncio.run(pool.play(works(n, version), lambda: None))]


def test_answers_come_in_the_order_of_the_work() -> None:
    pool, _, log = pool_of(set())
    ticks: list[int] = []
    answers = asyncio.run(pool.play(works(7), lambda: ticks.append(1)))
    assert [a.group.uid for a in answers] == [f"g{i}" for i in range(7)]
    assert sorted(log) == sorted(a.group.uid for a in answers)
    assert len(ticks) == 7


@pytest.mark.parametrize("dies_at", [{"g0"}, {"g3"}, {"g0", "g1"}, {"g6"}])
def test_the_work_of_a_dead_actor_is_done_once_by_another(dies_at: set[str]) -> None:
    pool, ray, log = pool_of(set(dies_at))
    assert play(pool, 7) == [f"g{i}" for i in range(7)]
    assert sorted(log) == [f"g{i}" for i in range(7)]
    assert 1 <= len(ray.killed) <= len(dies_at)
    assert pool.lost >= len(dies_at)
    assert all(slot.handle.alive for slot in pool.slots)


def test_a_new_actor_gets_the_newest_weights_before_its_first_group() -> None:
    pool, _, _ = pool_of({"g0"})
    pool.take(5, {})
    assert play(pool, 4, version=5) == [f"g{i}" for i in range(4)]
    assert {slot.handle.version for slot in pool.slots} == {5}


def test_the_pool_serves_one_event_loop_after_another() -> None:
    pool, _, _ = pool_of({"g1"})
    for version in range(3):
        pool.take(version, {})
        assert play(pool, 3, version) == ["g0", "g1", "g2"]


def test_actors_that_keep_dying_are_an_error() -> None:
    class Everything(set[str]):
        def __contains__(self, uid: object) -> bool:
            return True

    pool, _, _ = pool_of(Everything(), actors=1)
    with pytest.raises(EngineFault, match=f"{MAX_DEATHS + 1} rollout actors in a row died"):
        play(pool, 2)


@pytest.mark.parametrize("own", [True, False])
def test_what_an_actor_raises_comes_up(own: bool) -> None:
    pool, _, _ = pool_of(set())
    cause = BadValueError("the context is too long") if own else ZeroDivisionError("x")

    async def broken(work: Work) -> PlayedGroup:
        raise TaskError(cause)

    pool.slots[1].handle.play = SimpleNamespace(remote=broken)
    with pytest.raises(BadValueError if own else TaskError, match=str(cause)):
        play(pool, 4)


def test_a_cluster_that_starts_no_actor_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngym.algos.ray.pool.START_S", 0.01)
    never = SimpleNamespace(remote=lambda *given: asyncio.Event().wait())
    pool = ActorPool(FakeRay(), lambda: SimpleNamespace(take=never, play=never), 2, 2)
    with pytest.raises(EngineFault, match="no rollout actor is alive"):
        play(pool, 2)


def test_one_actor_that_never_starts_holds_up_nobody() -> None:
    log: list[str] = []
    never = SimpleNamespace(remote=lambda *given: asyncio.Event().wait())
    made = iter([SimpleNamespace(take=never, play=never), FakeActor(set(), log)])
    assert play(ActorPool(FakeRay(), lambda: next(made), 2, 2), 5) == [f"g{i}" for i in range(5)]


def test_weights_travel_bit_for_bit_and_only_those_that_learn() -> None:
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 2), "b": torch.nn.Linear(2, 2)})
    model["a"].to(torch.bfloat16)
    model["b"].requires_grad_(False)
    other = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 2), "b": torch.nn.Linear(2, 2)})
    other["a"].to(torch.bfloat16)
    kept = other["b"].weight.clone()
    packed = pack_weights(model)
    assert sorted(packed) == ["a.bias", "a.weight"]
    unpack_weights(packed, other)
    assert torch.equal(other["a"].weight, model["a"].weight)
    assert torch.equal(other["b"].weight, kept)


def test_float32_weights_reach_an_actor_that_holds_bfloat16() -> None:
    wide, narrow = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2).to(torch.bfloat16)
    unpack_weights(pack_weights(wide), narrow)
    assert torch.equal(narrow.weight, wide.weight.to(torch.bfloat16))


def test_the_learner_side_samples_nothing_itself() -> None:
    pool: Any = SimpleNamespace(limits=lambda: (64, 10))
    with pytest.raises(EpisodeError, match="inside the rollout actors"):
        asyncio.run(RemoteEngine(pool).generate(None))  # type: ignore[arg-type]


def test_a_process_that_has_no_actors_reads_the_weights_and_keeps_none() -> None:
    read: list[str] = []
    layer = torch.nn.Linear(2, 2)

    class View:
        def named_parameters(self) -> Any:
            for name, p in layer.named_parameters():
                read.append(name)
                yield name, p

    assert pack_weights(View(), keep=False) == {}
    assert read == ["weight", "bias"]


@pytest.mark.parametrize("wrong", [{"actors": 0}, {"cpus": -1.0}, {"gpus": -0.5}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match="expected at least one actor"):
        RayRollouts(**{"actors": 2, **wrong})


def test_ray_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"turngym\[ray\]"):
        RayRollouts(2)


def test_shares_of_processors_start_a_ray_of_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    started: dict[str, Any] = {}
    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **given: started.update(given),
        cluster_resources=dict,
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    RayRollouts(3, cpus=0.5)._connect(0)
    assert started["num_cpus"] == 2
    assert isinstance(started["num_cpus"], int)


@pytest.mark.parametrize(
    ("address", "words"), [(None, "could not be started here"), ("10.0.0.1:1", "cannot join '10")]
)
def test_a_ray_that_is_not_there_is_named(
    address: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**given: Any) -> None:
        raise ConnectionError("nobody answers\nat length")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(EngineFault, match=f"Ray {words}.*: nobody answers$"):
        RayRollouts(1, address=address)._connect(0)


@pytest.mark.parametrize("gpus", [0.0, 0.5, 1.0])
def test_gpus_that_the_machine_lacks_are_not_waited_for(
    gpus: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **given: None,
        cluster_resources=lambda: {"GPU": 1.0},
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    RayRollouts(2, address="auto", gpus=gpus)._connect(0)
    if gpus < 1:
        RayRollouts(2, gpus=gpus)._connect(0)
        return
    with pytest.raises(EngineFault, match="2 rollout actors want 2 GPUs, and this machine has 1"):
        RayRollouts(2, gpus=gpus)._connect(0)
