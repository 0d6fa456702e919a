"""The measures of a credit against the truth, each as sums over groups.

Groups are independent, turns of one are not (they share their noise), so every measure is a
function of sums over groups. Weighting the groups gives its bootstrap; the same weights for all
recipes that saw the same groups give the interval of a difference.

Notation: c credit, a measured advantage, h1 and h2 the means of the two halves of its
continuations, A the true advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MIN_RELIABILITY = 0.5
"""Below it a measure is not divided by its ceiling: the quotient would be noise."""
DECISIVE = 3.0
"""A turn's truth counts as different from 0 beyond so many standard errors."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnTable:
    """The turns of some groups, with a credit and the truth; all arrays are ``[turns]``.

    Attributes:
        group: Number of the group.
        credit: c, the mean credit.
        truth: a.
        first: h1.
        second: h2.
        error: Standard error of a.
        state: Number of the state that the action was taken in, -1 where it is not known.
        weight: What a turn's credit weighs in the gradient taken turn by turn.
    """

    group: Ints
    credit: Doubles
    truth: Doubles
    first: Doubles
    second: Doubles
    error: Doubles
    state: Ints
    weight: Doubles


def exact_table(
    group: Ints, credit: Doubles, truth: Doubles, state: Ints | None = None
) -> TurnTable:
    """Return a table whose truth has no noise."""
    return TurnTable(
        group=group,
        credit=credit,
        truth=truth,
        first=truth,
        second=truth,
        error=np.zeros(len(truth)),
        state=np.full(len(group), -1) if state is None else state,
        weight=np.ones(len(group)),
    )


def spearman(x: Doubles, y: Doubles) -> float:
    """Return the rank correlation, ties at mean ranks; 0 where one side is constant."""
    from scipy.stats import rankdata  # slow to import

    x, y = _places(x), _places(y)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _places(values: Doubles) -> Doubles:
    """Return the place of each value in their order, from 0; ties have one place.

    Credit is taken out of float32 products, in which equal advantages of paths of unequal weight
    differ by rounding: a gap of a millionth of the largest value is none.
    """
    order = np.argsort(values, kind="stable")
    apart = np.diff(values[order]) > 1e-6 * np.abs(values).max(initial=0.0)
    places = np.zeros(len(values))
    places[order[1:]] = np.cumsum(apart)
    return places


def cosine(x: Doubles, y: Doubles) -> float:
    """Return the cosine of two vectors; 0 where one is 0."""
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def group_sums(table: TurnTable, groups: int) -> dict[str, Doubles]:
    """Return what the measures are made of, ``[groups]`` by name.

    Args:
        table: The turns.
        groups: Number of groups; those without a turn have 0 everywhere.
    """
    c, a, h1, h2 = table.credit, table.truth, table.first, table.second
    ct, at = c * table.weight, a * table.weight
    sign = np.sign(c)
    decisive = (np.abs(a) > DECISIVE * table.error) & (a != 0)
    per_turn = {
        "turns": np.ones(len(c)),
        "sign": sign * a,
        "above": np.abs(a),
        "below": (np.sign(h1) * h2 + np.sign(h2) * h1) / 2,
        "c.h1": c * h1,
        "c.h2": c * h2,
        "c.a": c * a,
        "c.c": c * c,
        "a.a": a * a,
        "h1.h2": h1 * h2,
        "wa.wa": at * at,
        "wh1.wh2": h1 * h2 * table.weight**2,
        "|c|": np.abs(c),
        "|c| decisive": np.abs(c) * decisive,
        "decisive": decisive.astype(float),
    }
    sums: dict[str, Doubles] = {
        name: np.bincount(table.group, values, minlength=groups).astype(np.float64)
        for name, values in per_turn.items()
    }
    names = (
        "groups",
        "ordered",
        "rank",
        "halves",
        "constant",
        "flat",
        "cos turn",
        "state rank",
        "state cells",
    )
    sums |= {name: np.zeros(groups) for name in names}
    for g, rows in _cells(table.group):
        sums["groups"][g] = 1.0
        sums["rank"][g] = spearman(c[rows], a[rows])
        sums["halves"][g] = spearman(h1[rows], h2[rows])
        if len(rows) > 1:  # one turn has no order
            sums["ordered"][g] = 1.0
            sums["constant"][g] = float(np.ptp(_places(c[rows])) == 0)
            sums["flat"][g] = float(np.ptp(_places(a[rows])) == 0)
        sums["cos turn"][g] = cosine(ct[rows], at[rows])
        for state, members in _cells(table.state[rows]):
            inside = rows[members]
            if state >= 0 and len(inside) > 1 and np.ptp(a[inside]) > 0:
                sums["state rank"][g] += spearman(c[inside], a[inside])
                sums["state cells"][g] += 1.0
    return sums


def _cells(keys: Ints) -> list[tuple[int, Ints]]:
    """Return each key with the places that have it."""
    order = np.argsort(keys, kind="stable")
    values, starts = np.unique(keys[order], return_index=True)
    return list(zip(values.tolist(), np.split(order, starts[1:]), strict=True))


