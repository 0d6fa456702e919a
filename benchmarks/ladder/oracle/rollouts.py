"""Tabular rollouts: chains, Tree-GRPO's expansion and ARPO's branching, for all seeds at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .twins import Bools, Doubles, Ints, Twin


@dataclass(slots=True)
class Batch:
    """The paths of one step: ``S`` seeds, ``G`` groups, ``P`` paths, ``T`` turns.

    Attributes:
        context: Row of the policy's table ``[S, G, P, T]``.
        observed: What the observation alone tells, as a row of the table ``[S, G, P, T]``.
        action: Letter ``[S, G, P, T]``.
        reward: Reward ``[S, G, P, T]``.
        verdict: Verdict ``[S, G, P, T]``.
        spawned: Context of the session asked for, -1 for none ``[S, G, P, T]``.
        closed: Whether a session ended with the turn ``[S, G, P, T]``.
        valid: Whether the path has the turn ``[S, G, P, T]``.
        own: Whether the path sampled the turn itself ``[S, G, P, T]``.
        tree: Tree of each path ``[S, G, P]``.
        score: The family's measure of each path ``[S, G, P]``.
        fresh: Paths that began at the start: they measure the policy without bias ``[S, G, P]``.
        task: Number of the task of each group in the tracker's pool ``[S, G]``.
    """

    context: Ints
    observed: Ints
    action: Ints
    reward: Doubles
    verdict: Ints
    spawned: Ints
    closed: Bools
    valid: Bools
    own: Bools
    tree: Ints
    score: Doubles
    fresh: Bools
    task: Ints

    @property
    def returns(self) -> Doubles:
        """Return the return of each path ``[S, G, P]``."""
        return (self.reward * self.valid).sum(-1)

    @property
    def cost(self) -> Doubles:
        """Return the actions sampled for each group ``[S, G]``."""
        return self.own.sum((2, 3)).astype(np.float64)

    @property
    def measured(self) -> Doubles:
        """Return the mean measure of the fresh paths by seed ``[S]``."""
        return (self.score * self.fresh).sum((1, 2)) / np.maximum(self.fresh.sum((1, 2)), 1)


class Rollout(Protocol):
    """Plays the groups of a step."""

    @property
    def paths(self) -> int:
        """Maximum paths of a group."""
        ...

    def __call__(self, table: Table, groups: int) -> Batch:
        """Play ``groups`` groups for every seed."""
        ...


@dataclass(slots=True)
class Table:
    """A policy per seed, with its twin and the randomness of the rollouts.

    Attributes:
        twin: The twin.
        logits: ``[S, contexts, letters]``.
        rng: Generator of everything that is sampled.
        pool: Number of tasks that come back; 0 draws a new task for every group.
    """

    twin: Twin
    logits: Doubles
    rng: np.random.Generator
    pool: int = 0

    @property
    def log_probabilities(self) -> Doubles:
        """Return log-probabilities ``[S, contexts, letters]``."""
        return log_softmax(self.logits)


def log_softmax(logits: Doubles) -> Doubles:
    """Normalise logits over the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


