"""Any causal language model of transformers behind the engine's own key-value pool."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from ....envs.core.errors import BadValueError
from ...models.attention import attention_windows
from ...models.lora import copy_modules
from ..sampling import Draws
from ..transfers import Parcel
from .forward import Front, Ids, Piece, Ragged, grain_for, visible
from .kv_cache import CacheShape, KvPool

_TOLERANCE = {torch.float32: 2e-3, torch.float16: 0.05, torch.bfloat16: 0.25}
_EVERY = "every"


class _PoolLayer(CacheLayerMixin):
    """One layer's window onto the pool, for one forward pass."""

    is_compileable = False
    is_sliding = False

    def __init__(self, layer: int, window: _Window) -> None:
        super().__init__()
        self._layer = layer
        self._window = window
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """The pool is there already."""

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *args: Any,  # noqa: ARG002 - the base class's signature
        **kwargs: Any,  # noqa: ARG002
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write new keys and values ``[rows, heads, width, head_dim]``; return all of the rows."""
        w = self._window
        found = []
        for i, new in enumerate((key_states, value_states)):
            flat = new.transpose(1, 2).reshape(-1, new.shape[1], new.shape[3])
            w.pool.data[self._layer, i, w.row, :, w.position] = flat[w.places]
            data = w.pool.data[self._layer, i]
            picked = data[: len(w.rows)] if w.prefix else data[w.rows]
            found.append(picked[:, :, : w.end])
        return found[0], found[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002
        """Keys that a mask has to cover, and the first one's offset."""
        return self._window.end, 0

    def get_seq_length(self) -> int:
        """Unknown to a ragged batch; positions are always given."""
        return 0

    def get_max_length(self) -> int:
        """Return positions of the pool."""
        return self._window.pool.positions

    get_max_cache_shape = get_max_length  # its name before transformers 5.13


class _Window:
    """Which places of the pool one forward pass writes and reads.

    Args:
        pool: The cache.
        maps: Rows, positions and places of the tokens, and the row of each piece.
        end: Positions that are read.
        prefix: Whether the pieces' rows are the first ones of the pool.
    """

    def __init__(
        self, pool: KvPool, maps: Sequence[torch.Tensor], end: int, *, prefix: bool
    ) -> None:
        self.pool = pool
        self.row, self.position, self.places, self.rows = maps
        self.end = end
        self.prefix = prefix


