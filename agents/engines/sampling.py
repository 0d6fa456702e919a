"""Drawing tokens: one uniform number per token, so that a batch-mate never changes a draw."""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt
import torch

from ...envs.core.errors import BadValueError
from . import transfers
from .base import Sampling
from .transfers import Parcel

_STEP = np.float32(2.0**-24)
BELOW_ONE = 1 - 2.0**-24
"""The greatest number that is drawn from [0, 1)."""
_MAX_THREADS = 4  # the compiled loops run on one of them
_WORD = 2**64 - 1
_ZEROS = np.zeros(4, dtype=np.uint64)
_KEPT = threading.local()  # a thread's generator, set to a stream's beginning whenever one is asked
_COLUMNS = 64  # a vocabulary is drawn from as a table of at most so many columns


def compiled_loops() -> ModuleType | None:
    """Return the compiled kernels; None where torch does it (without numba, on many threads)."""
    return _kernels() if torch.get_num_threads() <= _MAX_THREADS else None


@cache
def _kernels() -> ModuleType | None:
    try:
        return importlib.import_module("turngym.agents.engines.local.numba_kernels")
    except ImportError:
        return None


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """How each row of a batch is drawn, every array ``[rows]``.

    Attributes:
        temperature: 0 is greedy.
        top_p: Nucleus mass; 1 is off.
        top_k: Number of likeliest tokens kept; 0 is off.
    """

    temperature: npt.NDArray[np.float32]
    top_p: npt.NDArray[np.float32]
    top_k: npt.NDArray[np.int64]

    @classmethod
    def of(cls, drawn: Sequence[Sampling]) -> DrawSettings:
        """Gather the settings of these rows."""
        return cls(
            temperature=np.array([s.temperature for s in drawn], dtype=np.float32),
            top_p=np.array([s.top_p for s in drawn], dtype=np.float32),
            top_k=np.array([s.top_k for s in drawn], dtype=np.int64),
        )

    def at(self, which: npt.NDArray[np.int64]) -> DrawSettings:
        """Those of the rows ``which``."""
        return DrawSettings(self.temperature[which], self.top_p[which], self.top_k[which])


@dataclass(frozen=True, slots=True)
class Drawn:
    """Sampled tokens ``[rows]``, log-probability and entropy of the full distribution in nats."""

    tokens: npt.NDArray[np.int64]
    logprobs: npt.NDArray[np.float32]
    entropies: npt.NDArray[np.float32]

    def check_finite(self) -> None:
        """Refuse what came from broken weights.

        Raises:
            BadValueError: A log-probability is nan or infinite.
        """
        if not np.isfinite(self.logprobs).all():
            raise BadValueError(
                "engine: the model's logits are not finite (NaN or infinite weights?); nothing can "
                "be sampled from them."
            )


def uniforms(seed: int, n: int) -> npt.NDArray[np.float32]:
    """Return the first ``n`` numbers of a request's own stream, in [0, 1) on a grid of 2**-24.

    A counter-based generator keyed by the seed: number t depends on nothing but (seed, t).
    """
    stream = getattr(_KEPT, "stream", None)
    if stream is None:  # making one takes many times as long as setting it
        stream = _KEPT.stream = np.random.Philox(key=0)
    key = np.array([seed & _WORD, seed >> 64 & _WORD], dtype=np.uint64)
    stream.state = {
        "bit_generator": "Philox",
        "state": {"counter": _ZEROS, "key": key},
        "buffer": _ZEROS,
        "buffer_pos": 4,
        "has_uint32": 0,
        "uinteger": 0,
    }
    return (stream.random_raw(n) >> np.uint64(40)).astype(np.float32) * _STEP


