"""The engine in this process: continuous batching over a kept key-value cache.

Coroutines await :meth:`TransformersEngine.generate` in one event loop; one of those that wait
drives: it lets every coroutine that is ready hand in its request, then takes a step for all. A row
that ends frees its place at once, and there is no barrier between turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ....envs.core.errors import BadValueError, EpisodeError
from ...models.device_memory import cache_bytes, device_memory, prepare_card
from ...models.loading import (
    check_context,
    check_match,
    context_limit,
    load_model,
    resolve_dtype,
    warn_of_emulation,
)
from ...models.lora import has_adapters, merged_view, without_adapters
from ...models.out_of_memory import NoRoomError
from ...models.size import is_large
from ...rendering.token_text import TokenText
from ..base import (
    Completion,
    CopiedEngine,
    EngineSource,
    PendingRequest,
    Request,
    StopReason,
    check_request,
    open_episodes,
)
from ..sampling import Draws, compiled_loops
from ..stopping import StopRules, end_ids
from ..transfers import to_device
from .decode_graphs import DecodeGraphs
from .forward import Forward, Piece, Repeat
from .kv_cache import Ids, KvPool, common_length, row_bytes
from .packed_decoder import FastDecoder
from .packed_weights import why_not_fast
from .scheduler import Batch, Job

_UNBOUNDED_CONTEXT = 32_768
_LEAST_ROWS = 24
"""Contexts that the cache of a large model on a CPU has room for if it can: with 16 rows it has
enough to do at a time, and some are with their environments."""
_PATIENCE = 16
"""Captured steps that prompts wait for one another at most."""
_SHARED = 64
"""Tokens that are worth being copied from another's context, or a step's wait for them."""


class TransformersEngine(CopiedEngine):
    """Samples from a transformers model on a CPU or a CUDA device.

    The engine holds a copy of the weights: training the model changes nothing here until
    :meth:`sync`. Models of the Llama, Qwen and Gemma-3 families run through a packed decoder, all
    others through their own forward.

    Args:
        model: A causal language model.
        tokenizer: Its tokenizer, for stop strings and end-of-text ids.
        max_batch: Maximum number of requests that are sampled at a time; further ones wait.
        dtype: Number format of the copy, ``"auto"`` for bfloat16 where the device has it;
            log-probabilities are then about 1e-2 from those of float32.
        max_context: Maximum tokens of context and action together; None is the model's own limit.
        cache_gib: Memory for keys and values; None is 2 GiB on a CPU, half of what is free on CUDA.
        cuda_graphs: Whether decode steps of the packed decoder are captured as CUDA graphs.
        device: Where it samples; None is where the model is.
        owned: Whether the model is this engine's alone, which may then sample from it itself.

    Attributes:
        live_first: Whether requests whose cache is alive are admitted before others that came
            earlier, as on CUDA and for models from 34 million weights. Tokens are the same up to
            the rounding of batched arithmetic, so smaller models on a CPU, whose runs are published
            to the last digit, keep to the order of arrival.
        holds_back: Whether new episodes wait until the cache has a row that no open one will come
            back to, and copy what others' contexts have in common with theirs: for models from 34
            million weights on a CPU, whose cache is small beside the contexts of a long prompt.

    Raises:
        BadValueError: A bad setting, or a model that this engine cannot sample from.
    """

    def __init__(  # noqa: PLR0913 - settings by name
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_batch: int = 64,
        dtype: str | torch.dtype | None = "auto",
        max_context: int | None = None,
        cache_gib: float | None = None,
        cuda_graphs: bool = True,
        device: str | torch.device | None = None,
        owned: bool = False,
    ) -> None:
        if max_batch < 1:
            raise BadValueError(f"engine: max_batch is {max_batch}; expected at least 1.")
        if cache_gib is not None and not cache_gib > 0:
            raise BadValueError(f"engine: cache_gib is {cache_gib}; expected more than 0.")
        learner, model = model, without_adapters(model)
        check_match(model, tokenizer)
        if max_context is not None:
            check_context(model, max_context)
        longest = max_context or context_limit(model) or _UNBOUNDED_CONTEXT
        place = next(model.parameters()).device if device is None else torch.device(device)
        prepare_card(place)
        graphs = DecodeGraphs(max_batch) if cuda_graphs and place.type == "cuda" else None
        form = resolve_dtype(dtype, place)
        self._forward = choose_forward(model, form, longest, graphs, place, owned=owned)
        if has_adapters(learner):
            self._forward.load(merged_view(learner))
        shape, rows, size = self._forward.shape, 2 * max_batch, cache_bytes(cache_gib, place)
        self._cache = CacheNeeds(row_bytes(shape, longest), rows, cache_gib is not None)
        on_cpu = place.type == "cpu"
        # Contexts of a large model are too dear to be read again: beyond 2 max_batch open episodes,
        # or 22 of Retail with 135 million weights, hardly a later turn finds its cache in order.
        self.holds_back = on_cpu and is_large(model)
        self.live_first = self.holds_back or not on_cpu
        self._pool = KvPool(
            shape,
            rows,
            size if on_cpu else min(size, self._cache.most),
            fixed=self.live_first,
            least_rows=_LEAST_ROWS if self.holds_back else 0,
        )
        vocabulary = self._forward.vocabulary
        stops = StopRules(TokenText(tokenizer), vocabulary, end_ids(model, tokenizer))
        when_full = f"lower max_batch (--max-batch {max(1, max_batch // 2)}, was {max_batch})."
        super().__init__(stops, vocabulary, longest, when_full)
        # With a large model keys and values take as much as the learner keeps for an update, and
        # its new weights make them worthless.
        self._device, self._in_turn = place, self.holds_back
        self._chunk = 1024 if on_cpu else 16_384
        self.max_open = None if on_cpu else open_episodes(max_batch)
        self._max_batch = max_batch
        self._waiting: list[Job] = []
        self._batch = Batch()
        self._since = 0  # steps since prompts were last read

    def release(self, cache: int | None) -> None:
        """The handle will not be used again."""
        self._pool.release(cache)

    def settle(self, learner_bytes: int, *, in_turn: bool = False) -> None:
        """Fix the memory for keys and values on CUDA; on a CPU it is taken as it is needed.

        Raises:
            BadValueError: One context would not fit into what is left.
        """
        if self._device.type == "cpu":
            return
        self._in_turn = in_turn
        if not self._cache.given:
            free, total = device_memory(self._device)
            self._pool.give_back(self._cache.settled(free, total, learner_bytes))

    def rest(self) -> None:
        """Give the cache's memory back where the learner needs it; else it stays as it is."""
        if self._in_turn and not self._pending():
            self._pool.give_back()

    def sync(self, model: Any, version: int | None = None) -> None:
        """Take the learner's present weights; every cache handle dies.

        Args:
            model: Same architecture as the engine's.
            version: New :attr:`version`; None counts on.

        Raises:
            EpisodeError: Requests are being sampled.
        """
        if self._waiting or len(self._batch):
            raise EpisodeError(
                f"engine: sync while {len(self._waiting) + len(self._batch)} requests are being "
                "sampled; await them first."
            )
        self._forward.load(merged_view(model))
        self._pool.clear()
        self._version = self._version + 1 if version is None else version

    async def generate(self, request: Request) -> Completion:
        """Sample one action, see :class:`~turngym.agents.engines.base.Engine`.

        Raises:
            BadValueError: The context is empty, holds unknown ids, leaves no room for a token, or
                does not fit into the cache's memory.
        """
        job = self._accept(request)
        self._waiting.append(job)
        return await self._answer(job)

    # ------------------------------------------------------------------ requests and steps

    def _pending(self) -> tuple[Job, ...]:
        return (*self._batch.jobs, *self._waiting)

    def _drop_all(self) -> None:
        for job in self._pending():
            job.row = None
        self._batch, self._waiting = Batch(), []
        self._pool.wipe()

    def _leave(self, request: PendingRequest) -> None:
        if request.completion is not None:
            return
        self._waiting = [job for job in self._waiting if job is not request]
        gone = np.array([job is request for job in self._batch.jobs], dtype=bool)
        if gone.any():
            row = self._batch.jobs[int(gone.argmax())].row
            if row is not None:
                self._pool.drop(row)
            self._batch.remove(gone)

    @torch.inference_mode()
    def _step(self) -> None:
        """Admit what waits, and one token for every running row, in one pass or in two."""
        if self._waiting and self._worth_a_pass() and self._admit():
            return
        if not len(self._batch):
            return
        self._since += 1
        batch, pool = self._batch, self._pool
        if self._forward.wants_front and pool.compact(slack=max(4, len(batch) // 4)):
            batch.locate()
        rows, tokens = batch.rows, batch.last_tokens()
        pool.tokens[rows, pool.lengths[rows]] = tokens
        everyone = np.arange(len(batch))
        draws = batch.draws(everyone)
        if (repeat := self._forward.repeat) is None:
            logits = self._forward.decode(pool, rows, tokens, draws)
        else:
            logits = self._decode_joined(rows, tokens, repeat)
        pool.lengths[rows] += 1
        self._sample(everyone, logits, draws)

    def _decode_joined(self, rows: Ids, tokens: Ids, repeat: Repeat) -> torch.Tensor:
        """Compute contexts that several rows have once: copies of a prompt say much the same."""
        first, place = self._batch.distinct(tokens)
        if len(first) == len(rows):
            return self._forward.decode(self._pool, rows, tokens)
        logits = self._forward.decode(self._pool, rows[first], tokens[first])
        repeat(self._pool, rows[first][place], rows)
        return logits[torch.from_numpy(place)]

    # ------------------------------------------------------------------ admission

    def _accept(self, request: Request) -> Job:
        ids, limit = check_request(request, self._vocabulary, self._max_context)
        job = Job(request, ids, limit, self._stops.index(request.sampling.stop))
        if not self._pool.fits(job.max_cached):
            raise BadValueError(
                f"engine: {job.max_cached} tokens do not fit into the cache's memory; raise "
                "cache_gib or lower max_tokens."
            )
        return job

    def _worth_a_pass(self) -> bool:
        """Whether there is room, and where steps are captured, as many requests wait as run.

        Short actions would leave none of these, which cost a fraction of a pass with prompts. No
        request waits longer than some of these steps, however long the running ones go on.
        """
        patient = self._forward.captures and self._since < _PATIENCE
        least = len(self._batch) if patient else 0
        return len(self._waiting) >= least and len(self._batch) < self._max_batch

    def _admit(self) -> bool:
        """Give waiting requests rows, see :meth:`_choose`, and run their new tokens.

        Returns:
            Whether the running rows had their next token in the same pass.
        """
        admitted, feeds, twins = self._choose()
        if not admitted:
            return False
        self._since = 0
        old = len(self._batch)
        logits, running = self._prefill(feeds, self._next_pieces() if self._forward.mixes else [])
        source = {id(job): i for i, (job, _) in enumerate(feeds)}
        for i, jobs in twins.items():
            lead = feeds[i][0]
            assert lead.row is not None
            self._pool.copy(lead.row, [j.row for j in jobs if j.row is not None], len(lead.ids))
            source.update({id(job): i for job in jobs})
        order = [source[id(job)] for job in admitted]
        if order != list(range(len(feeds))):
            logits = logits[to_device(np.array(order), logits.device)]
        # not before: who is in neither is not told when the pass fails
        self._waiting = [job for job in self._waiting if job.row is None]
        self._batch.add(admitted, order)
        if running is None:
            self._sample(np.arange(old, old + len(admitted)), logits)
            return False
        self._sample(np.arange(len(self._batch)), torch.cat([running, logits]))
        return True

    def _choose(self) -> tuple[list[Job], list[tuple[Job, int]], dict[int, list[Job]]]:
        """Give waiting requests rows, in the order of :meth:`_queue`, as far as there are any.

        Returns:
            Who has a row now; of them those to feed, each with its first token to feed; and the
            jobs with the same context as one that is fed, by its place among these.
        """
        admitted: list[Job] = []
        feeds: list[tuple[Job, int]] = []
        twins: dict[int, list[Job]] = {}
        seen: dict[bytes, int] = {}
        if self.holds_back:
            self._pool.lay_out(max(job.max_cached for job in self._waiting))
        for job in self._queue():
            if len(self._batch) + len(admitted) == self._max_batch:
                break
            if self._must_wait(job, alone=not admitted and not len(self._batch)):
                break
            key = job.ids.tobytes()
            first = seen.get(key)
            if first is None and self._soon_known(job, feeds):
                continue
            cut = self._place(job) if first is None else self._place_twin(job)
            if cut is None:
                break
            self._counts[:2] += len(job.ids), cut if first is None else len(job.ids)
            if first is None:
                seen[key] = len(feeds)
                feeds.append((job, cut))
            else:
                twins.setdefault(first, []).append(job)
            admitted.append(job)
        return admitted, feeds, twins

    def _next_pieces(self) -> list[Piece]:
        """Return the last token of each running row as what is fed next."""
        batch, pool = self._batch, self._pool
        batch.locate()  # admitting may have moved rows
        rows, tokens = batch.rows, batch.last_tokens()
        pool.tokens[rows, pool.lengths[rows]] = tokens
        each = zip(rows, pool.lengths[rows], tokens[:, None], strict=True)
        return [Piece(int(row), int(length), token) for row, length, token in each]

    def _queue(self) -> list[Job]:
        """Return what waits in the order of admission.

        An episode's next turn finds its cache only until the rows are needed for others: were all
        first turns admitted first, every later one of many episodes would start from nothing.
        """
        if not self.live_first:
            return self._waiting
        alive, holds_back = self._pool.alive, self.holds_back

        def place(job: Job) -> int:
            if alive(job.request.cache):
                return 0
            return 2 if holds_back and job.request.cache is None else 1

        return sorted(self._waiting, key=place)

    def _must_wait(self, job: Job, *, alone: bool) -> bool:
        """Whether a job without a cache has to wait for one that is open to end.

        Where nothing else can run it need not: what is kept may belong to who never comes back.
        """
        if not self.holds_back or alone or self._pool.alive(job.request.cache):
            return False
        return not self._pool.spares(job.max_cached)

    def _soon_known(self, job: Job, feeds: Sequence[tuple[Job, int]]) -> bool:
        """Whether the next step finds far more of a job's context than this one does."""
        if not self.holds_back or self._pool.alive(job.request.cache):
            return False
        shared = max((common_length(job.ids, other.ids) for other, _ in feeds), default=0)
        return shared >= _SHARED + self._pool.longest_shared(job.ids)[1]

    def _place(self, job: Job) -> int | None:
        """Give a job a row; how many of its tokens are cached there, None if it must wait."""
        row, cut = self._pool.reusable(job.request.cache, job.ids)
        if row is None and self.holds_back:
            row, cut = self._pool.longest_shared(job.ids)
            row, cut = (row, cut) if cut >= _SHARED else (None, 0)
        if row is not None and self._pool.extendable(row, cut):
            if not self._pool.extend(row, job.max_cached, cut):
                return None
            job.row = row
        else:
            job.row = self._pool.acquire(job.max_cached, keep=row)
            if job.row is None and row is not None:
                # no room for the branch beside its trunk: better from nothing than not at all
                row, cut = None, 0
                job.row = self._pool.acquire(job.max_cached)
            if job.row is None:
                return None
            if row is not None:
                self._pool.copy(row, [job.row], cut)
        self._pool.tokens[job.row.index, cut : len(job.ids)] = job.ids[cut:]
        return cut

    def _place_twin(self, job: Job) -> int | None:
        job.row = self._pool.acquire(job.max_cached)
        return None if job.row is None else 0

    def _prefill(
        self, feeds: Sequence[tuple[Job, int]], also: list[Piece]
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run new tokens in chunks of similar lengths, with the first of them ``also``.

        Returns:
            Logits in the order of ``feeds``, and those of ``also``; None where that is empty.
        """
        running: torch.Tensor | None = None
        todo = sorted(range(len(feeds)), key=lambda i: len(feeds[i][0].ids) - feeds[i][1])
        logits: list[torch.Tensor] = []
        order: list[int] = []
        while todo:
            chunk = [todo.pop()]
            job, cut = feeds[chunk[0]]
            while len(job.ids) - cut > self._chunk:
                self._run([(job, cut, cut + self._chunk)])
                cut += self._chunk
            width = len(job.ids) - cut
            while todo and (len(chunk) + 1) * width <= self._chunk:
                chunk.append(todo.pop())
            starts = [cut, *(feeds[i][1] for i in chunk[1:])]
            spans = [
                (feeds[i][0], c, len(feeds[i][0].ids)) for i, c in zip(chunk, starts, strict=True)
            ]
            found = self._run(spans, also)
            if also:
                running, found, also = found[: len(also)], found[len(also) :], []
            logits.append(found)
            order += chunk
        joined = torch.cat(logits) if len(logits) > 1 else logits[0]
        return joined[to_device(np.argsort(order), joined.device)], running

    def _run(
        self, spans: Sequence[tuple[Job, int, int]], also: Sequence[Piece] = ()
    ) -> torch.Tensor:
        pieces = [*also] + [
            Piece(job.row.index, start, job.ids[start:stop])
            for job, start, stop in spans
            if job.row is not None
        ]
        logits = self._forward.feed(self._pool, pieces)
        for piece in pieces:
            self._pool.lengths[piece.row] = piece.start + len(piece.ids)
        return logits

    # ------------------------------------------------------------------ sampling and ending

    def _sample(self, which: Ids, logits: torch.Tensor, draws: Draws | None = None) -> None:
        batch = self._batch
        drawn = (draws or batch.draws(which)).sample(logits)
        drawn.check_finite()
        batch.record_likeliest(which, logits)
        full = batch.record(which, drawn)
        suspect = self._stops.suspects(batch.stop_sets[which], drawn.tokens) | full
        if not suspect.any():
            return
        gone = np.zeros(len(batch), dtype=bool)
        for at in np.flatnonzero(suspect):
            i = int(which[at])
            reason = self._why_stop(i, bool(full[at]))
            if reason is not None:
                self._finish(i, reason)
                gone[i] = True
        if gone.any():
            batch.remove(gone)

    def _why_stop(self, i: int, full: bool) -> StopReason | None:
        action = self._batch.action(i)
        if int(action[-1]) in self._stops.eos_ids:
            return "eos"
        if self._stops.hit(int(self._batch.stop_sets[i]), action):
            return "stop"
        return "length" if full else None

    def _finish(self, i: int, reason: StopReason) -> None:
        job = self._batch.jobs[i]
        assert job.row is not None
        logprobs, entropies = self._batch.measures(i)
        self._counts[2] += len(logprobs)
        job.completion = Completion(
            ids=self._batch.action(i).copy(),
            logprobs=logprobs,
            entropies=entropies,
            stop=reason,
            cache=self._pool.park(job.row),
            top_logprobs=np.stack(job.likeliest) if job.likeliest else None,
        )
        job.wake()


def build(source: EngineSource) -> TransformersEngine:
    """Build the engine from the learner's model, or from one that is loaded for it alone.

    Raises:
        BadValueError: No model, or one that cannot be sampled from.
    """
    model = source.learner
    return TransformersEngine(
        load_model(source.model, device=source.device, own_class=True) if model is None else model,
        source.tokenizer,
        max_batch=source.max_batch,
        dtype=source.dtype,
        max_context=source.max_context,
        cache_gib=source.cache_gib,
        cuda_graphs=source.cuda_graphs,
        device=source.device if source.elsewhere else None,
        owned=model is None,
    )


def choose_forward(
    model: Any,
    dtype: torch.dtype,
    max_context: int,
    graphs: DecodeGraphs | None = None,
    device: torch.device | None = None,
    *,
    owned: bool = False,
) -> Forward:
    """Return the packed decoder where it knows the model, else the model's own forward.

    With numba on few cores the packed decoder's own loops are compiled. ``graphs`` captures the
    packed decoder's steps on CUDA; ``device`` is where it computes, None where the model is. A
    model that is ``owned`` may be kept in place of a copy.

    Raises:
        BadValueError: Neither can sample from it; the message says why.
    """
    place = device or next(model.parameters()).device
    warn_of_emulation(dtype, place, "the engine")
    if why_not_fast(model, max_context) is None:
        if compiled_loops() is not None and place.type == "cpu":
            from .numba_decoder import NativeDecoder, why_not_native  # needs numba

            if why_not_native(model, dtype) is None:
                return NativeDecoder(model, dtype, max_context)
        return FastDecoder(model, dtype, max_context, graphs, device)
    from .hf_forward import HfForward  # transformers is slow to import

    return HfForward(model, dtype, max_context, device, owned=owned)


RESERVE = 0.08
"""Share of a device's memory that neither engine nor learner plans with: context and gaps."""


@dataclass(frozen=True, slots=True)
class CacheNeeds:
    """What the key-value cache of an engine can use.

    Attributes:
        row: Bytes of one context of the greatest length.
        rows: Contexts that it holds at most.
        given: Whether its size was asked for, and is not to be decided here.
    """

    row: int
    rows: int
    given: bool

    @property
    def most(self) -> int:
        """Bytes beyond which there is nothing to keep."""
        return self.row * self.rows

    def settled(self, free: int, total: int, learner_bytes: int) -> int:
        """Return the bytes for the cache.

        Args:
            free: Of the device, now.
            total: Of the device.
            learner_bytes: What the learner will take beyond what it has.

        Raises:
            NoRoomError: One context does not fit.
        """
        left = free - learner_bytes - int(RESERVE * total)
        if left < self.row:
            gb = [f"{n / 1e9:.1f} GB" for n in (free, learner_bytes, max(0, left), self.row)]
            raise NoRoomError(
                f"engine: {gb[0]} of the device are free, and the learner will take {gb[1]} of "
                f"them for gradients, moments and activations. {gb[2]} are left for keys and "
                f"values, but one whole context takes {gb[3]}.",
                "Lower micro_batch_tokens or max_context, or turn on gradient_checkpointing, "
                "offload or adapters (--micro-batch-tokens, --max-context, "
                "--gradient-checkpointing, --offload, --lora-rank).",
            )
        return min(left, self.most)
