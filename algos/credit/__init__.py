"""Credit: from rewards (and annotations) to one number per action token."""

from .gae import Gae
from .group import GroupCredit

__all__ = ["Gae", "GroupCredit"]
