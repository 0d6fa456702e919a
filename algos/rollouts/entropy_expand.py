"""AT2PO's rollout: chains first, then new endings from where the policy was least sure."""

from __future__ import annotations

from dataclasses import dataclass

from ...envs.core.errors import EnvFault
from ..core.checks import check_minimum, check_weights
from ..core.forest import ROOT, Group, Tree, Turn
from ..core.protocols import Rollout, Start
from ..credit.node_value import surprisal
from .budget import GroupBudget, Line, finished_episodes, keep_episodes, play_lines
from .episode_runner import EpisodeHandle, EpisodeRunner, StepResult

_SNAPSHOT = -1


@dataclass(frozen=True, kw_only=True)
class EntropyExpand(Rollout):
    """Entropy-guided tree expansion (AT2PO, arXiv 2601.04767, as released).

    ``initial`` chains are played to the end; they are one tree, whose root is the prompt. Then,
    ``rounds`` times, a new ending is played from each of the ``nodes`` best nodes. A node is the
    root, or a turn after which the episode went on; its score is the mean of its action's
    ``-log p`` as sampled (0 for the root), less ``penalty`` for each other child of its parent (for
    the root: for each of its own children but one). Of equal scores the earlier node is taken; too
    few nodes are gone through again from the best. A node is a fork of the environment, so no tool
    runs twice.

    Degenerate cases: an episode of one turn has the root as the only node, so its expansions are
    further chains, as with ``rounds=0``.

    Attributes:
        initial: Chains at the start.
        nodes: Nodes that a round expands.
        rounds: Rounds of expansion.
        penalty: What each other branch takes off a node's score, in nats.
        limit_tokens: Most tokens that a group may sample, see :class:`Chains`.
        limit_calls: Most actions that a group may take.
    """

    initial: int = 10
    nodes: int = 6
    rounds: int = 2
    penalty: float = 0.05
    limit_tokens: int | None = None
    limit_calls: int | None = None

    def __post_init__(self) -> None:
        check_minimum(self, initial=1, nodes=0, rounds=0)
        check_weights(self, "penalty")
        GroupBudget(self.limit_tokens, self.limit_calls)

    @property
    def max_paths(self) -> int:
        """Number of chains and of expansions."""
        return self.initial + self.nodes * self.rounds

    @property
    def forks(self) -> bool:
        """Whether the tree can have more than one ending."""
        return self.max_paths > 1

    async def __call__(self, runner: EpisodeRunner, start: Start) -> Group:
        """Play the chains, then the rounds, all in one tree."""
        try:
            handle = await runner.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.initial)
        budget, tree, nodes = GroupBudget(self.limit_tokens, self.limit_calls), Tree(), _Nodes()
        nodes.handles[ROOT] = handle.fork(_SNAPSHOT)
        nodes.grow = self.nodes * self.rounds > 0
        lines = [Line(handle.fork(i), tree) for i in range(self.initial)]
        await play_lines(runner, lines, budget, nodes)
        for number in range(self.rounds):
            chosen = self.chosen(tree, list(nodes.handles))
            lines = [
                Line(nodes.handles[at].fork(number * self.nodes + i), tree)
                for i, at in enumerate(chosen)
            ]
            nodes.grow = number + 1 < self.rounds
            await play_lines(runner, lines, budget, nodes)
        for snapshot in nodes.handles.values():
            runner.leave(snapshot)
        runner.leave(handle)
        group = Group(start.uid, handle.task_id, [tree] if tree.turns else [])
        if budget.off:
            return group
        return keep_episodes(group, [finished_episodes(tree) for tree in group.trees])

    def chosen(self, tree: Tree, nodes: list[int]) -> list[int]:
        """Return the nodes that a round expands, best first, out of these (ROOT among them)."""
        scores = self.scores(tree, nodes)
        best = sorted(range(len(nodes)), key=lambda i: (-scores[i], nodes[i]))
        return [nodes[best[i % len(best)]] for i in range(self.nodes)]

    def scores(self, tree: Tree, nodes: list[int]) -> list[float]:
        """Return the score of each node in nats."""
        before = [tree.previous(i) for i in range(len(tree.turns))]
        out = []
        for at in nodes:
            others = before.count(ROOT if at == ROOT else before[at]) - 1
            unsure = 0.0 if at == ROOT else surprisal(tree.turns[at])
            out.append(unsure - self.penalty * max(others, 0))
        return out


class _Nodes:
    """The positions after the turns of a tree, kept while its lines are played.

    Attributes:
        handles: By turn, :data:`ROOT` for the prompt.
        grow: Whether further endings will be drawn; without them nothing needs to be kept.
    """

    def __init__(self) -> None:
        self.handles: dict[int, EpisodeHandle] = {}
        self.grow = True

    def ready(self, line: Line) -> None:
        """Do nothing."""

    def append(self, runner: EpisodeRunner, line: Line, result: StepResult) -> Turn:
        """Append the turn, and keep the position after it if the episode goes on."""
        turn = runner.append(line.handle, line.tree, result)
        if self.grow and turn.status == "running":
            self.handles[len(line.tree.turns) - 1] = line.handle.fork(_SNAPSHOT)
        return turn
