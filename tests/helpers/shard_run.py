"""What each process of test_sharding.py runs: one model, cut up between two."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from helpers.allocations import held_bytes, peak_bytes
from helpers.branching import branching
from helpers.engine_help import TOKENIZER
from helpers.engine_servers import engine_servers, http_engine
from helpers.nets import small
from helpers.small_models import model
from peft import get_peft_model_state_dict
from safetensors.torch import load_file
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from turngym.agents.engines.base import EngineStats
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.lora import LoraSettings, merged, merged_view, with_lora
from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Credits, Start
from turngym.algos.learner.learner import Learner, LossNotFiniteError
from turngym.algos.learner.offload import ActivationOffload, CopyLane, Offload
from turngym.algos.learner.parallel.sharding import Gathered
from turngym.algos.learner.parallel.team import Team
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.ray.engine import RemoteEngine, RemoteRunner
from turngym.algos.ray.work import PlayedGroup, unpack_weights
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts import Chains
from turngym.algos.runs.process_group import join_ranks, shared_channel
from turngym.algos.training import checkpoint
from turngym.algos.training.engines import RankRunner
from turngym.envs.core.errors import EngineFault


def learner(
    team: Team | None,
    net: Any,
    precision: Any,
    name: str = "grpo",
    *,
    again: bool = False,
    **changes: Any,
) -> Learner:
    recipe = make_recipe(name, changes, small=True)
    optim = dataclasses.replace(recipe.optim, minibatches=1, grad_clip=1e9, lr=1e-2, warmup_steps=0)
    how = LearnerSettings(precision=precision, micro_batch_tokens=80, gradient_checkpointing=again)
    return Learner(net, dataclasses.replace(recipe, optim=optim), pad_id=0, settings=how, team=team)


def gradients(made: Learner) -> list[torch.Tensor]:
    """The gradients of the next update, whole, and the formats that they were kept in."""
    found: list[torch.Tensor] = []

    def keep(*_: Any) -> None:
        for p in made.policy.parameters():
            if p.grad is not None:
                g = p.grad
                found.append(g.full_tensor() if isinstance(g, DTensor) else g.clone())

    made.optimizer.register_step_pre_hook(keep)
    forest = branching(3, groups=4)
    rng = np.random.default_rng(0)
    credits = Credits([rng.normal(size=forest.n_act(p)).astype(np.float32) for p in forest])
    annotations = {"ref_logprobs": [np.full(forest.n_act(p), -5.5, np.float32) for p in forest]}
    made.update(forest, annotations, credits)
    return found


def apart(one: list[torch.Tensor], two: list[torch.Tensor]) -> float:
    a, b = (torch.cat([g.flatten().float() for g in gs]) for gs in (one, two))
    return float((a - b).norm() / b.norm())


class Watched:
    """Counts the layers that are whole at a time."""

    def __init__(self, policy: Any) -> None:
        self.now = self.most = 0
        for layer in policy.model.layers:
            assert isinstance(layer, FSDPModule)
            layer.unshard = self._counted(layer.unshard, 1)
            layer.reshard = self._counted(layer.reshard, -1)

    def _counted(self, work: Any, change: int) -> Any:
        def run(*given: Any) -> Any:
            self.now += change
            self.most = max(self.most, self.now)
            return work(*given)

        return run


def formats(weights: str, lora: bool) -> dict[str, Any]:
    """Gradients of two processes in bfloat16 against those of one in float32 and under autocast."""
    ranks = join_ranks("cpu")
    net = small("qwen2").to(getattr(torch, weights))
    if lora:
        net = with_lora(net, LoraSettings(rank=2), 0)
        for name, p in net.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.1, generator=torch.Generator().manual_seed(1))
    wide = copy.deepcopy(net).float()
    # one process each, for both
    each = gradients(learner(None, wide, "float32" if ranks.first else "bfloat16"))
    exact, alone = ranks.learner.everyone(each)
    made = learner(Team(ranks.learner), net, "bfloat16")
    kinds = {str(p.dtype) for p in made.policy.parameters() if p.requires_grad}
    frozen = {str(p.dtype) for p in made.policy.parameters() if not p.requires_grad}
    mine = gradients(made)
    return {
        "shards": sorted(kinds),
        "frozen": sorted(frozen),
        "gradients": sorted({str(g.dtype) for g in mine}),
        "apart": apart(mine, exact),
        "autocast_apart": apart(alone, exact),
    }


def hand_over(precision: str) -> dict[str, Any]:
    """What an engine gets a layer at a time, against what it gets from a whole copy."""
    ranks = join_ranks("cpu")
    made = learner(Team(ranks.learner), small("qwen2"), precision)
    gradients(made)
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    first = FastDecoder(made.whole_policy(), kind, 64)
    second = FastDecoder(small("qwen2"), kind, 64)
    watched = Watched(made.policy)
    view = made.policy_for_engine(in_turn=True)
    second.load(view)
    names = [(name, tuple(t.shape)) for name, t in view.named_parameters()]
    wanted = [(name, tuple(t.shape)) for name, t in small("qwen2").named_parameters()]
    whole = made.whole_policy().state_dict()
    same = all(
        torch.equal(t.float(), whole[n].to(kind).float()) for n, t in view.state_dict().items()
    )
    ids = torch.arange(4, 20)[None]
    with torch.no_grad():
        moved = float((made.whole_policy()(ids).logits - small("qwen2")(ids).logits).abs().max())
    return {
        "most_layers": watched.most,
        "left_whole": watched.now,
        "names": names == wanted,
        "values": same,
        "moved": moved,
        "equal": all(
            torch.equal(a.to_dense() if a.is_mkldnn else a, b.to_dense() if b.is_mkldnn else b)
            for x, y in zip(first._blocks, second._blocks, strict=True)
            for a, b in ((x.qkv._weight, y.qkv._weight), (x.down._weight, y.down._weight))
        )
        and torch.equal(first._weights.embed.to(kind), second._weights.embed.to(kind)),
        "held_elsewhere": made.policy_for_engine(in_turn=False) is made.whole_policy(),
    }


def adapters(folder: Path) -> dict[str, Any]:
    """What an engine gets of adapters on weights that are cut up."""
    ranks = join_ranks("cpu")
    net = with_lora(small("qwen2").to(torch.bfloat16), LoraSettings(rank=2), 0)
    made = learner(Team(ranks.learner), net, "bfloat16")
    gradients(made)
    gradients(made)
    whole, view = made.whole_policy(), made.policy_for_engine(in_turn=True)
    before = [p.detach().to_local().clone() for p in made.policy.parameters()]
    wanted, found = merged(whole).state_dict(), merged_view(view).state_dict()
    bare = small("qwen2").to(torch.bfloat16).state_dict()
    view.save_pretrained(folder / f"adapter-{ranks.learner.rank}")
    saved = load_file(folder / f"adapter-{ranks.learner.rank}" / "adapter_model.safetensors")
    learned = get_peft_model_state_dict(whole)
    after = [p.detach().to_local() for p in made.policy.parameters()]
    return {
        "view": type(view) is Gathered,
        "names": list(found) == list(wanted),
        "values": all(torch.equal(found[n], wanted[n]) for n in wanted),
        "moved": any(not torch.equal(found[n], bare[n]) for n in wanted),
        "untouched": all(map(torch.equal, before, after)),
        "saved": saved.keys() == learned.keys()
        and all(torch.equal(saved[n], learned[n]) for n in saved),
    }


def take_turns() -> dict[str, Any]:
    """Two updates with shards that rest in between and inputs that leave, against two without."""
    ranks = join_ranks("cpu")
    plain, moved = (
        learner(Team(ranks.learner), small("qwen2"), "float32", again=True) for _ in range(2)
    )
    moved.models.activations = ActivationOffload(CopyLane(torch.device("cpu")))
    before, parameters = plain.needs(), list(plain.policy.parameters())
    own = sum(p.to_local().numel() for p in parameters)
    moved.offload = Offload(moved.optimizer, moved.models.frozen, torch.device("cpu"))
    reference = moved.models.reference
    assert reference is not None
    parts = [p.to_local() for p in reference.model.parameters()]
    held, same_scores = [], []
    forest = branching(3, groups=4)
    for _ in range(2):
        for made in (plain, moved):
            gradients(made)
            made.rest()
        held.append(sum(p.untyped_storage().nbytes() for p in parts))
        same_scores.append(
            all(
                np.array_equal(a, b)
                for a, b in zip(plain.ref_logprobs(forest), moved.ref_logprobs(forest), strict=True)
            )
        )
    moved.rest()
    freed = held_bytes(moved.wake)
    moments = [
        (plain.optimizer.state[p], moved.optimizer.state[q])
        for p, q in zip(plain.policy.parameters(), moved.policy.parameters(), strict=True)
    ]
    local = sum(t.to_local().nbytes for _, s in moments for t in s.values() if t.ndim)
    return {
        "weights": all(
            torch.equal(p.to_local(), q.to_local())
            for p, q in zip(plain.policy.parameters(), moved.policy.parameters(), strict=True)
        ),
        "moments": all(
            torch.equal(one[name].full_tensor(), other[name].full_tensor())
            for one, other in moments
            for name in ("exp_avg", "exp_avg_sq")
        ),
        "scores": same_scores,
        "held": held,
        "frozen": moved.offload.frozen_bytes,
        "brought_back": freed,
        "moved": local + moved.offload.frozen_bytes,
        "whole": sum(p.numel() * 4 for p in small("qwen2").parameters()),
        "counted": before.gradients == 4 * own and before.moments == 8 * own,
        "narrowed": before.narrowed
        == 2 * sum(p.numel() * 4 for p in small("qwen2").model.layers[0].parameters()),
        "activations": before.activations > 0,
        "inputs": moved.models.activations.moved_bytes > 0,
    }


DEEP: dict[str, Any] = {
    "num_hidden_layers": 8,
    "vocab_size": 64,
    "hidden_size": 128,
    "intermediate_size": 256,
}


def from_files(folder: Path) -> dict[str, Any]:
    """Policies that are cut up from mapped files, and what that takes of memory."""
    ranks = join_ranks("cpu")
    out: dict[str, Any] = {}
    for stored, wanted in (("bfloat16", "float32"), ("float32", "bfloat16")):
        path, dtype = folder / stored, getattr(torch, wanted)
        model("Qwen2", **DEEP).to(getattr(torch, stored)).save_pretrained(path)  # by the first
        ranks.learner.everyone("written")
        ordinary = load_model(path, dtype=wanted, device="cpu")
        made: list[Learner] = []

        def build(path: Path = path, dtype: Any = dtype, made: list[Learner] = made) -> None:
            net = load_model(path, dtype="stored", device="cpu")
            made.append(learner(Team(ranks.learner, torch.device("cpu"), dtype), net, "float32"))

        peak = peak_bytes(build)
        whole = dict(made[0].whole_policy().named_parameters())
        reference = made[0].models.reference
        assert reference is not None
        frozen = dict(reference.model.named_parameters())
        wide = dict(ordinary.named_parameters())
        out[f"{stored} as {wanted}"] = {
            "peak": peak,
            "file": (path / "model.safetensors").stat().st_size,
            "whole": sum(p.numel() * 4 for p in wide.values()),
            "layer": sum(p.numel() * 4 for p in ordinary.model.layers[0].parameters()),
            "formats": [str(whole[n].dtype) for n in ("lm_head.weight", "model.norm.weight")],
            "shards": str(next(made[0].policy.parameters()).dtype),
            "frozen": str(next(iter(frozen.values())).dtype),
            "values": all(torch.equal(whole[n], p) for n, p in wide.items()),
            "reference": all(torch.equal(frozen[n].full_tensor(), p) for n, p in wide.items()),
        }
    return out


def taught(folder: Path) -> dict[str, Any]:
    """A teacher that is cut up from a mapped file in half precision, and what that takes."""
    ranks = join_ranks("cpu")
    path = folder / "teacher"
    net = model("Qwen2", **(DEEP | {"vocab_size": 320})).to(torch.bfloat16)
    net.save_pretrained(path)  # by the first
    ranks.learner.everyone("written")
    wide = dict(load_model(path, device="cpu").named_parameters())
    made: list[Learner] = []

    def build() -> None:
        net = load_model(path, dtype="stored", device="cpu")
        team = Team(ranks.learner, torch.device("cpu"), torch.float32)
        teacher = {"teacher_logprobs.model": str(path)}
        made.append(learner(team, net, "float32", "opd", **teacher))

    peak = peak_bytes(build)
    teacher = made[0].models.teacher
    assert teacher is not None
    shards = dict(teacher.model.named_parameters())
    forest = branching(3, groups=2)
    return {
        "peak": peak,
        "file": (path / "model.safetensors").stat().st_size,
        "whole": sum(p.numel() * 4 for p in wide.values()),
        "layer": sum(p.numel() * 4 for p in made[0].policy.model.layers[0].parameters()),
        "reference": made[0].models.reference is not None,
        "format": str(next(iter(shards.values())).dtype),
        "values": all(torch.equal(shards[n].full_tensor(), p) for n, p in wide.items()),
        "scores": all(
            np.allclose(mine, own, atol=1e-5)  # the policy is the same model
            for mine, own in zip(
                made[0].teacher_logprobs(forest), made[0].logprobs(forest), strict=True
            )
        ),
    }


class NoTokenizer:
    def save_pretrained(self, _: Path) -> None:
        """Nothing is saved."""


def written_meanwhile(folder: Path) -> dict[str, Any]:
    """A checkpoint that is complete only after the next update has changed everything."""
    ranks = join_ranks("cpu")
    made = learner(Team(ranks.learner), small("qwen2"), "float32")
    gradients(made)
    before = {n: t.clone() for n, t in made.whole_policy().state_dict().items()}
    moments = [_moment(made, i).clone() for i in (0, 5)]
    updated, finish = threading.Event(), checkpoint._finish

    def late(*given: Any) -> None:
        assert updated.wait(240)
        finish(*given)

    checkpoint._finish = late
    counters = checkpoint.RunCounters(step=1, optimizer_steps=1)
    checkpoint.save_checkpoint(folder, made, NoTokenizer(), counters, 2)
    early = checkpoint.newest_whole(folder) is None
    counters.step = 7  # what is written is what was
    gradients(made)
    moved = not torch.equal(_moment(made, 0), moments[0])
    updated.set()
    checkpoint.settle_checkpoint(made)
    path = checkpoint.newest_whole(folder)
    assert path is not None
    again = learner(Team(ranks.learner), small("qwen2"), "float32")
    found = checkpoint.load_checkpoint(path, again)
    whole = again.whole_policy().state_dict()
    return {
        "early": early,
        "moved": moved,
        "step": found.step,
        "weights": all(torch.equal(t, whole[n]) for n, t in before.items()),
        "moments": all(
            torch.equal(_moment(again, i), m) for i, m in zip((0, 5), moments, strict=True)
        ),
    }


def kept_exact(folder: Path) -> dict[str, Any]:
    """Float32 shards of a policy that is written in bfloat16, over a restart, now and before."""
    ranks, dtype = join_ranks("cpu"), torch.bfloat16
    exact, out = checkpoint._exact_policy, {}
    for version in ("now", "earlier"):
        if version == "earlier":
            checkpoint._exact_policy = lambda *_: {}
        made = learner(Team(ranks.learner, torch.device("cpu"), dtype), small("qwen2"), "float32")
        gradients(made)
        counters = checkpoint.RunCounters(step=1, optimizer_steps=1)
        path = checkpoint.save_checkpoint(folder / version, made, NoTokenizer(), counters, 1)
        checkpoint.settle_checkpoint(made)
        checkpoint._exact_policy = exact
        again = learner(Team(ranks.learner, torch.device("cpu"), dtype), small("qwen2"), "float32")
        lines: list[str] = []
        checkpoint.load_checkpoint(path, again, lines.append)
        both = zip(made.policy.parameters(), again.policy.parameters(), strict=True)
        equal = all(torch.equal(p.to_local(), q.to_local()) for p, q in both)
        out[version] = {"equal": equal, "lines": lines}
    return out


def _moment(made: Learner, at: int) -> torch.Tensor:
    p = made.optimizer.param_groups[0]["params"][at]
    return made.optimizer.state[p]["exp_avg"].full_tensor()


class Pool:
    """Plays every group at once, and fails where it is told to."""

    def __init__(self) -> None:
        self.weights: dict[int, Any] = {}
        self.played: list[str] = []

    def limits(self) -> tuple[int, int]:
        return 64, 320

    def take(self, version: int, weights: Any) -> None:
        self.weights[version] = weights

    async def play(self, works: Any, tick: Any) -> list[PlayedGroup]:
        for work in works:
            if work.start.uid == "broken":
                raise EngineFault("the actors are gone")
            self.played.append(work.start.uid)
            tick()
        return [
            PlayedGroup(Group(w.start.uid, "t"), "", EngineStats(sampled_tokens=1)) for w in works
        ]


def start(uid: str) -> Start:
    return Start("train", 0, 0, uid)


def actors_of_the_first() -> dict[str, Any]:
    """Actors beside a learner of two processes: what each of both processes sees."""
    ranks = join_ranks("cpu")
    pool: Any = Pool() if ranks.first else None
    engine = RemoteEngine(pool, shared_channel())
    made = learner(Team(ranks.learner), small("qwen2"), "float32")
    gradients(made)
    engine.sync(made.policy_for_engine(in_turn=True), 3)
    whole = dict(made.whole_policy().named_parameters())
    sent = True
    if pool is not None:
        given = small("qwen2")
        unpack_weights(pool.weights[3], given)
        sent = all(torch.equal(p, whole[n]) for n, p in given.named_parameters())
    runner = object.__new__(RemoteRunner)
    runner.scene, runner.remote, runner.fault = "", engine, ""
    got = asyncio.run(runner.groups(Chains(n=1), [start("a"), start("b")]))
    try:
        asyncio.run(runner.groups(Chains(n=1), [start("broken")]))
        raised = ""
    except EngineFault as fault:
        raised = str(fault)
    mine = {
        "limits": [engine.max_context, engine.vocabulary],
        "sent": sent,
        "groups": [g.uid for g in got],
        "sampled": engine.stats.sampled_tokens,
        "raised": raised,
    }
    return {"each": ranks.learner.everyone(mine), "played": pool.played if pool else []}


def taken_from_one_list() -> dict[str, Any]:
    """Groups that the first process plays ten times as slowly as the second."""
    ranks = join_ranks("cpu")
    out: dict[str, Any] = {}
    for how in (None, 2):
        mine: list[str] = []

        async def rollout(_: Any, one: Start, mine: list[str] = mine) -> Group:
            await asyncio.sleep(0.2 if ranks.first else 0.02)
            mine.append(one.uid)
            return Group(one.uid, "t")

        runner = object.__new__(RankRunner)
        runner.ranks, runner.fault, runner.side_by_side = ranks.runner, "", how
        runner.max_open = None
        for _ in range(2):  # a second list begins anew
            mine.clear()
            names = [f"g{i}" for i in range(12)]
            groups = asyncio.run(runner.groups(rollout, [start(n) for n in names]))
        row = {"order": [g.uid for g in groups] == names, "mine": list(mine)}
        out[str(how)] = ranks.learner.everyone(row)
    return out


def sent_through_a_group(folder: Path) -> dict[str, Any]:
    """What an engine server gets of weights that are cut up, with adapters and without."""
    ranks = join_ranks("cpu")
    out: dict[str, Any] = {}
    if ranks.first:
        model("Qwen2").save_pretrained(folder / "served")
        TOKENIZER.save_pretrained(folder / "served")
    ranks.learner.everyone("saved")
    with ExitStack() as stack:
        host: Any = None
        url = ""
        if ranks.first:
            url, host = stack.enter_context(engine_servers(folder / "served"))[0]
        urls = [ranks.learner.from_first(url)]
        for lora in (False, True):
            net = model("Qwen2")
            net = with_lora(net, LoraSettings(rank=2), 0) if lora else net
            tokenizer = load_tokenizer(folder / "served")
            engine = http_engine(urls, tokenizer, net, weights_by="group")
            made = learner(Team(ranks.learner), net, "float32")
            gradients(made)
            gradients(made)
            engine.sync(made.policy_for_engine(in_turn=True))
            wanted = FastDecoder(merged(made.whole_policy()), torch.float32, 64)
            row = {"version": engine.version, "file": engine._file is not None}
            if ranks.first:
                row["held"] = host.weights == engine._weights
                row["equal"] = _same_weights(host._engine._forward, wanted)
                old = FastDecoder(model("Qwen2"), torch.float32, 64)
                row["moved"] = not _same_weights(wanted, old)
            out["lora" if lora else "plain"] = row
            ranks.learner.everyone("done")
    return out


def not_finite() -> dict[str, Any]:
    """What each process is told where the loss is not finite in the rows of one."""
    ranks = join_ranks("cpu")
    made = learner(Team(ranks.learner), small("qwen2"), "float32")
    forest = branching(3, groups=4)
    notes = {"ref_logprobs": [np.full(forest.n_act(p), -5.5, np.float32) for p in forest]}
    said = []
    for bad in (np.nan, 1.0):
        credits = Credits([np.ones(forest.n_act(p), np.float32) for p in forest])
        credits.advantages[0][:] = bad
        try:
            made.update(forest, notes, credits)
        except LossNotFiniteError as error:
            said.append(str(error))
    return {"said": ranks.learner.everyone(said), "steps": made.optimizer_steps}


def met() -> bool:
    """Whether nobody begins a run before all do."""
    ranks = join_ranks("cpu")
    if not ranks.first:
        time.sleep(0.5)
    called = time.monotonic()
    join_ranks("cpu")
    times = ranks.learner.everyone((called, time.monotonic()))
    return min(begun for _, begun in times) >= max(called for called, _ in times)


def _same_weights(one: FastDecoder, two: FastDecoder) -> bool:
    def dense(layer: Any) -> torch.Tensor:
        weight = layer._weight
        return weight.to_dense() if weight.is_mkldnn else weight

    names = ("qkv", "out", "gate", "up", "down")
    return (
        torch.equal(one._weights.embed, two._weights.embed)
        and torch.equal(dense(one._weights.head), dense(two._weights.head))
        and all(
            torch.equal(dense(getattr(x, n)), dense(getattr(y, n)))
            for x, y in zip(one._blocks, two._blocks, strict=True)
            for n in names
        )
    )


def work(folder: Path) -> None:
    """Do all of the above as the other process does; the first one writes ``found.json``."""
    torch.set_num_threads(1)
    places = {name: folder / name for name in ("adapters", "files", "served", "checkpoints")}
    for place in places.values():
        place.mkdir(exist_ok=True)
    out = {
        "float32": formats("float32", False),
        "bfloat16": formats("bfloat16", False),
        "lora": formats("bfloat16", True),
        "hand_over": {precision: hand_over(precision) for precision in ("float32", "bfloat16")},
        "adapters": adapters(places["adapters"]),
        "turns": take_turns(),
        "files": from_files(places["files"]),
        "group": sent_through_a_group(places["served"]),
        "taught": taught(places["files"]),
        "actors": actors_of_the_first(),
        "taken": taken_from_one_list(),
        "checkpoint": written_meanwhile(places["checkpoints"]),
        "exact": kept_exact(places["checkpoints"]),
        "met": met(),
        "not_finite": not_finite(),
        "groups": len(torch.distributed.distributed_c10d._world.pg_map),
    }
    if join_ranks("cpu").first:
        (folder / "found.json").write_text(json.dumps(out))
