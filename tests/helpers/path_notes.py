"""Made-up annotations of a forest, and which paths hold which turn."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Credits


def annotations_for(forest: Forest, seed: int = 0) -> dict[str, list[Any]]:
    """Random annotations of the right shapes; sessions are asked for at the ends of actions."""
    rng = np.random.default_rng(seed)
    names = {"old_logprobs": 0, "ref_logprobs": 0, "values": 1}
    annotations: dict[str, list[Any]] = {
        name: [rng.normal(size=forest.n_act(p) + more).astype(np.float32) for p in forest]
        for name, more in names.items()
    }
    annotations["spawned_values"] = []
    for path in forest:
        turns = forest.turns(path)
        ends = np.cumsum([len(t.act_ids) for t in turns])
        asking = ends[[not t.partial for t in turns]] - 1
        row = np.zeros(ends[-1], np.float32)
        row[asking] = rng.normal(size=len(asking))
        annotations["spawned_values"].append(row)
    annotations["kept_distances"] = [
        np.repeat(
            [1.0 + len(t.act_ids) % 3 for t in turns], [len(t.act_ids) for t in turns]
        ).astype(np.float32)
        for turns in map(forest.turns, forest)
    ]
    annotations["earlier_returns"] = [np.array([0.5, 1.5], np.float32) for _ in forest]
    annotations["tracked_values"] = [np.full(forest.n_act(p), 0.3, np.float32) for p in forest]
    return annotations


def streams(forest: Forest, seed: int = 0) -> tuple[dict[str, Any], Credits]:
    """Annotations and credits that put ratios and values outside their clips too."""
    rng = np.random.default_rng(seed)
    n_act = [forest.n_act(p) for p in forest]

    def draw(mean: float, std: float, more: int = 0) -> list[Any]:
        return [rng.normal(mean, std, n + more).astype(np.float32) for n in n_act]

    annotations = {
        "old_logprobs": draw(-5.5, 0.6),
        "ref_logprobs": draw(-5.5, 0.6),
        "values": draw(0.0, 0.5, 1),
    }
    return annotations, Credits(draw(0.0, 1.0), draw(0.0, 1.0))


def owners(forest: Forest) -> dict[tuple[int, int, int], list[tuple[int, int]]]:
    """Paths that hold each turn, with the place of its first token in them."""
    found = defaultdict(list)
    for i, path in enumerate(forest):
        at = 0
        for place, t in zip(path.turns, forest.turns(path), strict=True):
            found[path.group, path.tree, place].append((i, at))
            at += len(t.act_ids)
    return dict(found)