class HfForward:
    """Runs the model's own forward with a cache that lives in the pool.

    Args:
        model: Any decoder-only causal language model with ordinary attention.
        dtype: Of the copy that samples.
        max_context: Longest sequence that will be fed.
        device: Where it computes; None is where the model is.
        owned: Whether nobody else needs the model: it is then used itself, and changed.

    Raises:
        BadValueError: The model keeps state that is not keys and values of all past tokens, or
            its forward does not follow position ids and masks; the message says which.
    """

    wants_front = True
    mixes = False
    repeat = None
    captures = False

    def __init__(
        self,
        model: Any,
        dtype: torch.dtype,
        max_context: int,
        device: torch.device | None = None,
        *,
        owned: bool = False,
    ) -> None:
        _refuse_unfit(model)
        _refuse_changing_rotation(model, max_context)
        own = model if owned else _copied(model, dtype, device)
        self._model = _placed(own, dtype, device).eval().requires_grad_(False)
        if getattr(self._model, "_supports_sdpa", False):
            self._model.set_attn_implementation("sdpa")
        else:
            self._model.set_attn_implementation("eager")
        self._dtype = dtype
        self._device = next(self._model.parameters()).device
        self._grain = grain_for(self._device)
        self._last_position = max_context - 1
        self._windows = _windows(model, max_context)
        self._picks_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._shape, self._n_logits = self._probe()
        self._prove()

    @property
    def shape(self) -> CacheShape:
        """What one cached token costs."""
        return self._shape

    @property
    def vocabulary(self) -> int:
        """Number of logits."""
        return self._n_logits

    def load(self, model: Any) -> None:
        """Take new weights of the same architecture from ``model``."""
        own, given = self._model.state_dict(), model.state_dict()
        if missing := own.keys() ^ given.keys():
            raise BadValueError(f"engine: weights of another model, {sorted(missing)[:3]} differ.")
        with torch.no_grad():
            for (
                name,
                value,
            ) in given.items():  # one at a time: they may be gathered as they are read
                own[name].copy_(value)

    def feed(self, pool: KvPool, pieces: Sequence[Piece]) -> torch.Tensor:
        """Run the pieces; float32 logits ``[pieces, vocabulary]`` after the last token of each."""
        return self._forward(pool, Ragged.of(pieces, self._grain), prefix=False)

    def decode(
        self, pool: KvPool, rows: Ids, tokens: Ids, draws: Draws | None = None
    ) -> torch.Tensor:
        """Feed one token to each of some rows of the pool, see :class:`Forward`."""
        front = Front.of(pool, rows, tokens)
        count = len(front.tokens)
        lengths, one = pool.lengths[:count], np.arange(count)
        ragged = Ragged(
            ids=front.tokens,
            positions=lengths,
            rows=one,
            square=one[:, None],
            places=one,
            last=one,
            starts=lengths,
            end=front.end,
        )
        return self._forward(pool, ragged, prefix=True, asked=front.asked, draws=draws)

    def _forward(
        self,
        pool: KvPool,
        ragged: Ragged,
        *,
        prefix: bool,
        asked: Ids | None = None,
        draws: Draws | None = None,
    ) -> torch.Tensor:
        """Return the logits after the last token of each piece, or of the pieces ``asked``."""
        device = self._device
        end = pool.reach(ragged.end, self._grain)
        k, width = ragged.square.shape
        sizes = np.diff(np.concatenate([[-1], ragged.last]))
        keep = np.unique(sizes - 1)
        column = np.searchsorted(keep, sizes - 1) if self._picks_logits else sizes - 1
        lines = np.arange(k) if asked is None else asked
        parcel = Parcel(
            device,
            ragged.rows,
            ragged.positions,
            ragged.places,
            ragged.rows[ragged.last],
            ragged.starts,
            ragged.ids[ragged.square],
            keep,
            lines,
            column[lines],
        )
        if draws is not None:
            draws.ride(parcel)
        *maps, starts, ids, kept, which, place = parcel.send()[:9]
        window = _Window(pool, maps, end, prefix=prefix)
        at = starts[:, None] + torch.arange(width, device=device)
        masks = self._masks(at.clamp(max=ragged.end - 1), end)
        layers: list[Any] = [_PoolLayer(i, window) for i in range(self._shape.layers)]
        more: dict[str, Any] = {}
        if self._picks_logits:
            more["logits_to_keep"] = kept
        logits = self._model(
            input_ids=ids,
            attention_mask=masks,
            position_ids=at.clamp(max=min(pool.positions, self._last_position)),
            past_key_values=Cache(layers=layers),
            use_cache=True,
            **more,
        ).logits
        return logits[which, place].float()

    def _masks(self, at: torch.Tensor, end: int) -> Any:
        """Return what each position sees, ``[rows, 1, width, end]``; by kind where kinds differ."""

        def mask(window: int | None) -> torch.Tensor:
            seen = visible(at, end, window)
            shown = torch.zeros(seen.shape, dtype=self._dtype, device=at.device)
            return shown.masked_fill_(~seen, torch.finfo(self._dtype).min)[:, None]

        made = {kind: mask(window) for kind, window in self._windows.items()}
        return made.get(_EVERY, made)

    def _plain_forward(self, ids: torch.Tensor) -> Any:
        return self._model(input_ids=ids, use_cache=True)

    @torch.inference_mode()
    def _probe(self) -> tuple[CacheShape, int]:
        """Learn the cache's shape from the model itself rather than from its configuration."""
        out = self._plain_forward(torch.tensor([[0, 1]], device=self._device))
        cache = getattr(out, "past_key_values", None)
        layers = getattr(cache, "layers", None)
        if not layers or not all(
            isinstance(getattr(x, "keys", None), torch.Tensor) for x in layers
        ):
            raise BadValueError(
                f"engine: {type(self._model).__name__} keeps no plain keys and values in its "
                "cache (recurrent states?); this engine cannot sample from it."
            )
        shapes = {tuple(x.keys.shape[i] for i in (1, 3)) for x in layers} | {
            tuple(x.values.shape[i] for i in (1, 3)) for x in layers
        }
        if len(shapes) != 1:
            raise BadValueError(
                f"engine: the layers of {type(self._model).__name__} have caches of unequal "
                f"shapes {sorted(shapes)}; this engine needs equal ones."
            )
        heads, dim = shapes.pop()
        shape = CacheShape(len(layers), heads, dim, layers[0].keys.dtype, self._device)
        return shape, out.logits.shape[-1]

    @torch.inference_mode()
    def _prove(self) -> None:
        """Two ragged rows fed in two parts must give the logits of plain forward passes."""
        pool = KvPool(self._shape, 2, 2**62)
        n = 7 + max((w for w in self._windows.values() if w is not None), default=0)
        n = min(n, self._last_position + 1)  # more is never fed
        short = max(2, n - 2)
        texts = [np.arange(n) % self._n_logits, np.arange(3, short + 3) % self._n_logits]
        first = min(3, short - 1)
        rows = [pool.acquire(n + 2), pool.acquire(n + 2)]
        try:
            for cut in (slice(0, first), slice(first, None)):
                pieces = [
                    Piece(row.index, cut.start, t[cut])
                    for row, t in zip(rows, texts, strict=True)
                    if row is not None
                ]
                got = self.feed(pool, pieces)
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError) as fault:
            raise BadValueError(
                f"engine: {type(self._model).__name__} does not take positions, a 4-D mask and a "
                f"given cache: {fault}"
            ) from fault
        for i, text in enumerate(texts):
            want = self._plain_forward(torch.from_numpy(text)[None].to(self._device)).logits[0, -1]
            off = (got[i] - want.float()).abs().max().item()
            if not off <= _TOLERANCE.get(self._dtype, 0.25) * max(1.0, want.abs().max().item()):
                raise BadValueError(
                    f"engine: {type(self._model).__name__} gives other logits with a kept cache "
                    f"than without (largest difference {off:.3g}); it does not follow positions "
                    "and masks, so this engine cannot sample from it."
                )


