"""A selector that knows the annotated answers and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from .papers import Judged


class LabelSelector:
    """Probability 1 for an annotated answer, 0 for any other paper.

    With it ``label="annotated_or_selector"`` is ``"annotated"``; the frontier's order is not
    informed by it beyond the labels.
    """

    identity = "labels"
    blocking = False

    def probabilities(self, judged: Sequence[Judged]) -> list[float]:
        """1 or 0 for each paper."""
        return [float(paper.id in request.answers) for request, paper in judged]
