"""The protocols of a recipe's parts: rollout -> annotate -> credit -> learner -> loss.

Per-path data are lists in the order of ``forest.paths``; an array ``[n_act]`` runs over the path's
action tokens, turn after turn. Losses see plain padded tensors ``[paths, tokens]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ...envs.core.env import TextEnv
from .forest import Forest, Group, Ids

if TYPE_CHECKING:
    import torch

Floats = npt.NDArray[np.float32]
Annotations = Mapping[str, Sequence[Floats]]
"""Annotations per path: ``old_logprobs`` and ``ref_logprobs`` ``[n_act]``; ``values``
``[n_act + 1]``: the critic's value of the state before each action token, then of the state after
the last one (what a truncated path bootstraps from); ``spawned_values`` ``[n_act]``: on each turn's
last token, the sum of the critic's values of the sessions that the turn asked for;
``tracked_values`` ``[n_act]``: what a tracker expected of the task, on every token;
``teacher_logprobs`` and ``context_logprobs`` ``[n_act]``: of the action tokens under another model,
and under the policy with a demonstration in its context; ``gold_logprobs`` ``[n_act]``: mean
log-probability of a token of the accepted answer in place of the action, on every token of the
action; ``hindsight_logprobs`` ``[n_act]``: of the action tokens, where the policy is told how the
episode ended; ``kept_distances`` ``[n_act]``: edges from where an action led to success, on every
token of it; ``earlier_returns`` ``[n]``, not by token: the returns of the task's last group."""


@dataclass(frozen=True, slots=True)
class Credits:
    """The output of a credit rule.

    Attributes:
        advantages: One ``[n_act]`` array per path: what multiplies each token's gradient.
        value_targets: One ``[n_act]`` array per path for the critic's regression; empty when the
            rule has no critic.
        extra: Further streams for the loss by name, one ``[n_act]`` array per path; the names are
            in the rule's ``provides``.
        metrics: Scalars worth logging, by names without a stage (``"value_explained_frac"``).
    """

    advantages: Sequence[Floats]
    value_targets: Sequence[Floats] = ()
    extra: Mapping[str, Sequence[Floats]] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replay:
    """What a task source has trained on again, in an update after the step's own.

    Attributes:
        forest: Paths of earlier steps.
        annotations: Arrays per path, ``old_logprobs`` among them.
        credits: One advantage per action token of each path.
    """

    forest: Forest
    annotations: Annotations
    credits: Credits


class Scorer(Protocol):
    """The learner's models, seen by annotators: everything without gradient, as float32.

    Log-probabilities are those of the tempered distribution (``Recipe.temperature``), as sampled.
    """

    def logprobs(self, forest: Forest) -> list[Floats]:
        """Return the log-probability in nats of every action token, in the policy's precision."""
        ...

    def ref_logprobs(self, forest: Forest) -> list[Floats]:
        """Return the same under the frozen reference policy."""
        ...

    def values(self, forest: Forest) -> list[Floats]:
        """Return critic values ``[n_act + 1]`` per path, see :data:`Annotations`."""
        ...

    def prompt_values(self, prompts: Sequence[Ids]) -> Floats:
        """Return critic values ``[prompts]`` of the states after these whole contexts ``[n]``."""
        ...

    def teacher_logprobs(self, forest: Forest) -> list[Floats]:
        """Return log-probabilities as :meth:`logprobs` under the teacher."""
        ...


class Annotator(Protocol):
    """Adds named per-path arrays before credit is given; a base class.

    Attributes:
        provides: Names that it adds to the annotations.
        reads_gold: Reads the accepted final answers, so that they are recorded.
    """

    provides: ClassVar[frozenset[str]]
    reads_gold: ClassVar[bool] = False

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment in which there is nothing to compute."""

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Compute the arrays."""
        ...