Weighted = Callable[[str], Doubles]


def _share(top: Doubles, bottom: Doubles) -> Doubles:
    """Divide; nan where the bottom is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


def _root(share: Doubles) -> Doubles:
    """Return the square root, 0 where noise made a share negative."""
    return np.sqrt(np.maximum(share, 0.0))


def _reliability(of: Weighted) -> Doubles:
    """Return the share of the truth's rank variance that is no noise (Spearman and Brown)."""
    halves = _share(of("halves"), of("ordered"))
    return _share(2 * halves, 1 + halves)


def _sign(of: Weighted) -> Doubles:
    """Return the bracket ``[2, rows]`` of the share of the advantage whose sign is right.

    The numerator is unbiased; the sum of ``|A|`` lies below that of ``|a|`` and above that of h1
    and h2 with each other's sign.
    """
    ends = [(1 + _share(of("sign"), of(name))) / 2 for name in ("above", "below")]
    return np.clip(np.sort(ends, axis=0), 0.0, 1.0)


TURN_MEASURES: Mapping[str, Callable[[Weighted], Doubles]] = {
    "rank": lambda of: _share(of("rank"), of("ordered")),
    "rank_ceiling": lambda of: _root(_reliability(of)),
    "reliability": _reliability,
    "rank_in_state": lambda of: _share(of("state rank"), of("state cells")),
    "constant_groups": lambda of: _share(of("constant"), of("ordered")),
    "flat_groups": lambda of: _share(of("flat"), of("ordered")),
    "sign_low": lambda of: _sign(of)[0],
    "sign_high": lambda of: _sign(of)[1],
    "explained": lambda of: _share(of("c.h1") * of("c.h2"), of("c.c") * of("h1.h2")),
    "explained_raw": lambda of: _share(of("c.a") ** 2, of("c.c") * of("a.a")),
    "scale": lambda of: _share(of("c.a"), of("c.c")),
    "cosine_turns": lambda of: _share(of("cos turn"), of("groups")),
    "cosine_turns_ceiling": lambda of: _root(_share(of("wh1.wh2"), of("wa.wa"))),
    "localisation": lambda of: _share(of("|c| decisive"), of("|c|")),
    "localisation_chance": lambda of: _share(of("decisive"), of("turns")),
}
"""Measures of turns, from weighted sums over groups."""


