"""Checkpoints: a model that loads by path, and the state that a run needs to resume.

A checkpoint is written into a hidden folder and renamed when it is complete, so a folder named
``step-…`` is whole unless somebody or a bad disk damaged it afterwards; sizes and hashes of all
files, in the state file, are checked to notice that, and an older checkpoint is taken instead.
Random states are not stored because there are none: every draw is a function of the seed and of
the counters that are.

Several processes write optimiser and critic together, each its own shards; any number of processes,
one included, can load them. The policy is there once, as one model, and as shards too where these
are more exact than the model (float32 where it is bfloat16). They write from copies, in a
thread, while training goes on: :func:`settle_checkpoint` waits for it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import re
import shutil
import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ...envs.core.digest import digest_of
from ...envs.core.errors import DataError
from ...envs.utils.disk_errors import disk_errors
from ..learner.learner import Learner
from ..learner.optimizers import MasterAdamW
from ..rollouts.pipeline import Rollouts, save_pending
from ..rollouts.step_limits import Amount, Played
from ..runs.run_dir import read_json, write_json
from .policy_files import check_architecture, load_policy_weights, save_policy

STATE = "trainer/state.json"
OPTIMIZER = "trainer/optimizer.pt"
CRITIC = "trainer/critic.safetensors"
MEMORY = "trainer/memory.json"
SHARDS = "trainer/shards"
AHEAD = "trainer/ahead"
_REPLACED, _DAMAGED = ".replaced-", "damaged-"
"""Before the name of a checkpoint while a newer one of its step takes it, and of a damaged one."""


@dataclass(kw_only=True, slots=True)
class RunCounters:
    """The counters of a run: with the seed and the weights, all of its state.

    Attributes:
        step: Training steps done.
        optimizer_steps: Optimiser steps done.
        tokens: Tokens sampled for training.
        paths: Paths trained on.
        turns: Environment steps taken for training.
        groups: Groups played in training steps.
        first_tokens: Those of the tokens that were sampled before the first step.
        first_turns: Likewise of the environment steps.
        last: Tokens, environment steps and groups of the newest step.
        seconds: Wall time used, earlier parts of a resumed run included.
        evaluated_step: Last step whose evaluation is in the metrics; -1 before the first.
        metrics_bytes: Size of ``metrics.jsonl`` at the checkpoint.
    """

    step: int = 0
    optimizer_steps: int = 0
    tokens: int = 0
    paths: int = 0
    turns: int = 0
    groups: int = 0
    first_tokens: int = 0
    first_turns: int = 0
    last: tuple[int, int, int] = (0, 0, 0)
    seconds: float = 0.0
    evaluated_step: int = -1
    metrics_bytes: int = 0

    @property
    def played(self) -> Played:
        """What the steps have played."""
        total = Amount(self.tokens - self.first_tokens, self.turns - self.first_turns, self.groups)
        return Played(self.step, total, Amount(*self.last))

    def count(self, played: Played) -> None:
        """Count what the steps have played until now."""
        self.step = played.steps
        self.tokens = self.first_tokens + played.total.tokens
        self.turns = self.first_turns + played.total.turns
        self.groups = played.total.groups
        self.last = (played.last.tokens, played.last.turns, played.last.groups)


@dataclass(frozen=True, kw_only=True)
class Carried:
    """What a run takes along over a restart beside weights, optimiser and counters.

    Attributes:
        memory: What is remembered about tasks; nothing is written when it is empty.
        rollouts: Those that no update has used yet, by step; None where nothing plays ahead.
    """

    memory: Mapping[str, Any] = field(default_factory=dict)
    rollouts: Mapping[int, Rollouts] | None = None


def save_checkpoint(
    folder: Path,
    learner: Learner,
    tokenizer: Any,
    counters: RunCounters,
    keep: int,
    carried: Carried | None = None,
) -> Path:
    """Write ``folder/step-…`` and delete all but the ``keep`` newest.

    Args:
        folder: Of the checkpoints.
        learner: Weights and optimiser.
        tokenizer: Saved beside the model.
        counters: Of the run.
        keep: How many checkpoints stay.
        carried: What else it holds.

    Returns:
        The new checkpoint: ``AutoModelForCausalLM.from_pretrained`` takes it.

    Raises:
        DataError: The disk is full or cannot be written; the checkpoints before it stay.
    """
    try:
        with disk_errors(folder, guess=True):
            return _save(folder, learner, tokenizer, counters, keep, carried or Carried())
    except DataError:
        if learner.models.team.alone:  # the half of a checkpoint would keep the disk full
            shutil.rmtree(folder / f".part-{counters.step:06d}", ignore_errors=True)
        raise


def _save(
    folder: Path,
    learner: Learner,
    tokenizer: Any,
    counters: RunCounters,
    keep: int,
    carried: Carried,
) -> Path:
    final = folder / f"step-{counters.step:06d}"
    part = folder / f".part-{counters.step:06d}"
    team, whole = learner.models.team, learner.whole_policy()
    if team.ranks.rank == 0:
        for leftover in folder.glob(".part-*"):
            shutil.rmtree(leftover)
        (part / "trainer").mkdir(parents=True)
        tokenizer.save_pretrained(part)
        if carried.memory:
            write_json(part / MEMORY, carried.memory, compact=True)
        if carried.rollouts is not None:
            save_pending(part / AHEAD, carried.rollouts)
    if not team.alone:
        team.ranks.everyone("folder made")
        shards = begin_shards(part / SHARDS, learner, whole)
        state = dataclasses.replace(counters)

        def complete() -> None:
            with disk_errors(folder, guess=True):
                shards.result()  # the first process's ends when all have written
                if team.ranks.rank == 0:
                    save_policy(whole, part)
                    _finish(part, final, state, keep)

        team.write(complete)
        return final
    save_policy(whole, part)
    with (part / OPTIMIZER).open("wb") as file:  # by a path, torch does not say why it failed
        torch.save(learner.optimizer.state_dict(), file)
    if learner.critic is not None:
        save_file(learner.critic.state_dict(), part / CRITIC)
    _finish(part, final, counters, keep)
    return final


def settle_checkpoint(learner: Learner) -> None:
    """Wait until the newest checkpoint is complete; every process must call.

    Raises:
        DataError: The disk is full or cannot be written; the checkpoints before it stay.
    """
    team = learner.models.team
    team.settle()
    team.ranks.everyone("checkpoint complete")


def _finish(part: Path, final: Path, counters: RunCounters, keep: int) -> None:
    """Give a complete checkpoint its name, and delete old ones.

    At any moment there is a whole one: what has the name already keeps another until then.
    """
    paths = {str(p.relative_to(part)): p for p in sorted(part.rglob("*")) if p.is_file()}
    progress = dataclasses.asdict(counters)
    state = {
        "progress": progress,
        "files": {name: path.stat().st_size for name, path in paths.items()},
        "digests": {name: _hash(path) for name, path in paths.items()},
        "progress_digest": digest_of(progress),
    }
    write_json(part / STATE, state)
    _sync_to_disk(part)
    if final.exists():
        final.rename(_emptied(final.with_name(_REPLACED + final.name)))
    part.rename(final)
    for old in [*final.parent.glob(f"{_REPLACED}*"), *checkpoints(final.parent)[:-keep]]:
        shutil.rmtree(old, ignore_errors=True)  # the next checkpoint tries again


def _emptied(path: Path) -> Path:
    """Return a path at which nothing lies any more."""
    if path.exists():
        shutil.rmtree(path)
    return path


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=3)


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in ``folder``, oldest first."""
    return sorted((p for p in folder.glob("step-*") if p.is_dir()), key=_order)


