"""The papers' main claims at small scale, each with a test and a verdict rule fixed beforehand."""

from .catalogue import CLAIMS, find_claims
from .claim import Claim
from .outcome import Outcome
from .run import run_claims

__all__ = ["CLAIMS", "Claim", "Outcome", "find_claims", "run_claims"]