def turn_measures(sums: Mapping[str, Doubles], weights: Doubles) -> dict[str, Doubles]:
    """Return every measure of turns for each row of group weights.

    Args:
        sums: From :func:`group_sums`.
        weights: ``[rows, groups]``.

    Returns:
        ``[rows]`` by name, nan where a measure has no value.
    """
    return {name: of(lambda part: weights @ sums[part]) for name, of in TURN_MEASURES.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientTable:
    """Inner products of the groups' gradients.

    Attributes:
        own: Of c and a of each group ``[groups]``, by ``"c.c"``, ``"c.a"``, ``"a.a"``, ``"h1.h2"``.
        across: The same between all pairs of groups ``[groups, groups]``.
        tokens: Tokens that were sampled for each group ``[groups]``.
    """

    own: Mapping[str, Doubles]
    across: Mapping[str, Doubles]
    tokens: Doubles


def gradient_table(
    credit: npt.NDArray[np.floating[Any]],
    truth: Sequence[npt.NDArray[np.floating[Any]]],
    tokens: Doubles,
) -> GradientTable:
    """Return the inner products of gradients ``[groups, numbers]``.

    Args:
        credit: g(c).
        truth: g(a), g(h1) and g(h2).
        tokens: Tokens that were sampled for each group.
    """
    a, h1, h2 = truth
    sides = {"c.c": (credit, credit), "c.a": (credit, a), "a.a": (a, a), "h1.h2": (h1, h2)}
    across = {name: (x @ y.T).astype(np.float64) for name, (x, y) in sides.items()}
    own = {name: np.diagonal(matrix).copy() for name, matrix in across.items()}
    return GradientTable(own=own, across=across, tokens=tokens)


def gradient_measures(table: GradientTable, weights: Doubles) -> dict[str, Doubles]:
    """Return every measure of gradients for each row of group weights ``[rows, groups]``.

    ``cosine_mean`` is of the sum over the groups, with the noise of the truth taken out by its
    halves. ``cosine_bias`` uses products of different groups alone, so no noise of the sample is
    in it: what is left is bias. ``signal_per_1k`` is what a thousand sampled tokens bring: the
    squared part of a group's gradient along the reference gradient over the squared rest, per
    thousand tokens; it adds up over groups, and does not depend on the scale of the credit.
    """
    own, across = table.own, table.across
    size = np.sqrt(np.maximum(own["c.c"] * own["a.a"], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = np.where(size > 0, own["c.a"] / size, 0.0)
    count = weights.sum(1)
    total = {k: np.einsum("bi,ij,bj->b", weights, m, weights) for k, m in across.items()}
    apart = {k: total[k] - (weights**2) @ own[k] for k in across}
    pairs = count**2 - (weights**2).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total["c.a"] / np.sqrt(_above(total["c.c"]) * _above(total["h1.h2"]))
        bias = apart["c.a"] / np.sqrt(_above(apart["c.c"]) * _above(apart["a.a"]))
        along = np.maximum(apart["c.a"] / pairs, 0.0) ** 2 / _above(apart["a.a"] / pairs)
        rest = weights @ own["c.c"] / count - along
        signal = along / _above(rest) / (weights @ table.tokens / count) * 1000
    return {
        "cosine_batch": _share(weights @ cosines, count),
        "cosine_batch_ceiling": _root(_share(weights @ own["h1.h2"], weights @ own["a.a"])),
        "cosine_mean": np.clip(mean, -1, 1),
        "cosine_bias": np.clip(bias, -1, 1),
        "signal_per_1k": signal,
    }


def reference_measures(
    credit: npt.NDArray[np.floating[Any]],
    reference: npt.NDArray[np.floating[Any]],
    tokens: Doubles,
    weights: Doubles,
) -> dict[str, Doubles]:
    """Return how batches point along the expected gradient of the truth ``[rows]`` by name.

    The reference is the mean of batches that no recipe has, so nothing of the luck of a recipe's
    own batch is in it, and it is the same vector for all recipes: ``cosine_reference`` compares
    batches of equal tokens, however they were grown and grouped. Its length is that of products of
    different batches, which are free of noise; its direction is held fixed in the bootstrap.
    ``cosine_summed`` is of the sum over all batches as it is, the reference's noise included (it is
    the same for all recipes), ``cosine_expected`` of the expectation of the
    credit's gradient: bias alone, missing where that drowns in noise. ``reference_reliability`` is
    the share of the reference's squared length that is no noise.

    Args:
        credit: g(c) of each batch ``[batches, numbers]``.
        reference: g(a) of each batch of the reference ``[others, numbers]``.
        tokens: Tokens that were sampled for each batch.
        weights: ``[rows, batches]``.
    """
    others = len(reference)
    inner = (reference @ reference.T).astype(np.float64)
    length = (inner.sum() - np.trace(inner)) / max(1, others * (others - 1))
    if not length > 0:
        return {}  # as good as no gradient: what is left is noise
    along = (credit @ reference.mean(0)).astype(np.float64) / np.sqrt(length)
    products = (credit @ credit.T).astype(np.float64)
    own = np.diagonal(products)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = np.where(own > 0, along / np.sqrt(own), 0.0)
    count = weights.sum(1)
    mean = weights @ along / count
    pairs = count**2 - (weights**2).sum(1)
    apart = np.einsum("bi,ij,bj->b", weights, products, weights) - (weights**2) @ own
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = mean / np.sqrt(_above(apart / pairs))
        signal = np.maximum(mean, 0.0) ** 2
        whole = np.einsum("bi,ij,bj->b", weights, products, weights) / count**2
        summed = mean * np.sqrt(length * others**2 / inner.sum()) / np.sqrt(_above(whole))
        rest = _above(weights @ own / count - signal)
        per_token = signal / rest / (weights @ tokens / count)
    return {
        "cosine_reference": np.clip(weights @ cosines / count, -1, 1),
        "cosine_summed": np.clip(summed, -1, 1),
        "reference_reliability": np.full(len(weights), length / (inner.sum() / others**2)),
        "cosine_expected": np.clip(expected, -1, 1),
        "reference_per_1k": 1000 * per_token,
    }


def _above(values: Doubles) -> Doubles:
    return np.where(values > 0, values, np.nan)


def bias_variance(
    credits: Sequence[Doubles], truth: Doubles, errors: Doubles, scale: float, spread: float
) -> tuple[float, float]:
    """Return the squared bias and the variance of a scaled credit, over the variance of truth.

    Args:
        credits: For each anchor turn its credit in several groups ``[M]``, weighing ``M`` as much.
        truth: Measured advantage of each anchor.
        errors: Its standard error; the square is taken off. All 0 where truth is exact: then the
            variance of the mean is not taken off either.
        scale: b, what the credit is multiplied with.
        spread: Variance of the true advantages.
    """
    counts = np.array([len(c) for c in credits], dtype=float)
    means = scale * np.array([np.mean(c) for c in credits])
    noisy = bool(np.any(errors > 0))
    spreads = scale**2 * np.array([np.var(c, ddof=int(noisy)) for c in credits])
    bias = (means - truth) ** 2
    if noisy:
        bias = bias - errors**2 - spreads / counts
    total = counts.sum()
    return float(counts @ bias / total / spread), float(counts @ spreads / total / spread)


def resampled_weights(groups: int, samples: int, seed: int = 0) -> Doubles:
    """Return bootstrap weights ``[samples, groups]``: how often each group was drawn."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(groups, np.full(groups, 1 / groups), size=samples).astype(float)