def newest_whole(folder: Path, on_damage: Callable[[str], None] = _warn) -> Path | None:
    """Return the latest complete checkpoint; None when there is no checkpoint at all.

    Args:
        folder: Of the checkpoints.
        on_damage: Called with a line about each newer checkpoint that is damaged; by default it is
            a warning.

    Raises:
        DataError: There are checkpoints, and every one is damaged.
    """
    problems = []
    kept = [p for p in folder.glob(f"{_REPLACED}*") if not (folder / _name(p)).exists()]
    for path in sorted([*checkpoints(folder), *kept], key=_order, reverse=True):
        problem = _problem(path)
        if problem is None:
            for line in problems:
                on_damage(f"damaged checkpoint {line}; going on from {path.name}")
            return path
        problems.append(f"{path.name}: {problem}")
    if problems:
        raise DataError(
            f"{folder}: no checkpoint is whole ({'; '.join(problems)}). Restore one, or start a "
            "new run in another folder."
        )
    return None


def _name(path: Path) -> str:
    return path.name.removeprefix(_REPLACED)


def _order(path: Path) -> tuple[float, str]:
    """Return a key by step: names of a million steps and more have another length."""
    number = re.match(r"step-(\d+)", name := _name(path))
    return (int(number[1]) if number else math.inf), name


