"""The rows that are being sampled now: one array entry per row, so that a step has no row loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from .. import transfers
from ..base import PendingRequest, Request
from ..sampling import Drawn, Draws, DrawSettings, likeliest, likeliest_of_rows, uniforms
from .kv_cache import Ids, Row


@dataclass(slots=True, eq=False)
class Job(PendingRequest):
    """A request on its way, and its row.

    Attributes:
        request: What was asked.
        ids: Its context ``[n]``.
        limit: Maximum tokens to sample: the request's own limit or what the context leaves.
        stop_set: Number of its stop strings.
        row: Its row in the pool once it is admitted.
        likeliest: Log-probabilities of the likeliest tokens ``[k]`` of each place, where asked for.
    """

    request: Request
    ids: Ids
    limit: int
    stop_set: int
    row: Row | None = None
    likeliest: list[npt.NDArray[np.float32]] = field(default_factory=list)

    @property
    def max_cached(self) -> int:
        """Tokens that its row may have to hold; the last sampled one is never fed."""
        return len(self.ids) + self.limit - 1


class Batch:
    """Running jobs as arrays in one order ``[running]``; ``rows`` are their places in the pool."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.rows: Ids = np.zeros(0, dtype=np.int64)
        self.stop_sets: Ids = np.zeros(0, dtype=np.int64)
        self._limits: Ids = np.zeros(0, dtype=np.int64)
        self.counts: Ids = np.zeros(0, dtype=np.int64)
        self.tokens: Ids = np.zeros((0, 0), dtype=np.int64)
        self._floats: npt.NDArray[np.float32] = np.zeros((3, 0, 0), dtype=np.float32)
        self.settings = DrawSettings.of([])
        self._likeliest = False
        self._context: Ids = np.zeros(0, dtype=np.int64)  # a number for each context that differs

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, jobs: list[Job], contexts: Sequence[int]) -> None:
        """Admit jobs; nothing of them is sampled yet.

        Args:
            jobs: Who is admitted.
            contexts: A number from 0 on for each of them, the same where their contexts are.
        """
        old = len(self.jobs)
        fresh = np.array(contexts) + self._context.max(initial=-1) + 1
        self._context = np.concatenate([self._context, fresh])
        self.jobs = self.jobs + jobs
        width = max(self.tokens.shape[1], max(job.limit for job in jobs))
        shape = (len(self.jobs), width)
        tokens, floats = np.zeros(shape, np.int64), np.zeros((3, *shape), np.float32)
        tokens[:old, : self.tokens.shape[1]] = self.tokens
        floats[:, :old, : self.tokens.shape[1]] = self._floats
        for i, job in enumerate(jobs, start=old):
            floats[2, i, : job.limit] = uniforms(job.request.seed, job.limit)
        self.tokens, self._floats = tokens, floats
        self._limits = np.array([job.limit for job in self.jobs])
        self.stop_sets = np.array([job.stop_set for job in self.jobs])
        self.counts = np.concatenate([self.counts, np.zeros(len(jobs), np.int64)])
        self._describe()

    def remove(self, gone: npt.NDArray[np.bool_]) -> None:
        """Take rows out, ``gone`` is ``[running]``."""
        stay = ~gone
        self.jobs = [job for job, kept in zip(self.jobs, stay, strict=True) if kept]
        self.tokens, self._floats = self.tokens[stay], self._floats[:, stay]
        self._limits, self.stop_sets = self._limits[stay], self.stop_sets[stay]
        self.counts, self._context = self.counts[stay], self._context[stay]
        self._describe()

    def _describe(self) -> None:
        """Gather what the present jobs ask for."""
        self.settings = DrawSettings.of([job.request.sampling for job in self.jobs])
        self._likeliest = any(job.request.sampling.top_logprobs for job in self.jobs)
        self.locate()

    def locate(self) -> None:
        """Ask the jobs where their rows are; to be called after the pool moved rows."""
        self.rows = np.array([job.row.index for job in self.jobs if job.row], dtype=np.int64)

    def uniform(self, which: Ids) -> npt.NDArray[np.float32]:
        """Return the next uniform number of the jobs ``which``."""
        return self._floats[2, which, self.counts[which]]

    def draws(self, which: Ids) -> Draws:
        """Return how the next token of the jobs ``which`` is drawn."""
        everyone = len(which) == len(self)
        return Draws(self.settings if everyone else self.settings.at(which), self.uniform(which))

    def last_tokens(self) -> Ids:
        """Return the token that each job sampled last."""
        return self.tokens[np.arange(len(self)), self.counts - 1]

    def distinct(self, tokens: Ids) -> tuple[Ids, Ids]:
        """Tell contexts apart; to be called once for each token that all jobs are fed.

        Args:
            tokens: What each job is fed ``[running]``, the end of its context from now on.

        Returns:
            A job of each context that differs from the others ``[contexts]``, and which of these
            each job has ``[running]``.
        """
        _, first, self._context = np.unique(
            self._context << 32 | tokens, return_index=True, return_inverse=True
        )
        return first, self._context

    def record(self, which: Ids, drawn: Drawn) -> npt.NDArray[np.bool_]:
        """Append what the jobs ``which`` drew; returns which of them are at their limit."""
        at = self.counts[which]
        self.tokens[which, at] = drawn.tokens
        self._floats[0, which, at] = drawn.logprobs
        self._floats[1, which, at] = drawn.entropies
        self.counts[which] += 1
        return self.counts[which] >= self._limits[which]

    def record_likeliest(self, which: Ids, logits: torch.Tensor) -> None:
        """Note the likeliest tokens' log-probabilities for the jobs ``which`` that want them."""
        if not self._likeliest:
            return
        asked = [(at, self.jobs[i]) for at, i in enumerate(which)]
        asked = [(at, job) for at, job in asked if job.request.sampling.top_logprobs]
        if not asked:
            return
        sampled = [job.request.sampling for _, job in asked]
        heat = np.array([s.temperature or 1.0 for s in sampled], np.float32)
        if transfers.packs(logits.device):
            rows, most = np.array([at for at, _ in asked]), max(s.top_logprobs for s in sampled)
            found = likeliest_of_rows(logits, rows, heat, most)
            for (_, job), s, values in zip(asked, sampled, found, strict=True):
                job.likeliest.append(values[: s.top_logprobs].copy())
            return
        for (at, job), s, own in zip(asked, sampled, heat, strict=True):
            job.likeliest.append(likeliest(logits[at], float(own), s.top_logprobs))

    def action(self, i: int) -> Ids:
        """Return what job ``i`` sampled so far."""
        return self.tokens[i, : self.counts[i]]

    def measures(self, i: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return log-probabilities and entropies of :meth:`action`."""
        n = self.counts[i]
        return self._floats[0, i, :n].copy(), self._floats[1, i, :n].copy()
