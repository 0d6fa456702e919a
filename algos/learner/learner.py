"""The learner: policy, critic and reference on one device; scores paths and takes the steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...agents.models.out_of_memory import explain_out_of_memory
from ...envs.core.errors import BadValueError, TurngymError
from ..core.annotators import OldLogprobs
from ..core.forest import Forest, Ids
from ..core.kinds import Streams
from ..core.protocols import Annotations, Credits, Floats, Loss, LossBatch, LossOut, Norm
from ..core.recipe import Recipe
from ..core.schedule import warmup_factor
from .batching.micro_batch import MicroBatch
from .batching.rows import Row, mini_batches, rows_of
from .critic import Critic
from .freed_memory import give_memory_back
from .importance_weights import PathRejectedError, Protection, WeighedUpdate
from .loss_traits import computed, silent_without_advantage
from .memory_needs import MemoryNeeds, gradient_bytes, head_bytes, moment_bytes
from .model_bundle import Models
from .observation_loss import with_observations
from .offload import Offload, check_offload
from .optimizers import make_optimizer
from .parallel.team import Team, clip_norm
from .settings import LearnerSettings
from .update_log import UpdateLog, pieces

FILL = {"pair": -1.0}
"""What stands on padding in streams where 0 has a meaning."""


class LossNotFiniteError(TurngymError, ArithmeticError):
    """The loss became nan or infinite; nothing was changed by the failing mini batch."""


class Learner:
    """Holds the weights and changes them; see :meth:`update`. Implements :class:`Scorer`.

    Dropout stays off: the ratio of new to old log-probabilities must not be noise. Weight decay
    acts on all weights. The random order of mini batches depends on ``seed`` and the number of
    optimiser steps taken, so a resumed run draws the same.

    Args:
        policy: Any ``AutoModelForCausalLM``, or a small model of our own; trained in place.
        recipe: Gives loss, optimiser settings, temperature and whether there is a critic.
        pad_id: Token id that fills padding.
        settings: How to compute.
        seed: Of the mini batches' order.
        team: The learners of other processes, which share rows and weights with this one.
    """

    def __init__(
        self,
        policy: Any,
        recipe: Recipe,
        *,
        pad_id: int,
        settings: LearnerSettings | None = None,
        seed: int = 0,
        team: Team | None = None,
    ) -> None:
        if recipe.temperature <= 0:
            raise BadValueError(
                f"recipe {recipe.name}: temperature is {recipe.temperature}; training samples, so "
                "it must be above 0."
            )
        if team is not None and settings is not None:
            team.check(settings)
        self.recipe = recipe
        self.seed = seed
        self.policy = policy
        self.models = Models(policy, recipe, settings or LearnerSettings(), pad_id, team)
        self.optimizer_steps = 0
        self._fault = ""
        self._last: tuple[Forest, list[Row]] | None = None
        self.loss_is_silent = silent_without_advantage(recipe.loss)
        # the base of its ratio is then the engine's, which says nothing of the difference
        self._trusts_engine = OldLogprobs(source="sampled") in recipe.used_annotators
        groups = [
            {"params": params, "base_lr": lr, "lr": lr}
            for params, lr in zip(self._param_groups(), self._base_lrs(), strict=True)
        ]
        self.optimizer = make_optimizer(groups, recipe.optim, self.models.settings.optimizer)
        device = self.models.tokens.device
        check_offload(self.models.settings, device)
        self.offload: Offload | None = None
        if self.models.settings.offload:
            self.offload = Offload(self.optimizer, self.models.frozen, device)

    @property
    def critic(self) -> Critic | None:
        """The critic, where the recipe has one."""
        return self.models.critic

    def whole_policy(self) -> Any:
        """Return the policy with all of its weights; a collective call."""
        return self.models.team.whole(self.policy)

    def policy_for_engine(self, *, in_turn: bool) -> Any:
        """Return the policy as an engine takes its weights; a collective call.

        Args:
            in_turn: Whether the engine takes them before the next update.
        """
        return self.models.team.for_engine(self.policy, in_turn=in_turn)

    def spread_policy(self) -> None:
        """Apply changes of :meth:`whole_policy`."""
        self.models.team.spread(self.policy)

    # ------------------------------------------------------------------ memory

    def needs(self) -> MemoryNeeds:
        """Return what the next update will take of the device beyond what is there now."""
        models, settings = self.models, self.models.settings
        trained = [p for group in self._param_groups() for p in group]
        head = self.policy.get_output_embeddings()
        entries = models.tokens.piece_entries
        return MemoryNeeds(
            gradients=gradient_bytes(trained),
            moments=moment_bytes(trained, self.optimizer.state, settings.optimizer),
            activations=models.activation_bytes(),
            narrowed=models.narrowed_bytes(),
            head=0 if head is None else head_bytes(head.weight, entries, half=models.tokens.half),
        )

    def bytes_beside_engine(self) -> int:
        """Return what it will take beyond what it has now, while an engine has its own memory.

        With ``offload`` both take turns: what rests in main memory meanwhile counts below 0.
        """
        return self.needs().total if self.offload is None else -self.offload.frozen_bytes

    def rest(self) -> None:
        """Nothing will be asked until rollouts are there: free gradients, move what may go."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.offload is not None:
            self.offload.rest()

    def wake(self) -> None:
        """Bring back what rests."""
        if self.offload is not None:
            self.offload.wake()

    # ------------------------------------------------------------------ scoring

    def logprobs(self, forest: Forest) -> list[Floats]:
        """Return the log-probability in nats of every action token ``[n_act]`` per path."""
        return self.models.logprobs(self._rows_of(forest))

    def ref_logprobs(self, forest: Forest) -> list[Floats]:
        """Return the same under the frozen reference policy.

        Raises:
            BadValueError: The recipe asked for no reference.
        """
        self.wake()
        return self.models.ref_logprobs(self._rows_of(forest))

    def teacher_logprobs(self, forest: Forest) -> list[Floats]:
        """Return the same under the teacher.

        Raises:
            BadValueError: The recipe names no teacher.
        """
        self.wake()
        return self.models.teacher_logprobs(self._rows_of(forest))

    def values(self, forest: Forest) -> list[Floats]:
        """Return values ``[n_act + 1]`` per path: before each action token, and after the last.

        Raises:
            BadValueError: The recipe has no critic.
        """
        return self.models.values(self._rows_of(forest))

    def prompt_values(self, prompts: Sequence[Ids]) -> Floats:
        """Return critic values ``[prompts]`` of the states after these whole contexts ``[n]``.

        Raises:
            BadValueError: The recipe has no critic.
        """
        return self.models.prompt_values(prompts)

    # ------------------------------------------------------------------ training

    def update(
        self, forest: Forest, annotations: Annotations, credits: Credits, share: float = 1.0
    ) -> dict[str, float]:
        """Train on a forest: ``epochs x minibatches`` optimiser steps.

        Gradients are accumulated over micro batches exactly: every loss divides by the counts of
        the whole mini batch (:class:`Norm`). Paths with no advantage are not computed when the
        loss gives them no gradient, but they count in ``Norm``.

        Args:
            forest: The trainable paths.
            annotations: Arrays per path; ``old_logprobs`` is computed here when it is not there.
            credits: One array per path.
            share: The part of a whole rollout batch that this is, above 0 to 1: it takes this part
                of the mini batches, at least one, so that each of them is as large as ever.

        Returns:
            Metrics (declared keys); empty for an empty forest, which changes nothing.

        Raises:
            BadValueError: Credits or annotations that do not fit the forest.
            LossNotFiniteError: The loss is nan or infinite.
            MemoryFullError: The device's memory is full; names the setting that needs less.
        """
        if self.recipe.train_observations:
            (forest, credits), annotations = with_observations(forest, credits), {}
        return self._update(self._rows_of(forest), annotations, credits, share)

    def update_scoring(
        self,
        forest: Forest,
        annotations: Annotations,
        credits: Credits,
        share: float,
        guard: Protection,
    ) -> tuple[dict[str, float], list[Floats] | None] | None:
        """Train as :meth:`update` does, with the weights of ``guard`` and without a pass for them.

        That is so where all paths are one mini batch, once, of a large model on a CPU, whose
        passes compute the same with gradients and without. Paths that the loss is silent about
        are neither computed nor compared.

        Args:
            forest: The trainable paths.
            annotations: Arrays per path.
            credits: One array per path, not weighed yet.
            share: As in :meth:`update`.
            guard: What is done about the engine's difference.

        Returns:
            Metrics, and the log-probabilities before the update where all paths were computed.
            None where it cannot be, or a path has to be left out: nothing was changed then.
        """
        optim = self.recipe.optim
        one_step = optim.epochs == 1 and self._parts(share) == 1
        if not one_step or self.models.tokens.layers is None or "old_logprobs" in annotations:
            return None
        if self.recipe.train_observations or self.recipe.loss.masks:
            return None
        rows = self._rows_of(forest)
        weights = WeighedUpdate(guard, [row.sampled for row in rows])
        try:
            metrics = self._update(rows, annotations, credits, share, weights)
        except PathRejectedError:
            return None
        whole = len(weights.own) == len(rows)
        own = [weights.own[i] for i in range(len(rows))] if whole else None
        return metrics | weights.metrics(), own

    def silent(self, advantages: Sequence[Floats]) -> list[bool]:
        """Return which paths the loss is silent about, by their advantages ``[n_act]``."""
        return [self.loss_is_silent and not a.any() for a in advantages]

    def _update(
        self,
        rows: list[Row],
        annotations: Annotations,
        credits: Credits,
        share: float,
        weights: WeighedUpdate | None = None,
    ) -> dict[str, float]:
        if not rows:
            return {}
        self.wake()
        streams = self._streams(rows, annotations, credits)
        log = UpdateLog()
        if "old_logprobs" in streams and not self._trusts_engine:
            log.compare(rows, range(len(rows)), streams["old_logprobs"])
        with explain_out_of_memory("training on a micro batch", self.models.memory_hint()):
            for _ in range(self.recipe.optim.epochs):
                for chosen in self._mini_batches(rows, share):
                    self._step(rows, chosen, streams, log, weights)
        self._last = None
        self.models.batching.cache.clear()
        log.merge(self.models.team.ranks)
        return log.metrics(self.optimizer.param_groups)

    def _step(
        self,
        rows: Sequence[Row],
        chosen: Sequence[int],
        streams: Mapping[str, Sequence[Floats]],
        log: UpdateLog,
        weights: WeighedUpdate | None = None,
    ) -> None:
        kept = self._kept(rows, chosen, streams, log)
        norm = _norm(rows, chosen, streams, kept)
        silent = self.silent([streams["advantages"][i] for i in chosen])
        live = [
            i
            for i, skip in zip(chosen, silent, strict=True)
            if not skip and (i not in kept or kept[i].any())
        ]
        log.left_out(len(chosen) - len(live), len(chosen))
        share = sum(_tokens(rows, i, kept) for i in live) / norm.tokens
        self.optimizer.zero_grad(set_to_none=False)
        self._fault = ""
        models = self.models
        with models.opening(models.tokens, rows, live, training=True) as opening:
            for micro, batch, counts in models.team.batches(models.batching, rows, live, opening):
                mine = {
                    name: batch.table([values[i] for i in micro], FILL.get(name, 0.0))
                    for name, values in streams.items()
                }
                with models.computing(batch, training=True):
                    seen = self._loss_batch(rows, micro, batch, mine, norm)
                    if kept:
                        here = batch.table([kept[i] for i in micro])
                        seen = replace(seen, mask=here.to(seen.mask.dtype))
                    if weights is not None:
                        given = [streams["advantages"][i] for i in micro]
                        weighed = weights.weigh(micro, _own(seen, batch, rows, micro), given)
                        seen = replace(seen, advantages=batch.table(weighed))
                    out = self._backward(seen, batch, counts)
                if models.give_back_after == "micro batch":
                    give_memory_back()
                if not counts:
                    continue
                log.loss(out.loss, out.metrics, share)
                computed = "old_logprobs" in streams and not self._trusts_engine
                if log.steps == 0 and not computed:
                    log.compare(rows, micro, _own(seen, batch, rows, micro))
        self._check_finite()
        self._descend(log)

    def _check_finite(self) -> None:
        """Raise in all processes where the mini batch's loss is not finite in one of them."""
        faults = self.models.team.ranks.everyone(self._fault)
        if said := next(filter(None, faults), ""):
            raise LossNotFiniteError(said)

    def _backward(self, seen: LossBatch, batch: MicroBatch, counts: bool) -> LossOut:
        """Add a micro batch's gradients: of the policy, then of a critic of its own."""
        out = self._add_gradient(self.models.losses, seen, counts)
        if not self.models.value_losses:
            return out
        values = batch.spread(self.models.trained_values(batch))
        seen = replace(
            seen,
            logprobs=seen.logprobs.detach(),
            entropies=seen.entropies.detach(),
            extra=Streams(seen.extra, values=values),
        )
        late = self._add_gradient(self.models.value_losses, seen, counts)
        return LossOut(loss=out.loss + late.loss, metrics={**out.metrics, **late.metrics})

    def _add_gradient(self, losses: Sequence[Loss], seen: LossBatch, counts: bool) -> LossOut:
        outs = [computed(loss, seen) for loss in losses]
        whole = functools.reduce(torch.add, (out.loss for out in outs))
        metrics = {name: value for out in outs for name, value in out.metrics.items()}
        if not bool(torch.isfinite(whole)):  # said later: the other processes wait for this pass
            said = _say_not_finite(self.recipe.name, self.optimizer_steps, whole.detach(), metrics)
            self._fault = self._fault or said
        if not whole.requires_grad:
            raise BadValueError(
                f"recipe {self.recipe.name}: {type(self.recipe.loss).__name__} gave a loss without "
                "gradient; expected one that is computed from batch.logprobs, not detached."
            )
        self.models.team.backward(whole, counts)
        return LossOut(loss=whole.detach(), metrics=metrics)

    def _kept(
        self,
        rows: Sequence[Row],
        chosen: Sequence[int],
        streams: Mapping[str, Sequence[Floats]],
        log: UpdateLog,
    ) -> dict[int, npt.NDArray[np.bool_]]:
        """Return which tokens of a mini batch's rows the loss keeps; nothing where it keeps all."""
        loss = self.recipe.loss
        if not loss.masks or "old_logprobs" not in streams:
            return {}
        now = self.models.logprobs([rows[i] for i in chosen])
        old, advantages = streams["old_logprobs"], streams["advantages"]
        kept = {
            i: loss.keeps(own - old[i], advantages[i], rows[i].turns)
            for i, own in zip(chosen, now, strict=True)
        }
        log.masked(sum(int((~row).sum()) for row in kept.values()), sum(map(len, kept.values())))
        return kept

    def _loss_batch(
        self,
        rows: Sequence[Row],
        micro: Sequence[int],
        batch: MicroBatch,
        mine: dict[str, Tensor],
        norm: Norm,
    ) -> LossBatch:
        wants_values = "values" in self.recipe.loss.needs and not self.models.value_losses
        flat_logprobs, flat_entropies, values = self.models.trained(batch, wants_values)
        logprobs = batch.spread(flat_logprobs)
        extra = Streams({name: mine[name] for name in self.recipe.loss.needs if name in mine})
        if values is not None:
            extra["values"] = batch.spread(values)
        turns = np.full(tuple(logprobs.shape), -1, np.int64)
        for line, r in zip(turns, micro, strict=True):
            line[: rows[r].n_act] = rows[r].turns
        return LossBatch(
            logprobs=logprobs,
            old_logprobs=mine.get("old_logprobs", logprobs.detach()),
            entropies=batch.spread(flat_entropies),
            advantages=mine["advantages"],
            mask=batch.spread(torch.ones_like(flat_logprobs)),
            turns=torch.from_numpy(turns).to(logprobs.device),
            norm=norm,
            extra=extra,
        )

    def _descend(self, log: UpdateLog) -> None:
        """Take one optimiser step, unless the gradient is not finite."""
        optim = self.recipe.optim
        factor = warmup_factor(self.optimizer_steps, optim.warmup_steps)
        norms = []
        frozen = self.optimizer_steps < optim.critic_only_steps
        for i, group in enumerate(self.optimizer.param_groups):
            if frozen and i == 0:
                group["lr"] = 0.0
                for p in group["params"]:
                    p.grad = None  # AdamW then leaves the policy alone, bit for bit
                norms.append(0.0)
                continue
            group["lr"] = group["base_lr"] * factor
            for p in group["params"]:
                # A batch without any signal still moves by momentum, as it would have moved if
                # its zero gradients had been computed.
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            norms.append(clip_norm(group["params"], optim.grad_clip))
        finite = all(math.isfinite(n) for n in norms)
        if finite:
            self.optimizer.step()
        self.optimizer_steps += 1
        log.step(norms, finite)
        if self.models.give_back_after is not None:
            give_memory_back()

    # ------------------------------------------------------------------ pieces

    def _rows_of(self, forest: Forest) -> list[Row]:
        """Return the rows of a forest; those of the last one as they were made, until an update."""
        if self._last is None or self._last[0] is not forest:
            self._last = forest, rows_of(forest)
        return self._last[1]

    def _streams(
        self, rows: Sequence[Row], annotations: Annotations, credits: Credits
    ) -> dict[str, Sequence[Floats]]:
        """Return all per-token streams that the loss reads, checked against the rows."""
        streams: dict[str, Sequence[Floats]] = {"advantages": credits.advantages}
        optim = self.recipe.optim
        if "old_logprobs" in annotations:
            streams["old_logprobs"] = annotations["old_logprobs"]
        elif optim.epochs * optim.minibatches > 1:
            streams["old_logprobs"] = self.models.logprobs(rows)
        have = {"value_targets": credits.value_targets, **annotations, **credits.extra}
        if "values" in annotations:
            have["old_values"] = [v[:-1] for v in annotations["values"]]
        for name in sorted(self.recipe.loss.needs - {"values", "old_logprobs"}):
            if not have.get(name):
                raise BadValueError(
                    f"recipe {self.recipe.name}: the loss reads {name!r}, which neither the "
                    f"annotators nor the credit rule gave; got {sorted(have)}."
                )
            streams[name] = have[name]
        for name, arrays in streams.items():
            got = [len(a) for a in arrays]
            if got != [row.n_act for row in rows]:
                raise BadValueError(
                    f"recipe {self.recipe.name}: {name} has lengths {got[:8]}; expected one value "
                    f"per action token of each path, {[row.n_act for row in rows][:8]}."
                )
        return streams

    def _mini_batches(self, rows: Sequence[Row], share: float) -> list[list[int]]:
        rng = np.random.default_rng([self.seed, self.optimizer_steps])
        return mini_batches(rows, self._parts(share), rng)

    def _parts(self, share: float) -> int:
        """Return the most mini batches of this part of a rollout batch."""
        return max(1, int(self.recipe.optim.minibatches * share + 0.5))

    def _param_groups(self) -> list[list[Tensor]]:
        models = [self.policy] if self.critic is None else [self.policy, self.critic]
        return [[p for p in m.parameters() if p.requires_grad] for m in models]

    def _base_lrs(self) -> list[float]:
        optim = self.recipe.optim
        return [optim.lr] if self.critic is None else [optim.lr, optim.critic_lr]


