"""Group filters: which groups of a batch are trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .checks import check_minimum
from .forest import are_equal


@dataclass(frozen=True, kw_only=True)
class DynamicSampling:
    """Keeps the groups whose returns differ (DAPO, arXiv 2503.14476, section 3.2).

    Returns are the environment's, before any shaper. A group of one episode is kept too: it has no
    other to differ from. Groups that are left out are replaced by further tasks until the step has
    its number.

    Attributes:
        max_rounds: Maximum rounds of playing per step; the step then uses what it has.
    """

    max_rounds: int = 10

    def __post_init__(self) -> None:
        check_minimum(self, max_rounds=1)

    def keeps(self, returns: npt.NDArray[np.float64]) -> bool:
        """Whether a group whose episodes had these returns ``[episodes]`` is trained on."""
        return len(returns) == 1 or (len(returns) > 1 and not are_equal(returns))