class Draws:
    """How the rows of a step are drawn, and the numbers that they are drawn with.

    Args:
        settings: Temperatures and cuts.
        uniform: One number in [0, 1) per row.
    """

    def __init__(self, settings: DrawSettings, uniform: npt.NDArray[np.float32]) -> None:
        self.settings, self.uniform = settings, uniform
        self.cut = (settings.top_p < 1) | (settings.top_k > 0)
        self._sent: tuple[Parcel, int] | None = None

    def ride(self, parcel: Parcel) -> None:
        """Go to the device with the arrays of a step; on a CPU there is nothing to carry."""
        if transfers.packs(parcel.device):
            self._pack(parcel)

    def tensors(self, device: torch.device) -> list[torch.Tensor]:
        """Return temperatures, numbers and whether greedy; of cut rows places, k and p as well."""
        if self._sent is None:
            parcel = Parcel(device)
            self._pack(parcel)
            parcel.send()
        assert self._sent is not None
        parcel, first = self._sent
        return parcel.tensors[first:]

    def _pack(self, parcel: Parcel) -> None:
        heat = self.settings.temperature
        greedy = heat == 0
        self._sent = parcel, parcel.add(np.where(greedy, np.float32(1), heat))
        parcel.add(self.uniform)
        parcel.add(greedy)
        if self.cut.any():
            top_k = self.settings.top_k[self.cut]
            parcel.add(np.flatnonzero(self.cut))
            parcel.add(np.where(top_k > 0, top_k, np.iinfo(np.int64).max))
            parcel.add(self.settings.top_p[self.cut])

    def sample(self, logits: torch.Tensor) -> Drawn:
        """Sample one token per row by inverting the cumulative distribution.

        Log-probabilities and entropies are those of the tempered distribution over the whole
        vocabulary, top-p and top-k left out; greedy rows report the model's own (temperature 1).
        The host waits for a device once, for the results.

        Args:
            logits: ``[rows, vocabulary]`` in float32.
        """
        here = logits.device.type == "cpu"
        if here and not transfers.packs(logits.device) and not self.cut.any():
            kernels = compiled_loops()
            if kernels is not None:
                return _draw_native(kernels, logits, self.settings.temperature, self.uniform)
        return self._sample(logits)

    def _sample(self, logits: torch.Tensor) -> Drawn:
        one_wait = transfers.packs(logits.device)
        temperature = self.settings.temperature
        heat, uniform, greedy, *cut = self.tensors(logits.device)
        if ((temperature != 1) & (temperature != 0)).any():
            logits = logits / heat[:, None]
        probs = logits.softmax(-1)
        # log-sum-exp from the two maxima is one cheap pass each instead of a second exponential
        log_total = logits.amax(-1) - probs.amax(-1).log()
        if one_wait:
            expected = torch.linalg.vecdot(probs, logits.nan_to_num(neginf=0.0))
        else:
            expected = torch.linalg.vecdot(probs, logits)
            if not expected.isfinite().all():  # tokens that the model rules out: 0 * -inf is 0
                expected = torch.linalg.vecdot(probs, logits.nan_to_num(neginf=0.0))
        entropies = (log_total - expected).clamp_(0.0)
        tokens = _invert(_cut(probs, logits, *cut) if cut else probs, uniform)
        if (temperature == 0).any():
            tokens = torch.where(greedy, logits.argmax(-1), tokens)
        logprobs = logits.gather(-1, tokens[:, None])[:, 0] - log_total
        if not one_wait:
            return Drawn(tokens.numpy(), logprobs.numpy(), entropies.numpy())
        # what is not finite shows in the log-probabilities, see check_finite
        packed = transfers.download(
            torch.stack([tokens.double(), logprobs.double(), entropies.double()])
        )
        measures = packed[1:].astype(np.float32)
        return Drawn(packed[0].astype(np.int64), measures[0], measures[1])


def draw(logits: torch.Tensor, settings: DrawSettings, uniform: npt.NDArray[np.float32]) -> Drawn:
    """Sample one token per row, see :meth:`Draws.sample`.

    Args:
        logits: ``[rows, vocabulary]`` in float32.
        settings: Temperatures and cuts.
        uniform: One number in [0, 1) per row.
    """
    return Draws(settings, uniform).sample(logits)


def _draw_native(
    kernels: ModuleType,
    logits: torch.Tensor,
    temperature: npt.NDArray[np.float32],
    uniform: npt.NDArray[np.float32],
) -> Drawn:
    rows, size = logits.shape
    tokens, measures = np.empty(rows, np.int64), np.empty((2, rows), np.float32)
    settings = np.empty((2, rows), np.float32)
    settings[0], settings[1] = temperature, uniform
    numbers = np.ascontiguousarray(logits.numpy())
    kernels.sample(numbers, settings, math.gcd(size, _COLUMNS), tokens, measures)
    return Drawn(tokens, *measures)