class Play:
    """A batch that is being played, with the live states of its paths.

    Args:
        table: The policies.
        groups: Groups per seed.
        paths: Columns of a group.
    """

    def __init__(self, table: Table, groups: int, paths: int) -> None:
        twin, seeds = table.twin, len(table.logits)
        self.table, self.twin = table, twin
        shape = (seeds, groups, paths)
        self.shape, turns = shape, (*shape, twin.horizon)
        self.cumulative = np.exp(table.log_probabilities).cumsum(-1)
        self.entropy = -(np.exp(table.log_probabilities) * table.log_probabilities).sum(
            -1
        ) / np.log(twin.letters)
        self.tasks = self._draw_tasks(seeds, groups)
        each = np.repeat(self.tasks, paths, axis=1)
        self.path_tasks = each.reshape(-1, each.shape[-1])
        self.states = twin.begin(self.path_tasks)
        self.history = np.zeros((twin.horizon, len(self.states), twin.fields), dtype=np.int64)
        self.alive = np.ones(shape, dtype=bool)
        self.batch = Batch(
            context=np.zeros(turns, dtype=np.int64),
            observed=np.zeros(turns, dtype=np.int64),
            action=np.zeros(turns, dtype=np.int64),
            reward=np.zeros(turns),
            verdict=np.zeros(turns, dtype=np.int64),
            spawned=np.full(turns, -1),
            closed=np.zeros(turns, dtype=bool),
            valid=np.zeros(turns, dtype=bool),
            own=np.zeros(turns, dtype=bool),
            tree=np.broadcast_to(np.arange(paths), shape).copy(),
            score=np.zeros(shape),
            fresh=np.ones(shape, dtype=bool),
            task=self.numbers,
        )

    def _draw_tasks(self, seeds: int, groups: int) -> Doubles:
        twin, rng, pool = self.twin, self.table.rng, self.table.pool
        if not pool:
            self.numbers = np.zeros((seeds, groups), dtype=np.int64)
            return twin.draw_tasks(rng, seeds * groups).reshape(seeds, groups, -1)
        tasks = twin.draw_tasks(np.random.default_rng(pool), pool)  # the same in every step
        self.numbers = rng.integers(pool, size=(seeds, groups))
        return tasks[self.numbers]

    def act(self, turn: int, who: Bools) -> None:
        """Let the paths ``who`` ``[S, G, P]`` take their turn number ``turn``."""
        at = np.flatnonzero(who)
        if not len(at):
            return
        seeds = at // (self.shape[1] * self.shape[2])
        states, tasks = self.states[at], self.path_tasks[at]
        self.history[turn, at] = states
        context = self.twin.context(states, tasks)
        cumulative = self.cumulative[seeds, context]
        drawn = self.table.rng.random(len(at))[:, None] > cumulative
        action = np.minimum(drawn.sum(-1), self.twin.letters - 1)
        moves = self.twin.step(states, action, tasks, self.table.rng)
        self.states[at] = moves.states
        for name, values in (
            ("context", context),
            ("observed", self.twin.observed(states, tasks)),
            ("action", action),
            ("reward", moves.reward),
            ("verdict", moves.verdict),
            ("spawned", moves.spawned),
            ("closed", moves.closed),
            ("valid", True),
            ("own", True),
        ):
            getattr(self.batch, name).reshape(-1, self.twin.horizon)[at, turn] = values
        self.alive.reshape(-1)[at] = ~moves.done

    def copy(self, source: Ints, target: Ints, turn: int | Ints) -> None:
        """Make paths ``target`` continue others from before their turn number ``turn``.

        Args:
            source: Flat indices of the paths that are continued ``[n]``.
            target: Flat indices of the paths that continue them ``[n]``.
            turn: Turn at which they part, one for all or one each ``[n]``.
        """
        horizon, turns = self.twin.horizon, np.broadcast_to(turn, source.shape)
        keep = np.arange(horizon) < turns[:, None]
        for name in ("context", "observed", "action", "reward", "verdict", "spawned", "closed"):
            values = getattr(self.batch, name).reshape(-1, horizon)
            values[target] = np.where(keep, values[source], values[target])
        self.batch.valid.reshape(-1, horizon)[target] = keep
        self.states[target] = self.history[turns, source]
        for t in range(int(turns.max(initial=0))):
            on = turns > t
            self.history[t, target[on]] = self.history[t, source[on]]
        tree, fresh = self.batch.tree.reshape(-1), self.batch.fresh.reshape(-1)
        tree[target], fresh[target] = tree[source], False

    def finish(self) -> Batch:
        """Measure the ended episodes and return the batch."""
        self.batch.score[:] = self.twin.measure(self.states, self.path_tasks).reshape(self.shape)
        return self.batch