def set_damaged_aside(folder: Path, newest: Path) -> list[Path]:
    """Rename the checkpoints after ``newest``, which are damaged; return them as they are now.

    Else they would count among those that are kept, and be in the way of whole ones.

    Args:
        folder: Of the checkpoints.
        newest: What :func:`newest_whole` found there.
    """
    later = [path for path in checkpoints(folder) if _order(path) > _order(newest)]
    return [p.rename(_emptied(p.with_name(_DAMAGED + p.name))) for p in later]


def load_memory(path: Path) -> dict[str, Any]:
    """Load the tracker's state from a checkpoint.

    Raises:
        DataError: There is none, or it is damaged.
    """
    return read_json(path / MEMORY)


def load_checkpoint(
    path: Path, learner: Learner, on_loss: Callable[[str], None] = _warn
) -> RunCounters:
    """Put the weights and the optimiser of a checkpoint into ``learner``.

    Args:
        path: The checkpoint.
        learner: Of the same model and optimiser.
        on_loss: Called with a line where weights are there less exact than they were; by default
            it is a warning.

    Raises:
        DataError: A file cannot be read, or belongs to another model.
    """
    check_architecture(path, learner.policy)
    counters = RunCounters(**read_json(path / STATE)["progress"])
    try:
        whole = learner.whole_policy()
        load_policy_weights(path, whole)
        learner.spread_policy()
        if (path / SHARDS).is_dir():
            rounded = load_shards(path / SHARDS, learner, whole)
            if rounded is not None and counters.optimizer_steps:
                on_loss(
                    f"{path}: an earlier version wrote this checkpoint, with weights in {rounded} "
                    "alone: what training changed below that precision is gone, and the run "
                    "differs from one without the restart. Checkpoints from now on are exact."
                )
        else:
            _load_states(path, learner)
    except (OSError, RuntimeError, ValueError, EOFError, SafetensorError) as error:
        raise DataError(f"{path}: the checkpoint cannot be loaded ({error}).") from error
    learner.optimizer_steps = counters.optimizer_steps
    return counters


def _load_states(path: Path, learner: Learner) -> None:
    """Load critic and optimiser as one process saved them."""
    state = torch.load(path / OPTIMIZER, map_location="cpu", weights_only=True)
    if learner.models.team.alone:
        if learner.critic is not None:
            learner.critic.load_state_dict(load_file(path / CRITIC))
        learner.optimizer.load_state_dict(state)
        return
    if learner.critic is not None:
        load_whole_critic(load_file(path / CRITIC), learner.critic)
    load_whole_state(state, learner)


def _problem(path: Path) -> str | None:
    """Return what is wrong with a checkpoint, None if it is complete."""
    try:
        state = read_json(path / STATE)
        files, digests = state["files"], state.get("digests", {})  # older states have none
        progress = state["progress"]
    except (DataError, KeyError) as error:
        return str(error)
    if digest_of(progress) != state.get("progress_digest", digest_of(progress)):
        return f"{STATE} is not as it was written"
    for name, size in files.items():
        file = path / name
        if not file.exists():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size} bytes instead of {size}"
        if name in digests and _hash(file) != digests[name]:
            return f"{name} is not as it was written: its hash differs"
    return None


