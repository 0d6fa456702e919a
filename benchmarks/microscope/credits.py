"""What a recipe's credit says about each turn, and what multiplies each token's gradient.

Two numbers per turn. The *mean* credit orders turns: the advantages of its tokens, over all paths
that hold it, weighted as the loss weighs tokens. The *coefficients* are what multiplies the
gradient of a token's log-probability at ratio 1, found by differentiating the recipe's own loss:
aggregation weights are in them, clipping and everything that does not move the policy is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...algos.core.forest import Forest
from ...algos.core.protocols import Credits, Floats, LossBatch, Norm
from ...algos.core.recipe import Recipe
from ...algos.training.credit_step import Credited
from ...envs.core.errors import BadValueError

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TurnIndex:
    """The distinct turns of a forest's paths.

    Attributes:
        places: (group, tree, turn) of each, in order.
        owners: For each path, the distinct turn of every action token ``[n_act]``.
        tokens: Action tokens of each turn ``[turns]``.
        copies: Paths that hold each turn ``[turns]``.
    """

    places: Sequence[tuple[int, int, int]]
    owners: Sequence[Ints]
    tokens: Ints
    copies: Ints

    @classmethod
    def of(cls, forest: Forest) -> TurnIndex:
        """Return the turns of the forest's paths."""
        held = [(path.group, path.tree, i) for path in forest.paths for i in path.turns]
        places = sorted(set(held))
        number = {place: n for n, place in enumerate(places)}
        size = [len(forest.groups[g].trees[t].turns[i].act_ids) for g, t, i in places]
        owners = [
            np.repeat(
                [number[path.group, path.tree, i] for i in path.turns],
                [len(turn.act_ids) for turn in forest.turns(path)],
            )
            for path in forest.paths
        ]
        copies = np.bincount([number[place] for place in held], minlength=len(places))
        return cls(places, owners, np.array(size, dtype=np.int64), copies)

    def total(self, streams: Sequence[npt.NDArray[Any]]) -> Doubles:
        """Return the sum over each turn's tokens, in all paths that hold it ``[turns]``."""
        if not streams:
            return np.zeros(0)
        values = np.concatenate([np.asarray(s, dtype=np.float64) for s in streams])
        owners = np.concatenate(self.owners)
        return np.bincount(owners, values, minlength=len(self.places)).astype(np.float64)

    def spread(self, values: Doubles) -> list[Floats]:
        """Return a value per turn as ``[n_act]`` arrays per path."""
        return [values[owner].astype(np.float32) for owner in self.owners]


@dataclass(frozen=True, slots=True, eq=False)
class TurnCredit:
    """A recipe's credit of the turns of a forest.

    Attributes:
        mean: What orders turns ``[turns]``.
        coefficients: What multiplies each token's gradient, one ``[n_act]`` per path.
        within: Share of the variance of token advantages that lies within turns; truth per turn
            cannot judge that part.
    """

    mean: Doubles
    coefficients: Sequence[Floats]
    within: float


def turn_credit(recipe: Recipe, credited: Credited, index: TurnIndex) -> TurnCredit:
    """Return what the credit says about each turn.

    Args:
        recipe: Gives the loss.
        credited: The forest with credit.
        index: The distinct turns of its paths.

    Raises:
        BadValueError: The loss has no gradient in any action token.
    """
    moved = coefficients(recipe, credited)
    advantages = credited.credits.advantages
    level = replace(credited.credits, advantages=[np.ones_like(row) for row in advantages])
    weights = coefficients(recipe, credited._replace(credits=level))
    product = [w * np.asarray(a) for w, a in zip(weights, advantages, strict=True)]
    whole = index.total([np.abs(w) for w in weights])
    linear = all(
        np.allclose(p, c, rtol=1e-3, atol=1e-7) for p, c in zip(product, moved, strict=True)
    )
    if linear and (whole > 0).all():
        return TurnCredit(index.total(product) / whole, moved, _within(index, advantages))
    # a loss that does not weigh advantages (pairs, imitation): its own coefficients are the credit
    counts = index.total([np.ones(len(c)) for c in moved])
    return TurnCredit(index.total(moved) / counts, moved, _within(index, moved))


