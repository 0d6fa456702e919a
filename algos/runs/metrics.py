"""The metric keys that a run may log, declared in one table: ``stage/quantity_unit``.

A ``*`` in a key stands for any name (of a reward term, of an evaluation set), ``/`` included.
Logging a key that is not declared raises, so that names never drift apart between runs. A plugin
declares the keys of its own parts with :func:`declare_metric`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from functools import lru_cache

from ...envs.core.errors import BadValueError, UnknownNameError

_EVALUATION: Mapping[str, str] = {
    "n": "episodes scored",
    "errors": "episodes left out because the environment broke",
    "context_full": "scored episodes that ended because the context was full",
    "success_frac": "share of solved episodes",
    "success_low95": "lower end of its exact 95 % interval over tasks",
    "success_high95": "upper end",
    "return_mean": "mean return",
    "return_low95": "lower end of its 95 % bootstrap interval",
    "return_high95": "upper end",
    "tokens_mean": "sampled tokens per episode",
    "metric_*_mean": "mean of a metric of the environment (em, f1, ...)",
}
"""Keys of one way of decoding, without the name of the set."""

METRICS: dict[str, str] = {
    # what the policy did in this step's rollouts, as sampled
    "rollout/groups": "groups (tasks) played",
    "rollout/paths": "paths played to an end, those of groups that a filter leaves out included",
    "rollout/env_errors": "paths and attempts left out because the environment broke",
    "rollout/return_mean": "mean undiscounted return of a path",
    "rollout/return_std": "standard deviation of the returns over all paths",
    "rollout/success_frac": "share of paths that ended as solved; where a tracker prefers tasks "
    "(SPO), of those that it drew",
    "rollout/truncated_frac": "share of paths that ended at the turn or context limit",
    "rollout/overflow_frac": "share of paths that ended because the context was full",
    "rollout/turns_mean": "turns per path",
    "rollout/tokens_mean": "sampled tokens per path",
    "rollout/context_tokens_mean": "tokens per path, observations included",
    "rollout/tokens": "tokens sampled in this step",
    "rollout/invalid_actions_mean": "actions per path that the environment could not read",
    "rollout/cut_actions_frac": "share of actions that ran into the length limit",
    "rollout/entropy_nats": "mean entropy of the sampled tokens' distributions",
    "rollout/term_*_mean": "mean per path of one named reward term",
    "rollout/metric_*_mean": "mean of a measure of the environment, over the paths that report it; "
    "of any environment response_chars, response_words, waits and self_corrections",
    "rollout/rounds": "rounds of playing until enough groups were kept",
    "rollout/groups_left_out": "groups played and not trained on",
    "rollout/tokens_unused": "tokens of groups that were begun beside the step's last ones and "
    "dropped, as it had enough; in no budget",
    "rollout/lag_mean": "updates between the weights that sampled and those that are trained, mean",
    "rollout/lag_max": "the same, largest",
    "rollout/lag_token_mean": "the same, mean over sampled tokens",
    "rollout/lagged_tokens_frac": "share of sampled tokens whose weights were not the newest",
    "rollout/groups_carried": "groups that are not complete and go on in the next step",
    "rollout/tokens_carried": "tokens that these have sampled so far; they count in the step that "
    "completes them, and in no budget where the run ends before",
    "engine/prefix_hit_frac": "share of the requests' context tokens that the engine had cached",
    "engine/read_again_frac": "share of the tokens that went through the engine's model which had "
    "been there before: contexts whose cache was lost, failed and pruned episodes",
    # after the recipe's shapers and judges
    "shaped/return_mean": "mean return of a path",
    "shaped/term_*_mean": "mean per path of one named reward term",
    "judge/right_frac": "share of turns judged +1",
    "judge/wrong_frac": "share of turns judged -1",
    "judge/unreadable_frac": "share of paths whose judge wrote no verdicts; the outcome counts",
    "judge/silent_frac": "share of paths whose judge did not answer; the outcome counts",
    # what is remembered about tasks
    "tracker/value_mean": "expected return of the step's tasks before they were played",
    "tracker/memory_mean": "share of the past that was kept, mean over the step's tasks",
    "tracker/edges_mean": "known transitions of a task after the step, mean over the step's tasks",
    "tracker/revisits_frac": "share of the step's groups whose task came back",
    "tracker/drift_mean_nats": "how far the policy moved on a task's last path, mean",
    "tracker/stored_paths": "paths that are stored for imitation after the step",
    # an update on paths of earlier steps, in the steps that have one
    "replay/loss": "loss of its mini batches, mean",
    "replay/grad_norm": "norm of the policy's gradient before clipping, mean over its steps",
    "replay/optimizer_steps": "optimiser steps taken",
    "replay/skipped_steps": "optimiser steps skipped because the gradient was not finite",
    "replay/paths": "paths trained on again",
    # the optimisation
    "update/loss": "loss of the mini batches, mean",
    "update/grad_norm": "norm of the policy's gradient before clipping, mean over optimiser steps",
    "update/critic_grad_norm": "the same of the critic",
    "update/lr": "the policy's learning rate at the step's last optimiser step",
    "update/critic_lr": "the critic's",
    "update/optimizer_steps": "optimiser steps taken",
    "update/skipped_steps": "optimiser steps skipped because the gradient was not finite",
    "update/paths_left_out_frac": "share of paths whose gradient is exactly 0, not computed",
    "update/masked_frac": "share of tokens that the loss's row mask dropped",
    "update/logprob_diff_mean_nats": "engine against learner: mean absolute log-prob difference",
    "update/logprob_diff_max_nats": "engine against learner: largest absolute difference",
    "update/importance_mean": "weight of a token for the engine's difference, mean",
    "update/importance_capped_frac": "share of tokens whose weight is the cap",
    "update/rejected_frac": "share of paths left out: engine and learner differ too much on them",
    # parts of the loss; means per token are taken over the tokens that were computed
    "loss/policy": "the clipped surrogate, aggregated",
    "loss/nll": "negative log-likelihood of what is imitated, weighted by its advantage",
    "loss/distill": "the distillation loss, aggregated",
    "loss/teacher_kl_nats": "policy against teacher on sampled tokens: mean log-prob difference",
    "loss/distill_dropped_frac": "share of tokens dropped because they lost too much probability",
    "loss/dpo": "step-level DPO's loss, mean over pairs",
    "loss/preferred": "share of pairs whose better step the policy gained on, against the worse",
    "loss/value": "the critic's regression loss",
    "loss/kl_nats": "estimated divergence from the reference policy",
    "loss/entropy_nats": "entropy of the trained policy at the trained tokens",
    "loss/clip_frac": "share of tokens whose gradient a bound took away",
    "loss/approx_kl_nats": "k3 estimate of the divergence from the policy that sampled",
    "loss/ratio_mean": "importance ratio",
    "loss/ratio_sq_dev": "squared distance of the importance ratio from 1",
    "loss/value_clip_frac": "share of values whose gradient the value clip took away",
    "loss/value_mean": "the critic's values",
    # the credit rules
    "credit/informative_groups_frac": "share of groups in which some path was better than another",
    "credit/informative_trees_frac": "share of trees in which some path was better than another",
    "credit/met_states_frac": "share of actions taken in a state that the group came to again",
    "credit/gold_gain_nats": "log-probability of the accepted answer before the last action, less "
    "that before the first, mean over paths",
    "credit/pairs": "forks whose sides were compared",
    "credit/surprise_mean": "mean of return minus what the tracker expected",
    "credit/value_explained_frac": "share of the value targets' variance that the critic explains",
    # running totals; equal budgets are counted in these
    "budget/tokens": "tokens sampled for training since the start of the run",
    "budget/imitated_tokens": "tokens of the expert's actions imitated before the run, if any",
    "budget/paths": "paths trained on since the start",
    "budget/turns": "environment steps taken for training since the start",
    "budget/optimizer_steps": "optimiser steps since the start, skipped and replayed ones included",
    # evaluation, one entry per evaluation set; sampled at the evaluations' temperature
    **{f"eval/*/{key}": what for key, what in _EVALUATION.items()},
    # the same tasks decoded greedily, in those evaluations that are greedy too
    **{f"eval/*/greedy_{key}": f"greedily: {what}" for key, what in _EVALUATION.items()},
    # seconds; the only keys that differ between a run and its repetition
    "time/rollout_s": "playing",
    "time/wait_s": "from asking for the step's rollouts, and the sync before, to having them",
    "time/credit_s": "annotating and giving credit",
    "time/update_s": "optimising",
    "time/sync_s": "giving the last step's weights to the engine",
    "time/step_s": "the whole step",
    "time/eval_s": "evaluating",
    "time/elapsed_s": "since the start of the run, earlier parts of a resumed run included",
    "time/rollout_tokens_per_s": "sampled tokens per second of playing",
}

OF_SAMPLING = frozenset(
    {
        "rollout/entropy_nats",
        "rollout/lag_mean",
        "rollout/lag_max",
        "update/logprob_diff_mean_nats",
        "update/logprob_diff_max_nats",
        "engine/prefix_hit_frac",
        "engine/read_again_frac",
    }
)
"""Keys that say nothing of actions which the policy did not sample, and are left out there."""

_ADVICE = (
    "One of a credit rule or a loss of your own is declared beside it: "
    "turngym.algos.runs.metrics.declare_metric(key, meaning)."
)
_OWN_KEY = re.compile(r"(credit|loss)/[a-z][a-z0-9_]*")
_PATTERNS = tuple(
    re.compile(re.escape(key).replace(r"\*", ".+") + r"\Z", re.DOTALL)
    for key in METRICS
    if "*" in key
)
_SET_SIZE = re.compile(r"eval/(.+)/n\Z", re.DOTALL)


_OF_MAIN: set[str] = set()
"""Keys that the running script or notebook has declared."""


def declare_metric(key: str, meaning: str) -> None:
    """Declare what a credit rule or a loss of your own logs, before a run begins.

    A rule's ``Credits.metrics`` are logged under ``credit/NAME``, a loss's ``LossOut.metrics``
    under ``loss/NAME``. A script or a notebook may say its own key's meaning anew.

    Args:
        key: ``credit/NAME`` or ``loss/NAME``, the name in lower case with its unit at the end
            (``_frac``, ``_mean``, ``_nats``).
        meaning: What it is, in a few words.

    Raises:
        BadValueError: A key of another form, or one that is declared with another meaning.
    """
    if not _OWN_KEY.fullmatch(key):
        raise BadValueError(
            f"declare_metric: the key is {key!r}; expected credit/NAME or loss/NAME, the name of "
            "lower-case letters, digits and _."
        )
    here = inspect.currentframe()
    caller = here.f_back if here is not None else None
    of_main = caller is not None and caller.f_globals.get("__name__") == "__main__"
    if of_main and (key in _OF_MAIN or key not in METRICS):
        METRICS[key] = meaning
        _OF_MAIN.add(key)
    if METRICS.setdefault(key, meaning) != meaning:
        raise BadValueError(
            f"declare_metric: {key!r} is declared already ({METRICS[key]}); choose another name."
        )
    _declared.cache_clear()


@lru_cache(maxsize=4096)
def _declared(key: str) -> bool:
    return (key in METRICS and "*" not in key) or any(p.match(key) for p in _PATTERNS)


def checked(row: Mapping[str, float]) -> dict[str, float]:
    """Return the row with every value as a finite float.

    Raises:
        UnknownNameError: A key is not declared in :data:`METRICS`.
        BadValueError: A value is not finite.
    """
    for key, value in row.items():
        if not _declared(key):
            raise UnknownNameError("metric", key, METRICS, "metrics", advice=_ADVICE)
        if not math.isfinite(value):
            raise BadValueError(f"metrics: {key} is {value}; expected a finite number.")
    return {key: float(value) for key, value in row.items()}


def evaluated_sets(row: Mapping[str, object]) -> list[str]:
    """Return the names of the evaluation sets that a row has scores of, in its order."""
    return [found[1] for key in row if (found := _SET_SIZE.match(key))]


def without_times(row: Mapping[str, object]) -> dict[str, object]:
    """Return the part of a row that a repeated run must reproduce exactly."""
    return {key: value for key, value in row.items() if not key.startswith("time/")}