@dataclass(frozen=True, kw_only=True)
class Chains:
    """``n`` independent episodes of every task.

    Attributes:
        n: Chains of a group.
    """

    n: int

    @property
    def paths(self) -> int:
        """Return the number of chains."""
        return self.n

    def __call__(self, table: Table, groups: int) -> Batch:
        """Play all chains side by side."""
        play = Play(table, groups, self.n)
        for turn in range(table.twin.horizon):
            play.act(turn, play.alive)
        return play.finish()


@dataclass(frozen=True, kw_only=True)
class Trees:
    """Tree-GRPO's expansion: new endings from uniformly drawn points (2509.21240, section 3.2).

    Attributes:
        trees: M, chains played first.
        nodes: N, endings added to each.
    """

    trees: int = 2
    nodes: int = 2

    @property
    def paths(self) -> int:
        """Return the number of leaves."""
        return self.trees * (1 + self.nodes)

    def __call__(self, table: Table, groups: int) -> Batch:
        """Play the chains, draw the points, play the endings."""
        play = Play(table, groups, self.paths)
        main = np.zeros(play.shape, dtype=bool)
        main[..., :: 1 + self.nodes] = True
        for turn in range(table.twin.horizon):
            play.act(turn, play.alive & main)
        lengths = play.batch.valid.sum(-1)
        flat = np.arange(main.size).reshape(play.shape)
        origin = np.repeat(flat[..., :: 1 + self.nodes], 1 + self.nodes, axis=-1)
        target, source = flat[~main], origin[~main]
        turn_of = (table.rng.random(len(target)) * lengths.reshape(-1)[source]).astype(np.int64)
        play.copy(source, target, turn_of)
        begins = np.zeros(main.size, dtype=np.int64)
        begins[target] = turn_of
        begun = begins.reshape(play.shape)
        for turn in range(table.twin.horizon):
            play.act(turn, play.alive & ~main & (begun <= turn))
        return play.finish()


@dataclass(frozen=True, kw_only=True)
class Branches:
    """ARPO's branching after a turn's answer, by the entropy of the next action (2507.19849, 3.1).

    Attributes:
        initial: Chains at the start.
        budget: Chains in all.
        alpha: Base probability of branching.
        beta: How strongly the rise of the entropy counts.
    """

    initial: int = 4
    budget: int = 8
    alpha: float = 0.5
    beta: float = 0.2

    @property
    def paths(self) -> int:
        """Return the number of chains in all."""
        return self.budget

    def __call__(self, table: Table, groups: int) -> Batch:
        """Play; what is left of the budget when all have ended is filled with fresh chains."""
        play = Play(table, groups, self.budget)
        seeds = len(table.logits)
        shape = play.shape
        used = np.full(shape[:2], self.initial)
        began = np.zeros(shape)
        flat = np.arange(began.size).reshape(shape)
        opened = np.broadcast_to(np.arange(self.budget) < self.initial, shape).copy()
        for turn in range(table.twin.horizon):
            active = play.alive & opened
            context = table.twin.context(play.states, play.path_tasks).reshape(shape)
            entropy = play.entropy[np.arange(seeds)[:, None, None], context]
            if turn == 0:
                began = entropy.copy()
            else:
                chance = np.clip(self.alpha + self.beta * (entropy - began), 0.0, 1.0)
                wanted = active & (table.rng.random(shape) < chance)
                rank = wanted.cumsum(-1)
                granted = wanted & (rank <= (self.budget - used)[..., None])
                column = (used[..., None] + rank - 1)[granted]
                groups_at = np.broadcast_to(flat[..., :1], shape)[granted]
                source, target = flat[granted], groups_at + column
                play.act(turn, active)  # fills the history that the copies start from
                play.copy(source, target, turn)
                began.reshape(-1)[target] = began.reshape(-1)[source]
                opened.reshape(-1)[target] = True
                used += granted.sum(-1)
                fork = np.zeros(began.size, dtype=bool)
                fork[target] = True
                play.act(turn, fork.reshape(shape))
                continue
            play.act(turn, active)
        late = ~opened
        for turn in range(table.twin.horizon):
            play.act(turn, play.alive & late)
        return play.finish()
