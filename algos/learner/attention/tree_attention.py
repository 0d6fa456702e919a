"""Attention over a pack of distinct tokens: each attends to its own path only.

One relation (:class:`~turngym.algos.learner.attention.packing.Pack`: token ``q`` sees ``k`` when
``k <= q < ends[k]``), computed in three ways: block by block on a CPU, by FlexAttention on CUDA,
and with one plain mask, which is the reference that the other two are held to. In a layer with a
sliding window a token also sees the last ones of its path only, counted by their depths.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from ....agents.models.attention import offer_attention, register_attention
from ....agents.models.qwen3 import Qwen3ForCausalLM, Qwen3Model
from ....envs.core.errors import BadValueError
from .block_attention import BlockPlan, block_attention
from .packing import Block, FlatBlocks, Pack

How = Literal["blocks", "flex", "mask"]
T = TypeVar("T")
NAME = "turngym_tree"
BLOCK_TOKENS = 128
"""Queries and keys of one of FlexAttention's blocks, torch's default."""
KERNEL_OPTIONS: Any = {"FORCE_USE_FLEX_ATTENTION": True}
"""Packs under 128 tokens go through FlexAttention's kernel for longer ones: torch (2.11, seen
on an H200) else takes one for decode steps, which has no form for blocks of changing lengths."""
MOST_VARIANTS = 64
"""Compiled forms of FlexAttention; beyond torch's own 8 it would compute the whole score matrix."""


@dataclass(slots=True, eq=False)
class TreeLayout:
    """Attention masks and positions of a pack, computed once for all layers.

    Attributes:
        how: Which of the three ways.
        ends: One past the last descendant of every token ``[tokens]``.
        depths: Place of every token in its path ``[tokens]``.
        longest: Tokens of the longest path.
        blocks: The relation as work to do, see :meth:`Pack.blocks`; of ``"blocks"`` alone.
        window: How many tokens of its path a token sees, itself the last; None for all.
        opening: First tokens that are context alone: they are computed elsewhere.
        asked: Windows that layers asked :meth:`within` for.
    """

    how: How
    ends: Tensor
    depths: Tensor
    longest: int
    blocks: tuple[Block, ...] = ()
    window: int | None = None
    opening: int = 0
    asked: set[int | None] = field(default_factory=set)
    _mask: Tensor | BlockMask | None = None
    _plan: BlockPlan | None = None
    _flat: FlatBlocks | None = None
    _narrower: dict[int, TreeLayout] = field(default_factory=dict)

    @classmethod
    def of(cls, pack: Pack, device: torch.device, how: How | None = None) -> TreeLayout:
        """Build the layout of ``pack``; ``how`` None selects the fastest on ``device``."""
        if how is None:
            how = {"cpu": "blocks", "cuda": "flex"}.get(device.type, "mask")  # pyright: ignore[reportAssignmentType]
        blocks = pack.blocks() if how == "blocks" else ()
        ends, depths = (torch.from_numpy(a).to(device) for a in (pack.ends, pack.depths))
        return cls(how or "mask", ends, depths, int(pack.depths.max()) + 1, blocks)

    def within(self, window: int | None) -> TreeLayout:
        """Return the layout for layers whose tokens see ``window`` tokens, themselves the last.

        It is this one where no path is longer than that.
        """
        self.asked.add(window)
        if window is None or window >= self.longest:
            return self
        if window not in self._narrower:
            empty: dict[str, Any] = {"_mask": None, "_plan": None, "_flat": None, "_narrower": {}}
            self._narrower[window] = replace(self, window=window, **empty)
        return self._narrower[window]

    def plan(self) -> BlockPlan:
        """Return the work of ``"blocks"`` as products."""
        if self._plan is None:
            self._plan = BlockPlan.of(self.blocks, self.ends.device, self.window)
        return self._plan

    def flat(self) -> FlatBlocks:
        """Return the blocks as compiled loops read them."""
        if self._flat is None:
            self._flat = FlatBlocks.of(self.blocks, self.window)
        return self._flat

    def mask(self) -> Tensor:
        """Return the attention mask ``[1, 1, tokens, tokens]`` (query, key), True where visible."""
        if not isinstance(self._mask, Tensor):
            at = torch.arange(len(self.ends), device=self.ends.device)
            seen = (at[None] <= at[:, None]) & (at[:, None] < self.ends[None])
            if self.window is not None:
                seen &= self.depths[:, None] - self.depths[None] < self.window
            self._mask = seen[None, None]
        return self._mask

    def block_mask(self) -> BlockMask:
        """Return the same mask for FlexAttention."""
        if not isinstance(self._mask, BlockMask):
            narrow = None if self.window is None else (self.depths, self.window)
            self._mask = interval_blocks(self.ends, narrow)
        return self._mask


