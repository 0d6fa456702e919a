"""ARPO's rollout: branch where the entropy rose after a tool answered."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError, EnvFault
from ..core.checks import check_minimum, check_weights
from ..core.forest import Group, Tree
from ..core.protocols import Rollout, Start
from .budget import GroupBudget, Line, finished_episodes, keep_episodes
from .episode_runner import EpisodeHandle, EpisodeRunner, StepResult
from .seeds import seed_at

_SNAPSHOT, _CHANCE = -1, -2
_ROUNDING = 1e-4
TOP = 10
"""Likeliest tokens that the released code's entropy looks at."""


@dataclass(frozen=True, kw_only=True)
class Branch(Rollout):
    """Entropy-based adaptive rollout (ARPO, arXiv 2507.19849, section 3.1).

    ``initial`` chains begin. Whenever a tool has answered, the entropy H of the next
    ``probe_tokens`` tokens is set against that of the chain's first ones, and a chain branches with
    probability ``clamp(alpha + beta * (H - H_initial), 0, 1)`` into ``beam`` chains that continue
    from the tool's result. The tool does not run again. At most ``budget`` chains exist; what is
    left when all have ended is filled with fresh ones.

    The probe costs nothing: a chain samples its next action anyway, and its first tokens are the
    probe. The branches start from the position before it.

    Entropies are sums over the probe's tokens, in units of ln(vocabulary) nats, so they reach
    about ``probe_tokens / 5``.

    Degenerate cases: ``budget == initial`` never branches and is :class:`Chains`. A chain that
    branched does not branch again at the same tool result.

    Attributes:
        initial: N in the paper: chains at the start.
        budget: M: chains in all.
        beam: Z: chains that one becomes where it branches.
        alpha: Base probability of branching.
        beta: How strongly the rise of the entropy counts.
        probe_tokens: k: tokens whose entropy is measured.
        threshold: Branch exactly where the probability is above it (the paper's rule); None draws.
        reference_compat: The released code's rule: the action that ended with this tool's call
            decides instead of the probe (one step late), from the ten likeliest tokens' entropy,
            with a branch's own first action as its H_initial, and fresh chains one at a time.
        limit_tokens: Most tokens that a group may sample, see :class:`Chains`.
        limit_calls: Most actions that a group may take.
    """

    initial: int = 8
    budget: int = 16
    beam: int = 2
    alpha: float = 0.5
    beta: float = 0.2
    probe_tokens: int = 20
    threshold: float | None = None
    reference_compat: bool = False
    limit_tokens: int | None = None
    limit_calls: int | None = None

    def __post_init__(self) -> None:
        check_minimum(self, initial=1, beam=1, probe_tokens=1)
        if self.budget < self.initial:
            raise BadValueError(
                f"Branch.budget is {self.budget} with initial {self.initial}; expected at least "
                "as many chains in all as at the start."
            )
        check_weights(self, "alpha", "beta")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise BadValueError(f"Branch.threshold is {self.threshold}; expected 0 to 1, or none.")
        GroupBudget(self.limit_tokens, self.limit_calls)

    def tired(self, streak: int) -> float:  # noqa: ARG002 - a default
        """Return the factor of the probability after so many branchings of a chain in a row."""
        return 1.0

    @property
    def max_paths(self) -> int:
        """Equal to the budget."""
        return self.budget

    @property
    def forks(self) -> bool:
        """Whether a chain may branch."""
        return self.budget > self.initial and self.beam > 1

    async def __call__(self, runner: EpisodeRunner, start: Start) -> Group:
        """Play until the budget is used; a branch is in its origin's tree."""
        try:
            handle = await runner.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.initial)
        grove = _Grove(self, runner, handle)
        await grove.play()
        group = Group(start.uid, handle.task_id, [tree for tree in grove.trees if tree.turns])
        runner.leave(handle)
        if grove.budget.off:
            return group
        return keep_episodes(group, [finished_episodes(tree) for tree in group.trees])


@dataclass(frozen=True, kw_only=True)
class BalancedBranch(Branch):
    """ARPO's rollout where branching in a row becomes unlikely (AEPO, arXiv 2510.14545).

    The probability is multiplied by ``max(0, 1 - fatigue * streak)``, streak being how many of the
    chain's last tool answers it branched at without a pause; a branch inherits it.

    Attributes:
        fatigue: What each branching in a row takes off; 0 is :class:`Branch`.
    """

    fatigue: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weights(self, "fatigue")

    def tired(self, streak: int) -> float:
        """Return the factor of the probability after so many branchings of a chain in a row."""
        return max(0.0, 1.0 - self.fatigue * streak)


@dataclass(slots=True, eq=False)
class _Chain(Line):
    """A line with its place in the order of chains, its initial entropy, and its branchings."""

    number: int
    began: float | None = None
    streak: int = 0
    decided: bool = True  # nothing to decide before the first tool answer


