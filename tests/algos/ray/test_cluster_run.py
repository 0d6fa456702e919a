"""A whole run on a local Ray cluster whose node is killed in mid-step, against an ordinary run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.rank_run import setup
from safetensors.torch import load_file

from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Start
from turngym.algos.ray import RayRollouts
from turngym.algos.ray.work import PlayedGroup, Work
from turngym.algos.rollouts import Chains
from turngym.algos.runs.metrics import without_times
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.trainer import Trainer, train

ray: Any = pytest.importorskip("ray", reason="Ray is not installed: pip install 'turngym[ray]'")

STEPS = 3
STORE = 100 * 2**20
STUCK_S = 600.0
# each actor has a cache of its own
OF_ENGINE = ("engine/prefix_hit_frac", "engine/read_again_frac")


def prepare(folder: str, doomed: str) -> None:
    """In an actor: the toy world, one thread; on the doomed node step 2 is never played to an end.

    So that it is still playing when it is killed, however fast the groups are.
    """
    sys.path.insert(0, folder)
    from helpers import letters_world

    torch.set_num_threads(1)
    assert letters_world.Letters
    if ray.get_runtime_context().get_node_id() != doomed:
        return
    play = Chains.__call__

    async def stuck(self: Chains, runner: Any, start: Start) -> Group:
        if runner.engine.version == 1:
            await asyncio.sleep(STUCK_S)
        return await play(self, runner, start)

    Chains.__call__ = stuck


class Nodes:
    """A head without processors, so that only the other nodes play."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add() for _ in range(2)]
        ray.init(address=self.cluster.address, log_to_driver=False)
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no actor finds this file

    def add(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=STORE)

    @property
    def doomed(self) -> str:
        """The id of the node that will be killed."""
        return self.nodes[-1].node_id

    def kill_one(self) -> None:
        """Like a power cut; another node joins."""
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)
        self.nodes.append(self.add())


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    ray.shutdown()
    made.cluster.shutdown()


def disturb(make: RayRollouts, trainer: Trainer, do: Callable[[], None]) -> list[int]:
    """Have ``do`` done after the first group of step 2; a list of how many answers came by step."""
    pool, counts = make.pool, []
    assert pool is not None
    inner = pool.play

    async def play(works: Sequence[Work], tick: Callable[[], None]) -> list[PlayedGroup]:
        came = 0

        def counted() -> None:
            nonlocal came
            came += 1
            tick()
            if trainer.counters.step == 1 and came == 1 and not works[0].scene:
                do()

        answers = await inner(works, counted)
        counts.append(came)
        assert came == len(works)
        return answers

    pool.play = play  # type: ignore[method-assign]
    return counts


@pytest.mark.slow
def test_a_node_killed_in_mid_step_changes_nothing(
    nodes: Nodes, tiny_model: Path, tmp_path: Path
) -> None:
    config = setup("grpo", str(tiny_model), STEPS)
    train(config, tmp_path / "here")
    register = partial(prepare, str(Path(__file__).parents[2]), nodes.doomed)
    with (
        RayRollouts(2, prepare=register) as make,
        Trainer(config, tmp_path / "there", engine=make) as trainer,
    ):
        counts = disturb(make, trainer, nodes.kill_one)
        assert make.pool is not None
        ray.get([slot.handle.limits.remote() for slot in make.pool.slots])  # all have started
        trainer.run()
        assert make.pool.lost >= 1
    assert len(counts) == STEPS + 3  # and three evaluations
    rows = [
        [
            {k: v for k, v in without_times(row).items() if k not in OF_ENGINE}
            for row in read_metrics(tmp_path / name / "metrics.jsonl")
        ]
        for name in ("here", "there")
    ]
    for mine, theirs in zip(*rows, strict=True):
        assert mine == pytest.approx(theirs, abs=2e-5, rel=2e-5)
    path = f"checkpoints/step-{STEPS:06d}/model.safetensors"
    here, there = (load_file(tmp_path / name / path) for name in ("here", "there"))
    assert max(float((here[k] - there[k]).abs().max()) for k in here) < 2e-5
