"""Data parallelism: which rows each process computes, and the sum of gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ....agents.models.lora import copy_modules, has_adapters, has_plain_lora
from ....envs.core.errors import BadValueError
from ...core.protocols import Floats
from ...runs.process_group import Channel, thread_group
from ..batching.micro_batch import Batching, MicroBatch
from ..batching.rows import Row
from ..settings import LearnerSettings

T = TypeVar("T")


class Team:
    """The learners of all processes; with one process it does nothing.

    Args:
        ranks: The processes.
        device: Where models compute once they are cut up; None is where the policy is.
        dtype: Number format that weights are rounded to before they are cut up; None leaves them.
    """

    def __init__(
        self,
        ranks: Channel | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.ranks = ranks or Channel()
        self._device, self._dtype = device, dtype
        self._whole: Any = None
        self._empty: Any = None
        self._buffers: dict[str, Tensor] = {}
        self._half = False
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._written: Future[None] | None = None

    @property
    def alone(self) -> bool:
        """Whether there is one process."""
        return self.ranks.world_size == 1

    def check(self, settings: LearnerSettings) -> None:
        """Refuse settings that several processes do not have.

        Raises:
            BadValueError: The message says which.
        """
        if not self.alone and settings.optimizer == "adamw8bit":
            raise BadValueError(
                f"LearnerSettings.optimizer is 'adamw8bit', which cannot step on weights that "
                f"{self.ranks.world_size} processes share. Use 'adamw': its moments are cut up too."
            )

    def begin(self, policy: Any) -> torch.device:
        """Return where models compute; those that will be cut up wait for it in main memory."""
        device = next(policy.parameters()).device
        if self.alone:
            return device
        policy.to("cpu")
        return self._device or device

    def copied(self, model: Any) -> Any:
        """Return a copy of a model, whose weights are shared where they will be cut up anyway."""
        if self.alone:
            return copy.deepcopy(model)
        made = copy_modules(model, lambda weight: weight.data)
        for weight, own in zip(model.parameters(), made.parameters(), strict=True):
            own.requires_grad_(weight.requires_grad)
        return made

    def shard(
        self,
        policy: Any,
        others: Sequence[nn.Module],
        teacher: nn.Module | None,
        device: torch.device,
        *,
        half: bool,
    ) -> None:
        """Cut the models' weights up between the processes.

        Args:
            policy: The policy.
            others: Critic and reference, where there are any.
            teacher: The teacher, where there is one.
            device: Where the shards go, as :meth:`begin` said.
            half: Whether products are made in bfloat16.
        """
        if self.alone:
            return
        from .sharding import shard  # takes a while to import, and one process needs none of it

        # the form that engines of another thread and checkpoints read; filled by `whole`
        self._empty = copy_modules(policy, self._emptied).to("meta")
        for weight, own in zip(policy.parameters(), self._empty.parameters(), strict=True):
            own.requires_grad_(weight.requires_grad)
        self._buffers = {name: b.clone() for name, b in policy.named_buffers()}
        self._half = half
        for model in (policy, *others):
            shard(model, self.ranks.world_size, device, half, self._dtype)
        if teacher is not None:  # float32, as where it is whole
            shard(teacher, self.ranks.world_size, device, half, torch.float32)

    def _emptied(self, weight: Tensor) -> Tensor:
        """Return a weight's form, without its numbers."""
        dtype = self._dtype if weight.is_floating_point() else None
        return torch.empty_like(weight, dtype=dtype, device="meta")

    def whole(self, policy: Any) -> Any:
        """Return the policy with all of its weights in main memory; every process must ask."""
        if self.alone:
            return policy
        from .sharding import collect

        self.settle()  # what is being written is read from there
        if self._whole is None:
            self._whole = self._in_main_memory()
        collect(policy, self._whole)
        return self._whole

    def _in_main_memory(self) -> Any:
        """Return a model of the policy's form whose weights nobody has written yet."""
        made = self._empty.to_empty(device="cpu").eval()
        for name, saved in self._buffers.items():
            owner, _, last = name.rpartition(".")
            setattr(made.get_submodule(owner), last, saved.to("cpu"))
        made.tie_weights()
        return made

    def for_engine(self, policy: Any, *, in_turn: bool) -> Any:
        """Return the policy as an engine reads it; every process must ask, and read alike.

        Args:
            policy: The policy.
            in_turn: Whether the engine reads it before the next update, in this thread: then it is
                gathered a layer at a time on the card, and no copy goes through main memory.
        """
        if self.alone or not in_turn:
            return self.whole(policy)
        adapted = has_adapters(policy)
        if adapted and not has_plain_lora(policy):
            return self.whole(policy)
        from .sharding import Gathered

        # adapters are added in the format that they learn in
        return Gathered(policy, torch.bfloat16 if self._half and not adapted else None)

    def files_group(self) -> Any:
        """Return the process group of threads that write files; the first time all must ask."""
        return thread_group("files")

    def write(self, work: Callable[[], None]) -> None:
        """Let a thread write; one such work at a time."""
        self.settle()
        self._written = self._writer.submit(work)

    def settle(self) -> None:
        """Wait for what is being written, and raise what went wrong."""
        if self._written is not None:
            written, self._written = self._written, None
            written.result()

    def spread(self, policy: Any) -> None:
        """Take the weights of :meth:`whole` back, each process its part."""
        if self.alone:
            return
        from .sharding import spread

        assert self._whole is not None, "nobody asked for the whole policy"
        spread(self._whole, policy)

    def within(self, model: Any, work: Callable[[], T]) -> T:
        """Run ``work``, which uses the model's layers and returns tensors."""
        if self.alone:
            return work()
        from .sharding import within

        return within(model, work)

    def batches(
        self, batching: Batching, rows: Sequence[Row], chosen: Sequence[int], opening: int = 0
    ) -> Iterator[tuple[list[int], MicroBatch, bool]]:
        """Yield this process's micro batches of the rows ``chosen``, and whether they count.

        All processes get equally many, since each pass needs every process's weights; those that
        do not count fill up. ``opening`` is left out of them, for one process alone.
        """
        if self.alone:
            for micro, batch in batching(rows, chosen, opening):
                yield micro, batch, True
            return
        mine = share_rows(rows, chosen, self.ranks.world_size)[self.ranks.rank]
        own = list(batching(rows, mine)) if mine else []
        most = max(self.ranks.everyone(len(own)))
        for micro, batch in own:
            yield micro, batch, True
        if most > len(own):
            filler = min(chosen, key=lambda i: len(rows[i].ids))
            ((micro, batch),) = batching(rows, [filler])
            for _ in range(most - len(own)):
                yield micro, batch, False

    def complete(self, found: dict[int, Floats]) -> list[Floats]:
        """Gather the arrays of all rows from those that each process computed."""
        if self.alone:
            return [found[i] for i in range(len(found))]
        everyone: dict[int, Floats] = {}
        for share in self.ranks.everyone(found):
            everyone |= share
        return [everyone[i] for i in range(len(everyone))]

    def backward(self, loss: Tensor, counts: bool) -> None:
        """Add this micro batch's gradient to the sum over processes (FSDP2 takes the mean)."""
        scale = 1 if self.alone else self.ranks.world_size * counts
        (loss * scale if scale != 1 else loss).backward()