def _copied(model: Any, dtype: torch.dtype, device: torch.device | None) -> Any:
    """Return a copy of a model whose weights are written in their format and place at once."""

    def part(weight: torch.Tensor) -> torch.Tensor:
        to = dtype if weight.is_floating_point() else weight.dtype
        return weight.detach().to(weight.device if device is None else device, to, copy=True)

    return copy_modules(model, part)


def _placed(model: Any, dtype: torch.dtype, device: torch.device | None) -> Any:
    """Return the model in its format and place, a weight at a time.

    The frequencies of rotary angles keep their format, as where transformers loads a model: rounded
    ones turn a token at position 1,000 by another angle.
    """
    exact = {name: b for name, b in model.named_buffers() if name.endswith("inv_freq")}
    model.to(device, dtype)
    for name, buffer in exact.items():
        owner, _, last = name.rpartition(".")
        module = model.get_submodule(owner)
        setattr(module, last, buffer.to(getattr(module, last).device))
    return model


def _windows(model: Any, max_context: int) -> dict[str, int | None]:
    """Return how far back layers look, by kind; one entry for all where they are alike."""
    config = model.config.get_text_config()
    windows = attention_windows(config)
    if all(window is None or window >= max_context for window in windows.values()):
        return {_EVERY: None}
    if getattr(config, "layer_types", None):
        return windows
    (window,) = windows.values()
    return {_EVERY: window}


def _refuse_unfit(model: Any) -> None:
    config = model.config.get_text_config()
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        raise BadValueError(f"engine: {name} is an encoder-decoder; expected a causal model.")
    kinds = set(getattr(config, "layer_types", None) or ())
    odd = kinds - {"full_attention", "sliding_attention"}
    if odd or getattr(model, "_is_stateful", False):
        raise BadValueError(
            f"engine: {name} has layers that keep other state than keys and values "
            f"({', '.join(sorted(odd)) or 'recurrent'}); this engine cannot sample from it."
        )


def _refuse_changing_rotation(model: Any, max_context: int) -> None:
    """Refuse rotary embeddings whose angles depend on the longest sequence of a batch.

    A long one would change what its neighbours compute, and keys that are kept already.
    """
    config = model.config.get_text_config()
    given = getattr(config, "rope_parameters", None) or {}
    for rope in (given, *(part for part in given.values() if isinstance(part, dict))):
        if rope.get("rope_type") != "longrope":
            continue
        limit = int(rope["original_max_position_embeddings"])
        if max_context > limit:
            raise BadValueError(
                f"engine: {type(model).__name__} turns positions in another way once a sequence of "
                f"the batch is longer than {limit} tokens (rope_type 'longrope'), so that an "
                f"action would depend on its neighbours; max_context is {max_context}, expected "
                f"at most {limit}."
            )
