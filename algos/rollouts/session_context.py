"""The context of one session of an episode, as token ids."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.forest import ROOT, Edge


@dataclass(slots=True)
class Context:
    """The context of one session.

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
        ids, obs_ids, given = self.ids.copy(), self.obs_ids.copy(), self.given.copy()
        return Context(ids, obs_ids, self.parent, self.edge, self.first, given, self.cache)
