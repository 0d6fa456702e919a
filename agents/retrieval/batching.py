"""Queries of many requests, searched together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ...envs.core.errors import BadValueError, DataError
from ...envs.tools.retrieval.base import Hit, Retriever

Found = list[list[Hit]]


@dataclass(eq=False)
class _Waiting:
    """A request that is not served yet."""

    queries: Sequence[str]
    k: int
    answer: asyncio.Future[Found]
    came: float = field(default_factory=time.monotonic)


class Batcher:
    """Gathers concurrent requests into few calls of a retriever, which runs in one worker thread.

    While a call runs, requests pile up for the next; an idle retriever waits a moment for company.
    Requests with equal ``k`` go together, so nobody's passages depend on who else asked. When a
    call of several requests fails, each is tried by itself and only the broken one fails.

    Args:
        retriever: Finds passages; never called twice at a time.
        max_wait_ms: Longest wait of a request for others, while the retriever is idle.
        max_batch: Maximum number of queries per call.

    Attributes:
        queries: How many queries were served.
        batches: How many calls of the retriever were made.
    """

    def __init__(self, retriever: Retriever, *, max_wait_ms: float, max_batch: int) -> None:
        if max_batch < 1:
            raise BadValueError(f"retrieval server: max_batch is {max_batch}; expected 1 or more.")
        if max_wait_ms < 0:
            raise BadValueError(
                f"retrieval server: max_wait_ms is {max_wait_ms}; expected 0 or more."
            )
        self.queries = 0
        self.batches = 0
        self._retriever = retriever
        self._wait_s = max_wait_ms / 1000
        self._max_batch = max_batch
        self._waiting: list[_Waiting] = []
        self._full = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="retriever")

    async def find(self, queries: Sequence[str], k: int) -> Found:
        """Hits of every query.

        Raises:
            Exception: What the retriever raised for these queries.
        """
        if not queries:
            return []
        waiting = _Waiting(queries, k, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._enough():
            self._full.set()
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._serve())
        return await waiting.answer

    def close(self) -> None:
        """Let the worker thread end after the call in progress."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _enough(self) -> bool:
        return sum(len(w.queries) for w in self._waiting) >= self._max_batch

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await self._company()
            batch = self._next()
            try:
                answers = await loop.run_in_executor(self._thread, self._together, batch)
            except RuntimeError as fault:  # closed
                answers = [fault] * len(batch)
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.answer.done():  # who asked is gone
                    continue
                if isinstance(answer, Exception):
                    waiting.answer.set_exception(answer)
                else:
                    self.queries += len(waiting.queries)
                    waiting.answer.set_result(answer)

    async def _company(self) -> None:
        """Wait until the oldest request has waited enough, or a batch is full."""
        left = self._waiting[0].came + self._wait_s - time.monotonic()
        if left <= 0 or self._enough():
            return
        self._full.clear()
        try:
            await asyncio.wait_for(self._full.wait(), left)
        except TimeoutError:
            return

    def _next(self) -> list[_Waiting]:
        """Return the oldest request and those with its ``k`` that still fit beside it."""
        batch: list[_Waiting] = []
        left: list[_Waiting] = []
        k, room = self._waiting[0].k, self._max_batch
        for waiting in self._waiting:
            if waiting.k == k and (not batch or len(waiting.queries) <= room):
                batch.append(waiting)
                room -= len(waiting.queries)
            else:
                left.append(waiting)
        self._waiting = left
        return batch

    def _together(self, batch: Sequence[_Waiting]) -> list[Found | Exception]:
        """One answer per request; runs in the worker thread."""
        queries = [query for waiting in batch for query in waiting.queries]
        try:
            found = self._search(queries, batch[0].k)
        except Exception as fault:  # noqa: BLE001 - whatever a retriever raises goes to who asked
            if len(batch) == 1:
                return [_raisable(fault)]
            return [self._together([waiting])[0] for waiting in batch]
        answers: list[Found | Exception] = []
        start = 0
        for waiting in batch:
            answers.append(found[start : start + len(waiting.queries)])
            start += len(waiting.queries)
        return answers

    def _search(self, queries: Sequence[str], k: int) -> Found:
        found: Found = []
        for start in range(0, len(queries), self._max_batch):
            part = queries[start : start + self._max_batch]
            self.batches += 1
            hits = self._retriever.search(part, k)
            if len(hits) != len(part):
                raise DataError(
                    f"{type(self._retriever).__name__}.search gave {len(hits)} lists of hits for "
                    f"{len(part)} queries; expected one each."
                )
            found += hits
        return found


def _raisable(fault: Exception) -> Exception:
    """Return a fault that a future takes: not ``StopIteration``, which would end who waits."""
    if not isinstance(fault, StopIteration):
        return fault
    named = RuntimeError("the retriever raised StopIteration")
    named.__cause__ = fault
    return named
