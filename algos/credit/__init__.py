"""Credit: from rewards (and annotations) to one number per action token."""

from .entropy import EmpgCredit
from .gae import Gae
from .group import GroupCredit
from .imitation import Imitation
from .maxrl import MaxRlCredit
from .pairs import StepPairs
from .returns import ReturnsToGo
from .sessions import SessionCredit
from .shared import SharedMean
from .tracked import TrackedCredit
from .tree import TreeCredit
from .turns import TurnReturns

__all__ = [
    "EmpgCredit",
    "Gae",
    "GroupCredit",
    "Imitation",
    "MaxRlCredit",
    "ReturnsToGo",
    "SessionCredit",
    "SharedMean",
    "StepPairs",
    "TrackedCredit",
    "TreeCredit",
    "TurnReturns",
]