def interval_blocks(ends: Tensor, narrow: tuple[Tensor, int] | None = None) -> BlockMask:
    """Return FlexAttention's mask of a pack, without a table of every query and key.

    A query sees an interval of later ones' keys, so what a block of queries sees of a block of keys
    follows from the blocks' bounds: all of it when every key's descendants reach past the queries,
    nothing when none reaches them. Torch's own ``create_block_mask`` asks every pair.

    Args:
        ends: One past the last descendant of every token ``[tokens]``.
        narrow: Depths of all tokens ``[tokens]``, and how many tokens of its path a token sees;
            None where it sees all of them.
    """
    n, size = len(ends), BLOCK_TOKENS
    reach = ends.cpu().numpy()
    starts = np.arange(0, n, size)
    nearest, furthest = (f.reduceat(reach, starts) for f in (np.minimum, np.maximum))
    before = starts[None] < starts[:, None]
    # the last block of queries may have fewer, and is then never called whole
    whole = before & (nearest[None] >= starts[:, None] + size)
    part = np.eye(len(starts), dtype=bool) | (before & (furthest[None] > starts[:, None]))
    if narrow is not None:
        depths, window = narrow[0].cpu().numpy(), narrow[1]
        lowest, deepest = (f.reduceat(depths, starts) for f in (np.minimum, np.maximum))
        whole &= deepest[:, None] - lowest[None] < window
        part &= lowest[:, None] - deepest[None] < window

    def listed(table: npt.NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        counts = table.sum(1, dtype=np.int32)
        order = np.argsort(~table, axis=1, kind="stable").astype(np.int32)
        return tuple(torch.from_numpy(a)[None, None].to(ends.device) for a in (counts, order))  # pyright: ignore[reportReturnType]

    def sees(_batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (k <= q) & (q < ends[k])

    def sees_near(_batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        assert narrow is not None
        return (k <= q) & (q < ends[k]) & (narrow[0][q] - narrow[0][k] < narrow[1])

    return BlockMask.from_kv_blocks(
        *listed(part & ~whole),
        *listed(whole),
        BLOCK_SIZE=size,
        mask_mod=sees if narrow is None else sees_near,
        seq_lengths=(n, n),
    )


def tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _attention_mask: Any,
    **more: Any,
) -> tuple[Tensor, None]:
    """Compute attention as a model's layers call it, with transformers' signature.

    Args:
        module: The attention layer.
        query: ``[1, heads, tokens, width]``.
        key: ``[1, key heads, tokens, width]``.
        value: The same.
        _attention_mask: Not read: the layout says what sees what.
        more: ``tree_layout``, a :class:`TreeLayout`, and what else transformers hands over.

    Returns:
        ``[1, tokens, heads, width]``, and no weights.

    Raises:
        BadValueError: The layer asks for a kind of attention that this is not.
    """
    layout: TreeLayout | None = more.get("tree_layout")
    if layout is None:
        raise BadValueError(
            f"{type(module).__name__} does not hand keyword arguments to its attention function, "
            "so it cannot receive the tree mask; use shared_prefix=False."
        )
    for name in ("softcap", "s_aux", "position_bias"):
        if more.get(name) is not None:
            raise BadValueError(
                f"{type(module).__name__} wants {name!r} in its attention, which the shared "
                "prefix does not compute; use shared_prefix=False."
            )
    if more.get("dropout"):
        raise BadValueError("attention dropout is on; the learner computes without dropout.")
    query, key, value = _one_format(query, key, value)
    layout = layout.within(more.get("sliding_window"))
    scale = more.get("scaling") or query.shape[-1] ** -0.5
    if layout.how == "blocks":
        out = block_attention(query[0], key[0], value[0], scale, layout.plan())
        return out[None], None
    if layout.how == "flex":
        run = _compiled_flex() if query.device.type == "cuda" else flex_attention
        out = run(
            query,
            key,
            value,
            block_mask=layout.block_mask(),
            scale=scale,
            enable_gqa=True,
            kernel_options=KERNEL_OPTIONS,
        )
    else:
        with torch.autocast(query.device.type, enabled=False):
            out = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=layout.mask(), scale=scale, enable_gqa=True
            )
    return out.transpose(1, 2).contiguous(), None


def _one_format(*tensors: Tensor) -> Sequence[Tensor]:
    """Cast all to the products' dtype: rotary embeddings come out wider under autocast."""
    kind = tensors[0].device.type
    wanted = tensors[0].dtype
    if torch.is_autocast_enabled(kind):
        wanted = torch.get_autocast_dtype(kind)
    return [t.to(wanted) for t in tensors]


@functools.cache
def _compiled_flex() -> Any:
    return never_uncompiled(torch.compile(flex_attention, dynamic=True))


def never_uncompiled(run: Callable[..., T]) -> Callable[..., T]:
    """Let a compiled function have many variants, and fail where it would run uncompiled instead.

    Past its limit torch warns once and computes without its compiler, for FlexAttention the whole
    matrix of scores: out of memory, or many times slower, and nothing says why.
    """
    return torch._dynamo.config.patch(
        recompile_limit=MOST_VARIANTS, fail_on_recompile_limit_hit=True
    )(run)


register_attention(NAME, tree_attention)
_offer = functools.cache(offer_attention)


@contextmanager
def attending(models: Sequence[Any], name: str | None) -> Iterator[None]:
    """Switch these models to the attention implementation ``name`` within the context.

    It must also enclose the backward pass where layers are checkpointed: they run again there.

    Args:
        models: transformers models; the same one may come twice.
        name: Registered name; None changes nothing.
    """
    with ExitStack() as stack:
        for model in models:
            before = model.config._attn_implementation
            if name is not None and before != name:
                if name == NAME and not isinstance(model, (Qwen3ForCausalLM, Qwen3Model)):
                    _offer(name)
                model.set_attn_implementation(name)
                stack.callback(model.set_attn_implementation, before)
        yield
