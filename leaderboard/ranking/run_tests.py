"""Compare methods on the board of algorithms, over their training runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...envs.utils.seed_tests import Edges, SeedTest, compare_seeds, decide_seeds, show_points
from ...envs.utils.statistics import holm
from ..schema.board import RunTest

HALVES = 4
"""Fewer runs have no two halves with a deviation each."""


class Method(NamedTuple):
    """What a row brings to its comparisons.

    Attributes:
        entry_id: The row's entry.
        runs: The score of every training run, by its seed; of a reference row its one score.
        trained: Whether it has training runs; reference rows have none.
    """

    entry_id: str
    runs: Mapping[int, float]
    trained: bool


class _Pair(NamedTuple):
    """Two sides and their test before any correction."""

    other: str
    ours: Sequence[float]
    theirs: Sequence[float]
    test: SeedTest
    by_seed: bool = False


def compare_neighbours(methods: Sequence[Method], edges: Edges) -> list[RunTest | None]:
    """Compare every row with the one below it, with Holm's correction over the board.

    Args:
        methods: The rows in the board's order.
        edges: What a policy scores that has learned nothing, and the best score.

    Returns:
        A test per row; None for the last, and where neither side has two training runs.
    """
    sides = list(itertools.pairwise(methods))
    pairs = [_pair(above, below) for above, below in sides]
    adjusted = holm([pair.test.p_value for pair in pairs if pair is not None])
    left, tests = iter(adjusted), list[RunTest | None]()
    for pair, (above, below) in zip(pairs, sides, strict=True):
        family = len(adjusted) if above.trained and below.trained else 1
        tests.append(None if pair is None else _finish(pair, next(left), edges, family))
    return [*tests, None][: len(methods)]


def compare_halves(method: Method, edges: Edges) -> RunTest | None:
    """Compare every second run of a method, by seed, with its others; None for fewer than four."""
    if not method.trained or len(method.runs) < HALVES:
        return None
    scores = [method.runs[seed] for seed in sorted(method.runs)]
    ours, theirs = scores[::2], scores[1::2]
    test = compare_seeds(ours, theirs, paired=False)
    return _finish(_Pair(method.entry_id, ours, theirs, test), test.p_value, edges)


def compare_reproduction(method: Method, original: Method, edges: Edges) -> RunTest | None:
    """Compare a reproduction's runs with those of what it reproduces; None without runs."""
    if not (method.trained and original.trained):
        return None
    pair = _pair(method, original)
    return None if pair is None else _finish(pair, pair.test.p_value, edges)


def _pair(above: Method, below: Method) -> _Pair | None:
    """Return the test of two rows; None where one that was trained has a single run."""
    by_seed = above.trained and below.trained and sorted(above.runs) == sorted(below.runs)
    if above.trained and below.trained:
        ours = [above.runs[seed] for seed in sorted(above.runs)]
        theirs = [below.runs[seed] for seed in sorted(below.runs)]
    elif above.trained or below.trained:
        count = max(len(above.runs), len(below.runs))
        ours, theirs = (
            list(m.runs.values()) if m.trained else list(m.runs.values())[:1] * count
            for m in (above, below)
        )
    else:
        return None
    if min(len(ours), len(theirs)) < 2:
        return None
    one_sample = not (above.trained and below.trained)
    test = compare_seeds(ours, theirs, paired=by_seed or one_sample)
    return _Pair(below.entry_id, ours, theirs, test, by_seed)


def _finish(pair: _Pair, adjusted_p: float, edges: Edges, family: int = 1) -> RunTest:
    test = pair.test
    decision = decide_seeds(
        test,
        adjusted_p,
        min_effect=0.0,
        bound=None,
        family=family,
        edge=edges.describe(pair.ours, pair.theirs),
        show=show_points,
    )
    return RunTest(
        other=pair.other,
        runs=test.n,
        paired=pair.by_seed,
        difference=test.difference,
        low95=test.low95,
        high95=test.high95,
        p_value=test.p_value,
        adjusted_p=adjusted_p,
        detectable=test.detectable,
        verdict=decision.verdict,
        why=decision.why,
    )