def clip_norm(params: Sequence[Tensor], most: float) -> float:
    """Clip the gradients by their norm over all processes, and return it."""
    norm: Any = torch.nn.utils.clip_grad_norm_(params, most)
    return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


def share_rows(rows: Sequence[Row], chosen: Sequence[int], world_size: int) -> list[list[int]]:
    """Split the rows ``chosen`` into a share per process.

    Groups stay whole, as their rows share tokens; where there are fewer groups than processes,
    trees do, since a loss may compare the paths of one. The longest go first, each to the process
    with the fewest tokens so far.

    Args:
        rows: All rows.
        chosen: Indices of those to share out.
        world_size: Number of processes.
    """
    whole_groups = len({rows[i].group for i in chosen}) >= world_size
    units: dict[tuple[int, int], list[int]] = {}
    for i in chosen:
        units.setdefault((rows[i].group, 0 if whole_groups else rows[i].tree), []).append(i)
    sizes = {key: sum(len(rows[i].ids) for i in part) for key, part in units.items()}
    shares: list[list[int]] = [[] for _ in range(world_size)]
    tokens = [0] * world_size
    for key in sorted(units, key=lambda key: (-sizes[key], key)):
        target = min(range(world_size), key=lambda rank: (tokens[rank], rank))
        shares[target] += units[key]
        tokens[target] += sizes[key]
    return [sorted(share) for share in shares]
