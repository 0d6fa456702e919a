"""The context of one session of an episode, as token ids."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.forest import ROOT, Edge


@dataclass(slots=True)
class Context:
    """The context of one session.

    Its lists are replaced by longer ones and never changed, so that copies may hold the same.

    Attributes:
        ids: Everything up to and including the last action.
        obs_ids: The observation that waits for an action.
        first: The first observation, as text.
        parent: Turn that the next one hangs on.
        edge: How it hangs there.
        given: First tokens of the next action where they are fixed: a fork inside an action.
        cache: The engine's cache entry for ``ids``.
    """

    ids: list[int]
    obs_ids: list[int]
    parent: int = ROOT
    edge: Edge = Edge.CONTINUE
    first: str = ""
    given: list[int] = field(default_factory=list)
    cache: int | None = None

    def fork(self) -> Context:
        """Return an independent copy that shares the engine's cache."""
        return Context(
            self.ids, self.obs_ids, self.parent, self.edge, self.first, self.given, self.cache
        )
