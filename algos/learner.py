"""The learner: policy, critic and reference on one device; scores paths and takes the steps."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..envs.errors import BadValueError, TurngymError
from .contracts import Credits, Floats, LossBatch, Norm, Notes
from .critic import Critic
from .forest import Forest, Ids
from .learner_settings import LearnerSettings
from .probe import reads_entropy, silent_without_advantage
from .recipe import Recipe
from .rows import Row, micro_batches, rows_of
from .schedule import warmup_factor
from .scoring import Padded, TokenModel, quick_cpu_maths
from .update_log import UpdateLog, pieces


class LossNotFiniteError(TurngymError, ArithmeticError):
    """The loss became nan or infinite; nothing was changed by the failing mini batch."""


class Learner:
    """Holds the weights and changes them; see :meth:`update`. Implements :class:`Scorer`.

    Dropout stays off: the ratio of new to old log-probabilities must not be noise. Weight decay
    acts on all weights. The random order of mini batches depends on ``seed`` and the number of
    optimiser steps taken, so a resumed run draws the same.

    Args:
        policy: Any ``AutoModelForCausalLM``; trained in place.
        recipe: Gives loss, optimiser settings, temperature and whether there is a critic.
        pad_id: Token id that fills padding.
        settings: How to compute.
        seed: Of the mini batches' order.
    """

    def __init__(
        self,
        policy: Any,
        recipe: Recipe,
        *,
        pad_id: int,
        settings: LearnerSettings | None = None,
        seed: int = 0,
    ) -> None:
        if recipe.temperature <= 0:
            raise BadValueError(
                f"recipe {recipe.name}: temperature is {recipe.temperature}; training samples, so "
                "it must be above 0."
            )
        self.settings = settings or LearnerSettings()
        self.recipe = recipe
        self.pad_id = pad_id
        self.seed = seed
        self.policy = policy.eval()
        self.tokens = TokenModel(
            policy, recipe.temperature, self.settings.precision, reads_entropy(recipe.loss)
        )
        self.critic = Critic(policy, self.settings.critic) if recipe.critic else None
        self.reference = self._frozen_copy() if recipe.reference else None
        self.optimizer_steps = 0
        self.loss_is_silent = silent_without_advantage(recipe.loss)
        optim = recipe.optim
        self.optimizer = torch.optim.AdamW(
            [
                {"params": params, "base_lr": lr, "lr": lr}
                for params, lr in zip(self._param_groups(), self._base_lrs(), strict=True)
            ],
            betas=optim.betas,
            weight_decay=optim.weight_decay,
            fused=True,
        )

    # ------------------------------------------------------------------ scoring

    def logprobs(self, forest: Forest) -> list[Floats]:
        """Log-probability in nats of every action token ``[n_act]`` per path."""
        return self._scores(self.tokens, rows_of(forest))

    def ref_logprobs(self, forest: Forest) -> list[Floats]:
        """The same under the frozen reference policy.

        Raises:
            BadValueError: The recipe asked for no reference.
        """
        if self.reference is None:
            raise BadValueError(
                f"recipe {self.recipe.name}: no reference policy is held, because no part of the "
                "recipe names 'ref_logprobs'."
            )
        return self._scores(self.reference, rows_of(forest))

    def values(self, forest: Forest) -> list[Floats]:
        """Critic values ``[n_act + 1]`` per path: before each action token, then after the last.

        Raises:
            BadValueError: The recipe has no critic.
        """
        if self.critic is None:
            raise BadValueError(f"recipe {self.recipe.name}: there is no critic to ask for values.")
        rows = rows_of(forest)
        out: list[Floats] = [np.empty(0, np.float32)] * len(rows)
        for micro, batch in self._padded(rows, range(len(rows))):
            with torch.no_grad(), self._maths(batch):
                at_each = self._values(batch, None, every=True).cpu().numpy()
            for i, r in enumerate(micro):
                before = rows[r].at - 1
                out[r] = at_each[i][np.append(before, rows[r].at[-1])]
        return out

    def prompt_values(self, prompts: Sequence[Ids]) -> Floats:
        """Critic values ``[prompts]`` of the states after these whole contexts ``[n]``.

        Raises:
            BadValueError: The recipe has no critic.
        """
        if self.critic is None:
            raise BadValueError(f"recipe {self.recipe.name}: there is no critic to ask for values.")
        out = np.empty(len(prompts), np.float32)
        no_turn = np.zeros(1, np.int64)
        rows = [
            Row(ids, np.array([len(ids) - 1]), no_turn, np.zeros(1, np.float32)) for ids in prompts
        ]
        for micro, batch in self._padded(rows, range(len(rows))):
            with torch.no_grad(), self._maths(batch):
                at_each = self._values(batch, None, every=True).cpu().numpy()
            out[micro] = [at_each[i, len(prompts[r]) - 1] for i, r in enumerate(micro)]
        return out

    # ------------------------------------------------------------------ training

    def update(self, forest: Forest, notes: Notes, credits: Credits) -> dict[str, float]:
        """Train on a forest: ``epochs x minibatches`` optimiser steps.

        Gradients are accumulated over micro batches exactly: every loss divides by the counts of
        the whole mini batch (:class:`Norm`). Paths with no advantage are not computed when the
        loss gives them no gradient, but they count in ``Norm``.

        Args:
            forest: The trainable paths.
            notes: Annotations per path; ``old_logprobs`` is computed here when it is not there.
            credits: One array per path.

        Returns:
            Metrics (declared keys); empty for an empty forest, which changes nothing.

        Raises:
            BadValueError: Credits or notes that do not fit the forest.
            LossNotFiniteError: The loss is nan or infinite.
        """
        rows = rows_of(forest)
        if not rows:
            return {}
        streams = self._streams(rows, notes, credits)
        log = UpdateLog()
        if "old_logprobs" in streams:
            log.compare(rows, range(len(rows)), streams["old_logprobs"])
        for _ in range(self.recipe.optim.epochs):
            for chosen in self._mini_batches(len(rows)):
                self._step(rows, chosen, streams, log)
        return log.metrics(self.optimizer.param_groups)

    def _step(
        self,
        rows: Sequence[Row],
        chosen: Sequence[int],
        streams: Mapping[str, Sequence[Floats]],
        log: UpdateLog,
    ) -> None:
        norm = Norm(float(sum(rows[i].n_act for i in chosen)), float(len(chosen)))
        live = [i for i in chosen if not self.loss_is_silent or streams["advantages"][i].any()]
        log.left_out(len(chosen) - len(live), len(chosen))
        share = sum(rows[i].n_act for i in live) / norm.tokens
        self.optimizer.zero_grad(set_to_none=False)
        for micro, batch in self._padded(rows, live):
            mine = {
                name: batch.table([values[i] for i in micro]) for name, values in streams.items()
            }
            with self._maths(batch):
                seen = self._loss_batch(rows, micro, batch, mine, norm)
                out = self.recipe.loss(seen)
                if not bool(torch.isfinite(out.loss)):
                    raise _not_finite(self.recipe.name, self.optimizer_steps, out.metrics)
                out.loss.backward()
            log.loss(out.loss, out.metrics, share)
            if "old_logprobs" not in streams:
                own = seen.logprobs.detach()[batch.row, batch.column].cpu().numpy()
                log.compare(rows, micro, pieces(own, rows, micro))
        self._descend(log)

    def _loss_batch(
        self,
        rows: Sequence[Row],
        micro: Sequence[int],
        batch: Padded,
        mine: dict[str, Tensor],
        norm: Norm,
    ) -> LossBatch:
        states = self.tokens.hidden(batch.ids) if self.tokens.separable else None
        flat_logprobs, flat_entropies = self.tokens.score(batch, states)
        logprobs = batch.spread(flat_logprobs)
        extra = {name: mine[name] for name in self.recipe.loss.needs if name in mine}
        if "values" in self.recipe.loss.needs:
            extra["values"] = batch.spread(self._values(batch, states, every=False))
        turns = torch.full_like(logprobs, -1, dtype=torch.int64)
        for i, r in enumerate(micro):
            turns[i, : rows[r].n_act] = torch.from_numpy(rows[r].turns).to(turns.device)
        return LossBatch(
            logprobs=logprobs,
            old_logprobs=mine.get("old_logprobs", logprobs.detach()),
            entropies=batch.spread(flat_entropies),
            advantages=mine["advantages"],
            mask=batch.spread(torch.ones_like(flat_logprobs)),
            turns=turns,
            norm=norm,
            extra=extra,
        )

    def _descend(self, log: UpdateLog) -> None:
        """One optimiser step, unless the gradient is not finite."""
        optim = self.recipe.optim
        factor = warmup_factor(self.optimizer_steps, optim.warmup_steps)
        norms = []
        for group in self.optimizer.param_groups:
            group["lr"] = group["base_lr"] * factor
            for p in group["params"]:
                # A batch without any signal still moves by momentum, as it would have moved if
                # its zero gradients had been computed.
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            norms.append(float(torch.nn.utils.clip_grad_norm_(group["params"], optim.grad_clip)))
        finite = all(math.isfinite(n) for n in norms)
        if finite:
            self.optimizer.step()
        self.optimizer_steps += 1
        log.step(norms, finite)

    # ------------------------------------------------------------------ pieces

    def _streams(
        self, rows: Sequence[Row], notes: Notes, credits: Credits
    ) -> dict[str, Sequence[Floats]]:
        """Everything per token that the loss reads, checked against the rows."""
        streams: dict[str, Sequence[Floats]] = {"advantages": credits.advantages}
        optim = self.recipe.optim
        if "old_logprobs" in notes:
            streams["old_logprobs"] = notes["old_logprobs"]
        elif optim.epochs * optim.minibatches > 1:
            streams["old_logprobs"] = self._scores(self.tokens, rows)
        have = {"value_targets": credits.value_targets, **notes}
        if "values" in notes:
            have["old_values"] = [v[:-1] for v in notes["values"]]
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

    def _scores(self, model: TokenModel, rows: Sequence[Row]) -> list[Floats]:
        out: list[Floats] = [np.empty(0, np.float32)] * len(rows)
        for micro, batch in self._padded(rows, range(len(rows))):
            with torch.no_grad(), self._maths(batch):
                flat = model.score(batch)[0].cpu().numpy()
            for r, piece in zip(micro, pieces(flat, rows, micro), strict=True):
                out[r] = piece
        return out

    def _values(self, batch: Padded, states: Tensor | None, *, every: bool) -> Tensor:
        """Values at every position ``[paths, columns]``, or before each action token ``[n]``."""
        assert self.critic is not None
        with self.tokens.autocast():
            if self.critic.kind == "shared" and states is None:
                states = self.tokens.hidden(batch.ids)
            read = self.critic.states(batch.ids, states)
        return self.critic(read if every else read[batch.row, batch.before])

    def _padded(
        self, rows: Sequence[Row], chosen: Sequence[int]
    ) -> Iterator[tuple[list[int], Padded]]:
        lengths = [len(rows[i].ids) for i in chosen]
        for micro in micro_batches(lengths, self.settings.micro_batch_tokens):
            picked = [chosen[i] for i in micro]
            yield picked, Padded.of([rows[i] for i in picked], self.pad_id, self.tokens.device)

    def _maths(self, batch: Padded) -> Any:
        return quick_cpu_maths(self.tokens.device, batch.ids.shape[1])

    def _mini_batches(self, n: int) -> list[list[int]]:
        rng = np.random.default_rng([self.seed, self.optimizer_steps])
        count = self.recipe.optim.minibatches
        order = rng.permutation(n) if count > 1 else np.arange(n)
        return [part.tolist() for part in np.array_split(order, count) if len(part)]

    def _param_groups(self) -> list[list[Tensor]]:
        models = [self.policy] if self.critic is None else [self.policy, self.critic]
        return [[p for p in m.parameters() if p.requires_grad] for m in models]

    def _base_lrs(self) -> list[float]:
        optim = self.recipe.optim
        return [optim.lr] if self.critic is None else [optim.lr, optim.critic_lr]

    def _frozen_copy(self) -> TokenModel:
        model = copy.deepcopy(self.policy).eval().requires_grad_(False)
        return TokenModel(model, self.recipe.temperature, self.settings.precision)


def _not_finite(name: str, step: int, parts: Mapping[str, Tensor]) -> LossNotFiniteError:
    shown = ", ".join(f"{k} {float(v):.4g}" for k, v in parts.items())
    return LossNotFiniteError(
        f"recipe {name}: the loss of optimiser step {step} is not finite ({shown}). The run can be "
        "resumed from its last checkpoint; try a lower learning rate or float32 precision."
    )
