"""Sampling inside vLLM by this project's own rule: one uniform number per token and request.

A logits processor sees each row's logits in float32 before vLLM changes them. It draws the token,
notes its log-probability and entropy, and leaves vLLM that token only. So a seed means the same
as with every other engine, whatever else is in the batch, and the numbers of a token are those of
the distribution that it was drawn from.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..base import Floats, Request, Sampling
from ..sampling import DrawSettings, draw, likeliest, uniforms

KEY = "turngym"
ABOUT = "turngym_request"
_interface = importlib.import_module("vllm.v1.sample.logits_processor")
_Base: Any = _interface.LogitsProcessor
_SWAP = _interface.MoveDirectionality.SWAP

Numbers = tuple[Floats, Floats, dict[int, Floats]]
"""Log-probabilities, entropies, and the likeliest tokens' by place."""
drafts: dict[str, Draft] = {}
"""What is being sampled in this process, by the key in its sampling parameters."""


@dataclass(slots=True, eq=False)
class Draft:
    """The numbers of one request, arrays ``[limit]``.

    Attributes:
        request: What was asked.
        limit: Maximum tokens.
        forced: Tokens ``[limit]`` to take instead of drawing, whose log-probabilities are wanted.
        likeliest: By place, where asked for.
    """

    request: Request
    limit: int
    forced: Sequence[int] | None = None
    uniforms: Floats = field(init=False)
    logprobs: Floats = field(init=False)
    entropies: Floats = field(init=False)
    likeliest: dict[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.uniforms = uniforms(self.request.seed, self.limit)
        self.logprobs = np.zeros(self.limit, np.float32)
        self.entropies = np.zeros(self.limit, np.float32)


def describe(draft: Draft) -> dict[str, Any]:
    """Return what another process needs to draw the same tokens, as plain data."""
    return {
        "sampling": asdict(draft.request.sampling) | {"stop": []},
        "seed": draft.request.seed,
        "limit": draft.limit,
        "forced": None if draft.forced is None else [int(token) for token in draft.forced],
    }


def adopt(key: str, about: Mapping[str, Any]) -> Draft:
    """Return this process's draft of a request that :func:`describe` described."""
    if key not in drafts:
        sampling = Sampling(**{**about["sampling"], "stop": ()})
        request = Request(ids=(), sampling=sampling, seed=about["seed"])
        drafts[key] = Draft(request, about["limit"], about["forced"])
    return drafts[key]


def hand_in_numbers(worker: Any, keys: Sequence[str]) -> list[Numbers | None]:  # noqa: ARG001 - vLLM passes it
    """Return the numbers of requests and forget these; runs beside vLLM's model."""
    found = [drafts.pop(key, None) for key in keys]
    return [one and (one.logprobs, one.entropies, one.likeliest) for one in found]


@dataclass(slots=True, eq=False)
class _Row:
    draft: Draft | None  # None: somebody else's request, left alone
    sampled: Sequence[int]  # vLLM's own growing list


class Drawing(_Base):
    """Draws every row's token; see the module."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:  # noqa: ARG002 - vLLM's signature
        self._rows: dict[int, _Row] = {}
        self._mine: npt.NDArray[np.int64] | None = None
        self._drafts: list[Draft] = []
        self._sampled: list[Sequence[int]] = []
        self._settings = DrawSettings.of([])

    def is_argmax_invariant(self) -> bool:
        """False: it runs before temperature and always."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the rows of vLLM's batch: removed, added, moved, in this order."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
        for index, params, _, sampled in batch_update.added:
            own = params.extra_args or {}
            key, about = own.get(KEY), own.get(ABOUT)
            draft = adopt(key, about) if key and about else drafts.get(key) if key else None
            self._rows[index] = _Row(draft, sampled)
        for one, two, how in batch_update.moved:
            first, second = self._rows.pop(one, None), self._rows.pop(two, None)
            if first is not None:
                self._rows[two] = first
            if second is not None and how == _SWAP:
                self._rows[one] = second
        self._mine = None

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Draw, note, and rule out every other token; ``[rows, vocabulary]``."""
        if self._mine is None:
            self._describe()
        mine = self._mine
        if mine is None or not len(mine):
            return logits
        # a prompt that is fed in parts is sampled from after each part; only the last one counts,
        # and it writes to the same place
        at = np.array([len(sampled) for sampled in self._sampled])
        where = torch.from_numpy(mine).to(logits.device)
        everyone = len(mine) == logits.shape[0] and bool((mine == np.arange(len(mine))).all())
        own = logits if everyone else logits[where]
        uniform = np.array(
            [d.uniforms[t] for d, t in zip(self._drafts, at, strict=True)], dtype=np.float32
        )
        drawn = draw(own, self._settings, uniform)
        tokens = drawn.tokens
        for i, (draft, t) in enumerate(zip(self._drafts, at, strict=True)):
            draft.logprobs[t], draft.entropies[t] = drawn.logprobs[i], drawn.entropies[i]
            if k := draft.request.sampling.top_logprobs:
                heat = draft.request.sampling.temperature or 1.0
                draft.likeliest[int(t)] = likeliest(own[i], heat, k)
            if draft.forced is not None:
                tokens[i] = draft.forced[t]
                draft.logprobs[t] = float(own[i].log_softmax(-1)[tokens[i]])
        logits[where] = -torch.inf
        logits[where, torch.from_numpy(tokens).to(logits.device)] = 0.0
        return logits

    def _describe(self) -> None:
        """Gather the rows' settings once per change of the batch."""
        mine = [(i, row) for i, row in sorted(self._rows.items()) if row.draft is not None]
        self._mine = np.array([i for i, _ in mine], dtype=np.int64)
        self._drafts = [row.draft for _, row in mine if row.draft is not None]
        self._sampled = [row.sampled for _, row in mine]
        self._settings = DrawSettings.of([draft.request.sampling for draft in self._drafts])
