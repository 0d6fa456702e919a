"""The learner's models on one device: policy, critic and reference, applied to paths."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ...agents.models.attention import set_attention
from ...agents.models.device_memory import prepare_card
from ...agents.models.loading import context_limit, load_model, warn_of_emulation
from ...agents.models.out_of_memory import explain_out_of_memory
from ...agents.models.size import count_weights
from ...envs.core.errors import BadValueError
from ..core.forest import Ids
from ..core.protocols import Floats
from ..core.recipe import Recipe
from .batching.micro_batch import Batching, Columns, MicroBatch
from .batching.prefix_sharing import why_not_shared
from .batching.rows import Row
from .critic import Critic
from .freed_memory import mapped_apart
from .gradient_checkpointing import check_recomputable, is_recomputable, recomputing
from .loss_traits import reads_entropy, split_values
from .offload import INPUTS_HERE, ActivationOffload, CopyLane
from .parallel.team import Team
from .scoring.kept_memory import KeptMemory
from .scoring.lean_layers import LeanLayers
from .scoring.packed_layers import PackedLayers
from .scoring.scoring import (
    TokenModel,
    WithoutAdapter,
    adapter_alone_learns,
    attention_for,
    computes_in_half,
    quick_cpu_maths,
)
from .settings import LearnerSettings
from .update_log import pieces

ACTIVATION_BYTES = 3 * 2**29
"""What a micro batch of a large model on a CPU may keep for its backward pass: beside weights,
gradients, moments, a reference and an engine, a model of 135M stays below 8 GiB. A critic of its
own has the first three again, and takes half of it; two thirds where both are trained at once, so
that each keeps its share. A tree that would keep more on its own has its layers computed again."""
ROUNDED = 17 / 16
"""How much longer rounding may make a micro batch than what was found to fit."""

GiveBack = Literal["micro batch", "optimiser step"]


class Models:
    """The policy, critic and reference of a recipe, and how their passes are run.

    With a peft policy whose adapter alone learns, the reference is the same model with the adapter
    switched off; else it is a copy of the policy as it is now.

    Args:
        policy: Any ``AutoModelForCausalLM``, or a small model of our own; dropout is switched off.
        recipe: Says whether there are a critic and a reference, and the temperature.
        settings: How to compute.
        pad_id: Token id that fills padding.
        team: The other processes; None for one process alone.

    Attributes:
        tokens: The policy as a scorer of tokens.
        critic: The critic, where the recipe has one.
        reference: The reference policy, where the recipe has one.
        teacher: The teacher, where the recipe names one.
        unshared_because: Why prefixes are not shared; None when they are.
        batching: Cuts rows into micro batches.
        activations: Moves the inputs of layers to main memory, where the settings say so.
        losses: The parts of the recipe's loss that are trained first, or all of it as one.
        value_losses: Its parts that a critic of its own learns by, see :attr:`values_behind`.
        give_back_after: When freed memory that the C library keeps is to be given back, if at all:
            135 million weights on a CPU leave one to two gigabytes an optimiser step, given back
            within a second. With a critic of their own there is no room for as much.

    Raises:
        BadValueError: The model cannot do what the settings ask for.
    """

    def __init__(
        self,
        policy: Any,
        recipe: Recipe,
        settings: LearnerSettings,
        pad_id: int,
        team: Team | None = None,
    ) -> None:
        self.team = team or Team()
        device = self.team.begin(policy)
        self.policy = policy.eval()
        prepare_card(next(policy.parameters()).device)
        self.settings = settings
        self._name, self._temperature = recipe.name, recipe.temperature
        self.tokens = TokenModel(
            policy, recipe.temperature, settings.precision, reads_entropy(recipe.loss)
        )
        if self.tokens.half:
            warn_of_emulation(torch.bfloat16, device, "the learner")
        self.critic = Critic(policy, settings.critic, self.team.copied) if recipe.critic else None
        apart = self.has_own_critic and self.team.alone
        self.losses, self.value_losses = (
            split_values(recipe.loss) if apart else ((recipe.loss,), ())
        )
        self.give_back_after: GiveBack | None = None
        if device.type == "cpu" and self.tokens.large:
            self.give_back_after = "micro batch" if self.has_own_critic else "optimiser step"
        self.reference = self._frozen() if recipe.reference else None
        self.teacher = self._load_teacher(recipe.teacher)
        self.unshared_because = self._unshared()
        self._lean = self._quick_forms()
        self._kept: KeptMemory | None = None
        quick = self._quick_layers()
        self.batching = Batching(
            token_budget=settings.micro_batch_tokens if quick is None else self._fitting(quick),
            pad_id=pad_id,
            device=device,
            shared=self.unshared_because is None,
            whole_trees=recipe.loss.whole_trees,
            always=quick is not None,
            fitting=self._fitting_rows() if quick is None else None,
            columns=Columns.on(self.tokens.device, context_limit(policy)),
        )
        if settings.gradient_checkpointing:
            check_recomputable(policy)
        self.activations: ActivationOffload | None = None
        if settings.offload_activations:
            self.activations = ActivationOffload(CopyLane(device))
        self._warned = False
        if device.type == "cuda" or not self.team.alone:
            self._measure_kept()  # before the weights are cut up
        frozen = self.reference.model if self.reference else None
        taught = self.teacher.model if self.teacher else None
        others = [m for m in (self.critic, frozen) if m is not None and m is not policy]
        half = computes_in_half(settings.precision, device)
        self.team.shard(policy, others, taught, device, half=half)
        for one in (self.tokens, self.reference, self.teacher):
            if one is not None and not self.team.alone:
                one.casts = False  # the weights are gathered in the products' format

    @property
    def values_behind(self) -> bool:
        """Whether a critic of its own is trained behind the policy, micro batch by micro batch.

        What one keeps for its backward pass is then gone before the other begins.
        """
        return bool(self.value_losses)

    def logprobs(self, rows: Sequence[Row]) -> list[Floats]:
        """Return the log-probability in nats of every action token ``[n_act]`` per row."""
        return self._scores(self.tokens, rows)

    def ref_logprobs(self, rows: Sequence[Row]) -> list[Floats]:
        """Return the same under the reference.

        Raises:
            BadValueError: There is none.
        """
        if self.reference is None:
            raise BadValueError(
                f"recipe {self._name}: no reference policy is held, because no part of the "
                "recipe names 'ref_logprobs'."
            )
        return self._scores(self.reference, rows)

    def teacher_logprobs(self, rows: Sequence[Row]) -> list[Floats]:
        """Return the same under the teacher.

        Raises:
            BadValueError: There is none.
        """
        if self.teacher is None:
            raise BadValueError(
                f"recipe {self._name}: no teacher is held, because no part of the recipe reads "
                "'teacher_logprobs'."
            )
        return self._scores(self.teacher, rows)

    def values(self, rows: Sequence[Row]) -> list[Floats]:
        """Return values ``[n_act + 1]`` per row: before each action token, and after the last.

        Raises:
            BadValueError: There is no critic.
        """
        self._check_critic()
        out: dict[int, Floats] = {}
        for micro, batch, counts in self.team.batches(self.batching, rows, range(len(rows))):
            with torch.no_grad(), self.computing(batch, everywhere=True):
                at_each = self._values(batch)
                before = batch.in_paths(batch.at(at_each, batch.before)).cpu().numpy()
                last = batch.at(at_each, batch.last).cpu().numpy()
            if counts:
                for r, piece, end in zip(micro, pieces(before, rows, micro), last, strict=True):
                    out[r] = np.append(piece, end)
        return self.team.complete(out)

    def prompt_values(self, prompts: Sequence[Ids]) -> Floats:
        """Return critic values ``[prompts]`` of the states after these whole contexts ``[n]``.

        Raises:
            BadValueError: There is no critic, or a context is empty.
        """
        self._check_critic()
        if not all(len(ids) for ids in prompts):
            raise BadValueError("prompt_values: a context is empty; it needs at least one token.")
        out: dict[int, Floats] = {}
        one = np.zeros(1, np.int64)
        rows = [
            Row(ids, one + len(ids) - 1, one, np.zeros(1, np.float32), np.arange(len(ids)), i)
            for i, ids in enumerate(prompts)
        ]
        apart = replace(self.batching, shared=False, whole_trees=False)
        for micro, batch, counts in self.team.batches(apart, rows, range(len(rows))):
            with torch.no_grad(), self.computing(batch, everywhere=True):
                values = batch.at(self._values(batch), batch.last).cpu().numpy()
            if counts:
                out |= dict(zip(micro, values, strict=True))
        return np.array(self.team.complete(out), np.float32)

    @property
    def frozen(self) -> list[Any]:
        """Models that never change, and that are not the policy itself."""
        found = [one.model for one in (self.reference, self.teacher) if one is not None]
        return [model for model in found if model is not self.policy]

    def activation_bytes(self) -> int:
        """Return what a micro batch keeps for its backward pass, the output layer left out."""
        kept = self._measure_kept()
        tokens = self.settings.micro_batch_tokens
        longest = min(tokens, context_limit(self.policy) or tokens)
        found = kept.of(tokens, longest)
        if self.settings.gradient_checkpointing:
            config = self.policy.config
            layers, width = int(config.num_hidden_layers), int(config.hidden_size)
            here = layers if self.activations is None else min(layers, INPUTS_HERE)
            found = tokens * here * width * 4 + found / layers
        return int(found * (2 if self.has_own_critic and not self.values_behind else 1))

    def narrowed_bytes(self) -> int:
        """Return what copies of float32 weights in the products' format take.

        Where the weights are cut up, they are those of the layer that is computed and of the next.
        """
        if not self.team.alone:
            layers = getattr(self.policy.get_decoder(), "layers", None)
            sizes = [count_weights(layer) for layer in layers or ()]
            largest = max(sizes, default=0)
            return 2 * largest * (2 if self.tokens.half else 4)
        own = self.critic if self.critic is not None and self.critic.kind == "own" else None
        weights = [p for m in (self.policy, own) if m is not None for p in m.parameters()]
        exact = sum(p.numel() for p in weights if p.dtype == torch.float32)
        return 2 * exact if self.tokens.half else 0

    def _measure_kept(self) -> KeptMemory:
        if self._kept is None:
            alone, tokens = self.team.alone, self.tokens
            self._kept = (
                KeptMemory.measured(tokens, tokens.device)
                if alone
                else KeptMemory.by_layers(tokens)
            )
        return self._kept

    def memory_hint(self) -> str:
        """Return a sentence on which setting to change when memory is full."""
        now = self.settings.micro_batch_tokens
        more = ""
        if not self.settings.gradient_checkpointing:
            more = ", or turn gradient_checkpointing on (--gradient-checkpointing)"
        elif self.activations is None and self.tokens.device.type == "cuda":
            more = ", or move layers' inputs to main memory (--offload-activations)"
        return (
            f"lower micro_batch_tokens (--micro-batch-tokens {max(1, now // 2)}, was {now}){more}."
        )

    def trained(self, batch: MicroBatch, values: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the scored tokens' ``[m]`` inputs of a loss, with gradient.

        Args:
            batch: The paths.
            values: Whether the critic's values before each token are wanted.

        Returns:
            Log-probabilities, entropies and values.
        """
        # where logits are no plain layer on the states, these are computed once more
        shared = values and self.critic is not None and self.critic.kind == "shared"

        def work() -> tuple[Tensor, Tensor, Tensor | None]:
            states = self.tokens.hidden(batch) if self.tokens.separable or shared else None
            scores = self.tokens.score(batch, states)
            return *scores, self._critic_at(batch, states, batch.before) if values else None

        return self.team.within(self.policy, work)

    def trained_values(self, batch: MicroBatch) -> Tensor:
        """Return the values before each scored token ``[m]``, with gradient, of a critic's own."""
        return self._critic_at(batch, None, batch.before)

    @contextmanager
    def computing(
        self, batch: MicroBatch, *, training: bool = False, everywhere: bool = False
    ) -> Iterator[None]:
        """Enclose the passes of one micro batch.

        Args:
            batch: What goes through the models.
            training: Whether the backward pass is among them.
            everywhere: Whether last hidden states are read at other positions than before the
                scored tokens.
        """
        own = self.critic.backbone if self.critic else None
        models = [self.policy] if own is None else [self.policy, own]
        with ExitStack() as stack:
            if not training:
                stack.enter_context(
                    explain_out_of_memory("scoring a micro batch", self.memory_hint())
                )
            stack.enter_context(quick_cpu_maths(self.tokens.device))
            if training and self._recomputes(batch):
                stack.enter_context(recomputing(models, self.activations))
                if self.tokens.device.type == "cpu":
                    stack.enter_context(mapped_apart())
            models += [one.model for one in (self.reference, self.teacher) if one is not None]
            stack.enter_context(attention_for(models, batch))
            needed = None if everywhere or not self._lean else batch.read_positions()
            for lean in self._lean:
                stack.enter_context(lean.within(needed))
            for one in (self.tokens, self.reference, self.critic):
                if one is not None and one.layers is not None:
                    stack.enter_context(one.layers.reading(needed))
            yield

    @contextmanager
    def opening(
        self, model: TokenModel, rows: Sequence[Row], chosen: Sequence[int], *, training: bool
    ) -> Iterator[int]:
        """Compute what all micro batches of some rows begin with, for all passes within.

        Worth it with models whose products take the time: instructions of a thousand tokens are
        then computed once and not in every micro batch.

        Args:
            model: Whose passes these are.
            rows: All rows.
            chosen: Indices of those that are computed within.
            training: Whether there are backward passes within; the opening's comes at the end.

        Yields:
            How many tokens the micro batches leave out; 0 where that is not done.
        """
        layers, count = model.layers, 0
        whole = training and self.has_own_critic  # its backbone has no opening: it takes all
        if layers is not None and model.large and not whole and layers.unwatched():
            count = self.batching.opening(rows, chosen)
        if layers is None or not count:
            yield 0
            return
        first = rows[chosen[0]]
        at = np.array([count - 1])
        row = Row(first.ids[:count], at, at * 0, np.zeros(1, np.float32), first.numbers[:count])
        batch = MicroBatch.packed([row], self.tokens.device)
        with self.computing(batch, training=training):
            opening = layers.open(batch)
        with layers.behind(opening):
            yield count
        if training:
            with self.computing(batch, training=True):
                opening.backward()

    def _scores(self, model: TokenModel, rows: Sequence[Row]) -> list[Floats]:
        out: dict[int, Floats] = {}
        chosen = range(len(rows))
        with torch.no_grad(), self.opening(model, rows, chosen, training=False) as opening:
            for micro, batch, counts in self.team.batches(self.batching, rows, chosen, opening):
                with self.computing(batch):
                    scores, _ = self.team.within(model.model, lambda b=batch: model.score(b))
                    flat = batch.in_paths(scores).cpu().numpy()
                if counts:
                    out |= dict(zip(micro, pieces(flat, rows, micro), strict=True))
        return self.team.complete(out)

    def _values(self, batch: MicroBatch) -> Tensor:
        """Return values at every position ``[rows, columns]``."""
        assert self.critic is not None
        if self.critic.kind == "own":
            return self._critic_at(batch, None, None)
        work = lambda: self._critic_at(batch, self.tokens.hidden(batch), None)  # noqa: E731
        return self.team.within(self.policy, work)

    def _critic_at(self, batch: MicroBatch, states: Tensor | None, where: Tensor | None) -> Tensor:
        """Return values at flattened positions ``[m]``, or everywhere ``[rows, columns]``."""
        critic = self.critic
        assert critic is not None

        def work() -> Tensor:
            with self.tokens.autocast():
                read = critic.states(batch, states)
            return critic.forward(read if where is None else batch.at(read, where))

        return self.team.within(critic, work)

    def _check_critic(self) -> None:
        if self.critic is None:
            raise BadValueError(f"recipe {self._name}: there is no critic to ask for values.")

    def _frozen(self) -> TokenModel:
        """Return a frozen copy of the current policy."""
        if adapter_alone_learns(self.policy):
            return WithoutAdapter(self.policy, self._temperature, self.settings.precision)
        model = self.team.copied(self.policy).eval().requires_grad_(False)
        return TokenModel(model, self._temperature, self.settings.precision)

    def _load_teacher(self, name: str | None) -> TokenModel | None:
        """Return the teacher, frozen, where the policy is.

        One that will be cut up is its files, mapped, until then; with adapters it is loaded whole,
        as a sum with them is rounded once.
        """
        if name is None:
            return None
        device = next(self.policy.parameters()).device
        whole = self.team.alone or (Path(name) / "adapter_config.json").is_file()
        dtype = "float32" if whole else "stored"
        model = load_model(name, dtype=dtype, device=device).eval().requires_grad_(False)
        sizes = [int(m.config.vocab_size) for m in (self.policy, model)]
        if sizes[0] != sizes[1]:
            raise BadValueError(
                f"recipe {self._name}: the teacher {name} has {sizes[1]} token ids, the policy "
                f"{sizes[0]}; expected a teacher with the policy's tokenizer."
            )
        set_attention(model, self.policy.config._attn_implementation, device)
        return TokenModel(model, self._temperature, self.settings.precision)

    def _quick_forms(self) -> list[LeanLayers]:
        """Return quicker forms of the layers of the policy, and of a reference that is a copy."""
        if not self.team.alone:
            return []  # the layers' weights are spread over processes
        models = [self.policy]
        if self.reference is not None and self.reference.model is not self.policy:
            models.append(self.reference.model)
        return [LeanLayers(model) for model in models]

    def _quick_layers(self) -> PackedLayers | None:
        """Let models on a CPU compute packs by layers of our own; return the policy's."""
        if not self.team.alone or self.unshared_because is not None:
            return None
        kept = 0 if self.settings.gradient_checkpointing else self._room * ROUNDED
        self.tokens.quicken(int(kept))
        if self.reference is not None:
            self.reference.quicken(0)  # keeps nothing at all: it has no backward pass
        if self.tokens.layers is not None and self.critic is not None:
            self.critic.quicken(self.tokens.layers)
        return self.tokens.layers

    def _fitting(self, layers: PackedLayers) -> int:
        """Return the tokens of a micro batch whose activations fit into the memory for them."""
        most = self.settings.micro_batch_tokens
        if self.settings.gradient_checkpointing:
            return most
        return max(1, min(most, self._room // layers.bytes_per_token))

    @property
    def _room(self) -> int:
        """Bytes that a micro batch of a large model on a CPU may keep, of each trained model."""
        if not self.has_own_critic:
            return ACTIVATION_BYTES
        return ACTIVATION_BYTES // (2 if self.values_behind else 6)

    @property
    def has_own_critic(self) -> bool:
        """Whether there is a critic with a backbone of its own."""
        return self.critic is not None and self.critic.kind == "own"

    def _fitting_rows(self) -> Callable[[int], int] | None:
        """Return the tokens that fit into memory where a large model computes by its own layers."""
        large = self.tokens.large and self.tokens.device.type == "cpu" and self.team.alone
        if not large or self.settings.gradient_checkpointing:
            return None
        kept, room = self._measure_kept(), self._room
        return lambda longest: max(1, int(room / kept.of(1, longest)))

    def _recomputes(self, batch: MicroBatch) -> bool:
        """Return whether layers are computed again in the backward pass of a micro batch.

        Without the setting that is one whose single tree is too large to fit; bits are the same.
        """
        if self.settings.gradient_checkpointing:
            return True
        if self.batching.fitting is None or not is_recomputable(self.policy):
            return False
        kept, room = self._measure_kept().of_batch(batch), self._room
        if kept <= room * ROUNDED:
            return False
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"a micro batch of {batch.ids.numel():,} tokens would keep {kept / 2**30:.1f} GiB "
                f"for its backward pass, where {room / 2**30:.2g} GiB fit: layers of such ones are "
                "computed again in it, as --gradient-checkpointing does (a third more time)",
                stacklevel=2,
            )
        return True

    def _unshared(self) -> str | None:
        """Return why prefixes are not shared; None when they are."""
        if not self.settings.shared_prefix:
            return "LearnerSettings.shared_prefix is off"
        models = [self.policy] if self.teacher is None else [self.policy, self.teacher.model]
        reason = next((why for m in models if (why := why_not_shared(m)) is not None), None)
        if reason is not None:
            warnings.warn(
                f"prefixes are not shared, every path is computed on its own: {reason}",
                stacklevel=4,
            )
        return reason
