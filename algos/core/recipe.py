"""A recipe: rollout, annotations, credit and loss together, as one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ...envs.core.settings import check_integer
from .annotators import OldLogprobs
from .checks import check_above_zero, check_minimum, check_weights, is_number
from .kinds import check_part
from .privileged import ContextLogprobs, TeacherLogprobs
from .protocols import Annotator, Credit, GroupFilter, Loss, Rollout, Shaper, Tracker

_WHO = {
    "old_logprobs": "Add OldLogprobs() to annotators.",
    "ref_logprobs": "Add RefLogprobs() to annotators.",
    "values": "Add CriticValues() to annotators.",
    "spawned_values": "Add SpawnedValues() to annotators.",
    "tracked_values": "Add a tracker such as BetaTracker().",
    "kept_distances": "Add the tracker KeptGraphs().",
    "earlier_returns": "Add the tracker KeptGraphs().",
    "gold_logprobs": "Add GoldLogprobs() to annotators.",
    "hindsight_logprobs": "Add HindsightLogprobs() to annotators.",
    "teacher_logprobs": "Add TeacherLogprobs(model=...) to annotators.",
    "context_logprobs": "Add ContextLogprobs() to annotators.",
    "pair": "Use StepPairs() as the credit.",
}


@dataclass(frozen=True, kw_only=True)
class Optim:
    """Settings of the optimiser, AdamW.

    Attributes:
        lr: Learning rate of the policy.
        critic_lr: Learning rate of the critic, where there is one.
        betas: Betas of AdamW.
        weight_decay: Weight decay of AdamW.
        grad_clip: Maximum norm of the gradient.
        warmup_steps: Optimiser steps of linear warm-up from 0.
        epochs: Passes over each rollout batch.
        minibatches: Optimiser steps per pass.
        critic_only_steps: First optimiser steps in which the policy stays as it is and only the
            critic learns.
    """

    lr: float = 1e-6
    critic_lr: float = 1e-5
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.01
    grad_clip: float = 1.0
    warmup_steps: int = 0
    epochs: int = 1
    minibatches: int = 1
    critic_only_steps: int = 0

    def __post_init__(self) -> None:
        check_above_zero(self, "lr", "critic_lr", "grad_clip")
        check_weights(self, "weight_decay")
        check_minimum(self, warmup_steps=0, epochs=1, minibatches=1, critic_only_steps=0)
        betas = tuple(self.betas) if isinstance(self.betas, Sequence) else ()
        if [is_number(beta) and 0 <= beta < 1 for beta in betas] != [True, True]:
            raise BadValueError(f"Optim.betas are {self.betas!r}; expected two values in [0, 1).")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """An algorithm as a value. Construction refuses parts that do not fit, with the reason.

    Attributes:
        name: Short name, as on the command line.
        paper: Source (title and arXiv id).
        rollout: Decides where the next turn is attached.
        credit: One advantage per action token.
        loss: The loss that is minimised.
        annotators: What may be computed before credit is given; see :attr:`used_annotators`.
        optim: Settings of the optimiser.
        shapers: Change rewards or judge turns before credit is given, in this order.
        filter: Selects the groups that are trained on; None for all.
        tracker: Per-task statistics across steps.
        groups_per_step: Tasks per rollout batch; not read where ``tokens_per_step`` is given.
        tokens_per_step: Play groups until each step has had its share of sampled tokens, instead of
            a number of groups: step s ends with the group that brings the run to s times as many,
            so that recipes with equal budgets take equally many steps. Groups that a filter leaves
            out count. None plays ``groups_per_step`` groups.
        temperature: Temperature of sampling and of all log-probabilities of the learner.
        train_observations: Put what the environment wrote into the loss as well, which Search-R1
            (arXiv 2503.09516) masks; for that ablation alone.
    """

    name: str
    paper: str
    rollout: Rollout
    credit: Credit
    loss: Loss
    annotators: tuple[Annotator, ...] = ()
    shapers: tuple[Shaper, ...] = ()
    filter: GroupFilter | None = None
    tracker: Tracker | None = None
    optim: Optim = field(default_factory=Optim)
    groups_per_step: int = 16
    tokens_per_step: int | None = None
    temperature: float = 1.0
    train_observations: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name and isinstance(self.paper, str)):
            raise BadValueError(
                f"recipe {self.name!r}: name is {self.name!r} and paper {self.paper!r}; expected "
                "two texts, the first one not empty."
            )
        self._check_kinds()
        where, tokens = f"recipe {self.name!r}", self.tokens_per_step
        check_integer("groups_per_step", self.groups_per_step, where, min=1)
        if tokens is not None and not (is_number(tokens, whole=True) and tokens >= 1):
            raise BadValueError(
                f"{where}: tokens_per_step is {tokens!r}; expected an integer of at least 1, "
                "better several times what a group samples, or none."
            )
        if not (is_number(self.temperature) and 0 < self.temperature < math.inf):
            raise BadValueError(
                f"{where}: temperature is {self.temperature!r}; expected a finite "
                "number above 0 (greedy sampling has no gradient, nor has one without regard to "
                "the model)."
            )
        if self.filter is not None and self.tracker is not None:
            raise BadValueError(
                f"recipe {self.name!r}: {type(self.filter).__name__} plays further tasks and "
                f"{type(self.tracker).__name__} chooses them by its statistics; only one of "
                "them can decide. Drop one."
            )
        self._check_hooks()
        self._check_turn_rewards()
        self._check_annotations()
        self._check_critic()
        self._check_paths()
        self._check_observations()
        self._check_credit_is_read()
        self._check_replay()

    @property
    def needs(self) -> frozenset[str]:
        """Annotations that the credit or the loss reads.

        ``old_logprobs`` is among them only where the credit reads it: the learner itself computes
        the base of the importance ratio when no annotator gives it.
        """
        return frozenset(
            "values" if name == "old_values" else name
            for name in self.credit.needs | (self.loss.needs - self.credit.provides)
        ) - {"value_targets", "states"}

    @property
    def reads_states(self) -> bool:
        """Whether the credit reads the states that turns were taken in, so that they are recorded.

        Those of the rollout's turns are; a credit that needs them asks for ``"states"``.
        """
        return "states" in self.credit.needs

    @property
    def reads_gold(self) -> bool:
        """Whether an annotator reads the accepted final answers, so that they are recorded."""
        return any(annotator.reads_gold for annotator in self.used_annotators)

    @property
    def hints(self) -> ContextLogprobs | None:
        """The annotator that reads demonstrations, so that they are recorded; None without one."""
        return next((a for a in self.used_annotators if isinstance(a, ContextLogprobs)), None)

    @property
    def teacher(self) -> str | None:
        """Folder or name of the teacher's model; None where no part asks for one."""
        found = (a.model or None for a in self.used_annotators if isinstance(a, TeacherLogprobs))
        return next(found, None)

    @property
    def used_annotators(self) -> tuple[Annotator, ...]:
        """Annotators whose output is read; the others are never run."""
        read = self.needs | {"old_logprobs"}
        return tuple(a for a in self.annotators if a.provides & read)

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment that a part cannot play in, or makes no sense in.

        Raises:
            BadValueError: There is such a part; the message says why.
        """
        self.rollout.check(env)
        self.credit.check(env)
        for annotator in self.used_annotators:
            annotator.check(env)

    @property
    def critic(self) -> bool:
        """Whether there is a critic to train."""
        return "values" in self.needs

    @property
    def reference(self) -> bool:
        """Whether a frozen copy of the starting policy is needed."""
        by_start = self.hints is not None and self.hints.weights == "start"
        return "ref_logprobs" in self.needs or by_start

    def _check_kinds(self) -> None:
        """Refuse what is no part, before anything is asked of it."""
        here = f"recipe {self.name!r}"
        check_part(self.rollout, Rollout, f"{here}: rollout")
        check_part(self.credit, Credit, f"{here}: credit")
        check_part(self.loss, Loss, f"{here}: loss")
        for name, kind in (("annotators", Annotator), ("shapers", Shaper)):
            parts = getattr(self, name)
            if not isinstance(parts, tuple):
                raise BadValueError(
                    f"{here}: {name} is {parts!r:.100}; expected a tuple of parts, with a comma "
                    "where it is one: (part,)."
                )
            for part in parts:
                check_part(part, kind, f"{here}: {name}")
        if self.filter is not None:
            check_part(self.filter, GroupFilter, f"{here}: filter")
        if self.tracker is not None:
            check_part(self.tracker, Tracker, f"{here}: tracker")
        if not isinstance(self.optim, Optim):
            raise BadValueError(f"{here}: optim is {self.optim!r:.100}; expected Optim(...).")

    def _check_hooks(self) -> None:
        reader = None
        for shaper in self.shapers:
            if reader is not None and shaper.judges:
                raise BadValueError(
                    f"recipe {self.name!r}: {type(shaper).__name__} judges after {reader} has read "
                    "the verdicts, so it would have no effect. Put the judge first."
                )
            if shaper.reads_verdicts:
                reader = type(shaper).__name__

    def _check_turn_rewards(self) -> None:
        """Refuse rewards per turn where paths share turns or the credit reads whole returns."""
        for shaper in self.shapers:
            turns = shaper.rewards_turns
            if turns is None:
                continue
            who, credit = type(shaper).__name__, type(self.credit).__name__
            if turns and self.rollout.forks:
                raise BadValueError(
                    f"recipe {self.name!r}: {who} rewards each turn, but the paths of "
                    f"{self.rollout} share turns, and a shared one would need one reward per path. "
                    "Use Chains, or at='trajectory'."
                )
            if turns and self.credit.whole_returns:
                raise BadValueError(
                    f"recipe {self.name!r}: {who} rewards each turn, but {credit} only reads a "
                    "path's whole return, so it would change nothing. Use at='trajectory', or "
                    "TurnReturns or Gae as the credit."
                )
            if not turns and self.credit.needs_turn_rewards:
                raise BadValueError(
                    f"recipe {self.name!r}: {credit} compares turns by their rewards to go, but "
                    f"{who} rewards only the end, so all turns of a path are equal. Use "
                    "at='turns', or GroupCredit."
                )

    def _check_annotations(self) -> None:
        given = frozenset[str]().union(*(a.provides for a in self.annotators))
        if self.tracker is not None:
            given |= self.tracker.provides
        for name in sorted(self.needs - given):
            asking = " and ".join(
                type(part).__name__
                for part in (self.credit, self.loss)
                if name in part.needs or (name == "values" and "old_values" in part.needs)
            )
            raise BadValueError(
                f"recipe {self.name!r}: {asking} needs {name!r}, which neither the credit nor an "
                f"annotator provides. {_WHO.get(name, 'Add an annotator that does.')}"
            )

    def _check_critic(self) -> None:
        if self.optim.critic_only_steps and not self.critic:
            raise BadValueError(
                f"recipe {self.name!r}: optim.critic_only_steps is "
                f"{self.optim.critic_only_steps}, but there is no critic."
            )
        fits = "value_targets" in self.loss.needs
        aims = "value_targets" in self.credit.provides
        if fits and not aims:
            raise BadValueError(
                f"recipe {self.name!r}: {type(self.loss).__name__} fits a critic, but "
                f"{type(self.credit).__name__} gives it no value targets. Use Gae, or a loss "
                "without a value part."
            )
        if aims and not fits:
            raise BadValueError(
                f"recipe {self.name!r}: {type(self.credit).__name__} relies on a critic that "
                f"{type(self.loss).__name__} would never train. Use ActorCriticLoss."
            )

    def _check_paths(self) -> None:
        if self.rollout.max_paths < self.credit.min_paths:
            raise BadValueError(
                f"recipe {self.name!r}: {self.rollout} grows {self.rollout.max_paths} path per "
                f"group, but {type(self.credit).__name__} compares at least "
                f"{self.credit.min_paths}: every advantage would be 0. Grow more paths, or "
                "choose a credit without a group baseline."
            )
        recorded = [a for a in self.annotators if a == OldLogprobs(source="sampled")]
        if recorded and not self.rollout.samples:
            raise BadValueError(
                f"recipe {self.name!r}: {recorded[0]} takes the log-probabilities that were "
                f"recorded when an action was sampled, but {self.rollout} samples none. Use "
                "OldLogprobs()."
            )
        if self.credit.needs_forks and not self.rollout.forks:
            raise BadValueError(
                f"recipe {self.name!r}: {type(self.credit).__name__} compares turns of one tree, "
                f"but the trees of {self.rollout} never fork: there would be nothing to learn "
                "from. Use Expand or Branch with room to fork, or another credit."
            )

    def _check_credit_is_read(self) -> None:
        """Refuse credit that the loss does not read, and none where it reads nothing else."""
        credit, loss = type(self.credit).__name__, type(self.loss).__name__
        if self.credit.speaks and not self.loss.reads_credit:
            raise BadValueError(
                f"recipe {self.name!r}: {loss} has a term of its own for every token and reads no "
                f"advantages, so {credit} would change nothing. Use NoCredit, or SummedLoss, which "
                "adds both."
            )
        if self.loss.reads_credit and not self.credit.speaks:
            raise BadValueError(
                f"recipe {self.name!r}: {loss} is made of advantages, and {credit} gives none. Use "
                "a credit rule, or RefKlLoss."
            )

    def _check_replay(self) -> None:
        """Refuse to replay where a stored path misses what the loss reads."""
        if self.tracker is None or not self.tracker.replays:
            return
        who, loss = type(self.tracker).__name__, type(self.loss).__name__
        why = None
        if self.loss.needs or not self.loss.reads_credit:
            read = ", ".join(sorted(self.loss.needs)) or "no advantages"
            why = f"{loss} reads {read}, and stored paths have advantages alone"
        elif self.train_observations:
            why = "train_observations needs log-probabilities of what the environment wrote"
        elif not self.rollout.samples:
            why = f"{self.rollout} samples nothing that the policy could imitate of itself"
        if why:
            raise BadValueError(
                f"recipe {self.name!r}: {who} has stored paths trained on again, but {why}. Use "
                "PolicyLoss without a reference (loss.kl.coef=0), or drop the tracker."
            )

    def _check_observations(self) -> None:
        """Refuse more than advantages: nothing else exists for observation tokens."""
        if self.train_observations and (self.needs or self.credit.provides):
            streams = ", ".join(sorted(self.needs | self.credit.provides))
            raise BadValueError(
                f"recipe {self.name!r}: train_observations copies advantages to observation "
                f"tokens, but credit and loss also read {streams}, which these do not have. "
                "Use it with a group credit and without critic and reference (loss.kl.coef=0)."
            )