class Credit(Protocol):
    """Turns a forest into one number per action token of each path; a base class.

    Attributes:
        speaks: Whether it gives any; False leaves all to a loss that reads none.
        whole_returns: Reads nothing but the return of a whole path.
        needs_turn_rewards: Distinguishes turns by their rewards.
    """

    speaks: ClassVar[bool] = True
    whole_returns: ClassVar[bool] = False
    needs_turn_rewards: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[str]:
        """Names that must be among the annotations; ``"states"`` for :attr:`Turn.state`.

        States are no annotation: the runner records them in the turns.
        """
        return frozenset()

    @property
    def provides(self) -> frozenset[str]:
        """Streams for the loss: ``value_targets`` with a critic, names of ``Credits.extra``."""
        return frozenset()

    @property
    def min_paths(self) -> int:
        """Minimum paths per group for a non-zero credit."""
        return 1

    @property
    def needs_forks(self) -> bool:
        """Whether it compares the sides of forks, and is 0 where trees never fork."""
        return False

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment in which this credit makes no sense."""

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Compute advantages (and value targets)."""
        ...


@dataclass(frozen=True, slots=True)
class Norm:
    """True counts over the whole optimisation mini batch, so that accumulation is exact.

    Attributes:
        tokens: Trained action tokens.
        paths: Paths with at least one trained token.
        pairs: Distinct ids from 0 up in the stream ``pair``, where the loss reads one.
    """

    tokens: float
    paths: float
    pairs: float = 0.0

    @classmethod
    def of(cls, lengths: Iterable[float]) -> Norm:
        """Return the counts for paths with these numbers of trained tokens."""
        trained = [n for n in lengths if n > 0]
        return cls(tokens=float(sum(trained)), paths=float(len(trained)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LossBatch:
    """One micro batch as padded rows.

    Every tensor is ``[paths, tokens]`` over action tokens only (observations are already gone),
    padded on the right, ``mask`` 1.0 on real tokens. ``logprobs``, ``entropies`` and
    ``extra["values"]`` carry gradient.

    Attributes:
        logprobs: Under the policy that is being trained.
        old_logprobs: Under the policy at the start of this optimisation (the ratio's base).
        entropies: Entropy in nats of the trained policy at each action token.
        advantages: The credit.
        mask: 1.0 where a token counts.
        turns: Index of the token's turn within its path, -1 on padding (int64).
        norm: Global counts, see :class:`Norm`.
        extra: Further streams by name: ``ref_logprobs``, ``values``, ``old_values``,
            ``value_targets``; a loss names those it reads in ``needs``.
    """

    logprobs: torch.Tensor
    old_logprobs: torch.Tensor
    entropies: torch.Tensor
    advantages: torch.Tensor
    mask: torch.Tensor
    turns: torch.Tensor
    norm: Norm
    extra: Mapping[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LossOut:
    """A scalar that sums over micro batches to the mini batch's loss, and its parts.

    ``metrics`` are such sums too (each micro batch's share), so that adding them over micro
    batches gives the value of the mini batch; names without a stage (``"clip_frac"``). A name with
    an underscore is a mean over tokens by ``norm.tokens``: where paths without an advantage are not
    computed, it is logged as the mean over the others. One without (``"policy"``) is a term, to
    which they add 0.
    """

    loss: torch.Tensor
    metrics: Mapping[str, torch.Tensor]


class Loss(Protocol):
    """Computes a loss on padded rows; a base class.

    Attributes:
        whole_trees: Compares paths of one tree, which must be in one micro batch.
        reads_credit: Whether advantages act on it.
    """

    whole_trees: ClassVar[bool] = False
    reads_credit: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[str]:
        """Streams that it reads from ``batch.extra``."""
        return frozenset()

    @property
    def masks(self) -> bool:
        """Whether it drops tokens before an optimiser step, see :meth:`keeps`."""
        return False

    def keeps(self, log_ratios: Floats, advantages: Floats, turns: Ids) -> npt.NDArray[np.bool_]:  # noqa: ARG002 - a default
        """Return which tokens of a path ``[n_act]`` are trained on in the next optimiser step.

        Args:
            log_ratios: New minus old log-probabilities ``[n_act]``.
            advantages: Of its tokens ``[n_act]``.
            turns: The turn of each token ``[n_act]``.
        """
        return np.ones(len(log_ratios), dtype=bool)

    @property
    def parts(self) -> tuple[Loss, ...]:
        """Losses whose sum it is, from one batch; itself where there is one alone.

        Where those that read values move nothing else, a critic with a backbone of its own is
        trained behind the policy, in memory that the policy has left.
        """
        return (self,)

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the loss of one micro batch."""
        ...


class Shaper(Protocol):
    """Changes rewards or verdicts before credit is given, nothing else; a base class.

    Attributes:
        judges: Sets verdicts.
        reads_verdicts: Turns verdicts into rewards.
    """

    judges: ClassVar[bool] = False
    reads_verdicts: ClassVar[bool] = False

    @property
    def rewards_turns(self) -> bool | None:
        """True if it rewards each turn, False only the end, None if it adds no reward."""
        return None

    def __call__(self, forest: Forest) -> Forest:
        """Return a forest of the same shape and order."""
        ...


class GroupFilter(Protocol):
    """Decides which groups of a batch are trained on; the others are replaced by new ones."""

    @property
    def max_rounds(self) -> int:
        """Maximum rounds of playing per step; then the step uses what it has."""
        ...

    def keeps(self, returns: npt.NDArray[np.float64]) -> bool:
        """Whether a group whose episodes had these returns ``[episodes]`` is trained on."""
        ...


class Tracker(Protocol):
    """Per-task statistics across steps; a value, its state belongs to the run.

    Attributes:
        replays: Its memory may have paths of earlier steps trained on again.
    """

    replays: ClassVar[bool] = False

    @property
    def provides(self) -> frozenset[str]:
        """Names that its memory adds to the annotations."""
        ...

    def start(
        self, seed: int, split: str, size: int | None, reward_range: tuple[float, float]
    ) -> TaskSource:
        """Create an empty memory for a split of ``size`` tasks (None: endless)."""
        ...


class TaskSource(Protocol):
    """The tasks of one run's training steps, and their per-task statistics; a base class."""

    @property
    def first_episodes(self) -> Sequence[Start]:
        """Episodes to play (one path each) and hand to :meth:`score_first` before step 1."""
        return ()

    def score_first(self, forest: Forest) -> None:
        """Process episodes of :attr:`first_episodes`, part after part."""

    def starts(self, step: int, count: int, extra_round: int = 0) -> list[Start]:
        """Return the tasks of a training step, or of a further round of it."""
        ...

    def starts_from(self, step: int, played: int, at: int, count: int) -> list[Start]:
        """Return tasks of a step that plays until its tokens are reached.

        What stands at a place does not depend on how many are asked for at once.

        Args:
            step: Training step, from 1.
            played: Groups of all steps before.
            at: First place in the step, from 0.
            count: Most tasks to return.
        """
        ...

    def annotations(self, forest: Forest) -> dict[str, list[Floats]]:  # noqa: ARG002 - a default
        """Return per-path arrays from before this step."""
        return {}

    def replay(
        self,
        forest: Forest,  # noqa: ARG002 - a default
        annotations: Annotations,  # noqa: ARG002 - a default
        credits: Credits,  # noqa: ARG002 - a default
        scorer: Scorer,  # noqa: ARG002 - a default
    ) -> Replay | None:
        """Return earlier paths to train on again, after an update on these; None for none."""
        return None

    def learn(self, forest: Forest, scorer: Scorer) -> dict[str, float]:  # noqa: ARG002 - a default
        """Process a step's episodes after the update; return metrics (without a stage)."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the state as JSON data for the checkpoint; empty if there is none."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state`."""


class Rollout(Protocol):
    """Grows a group from one task: decides only where the next turn is attached; a base class.

    Attributes:
        samples: The actions are the policy's own.
    """

    samples: ClassVar[bool] = True

    @property
    def forks(self) -> bool:
        """Whether trees may fork."""
        return True

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment that this cannot play in."""

    @property
    def max_paths(self) -> int:
        """Maximum number of paths of a group of one session."""
        ...

    async def __call__(self, runner: Any, start: Start) -> Group:
        """Play with a :class:`~turngym.algos.rollouts.EpisodeRunner` until the budget is used."""
        ...


class Unforked(Rollout):
    """Base of rollouts that play ``n`` episodes and never fork.

    Sessions of one episode are not compared with each other, so a group has ``n`` paths.
    """

    n: int

    @property
    def forks(self) -> bool:
        """Return False."""
        return False

    @property
    def max_paths(self) -> int:
        """Return one path per episode."""
        return self.n


@dataclass(frozen=True, slots=True)
class Start:
    """The task and the seed of a group.

    Attributes:
        split: Split of the task.
        task: Index or id of the task.
        seed: Seeds the episode and every token sampled in the group.
        uid: Unique name of this occurrence.
    """

    split: str
    task: int | str
    seed: int
    uid: str
