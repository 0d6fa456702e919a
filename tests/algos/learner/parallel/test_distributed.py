"""Two processes under torchrun: the numbers of one process, and checkpoints for either."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.process_pair import TESTS, launch
from helpers.rank_run import STEPS
from safetensors.torch import load_file

from turngym.algos.runs.metrics import without_times
from turngym.algos.runs.run_dir import read_metrics

NOISE = 2e-5  # of sums in another order, after three steps of Adam
# each process has an engine and a cache of its own
OF_ENGINE = ("engine/prefix_hit_frac", "engine/read_again_frac")


@dataclass(frozen=True)
class Runs:
    """Folders of finished runs by name."""

    root: Path

    def rows(self, name: str) -> list[dict[str, Any]]:
        rows = read_metrics(self.root / name / "metrics.jsonl")
        return [{k: v for k, v in without_times(row).items() if k not in OF_ENGINE} for row in rows]

    def weights(self, name: str, step: int = STEPS) -> dict[str, torch.Tensor]:
        return load_file(self.root / name / "checkpoints" / f"step-{step:06d}/model.safetensors")

    def assert_equal(self, one: str, two: str) -> None:
        for mine, theirs in zip(self.rows(one), self.rows(two), strict=True):
            assert mine == pytest.approx(theirs, abs=NOISE, rel=NOISE)
        a, b = self.weights(one), self.weights(two)
        assert a.keys() == b.keys()
        assert max(float((a[k] - b[k]).abs().max()) for k in a) < NOISE


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
ACCELERATE = (
    "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines=1", "--num_processes=2",
    "--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0",
)  # fmt: skip


@pytest.fixture
def runs(pair: Path) -> Runs:
    return Runs(pair)


@pytest.mark.parametrize("recipe", ["grpo", "ppo"])
def test_two_processes_have_the_numbers_of_one(runs: Runs, recipe: str) -> None:
    runs.assert_equal(f"{recipe}-1", f"{recipe}-2")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [TORCHRUN, ACCELERATE], ids=["torchrun", "accelerate"])
def test_a_launcher_starts_the_same_run(
    runs: Runs, tiny_model: Path, tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    folder = tmp_path / "grpo"
    job = {"recipe": "grpo", "model": str(tiny_model), "steps": STEPS, "folder": str(folder)}
    launch([*launcher, str(TESTS / "helpers" / "rank_run.py"), json.dumps([job])])
    runs.assert_equal("grpo-1", str(folder))
    shards = folder / "checkpoints" / f"step-{STEPS:06d}" / "trainer/shards"
    assert len(list(shards.glob("*.distcp"))) == 2


PARTED = """
import dataclasses, os, sys
from pathlib import Path
from helpers.rank_run import setup
from turngym.algos.credit import GroupCredit
from turngym.algos.training.trainer import train

class Mine(GroupCredit):
    def __call__(self, forest, annotations):
        if os.environ["RANK"] == "1":
            raise ZeroDivisionError("my own rule")
        return super().__call__(forest, annotations)

folder = Path(sys.argv[1])
config = setup("grpo", sys.argv[2], 1)
recipe = dataclasses.replace(config.recipe, credit=Mine())
try:
    train(dataclasses.replace(config, recipe=recipe, evals=()), folder / "run")
except Exception as fault:
    (folder / os.environ["RANK"]).write_text(f"{type(fault).__name__}: {fault}")
"""


def test_a_fault_of_one_process_is_what_the_others_say(tiny_model: Path, tmp_path: Path) -> None:
    """Before, they said that a connection was closed."""
    (tmp_path / "parted.py").write_text(PARTED)
    launch([*TORCHRUN, str(tmp_path / "parted.py"), str(tmp_path), str(tiny_model)])
    said = [(tmp_path / rank).read_text() for rank in "01"]
    assert said[1] == "ZeroDivisionError: my own rule"
    assert said[0].startswith("PeerEndedError: training: process 0 stopped")
    assert "process 1 raised ZeroDivisionError: my own rule" in said[0]


@pytest.mark.parametrize("name", ["ppo-1-2", "ppo-2-1"])
def test_a_run_goes_on_with_another_number_of_processes(runs: Runs, name: str) -> None:
    runs.assert_equal("ppo-1", name)


@pytest.mark.parametrize("name", ["partial-2", "partial-1-2", "partial-2-1"])
def test_groups_that_several_processes_carry_are_those_of_one(runs: Runs, name: str) -> None:
    """Which groups a step trains on is decided by all of them together, over restarts too."""
    runs.assert_equal("partial-1", name)
    rows = runs.rows(name)
    assert sum(row["rollout/groups_carried"] for row in rows) > 0
    assert max(row["rollout/lag_max"] for row in rows) > 0
    where = runs.root / name / "checkpoints" / "step-000002" / "trainer" / "memory.json"
    kept = json.loads(where.read_text())["open_groups"]
    assert {row["place"] % 2 for row in kept} == {0, 1}, "one process carries nothing"


def test_two_processes_resume_what_they_carry_to_the_bit(runs: Runs) -> None:
    assert runs.rows("partial-2-2") == runs.rows("partial-2")
    one, two = runs.weights("partial-2"), runs.weights("partial-2-2")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_two_processes_resume_shards_that_the_model_rounds_to_the_bit(runs: Runs) -> None:
    """Before, every resume went on from bfloat16 weights: small updates were lost each time."""
    one, two = runs.weights("rounded-2"), runs.weights("rounded-2-2")
    assert {w.dtype for w in one.values()} == {torch.bfloat16}
    assert runs.rows("rounded-2-2") == runs.rows("rounded-2")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_first_step_is_played_by_weights_that_are_rounded(runs: Runs) -> None:
    """Before, engines of several processes read the file, and learners began with its rounding."""
    first = runs.rows("rounded-2")[0]
    assert first["update/logprob_diff_mean_nats"] < 1e-5  # .0045


def test_weights_moved(runs: Runs, tiny_model: Path) -> None:
    before, after = load_file(tiny_model / "model.safetensors"), runs.weights("ppo-2")
    assert max(float((before[k] - after[k]).abs().max()) for k in before) > 100 * NOISE


def test_only_the_first_process_writes(runs: Runs) -> None:
    one, two = runs.root / "ppo-1", runs.root / "ppo-2"
    files = [{str(p.relative_to(f)) for p in f.rglob("*.*") if p.is_file()} for f in (one, two)]
    kept = [{n for n in names if "/events." not in n and "/trainer/" not in n} for names in files]
    assert kept[0] == kept[1]
    assert len(runs.rows("ppo-2")) == STEPS + 3  # with three evaluations
    assert len(json.loads((two / "versions.json").read_text())["starts"]) == 1
    assert len(json.loads((runs.root / "ppo-1-2/versions.json").read_text())["starts"]) == 2


def test_each_process_writes_its_shard_of_the_optimiser(runs: Runs) -> None:
    folder = runs.root / "ppo-2" / "checkpoints" / f"step-{STEPS:06d}" / "trainer"
    names = sorted(p.name for p in (folder / "shards").iterdir())
    assert names == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    sizes = [(folder / "shards" / n).stat().st_size for n in names[1:]]
    assert min(sizes) > 0.4 * sum(sizes)
    assert not (folder / "optimizer.pt").exists()
