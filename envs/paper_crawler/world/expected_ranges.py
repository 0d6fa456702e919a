"""What the statistics of generated worlds should be, and whether they are."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

_TOLERANCE = 0.2
_METRICS = (
    "crawler_recall", "precision", "recall", "recall_at_100", "recall_at_50", "recall_at_20",
    "actions", "return",
)  # fmt: skip
_TABLE = {
    "raw query": (0.12, 0.15, 0.09, 0.12, 0.12, 0.12, 1, 2.3),
    "search only": (0.36, 0.19, 0.28, 0.36, 0.36, 0.32, 5, 7.3),
    "expand all": (0.87, 0.14, 0.68, 0.71, 0.69, 0.63, 448, -18.1),
    "expand random": (0.73, 0.17, 0.56, 0.62, 0.59, 0.55, 138, 5.1),
    "name heuristic": (0.81, 0.18, 0.62, 0.77, 0.70, 0.62, 60, 14.4),
    "section oracle": (0.87, 0.26, 0.68, 0.87, 0.85, 0.72, 10, 15.7),
}
_RANGES: Mapping[str, tuple[float, float]] = {
    "references raw": (27.6, 27.6),
    "references resolved": (22.6, 22.6),
    "sections": (8.2, 8.2),
    "cited mean": (24, 24),
    "cited p50": (16, 16),
    "cited p99": (133, 133),
    "cited max": (270, 270),
    "cited top 1 %": (0.07, 0.07),
    "answers mean": (2.86, 3.02),
    "answers p50": (2, 3),
    "answers p90": (5, 5),
    "answers max": (9, 11),
    "all answers mean": (13, 13),
    "all answers p50": (10, 10),
    "all answers p90": (27, 27),
    "raw recall@10": (0.12, 0.12),
    "raw recall@20": (0.17, 0.17),
    "raw recall@50": (0.20, 0.20),
    "raw recall@100": (0.20, 0.20),
    "all pairs recall": (0.66, 0.73),
    "reached by search": (0.33, 0.38),
    "reached in layer 1": (0.47, 0.54),
    "reached in layer 2": (0.02, 0.04),
    "reached never": (0.09, 0.11),
    "yield related work naming it": (0.50, 0.53),
    "yield survey taxonomy": (0.60, 0.82),
    "yield other related work": (0.12, 0.13),
    "yield introduction": (0.15, 0.17),
    "yield experiments": (0.05, 0.06),
    "yield method sections": (0.003, 0.004),
    "yield off the topic": (0.0, 0.014),
    "sections that pay": (0.37, 0.38),
    **{
        f"{rule}: {metric}": (value, value)
        for rule, values in _TABLE.items()
        for metric, value in zip(_METRICS, values, strict=True)
    },
}
_PRESETS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "default": _RANGES,
    "easy": {
        "search only: crawler_recall": (0.67, 0.67),
        "expand all: crawler_recall": (0.96, 0.96),
    },
    "hard": {
        "search only: crawler_recall": (0.36, 0.36),
        "name heuristic: crawler_recall": (0.81, 0.81),
        "expand all: crawler_recall": (0.86, 0.86),
    },
    "deep": {
        "reached in layer 2": (0.056, 0.056),
        "reached never": (0.16, 0.16),
        "name heuristic: crawler_recall": (0.71, 0.71),
    },
}
_SAME_RECALL = 0.02


class Measured(NamedTuple):
    """A value and where it should lie; ``None`` where nothing is asked of it."""

    name: str
    value: float
    low: float | None
    high: float | None

    @property
    def inside(self) -> bool | None:
        """Whether the value lies in its range; None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.value <= self.high


class Ordering(NamedTuple):
    """A statement about rules, and whether it is true."""

    text: str
    holds: bool


def load_expected_ranges(size: str, preset: str) -> dict[str, tuple[float, float]]:
    """Return the ranges of the values, a fifth wider on both sides than was published.

    Only full worlds have expected ranges.
    """
    if size != "full":
        return {}
    return {
        name: (low - _TOLERANCE * abs(low), high + _TOLERANCE * abs(high))
        for name, (low, high) in _PRESETS[preset].items()
    }


def compare(values: Mapping[str, float], size: str, preset: str = "default") -> list[Measured]:
    """Return each measured value with its expected range."""
    known = load_expected_ranges(size, preset)
    return [Measured(name, v, *known.get(name, (None, None))) for name, v in values.items()]


def check_orderings(values: Mapping[str, float]) -> list[Ordering]:
    """Check which rule earns more and which finds more, as in every world of the default kind."""

    def chain(metric: str, *rules: str) -> Ordering:
        numbers = [values[f"{rule}: {metric}"] for rule in rules]
        falling = all(a > b for a, b in pairwise(numbers))
        return Ordering(f"{metric}: {' > '.join(rules)}", falling)

    recall = [values[f"{rule}: crawler_recall"] for rule in ("expand all", "section oracle")]
    return [
        chain("return", "section oracle", "name heuristic", "search only", "expand random",
              "expand all"),
        chain("crawler_recall", "expand all", "name heuristic", "expand random", "search only"),
        chain("crawler_recall", "section oracle", "name heuristic"),
        Ordering(
            f"crawler_recall: expand all = section oracle within {_SAME_RECALL}",
            abs(recall[0] - recall[1]) <= _SAME_RECALL,
        ),
    ]  # fmt: skip