def _own(
    seen: LossBatch, batch: MicroBatch, rows: Sequence[Row], micro: Sequence[int]
) -> list[Floats]:
    """Return the log-probabilities ``[n_act]`` of the rows of a micro batch."""
    flat = seen.logprobs.detach()[batch.path, batch.column].cpu().numpy()
    return pieces(flat, rows, micro)


def _norm(
    rows: Sequence[Row],
    chosen: Sequence[int],
    streams: Mapping[str, Any],
    kept: Mapping[int, npt.NDArray[np.bool_]],
) -> Norm:
    """Return counts of a whole mini batch, of the tokens that are kept."""
    pairs = (
        np.concatenate([streams["pair"][i] for i in chosen]) if "pair" in streams else np.empty(0)
    )
    tokens = [_tokens(rows, i, kept) for i in chosen]
    return Norm(
        tokens=float(max(1, sum(tokens))),
        paths=float(max(1, sum(n > 0 for n in tokens))),
        pairs=float(len(np.unique(pairs[pairs >= 0]))),
    )


def _tokens(rows: Sequence[Row], at: int, kept: Mapping[int, npt.NDArray[np.bool_]]) -> int:
    """Return the number of trained tokens of a row."""
    return int(kept[at].sum()) if at in kept else rows[at].n_act


def _say_not_finite(name: str, step: int, loss: Tensor, parts: Mapping[str, Tensor]) -> str:
    shown = ", ".join(f"{k} {float(v):.4g}" for k, v in {"loss": loss, **parts}.items())
    return (
        f"recipe {name}: the loss of optimiser step {step} is not finite ({shown}); its mini batch "
        "changed nothing. Try a lower learning rate, or --precision float32, in a new run from the "
        "last checkpoint: turngym train --config RUN --model RUN --warm-start 0 "
        "--recipe.optim.lr RATE --run-dir NEW. Where there is none yet, leave --model and "
        "--warm-start out: it begins where this run began."
    )
