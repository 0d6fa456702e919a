"""Credit: from rewards (and annotations) to one number per action token."""

from .by_state import StateCredit
from .entropy import EmpgCredit, TokenEntropyCredit
from .gae import Gae
from .group import GroupCredit
from .hindsight import HindsightCredit
from .hinted import HintedCredit, NoCredit
from .imitation import Imitation
from .information import InformationGain
from .kept_graph import KeptGraphCredit
from .maxrl import MaxRlCredit
from .node_value import NodeValueCredit
from .pairs import StepPairs
from .returns import ReturnsToGo
from .sessions import SessionCredit
from .shared import SharedMean
from .state_terms import GoalDistances, StateReturns, StateValues, WindowReturns
from .tracked import TrackedCredit
from .tree import TreeCredit
from .turns import TurnReturns

__all__ = [
    "EmpgCredit",
    "Gae",
    "GoalDistances",
    "GroupCredit",
    "HindsightCredit",
    "HintedCredit",
    "Imitation",
    "InformationGain",
    "KeptGraphCredit",
    "MaxRlCredit",
    "NoCredit",
    "NodeValueCredit",
    "ReturnsToGo",
    "SessionCredit",
    "SharedMean",
    "StateCredit",
    "StateReturns",
    "StateValues",
    "StepPairs",
    "TokenEntropyCredit",
    "TrackedCredit",
    "TreeCredit",
    "TurnReturns",
    "WindowReturns",
]
