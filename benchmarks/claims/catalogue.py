"""All claims by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...envs.core.errors import UnknownNameError
from .armap_claims import ARMAP_CLAIMS
from .arpo_claims import ARPO_CLAIMS, TARL_CLAIMS
from .claim import Claim
from .pasa_claims import PASA_CLAIMS
from .search_claims import SEARCH_CLAIMS
from .state_claims import STATE_CLAIMS
from .tree_claims import TREE_CLAIMS

CLAIMS: Mapping[str, Claim] = {
    claim.name: claim
    for group in (
        TREE_CLAIMS,
        SEARCH_CLAIMS,
        ARPO_CLAIMS,
        TARL_CLAIMS,
        PASA_CLAIMS,
        ARMAP_CLAIMS,
        STATE_CLAIMS,
    )
    for claim in group
}


def find_claims(names: Sequence[str]) -> list[Claim]:
    """Find claims by name, in the catalogue's order; no names select all.

    Raises:
        UnknownNameError: There is no such claim; suggests the nearest.
    """
    for name in names:
        if name not in CLAIMS:
            raise UnknownNameError("claim", name, CLAIMS, "claims")
    return [claim for claim in CLAIMS.values() if not names or claim.name in names]
