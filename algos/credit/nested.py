"""What rules have in common that change another rule's advantages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ..core.protocols import Credit
from .group import GroupCredit
from .tree import TreeCredit


@dataclass(frozen=True, kw_only=True)
class NestedCredit(Credit):
    """A rule over the advantages of another, whose requirements it shares.

    Attributes:
        of: The other rule: one advantage per path.
    """

    of: GroupCredit | TreeCredit = field(default_factory=GroupCredit)

    whole_returns: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[str]:
        """Annotations that the inner rule needs."""
        return self.of.needs

    @property
    def provides(self) -> frozenset[str]:
        """Streams that the inner rule provides."""
        return self.of.provides

    @property
    def min_paths(self) -> int:
        """The inner rule's requirement."""
        return self.of.min_paths

    @property
    def needs_forks(self) -> bool:
        """The inner rule's requirement."""
        return self.of.needs_forks