class _Grove:
    """The chains of one group, played in rounds of one turn each."""

    def __init__(self, rule: Branch, runner: EpisodeRunner, handle: EpisodeHandle) -> None:
        self.rule, self.runner, self.handle = rule, runner, handle
        self.budget = GroupBudget(rule.limit_tokens, rule.limit_calls)
        self.trees: list[Tree] = []
        self.chains: list[_Chain] = []
        for _ in range(rule.initial):
            self._fresh()

    async def play(self) -> None:
        """Play rounds until nothing is active and the budget is used, or a limit is reached."""
        while True:
            active = [chain for chain in self.chains if not chain.handle.done]
            if not active:
                left = self.rule.budget - len(self.chains)
                if left == 0:
                    return
                for _ in range(1 if self.rule.reference_compat else left):
                    self._fresh()
                continue
            if not await self._round(active):
                break
        for chain in self.chains:
            if not chain.handle.done:
                self.runner.leave(chain.handle)

    async def _round(self, active: list[_Chain]) -> bool:
        turns = self.budget.admitted(active, self.runner)
        origins = [self._before(chain) for chain in turns]
        top = TOP if self.rule.reference_compat else 0
        results = await asyncio.gather(*(self.runner.step(c.handle, top) for c in turns))
        for chain, result in zip(turns, results, strict=True):
            self.runner.append(chain.handle, chain.tree, result)
            self.budget.spend(len(result.done.ids))
        for chain, before, result in zip(turns, origins, results, strict=True):
            entropy = self._entropy(result)
            if chain.began is None:
                chain.began = entropy
            if self.rule.reference_compat:
                if not chain.handle.done:
                    self._branch(chain, chain.handle, entropy, None)
            elif before is not None:
                self._branch(chain, before, entropy, chain.began)
            if before is not None:
                self.runner.leave(before)
            chain.decided = False
        return bool(turns)

    def _before(self, chain: _Chain) -> EpisodeHandle | None:
        """Return the position that branches would start from, if there can be any."""
        full = len(self.chains) >= self.rule.budget or self.rule.beam == 1
        if self.rule.reference_compat or chain.decided or full:
            return None
        return chain.handle.fork(_SNAPSHOT)

    def _branch(
        self, chain: _Chain, origin: EpisodeHandle, entropy: float, began: float | None
    ) -> None:
        """Add up to ``beam - 1`` chains that continue from ``origin``."""
        assert chain.began is not None
        chance = min(max(self.rule.alpha + self.rule.beta * (entropy - chain.began), 0.0), 1.0)
        chance *= self.rule.tired(chain.streak)
        before = len(self.chains)
        for copy in range(min(self.rule.beam - 1, self.rule.budget - len(self.chains))):
            if self._draws(chain, copy, chance):
                handle = origin.fork(len(self.chains))
                grown = _Chain(handle, chain.tree, len(self.chains), began, chain.streak + 1)
                self.chains.append(grown)
        chain.streak = chain.streak + 1 if len(self.chains) > before else 0

    def _draws(self, chain: _Chain, copy: int, chance: float) -> bool:
        if self.rule.threshold is not None:
            return chance > self.rule.threshold
        seed = seed_at(self.handle.seed, _CHANCE, chain.number, chain.handle.turns, copy)
        return bool(np.random.default_rng(seed).random() < chance)

    def _fresh(self) -> None:
        tree = Tree()
        self.trees.append(tree)
        handle = self.handle.fork(len(self.chains))
        self.chains.append(_Chain(handle, tree, len(self.chains)))

    def _entropy(self, result: StepResult) -> float:
        n, size = self.rule.probe_tokens, self.runner.engine.vocabulary
        if not self.rule.reference_compat:
            return float(result.done.entropies[:n].sum(dtype=np.float64)) / math.log(size)
        top = result.done.top_logprobs
        if top is None:
            raise BadValueError(
                "Branch: reference_compat needs the likeliest tokens' log-probabilities, which "
                f"{type(self.runner.engine).__name__} does not report. Use reference_compat=false."
            )
        return probe_entropy(top[:n], result.done.logprobs[:n], size)


def probe_entropy(
    top: npt.NDArray[np.float32], sampled: npt.NDArray[np.float32], vocabulary: int
) -> float:
    """Return the entropy as ARPO's released code counts it, in units of ln(vocabulary) nats.

    The sum, not the mean, of ``-p log p`` over the tokens and, at each, over its likeliest
    candidates and the sampled one where it is not among them.

    Args:
        top: Log-probabilities of the likeliest candidates ``[n, k]``, falling.
        sampled: Log-probabilities of the sampled tokens ``[n]``.
        vocabulary: Number of token ids.
    """
    # the last candidate's own log-probability can round to a little less when it was sampled
    outside = sampled[sampled < top[:, -1] - _ROUNDING] if len(top) else sampled
    terms = np.concatenate([top[np.isfinite(top)], outside]).astype(np.float64)
    return float(-(np.exp(terms) * terms).sum()) / math.log(vocabulary)
