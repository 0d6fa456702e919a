"""The settings of a crawl: schedule, caps, costs, labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

from ...core.errors import BadValueError, UnknownNameError
from ...core.settings import check_integer, check_number, field_types
from .grammar import MoveKind, SessionKind

Granularity = Literal["action", "session"]
Label = Literal["annotated_or_selector", "annotated", "oracle"]
Schedule = Literal["layered", "fifo", "best_first", "sampled"]
Feedback = Literal["none", "counts", "titles"]
OverCap = Literal["ignore", "charge"]
CAPS: Mapping[str, int] = {"max_search": 5, "top_k": 10, "layer_cap": 20}
"""PaSa's bounds."""
MICRO_CAPS: Mapping[str, int] = {"max_search": 3, "top_k": 5, "layer_cap": 5}
"""Bounds of the micro world: shorter crawls, in which much is left to citations."""
_COUNTS = {"layers": 0, "layer_cap": 1, "max_search": 1, "max_expand": 1, "top_k": 1}
_COUNTS |= {"per_layer": 1, "max_actions": 1}
_AMOUNTS = ("alpha", "cost_search", "cost_expand", "cost_stop", "invalid_cost")
_OPTIONAL = ("max_actions", "invalid_cost")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How a crawl goes and what it pays; see :class:`~turngym.envs.paper_crawler.env.PaperCrawler`.

    Raises:
        BadValueError: A number out of range, or two settings that exclude each other.
        UnknownNameError: A word that no setting knows; names the nearest.
    """

    granularity: Granularity = "action"
    layers: int = 2
    layer_cap: int = 20
    per_layer: int = 6
    max_search: int = 5
    max_expand: int = 5
    max_actions: int | None = None
    top_k: int = 10
    alpha: float = 1.5
    cost_search: float = 0.1
    cost_expand: float = 0.1
    cost_stop: float = 0.0
    invalid_cost: float | None = None
    label: Label = "annotated_or_selector"
    schedule: Schedule = "layered"
    feedback: Feedback = "none"
    over_cap: OverCap = "ignore"

    def __post_init__(self) -> None:
        hints = field_types(type(self))
        for field in fields(self):
            value = getattr(self, field.name)
            known = get_args(hints[field.name])
            if value is None and field.name in _OPTIONAL:
                continue
            if field.name in _COUNTS:
                check_integer(field.name, value, "PaperCrawler", min=_COUNTS[field.name])
            elif field.name in _AMOUNTS:
                check_number(field.name, value, "PaperCrawler", min=0)
            elif value not in known:
                raise UnknownNameError(field.name, value, known, "PaperCrawler")
        if self.over_cap == "charge" and self.granularity == "action":
            raise BadValueError(
                "PaperCrawler: over_cap='charge' charges the rest of a session's text, but with "
                "granularity='action' a session ends at its cap; leave over_cap out, or set "
                "granularity='session'."
            )

    def cap(self, kind: SessionKind) -> int:
        """Most actions of a session of this kind."""
        return self.max_search if kind == "search" else self.max_expand

    def cost(self, kind: MoveKind, session: SessionKind) -> float:
        """Price of an action in a session."""
        if kind == "stop":
            return self.cost_stop
        if kind == "invalid" and self.invalid_cost is not None:
            return self.invalid_cost
        return self.cost_search if session == "search" else self.cost_expand

    @property
    def max_sessions(self) -> int | None:
        """Most sessions of an episode; None where only the library bounds them."""
        first = self.max_search * self.top_k
        if self.layers == 0:
            return 1
        if self.schedule == "layered":
            return 1 + first + (self.layers - 1) * self.layer_cap
        if self.schedule == "sampled":
            return 1 + self.layers * self.per_layer
        return None if self.layers > 1 else 1 + first
