"""Graphs of states, kept across steps, and tasks that come back to theirs: TIGPO's tracker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.checks import check_minimum
from ..core.forest import Forest
from ..core.protocols import Floats, Scorer, Start, TaskSource, Tracker
from ..credit.group import by_prompt, episode_returns
from ..credit.state_terms import GoalDistances, edges_of, end_of
from ..credit.states import find_visits
from ..credit.turns import on_actions
from . import seed_at
from .task_order import OrderedTasks, Size

_REVISITS = 21
_MARK = "/again/"


@dataclass(frozen=True, kw_only=True)
class KeptGraphs(Tracker):
    """The transitions and returns of each task's earlier groups (TIGPO, arXiv 2609.03383).

    Every second group of a step plays a task again that was new ``wait`` steps before, where there
    is one. States are those of the environment's ``state_digest``.

    Attributes:
        wait: Steps after which a task comes back.
        tasks: Tasks that are remembered, the newest ones.
    """

    wait: int = 10
    tasks: int = 4096

    def __post_init__(self) -> None:
        check_minimum(self, wait=1, tasks=1)

    @property
    def provides(self) -> frozenset[str]:
        """Distances by all known edges, and the returns of the task's last group."""
        return frozenset({"kept_distances", "earlier_returns"})

    def start(
        self,
        seed: int,
        split: str,
        size: Size,
        reward_range: tuple[float, float],  # noqa: ARG002 - returns are compared among themselves
    ) -> GraphMemory:
        """Create an empty memory."""
        return GraphMemory(self, OrderedTasks(seed, split, size))


@dataclass(slots=True)
class GraphMemory(TaskSource):
    """The state of :class:`KeptGraphs` in one run.

    Attributes:
        rule: The tracker.
        order: The order of tasks that are new.
        edges: Known transitions by task.
        returns: Returns of each task's last group.
        fresh: New tasks by step, of the last ``wait`` steps.
        step: The last step that was begun.
    """

    rule: KeptGraphs
    order: OrderedTasks
    edges: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    returns: dict[str, list[float]] = field(default_factory=dict)
    fresh: dict[int, list[str]] = field(default_factory=dict)
    step: int = 0

    def starts(self, step: int, count: int, extra_round: int = 0) -> list[Start]:  # noqa: ARG002 - filters and trackers exclude each other
        """Return the tasks of a training step."""
        return self.starts_from(step, (step - 1) * count, 0, count)

    def starts_from(self, step: int, played: int, at: int, count: int) -> list[Start]:
        """Return these places of a step: new tasks, and at odd places such as come back."""
        self.step = step
        waiting = self.fresh.get(step - self.rule.wait, [])
        found = self.order.starts_from(step, played, at, count)
        for i, place in enumerate(range(at, at + count)):
            if place % 2 and place // 2 < len(waiting):
                seed = seed_at(self.order.seed, _REVISITS, step, place)
                name = f"{step}{_MARK}{place}"
                found[i] = Start(self.order.split, waiting[place // 2], seed, name)
        return found

    def annotations(self, forest: Forest) -> dict[str, list[Floats]]:
        """Return how far each action led from success, and the returns of the task's last group.

        ``kept_distances`` ``[n_act]`` are edges of the group's graph and all that is known of the
        task; ``earlier_returns`` ``[n]`` belong to no token.
        """
        rows: list[Any] = [np.zeros(0)] * len(forest.paths)
        earlier: list[Any] = [np.zeros(0, np.float32)] * len(forest.paths)
        returns = forest.returns()
        for members in by_prompt(forest):
            task = forest.groups[forest.paths[members[0]].group].task_id
            visits = find_visits(forest, members, "state", 1.0, returns)
            far = GoalDistances().distances(visits, self.edges.get(task, ()))
            led = np.array([far[end_of(visits, i)] for i in range(len(visits))], dtype=np.float64)
            for at in members:
                rows[at] = led[visits.of_path[at]]
                earlier[at] = np.array(self.returns.get(task, []), np.float32)
        return {"kept_distances": on_actions(forest, rows), "earlier_returns": earlier}

    def learn(self, forest: Forest, scorer: Scorer) -> dict[str, float]:  # noqa: ARG002 - the protocol's
        """Remember the transitions and the returns of the step's groups."""
        returns, again, known = forest.returns(), 0, []
        fresh = self.fresh.setdefault(self.step, [])
        for members in by_prompt(forest):
            group = forest.groups[forest.paths[members[0]].group]
            visits = find_visits(forest, members, "state", 1.0, returns)
            edges = self.edges.pop(group.task_id, set())
            edges |= {(str(a), b) for a, b in edges_of(visits) if isinstance(b, str)}
            self.edges[group.task_id] = edges
            self.returns[group.task_id] = episode_returns(forest, members)
            known.append(len(edges))
            if _MARK in group.uid:
                again += 1
            elif group.task_id not in fresh:
                fresh.append(group.task_id)
        for task in list(self.edges)[: -self.rule.tasks]:
            del self.edges[task], self.returns[task]
        self.fresh = {s: t for s, t in self.fresh.items() if s > self.step - self.rule.wait}
        if not known:
            return {}
        return {"edges_mean": float(np.mean(known)), "revisits_frac": again / len(known)}

    def state(self) -> dict[str, Any]:
        """Return graphs, returns and the tasks that will come back, as JSON data."""
        return {
            "edges": {task: sorted(map(list, edges)) for task, edges in self.edges.items()},
            "returns": self.returns,
            "fresh": {str(step): tasks for step, tasks in sorted(self.fresh.items())},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state`."""
        self.edges = {task: {(a, b) for a, b in rows} for task, rows in state["edges"].items()}
        self.returns = {task: [float(r) for r in row] for task, row in state["returns"].items()}
        self.fresh = {int(step): list(tasks) for step, tasks in state["fresh"].items()}
