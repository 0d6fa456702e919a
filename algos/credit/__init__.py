"""Credit: from rewards (and annotations) to one number per action token."""

from .gae import Gae
from .group import GroupCredit
from .imitation import Imitation
from .pairs import StepPairs
from .returns import ReturnsToGo
from .sessions import SessionCredit
from .shared import SharedMean
from .tracked import TrackedCredit
from .tree import TreeCredit
from .turns import TurnReturns

__all__ = [
    "Gae",
    "GroupCredit",
    "Imitation",
    "ReturnsToGo",
    "SessionCredit",
    "SharedMean",
    "StepPairs",
    "TrackedCredit",
    "TreeCredit",
    "TurnReturns",
]
