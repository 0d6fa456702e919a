"""Credit: from rewards (and annotations) to one number per action token."""

from .by_state import StateCredit
from .gae import Gae
from .group import GroupCredit
from .hindsight import HindsightCredit
from .imitation import Imitation
from .information import InformationGain
from .kept_graph import KeptGraphCredit
from .pairs import StepPairs
from .returns import ReturnsToGo
from .sessions import SessionCredit
from .shared import SharedMean
from .state_terms import GoalDistances, StateReturns, StateValues, WindowReturns
from .tracked import TrackedCredit
from .tree import TreeCredit
from .turns import TurnReturns

__all__ = [
    "Gae",
    "GoalDistances",
    "GroupCredit",
    "HindsightCredit",
    "Imitation",
    "InformationGain",
    "KeptGraphCredit",
    "ReturnsToGo",
    "SessionCredit",
    "SharedMean",
    "StateCredit",
    "StateReturns",
    "StateValues",
    "StepPairs",
    "TrackedCredit",
    "TreeCredit",
    "TurnReturns",
    "WindowReturns",
]