def likeliest(logits: torch.Tensor, temperature: float, k: int) -> npt.NDArray[np.float32]:
    """Return log-probabilities ``[k]`` in nats of one row's likeliest tokens, falling.

    Args:
        logits: ``[vocabulary]`` in float32.
        temperature: Of the distribution, above 0.
        k: How many; all of them where the vocabulary is smaller.
    """
    tempered = (logits / temperature).log_softmax(-1)
    return tempered.topk(min(k, len(tempered))).values.cpu().numpy()


def likeliest_of_rows(
    logits: torch.Tensor, rows: npt.NDArray[np.int64], heat: npt.NDArray[np.float32], k: int
) -> npt.NDArray[np.float32]:
    """Return :func:`likeliest` of some rows ``[rows, k]``, with one wait for a device.

    Args:
        logits: ``[all rows, vocabulary]`` in float32.
        rows: Which.
        heat: Their temperatures, above 0.
        k: How many of each.
    """
    which, temperature = Parcel(logits.device, rows, heat).send()
    tempered = (logits[which] / temperature[:, None]).log_softmax(-1)
    return transfers.download(tempered.topk(min(k, tempered.shape[-1])).values)


def _invert(masses: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Return a token by inverse CDF: first its column, then its line, in the vocabulary as a table.

    Two short sums instead of one over the whole vocabulary. A token without mass is never drawn.
    """
    columns = math.gcd(masses.shape[-1], _COLUMNS)
    table = masses.unflatten(-1, (-1, columns))
    column, rest = _first_above(table.sum(1), uniform)
    line, _ = _first_above(table[torch.arange(len(table), device=table.device), :, column], rest)
    return line * columns + column


def drawn_side_by_side(a: int, b: int, vocabulary: int) -> bool:
    """Whether no token lies between two in the order of drawing, see :func:`_invert`.

    Rounding can turn one into the other where a number falls on the bound between them.
    """
    columns = math.gcd(vocabulary, _COLUMNS)
    lines = vocabulary // columns
    place = [token % columns * lines + token // columns for token in (a, b)]
    return abs(place[0] - place[1]) == 1


def _first_above(masses: torch.Tensor, uniform: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first index whose cumulative mass exceeds ``uniform`` times the total, ``[rows]``.

    The number is at most 1 - 2**-24, so its product with the total rounds to less than the total:
    an index without mass is never found.

    Returns:
        The indices, and how far into the mass of its index each number falls, again in [0, 1).
    """
    cumulative = masses.cumsum(-1)
    goal = uniform[:, None] * cumulative[:, -1:]
    index = torch.searchsorted(cumulative, goal, right=True).clamp_(max=masses.shape[-1] - 1)
    mass = masses.gather(-1, index)
    rest = (goal - cumulative.gather(-1, index) + mass) / mass
    return index[:, 0], rest[:, 0].clamp_(0.0, BELOW_ONE)


def _cut(
    probs: torch.Tensor,
    logits: torch.Tensor,
    rows: torch.Tensor,
    keep_k: torch.Tensor,
    top_p: torch.Tensor,
) -> torch.Tensor:
    """Zero the mass outside top-k and the nucleus in the rows that ask for it.

    The logits tell which tokens are likelier, also where a high temperature makes masses equal.
    """
    sub = probs[rows]
    size = sub.shape[-1]
    order = logits[rows].argsort(dim=-1, descending=True, stable=True)
    ordered = sub.gather(-1, order)
    rank = torch.arange(size, device=probs.device)
    ordered = ordered.masked_fill(rank >= keep_k[:, None], 0.0)
    mass = ordered.sum(-1, keepdim=True)
    before = ordered.cumsum(-1) - ordered
    outside = (before >= top_p[:, None] * mass) & (rank > 0) & (top_p[:, None] < 1)
    kept = torch.zeros_like(sub).scatter_(-1, order, ordered.masked_fill(outside, 0.0))
    masses = probs.clone()
    masses[rows] = kept
    return masses