def _within(index: TurnIndex, streams: Sequence[npt.NDArray[Any]]) -> float:
    """Return the share of the streams' variance that lies within turns."""
    if not streams:
        return 0.0
    values = np.concatenate([np.asarray(s, dtype=np.float64) for s in streams])
    owner = np.concatenate(index.owners)
    path = np.repeat(np.arange(len(streams)), [len(s) for s in streams])
    cell = path * len(index.places) + owner
    _, at = np.unique(cell, return_inverse=True)
    means = np.bincount(at, values) / np.bincount(at)
    whole = float(((values - values.mean()) ** 2).sum())
    return float(((values - means[at]) ** 2).sum()) / whole if whole > 0 else 0.0


def coefficients(recipe: Recipe, credited: Credited) -> list[Floats]:
    """Return ``-d loss / d log-probability`` of every action token at ratio 1, per path.

    The whole forest is one mini batch, as in a recipe with one optimiser step per batch.

    Raises:
        BadValueError: The loss has no gradient in any action token.
    """
    forest, _, credits = credited
    counts = [forest.n_act(path) for path in forest.paths]
    shape = (len(counts), max(counts, default=0))
    if not counts:
        return []

    def table(rows: Sequence[Any], fill: float = 0.0) -> torch.Tensor:
        out = torch.full(shape, fill)
        for i, row in enumerate(rows):
            out[i, : counts[i]] = torch.from_numpy(np.asarray(row, np.float32)[: counts[i]].copy())
        return out

    turns = [forest.turns(path) for path in forest.paths]
    sampled = [np.concatenate([turn.logprobs for turn in line]) for line in turns]
    live = table(sampled).requires_grad_()
    batch = LossBatch(
        logprobs=live,
        old_logprobs=live.detach(),
        entropies=table([np.concatenate([t.entropies for t in line]) for line in turns]),
        advantages=table(credits.advantages),
        mask=table([np.ones(n) for n in counts]),
        turns=table(
            [np.repeat(range(len(line)), [len(t.act_ids) for t in line]) for line in turns], -1.0
        ).long(),
        norm=_norm(counts, credits),
        extra=_extra(recipe, credited, sampled, table),
    )
    loss = recipe.loss(batch).loss
    if not loss.requires_grad:
        raise BadValueError(
            f"credit: the loss of recipe {recipe.name!r} has no gradient in the actions' "
            "log-probabilities, so it gives turns no credit."
        )
    (gradient,) = torch.autograd.grad(loss, live)
    found = (-gradient).numpy()
    return [found[i, :n].copy() for i, n in enumerate(counts)]


def _norm(counts: Sequence[int], credits: Credits) -> Norm:
    pairs = 0.0
    if "pair" in credits.extra:
        numbers = np.concatenate(list(credits.extra["pair"]))
        pairs = float(len(np.unique(numbers[numbers >= 0])))
    return replace(Norm.of([float(n) for n in counts]), pairs=pairs)


def _extra(recipe: Recipe, credited: Credited, sampled: Any, table: Any) -> dict[str, Any]:
    """Return the further streams that the loss reads."""
    _, annotations, credits = credited
    have = {**annotations, **credits.extra, "value_targets": credits.value_targets}
    if "ref_logprobs" in annotations:
        have["ref_logprobs"] = sampled  # the policy itself: a penalty on drift is no credit
    if "values" in annotations:
        have["old_values"] = annotations["values"]
    fill = {"pair": -1.0}
    return {
        name: table(have[name], fill.get(name, 0.0))
        for name in recipe.loss.needs
        if name != "old_logprobs" and name in have
    }
