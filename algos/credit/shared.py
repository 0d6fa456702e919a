"""Shared mean: a token that several paths share gets the mean of their advantages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...envs.core.errors import BadValueError
from ..core.checks import check_choices
from ..core.forest import Forest
from ..core.protocols import Annotations, Credits
from .group import GroupCredit
from .nested import NestedCredit
from .tree import TreeCredit


@dataclass(frozen=True, kw_only=True)
class SharedMean(NestedCredit):
    """ARPO's hard advantage (arXiv 2507.19849, section 3.2), over any rule that scores paths.

    A turn of one path keeps the path's advantage; one that the paths S share gets the mean over S.
    Shared means the same turn, never the same tokens. The soft advantage leaves every path its own
    on the shared tokens; the summed gradient is the same as long as no ratio is clipped.

    Every path carries its copy of a shared turn, which so weighs ``|S|`` times; ``"once"`` gives
    the mean to one of them and 0 to the others. The clipped loss of a token is proportional to its
    advantage's size and the copies have one ratio per token and turn, so this is exactly one term
    per shared token, clipped or not (with ratios of whole paths: the first path's). A KL or entropy
    term of the loss does not read advantages and still counts every copy.

    Degenerate cases: without shared turns this is the rule itself.

    Attributes:
        shared: ``"mean"`` is hard, ``"own"`` soft; ``"once"`` is hard and counts a shared turn a
            single time, in the first path that owns it.
    """

    shared: Literal["own", "mean", "once"] = "mean"

    def __post_init__(self) -> None:
        check_choices(self)
        if not isinstance(self.of, GroupCredit | TreeCredit):
            raise BadValueError(
                f"SharedMean: got {type(self.of).__name__}; expected a rule with one advantage per "
                "path. A critic's advantages differ within a path, so their mean over paths means "
                "nothing: use the rule alone."
            )

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Average the rule's advantages over the paths that share each turn."""
        given = self.of(forest, annotations)
        if self.shared == "own":
            return given
        owners: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for i, path in enumerate(forest):
            for turn in path.turns:
                owners[path.group, path.tree, turn].append(i)
        scores = [float(a[0]) for a in given.advantages]
        advantages = []
        for i, path in enumerate(forest):
            pieces = []
            for at, turn in zip(path.turns, forest.turns(path), strict=True):
                who = owners[path.group, path.tree, at]
                mean = scores[i] if len(who) == 1 else float(np.mean([scores[j] for j in who]))
                mine = mean if self.shared == "mean" or who[0] == i else 0.0
                pieces.append(np.full(len(turn.act_ids), mine, np.float32))
            advantages.append(np.concatenate(pieces))
        return replace(given, advantages=advantages)