def _sync_to_disk(folder: Path) -> None:
    """Make the files durable before the rename makes them visible."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def begin_shards(folder: Path, learner: Learner, whole: Any) -> Future[Any]:
    """Begin to write optimiser, critic and exact weights as they are now; every process must call.

    Args:
        folder: For them alone.
        learner: Of this process.
        whole: The policy as the checkpoint has it as a model.

    Returns:
        What ends when this process, and for the first one all of them, have written.
    """
    # they take a while to import, and most runs have one process
    from torch.distributed.checkpoint.filesystem import FileSystemWriter
    from torch.distributed.checkpoint.state_dict_saver import async_save

    state = {**_optimizer(learner), **_critic(learner), **_exact_policy(learner, whole)}
    # torch copies from a card by itself, and writes what is in main memory from where it is
    copies = {k: v.detach().clone() if v.device.type == "cpu" else v for k, v in state.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = async_save(
            copies,
            storage_writer=FileSystemWriter(folder),
            process_group=learner.models.team.files_group(),
        )
    assert isinstance(begun, Future)
    return begun


def load_shards(folder: Path, learner: Learner, whole: Any) -> torch.dtype | None:
    """Load what :func:`begin_shards` wrote, with as many processes as there are here.

    Returns:
        The number format that weights were rounded to; None where they are exact.
    """
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import load

    reader = FileSystemReader(folder)
    saved = reader.read_metadata().state_dict_metadata
    _check_form({key.rsplit(".", 1)[1] for key in saved if key.startswith("optimizer.")}, learner)
    exact = _exact_policy(learner, whole)
    there = {key: value for key, value in exact.items() if key in saved}
    wanted: dict[str, Tensor] = {**_critic(learner), **there}
    states: list[tuple[Tensor, str, str]] = []
    for i, p in enumerate(_params(learner)):
        for key in sorted(k for k in saved if k.startswith(f"optimizer.{i}.")):
            name = key.rsplit(".", 1)[1]
            stored = saved[key]
            assert isinstance(stored, TensorStorageMetadata)  # optimisers keep tensors alone
            size, kind = stored.size, stored.properties.dtype
            if tuple(size) == tuple(p.shape):
                wanted[key] = torch.zeros_like(p, dtype=kind)
            else:
                where = "cpu" if name == "count" else p.device
                wanted[key] = torch.zeros(size, dtype=kind, device=where)
            states.append((p, name, key))
    team = learner.models.team
    with warnings.catch_warnings():
        if team.alone:  # torch asks whether that is meant
            warnings.filterwarnings("ignore", "torch.distributed is disabled")
        load(wanted, storage_reader=reader, process_group=team.ranks.group, no_dist=team.alone)
    learner.optimizer.state.clear()
    for p, name, key in states:
        learner.optimizer.state[p][name] = wanted[key].detach()
    return next(whole.parameters()).dtype if len(there) < len(exact) else None


def load_whole_state(state: dict[str, Any], learner: Learner) -> None:
    """Load the state of an optimiser that one process wrote, each process its part."""
    from ..learner.parallel.sharding import part_like

    _check_form({name for one in state["state"].values() for name in one}, learner)
    learner.optimizer.state.clear()
    for i, p in enumerate(_params(learner)):
        for name, value in state["state"].get(i, {}).items():
            cut = isinstance(value, Tensor) and value.shape == p.shape
            learner.optimizer.state[p][name] = part_like(value, p) if cut else value


def _check_form(names: Collection[str], learner: Learner) -> None:
    """Refuse the state of an optimiser of another form.

    Raises:
        ValueError: One of both keeps a float32 copy of half-precision weights.
    """
    kept, keeps = "master" in names, isinstance(learner.optimizer, MasterAdamW)
    if names and kept != keeps:
        raise ValueError(
            "one process keeps bfloat16 weights and a float32 copy, several keep float32 shards: "
            "resume with weights='bfloat16' needs one process where one began, several where "
            "several did"
        )


@torch.no_grad()
def load_whole_critic(state: dict[str, Tensor], critic: nn.Module) -> None:
    """Load a critic that one process wrote, each process its part."""
    from ..learner.parallel.sharding import part_like

    for name, p in critic.named_parameters():
        p.copy_(part_like(state[name], p))


def _optimizer(learner: Learner) -> dict[str, Any]:
    return {
        f"optimizer.{i}.{name}": value
        for i, p in enumerate(_params(learner))
        for name, value in learner.optimizer.state.get(p, {}).items()
    }


def _critic(learner: Learner) -> dict[str, Tensor]:
    if learner.critic is None:
        return {}
    return {f"critic.{name}": p.detach() for name, p in learner.critic.named_parameters()}


def _exact_policy(learner: Learner, whole: Any) -> dict[str, Tensor]:
    """Return the weights that learn in another number format than the model is written in."""
    written = {name: p.dtype for name, p in whole.named_parameters()}
    return {
        f"policy.{name}": p.detach()
        for name, p in learner.policy.named_parameters()
        if p.requires_grad and p.dtype != written[name]
    }


def _params(learner: Learner) -> list[Tensor]:
    return [p for group in learner.optimizer.param_groups for p in group["params"]]
