"""Plain settings of a training run, as its configuration and the command line have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...agents.engines.factory import EngineSettings
from ...agents.models.attention import Attention
from ...agents.rendering.factory import Style
from ...envs.core.settings import check_choices, check_integers
from ..core.checks import check_above_zero, check_minimum, check_seed
from ..evaluation.defaults import MAX_TOKENS, TEMPERATURE


@dataclass(frozen=True, kw_only=True)
class WarmStartSettings:
    """How a model imitates the environment's expert before reinforcement learning.

    The defaults are those that SmolLM2-135M was seen to learn with on two cores.

    Attributes:
        episodes: Episodes of the expert; played in batches of equal size, so it may be some more.
        batch: Maximum episodes per step.
        lr: Learning rate, reached within the first steps.
        split: Split of the tasks.
        seed: Seed of the tasks and episodes; the same for all seeds of training, which then share
            one start.
        micro_batch_tokens: Maximum tokens of one forward pass; it decides what fits into memory.
        render: How text becomes tokens, as in :class:`TrainSettings`.
    """

    episodes: int
    batch: int = 12
    lr: float = 3e-4
    split: str = "train"
    seed: int = 0
    micro_batch_tokens: int = 2048
    render: Style = "auto"

    def __post_init__(self) -> None:
        check_choices(self)
        check_integers(self)
        check_minimum(self, episodes=1, batch=1, micro_batch_tokens=1)
        check_seed(self)
        check_above_zero(self, "lr")

    @property
    def steps(self) -> int:
        """Return the number of optimiser steps."""
        return -(-self.episodes // self.batch)

    @property
    def per_step(self) -> int:
        """Return the episodes of each step."""
        return -(-self.episodes // self.steps)


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """What the starting model of a run imitated; stands in the run's ``config.json``.

    Attributes:
        base: The model before.
        base_digest: Hash of its weights.
        env_id: Environment of the demonstrations.
        env_settings: Its settings.
        settings: How it was done.
        action_tokens: Tokens of the expert's actions, which were imitated.
        context_tokens: All tokens that were read, actions included.
    """

    base: str
    base_digest: str
    env_id: str
    env_settings: Mapping[str, Any]
    settings: WarmStartSettings
    action_tokens: int
    context_tokens: int


@dataclass(frozen=True, kw_only=True)
class TrainSettings(EngineSettings):
    """Settings of a run that need no environment, model or recipe.

    The inherited settings say what samples the actions.

    Attributes:
        split: Split of the training tasks.
        seed: Seed of everything: tasks, episodes, sampling, order of mini batches.
        max_tokens: Maximum tokens of one action.
        eval_every: Training steps between evaluations; 0 evaluates before and after only.
        eval_temperature: Temperature of the sampled scores of evaluations; 0 gives greedy ones
            only.
        greedy_every: Every so many evaluations are greedy too; those before and after always are,
            and 0 leaves it at them.
        checkpoint_every: Checkpoints and rollouts are written every so many training steps.
        keep: Number of checkpoints that are kept.
        transcripts: Episodes per evaluation that are written out as text.
        records: What the run directory gets beside configuration, metrics and result: all of it, or
            (metrics) nothing, for runs of seconds: no transcripts, rollouts, events and picture,
            and no checkpoint but that of an interruption.
        keep_rollouts: Groups of the first step, and of each step with a checkpoint, that are
            written with every number per token for `turngym view`; 0 for none.
        max_lag: Play while the learner trains, with weights that are so many updates old (1 hides
            playing behind training); 0 plays in a thread, but in turn. Left out: in turn. From 1
            up, a CPU's rounding may depend on what runs at the same time, and an interrupt waits
            for steps that older weights play.
        partial_rollouts: Share of a step's groups after which it ends; the others are kept, go on
            under the next weights and are trained on when they are complete (partial rollouts).
            Each step begins so many new groups that as many are open as before. For recipes of
            chains, without rollout actors. Left out: a step plays all of its groups to an end.
        importance_cap: Cap of the truncated importance weight pi_learner / pi_engine of each token,
            against lag and the engine's rounding (typically 2); 0 for no such weights. Left out: 2
            where the engine is another program (vllm), or engine or learner computes in half
            precision (0.05 nats apart were measured at 135 million weights); on a CPU from 34
            million weights.
        reject_above: Paths whose log-probabilities differ between engine and learner by more nats
            in the mean, or are no numbers, are left out of the update; 0 for none. Left out: 0.5
            where that cap, left out, is 2.
        weights: Number format of the weights; with bfloat16 the optimiser keeps a float32 copy of
            those that learn.
        attention: Implementation of attention; falls back, with a warning, if unavailable.
        render: How text becomes tokens: the chat template with a message per observation (chat) or
            with observations inside the model's message (inline), the bare texts (plain), or the
            template where the model has one (auto). Kept with the checkpoints.
    """

    split: str = "train"
    seed: int = 0
    max_tokens: int = MAX_TOKENS
    eval_every: int = 10
    eval_temperature: float = TEMPERATURE
    greedy_every: int = 1
    checkpoint_every: int = 10
    keep: int = 2
    transcripts: int = 8
    records: Literal["all", "metrics"] = "all"
    keep_rollouts: int = 2
    max_lag: int | None = None
    partial_rollouts: float | None = None
    importance_cap: float | None = None
    reject_above: float | None = None
    weights: Literal["float32", "bfloat16"] = "float32"
    attention: Attention = "auto"
    render: Style = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_minimum(self, max_tokens=1, eval_every=0, checkpoint_every=1, keep=1, transcripts=0)
        check_minimum(self, keep_rollouts=0, greedy_every=0, eval_temperature=0)
        check_seed(self)
