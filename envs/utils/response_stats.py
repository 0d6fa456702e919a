"""How often a model corrects itself: counts over an episode's actions.

TARL (arXiv 2509.14480) reports "waits" per episode beside the length of the replies, as signs of
exploration. ``waits`` is that count; ``self_corrections`` counts all phrases of self-correction,
and ignores a "wait" that asks somebody else for patience.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WAIT = re.compile(r"\bwait\b", re.IGNORECASE)
_PHRASES = re.compile(
    r"""
    (?<!please\ )(?<!to\ )\bwait\b(?!\s+(?:for|until|till|time|list|in|at|a\b|one\b|while|here)\b)
  | \bhold\ on\b(?!\s+to\b)
  | \bhmm+\b
  | \bon\ second\ thoughts?\b
  | \bactually,
  | \bscratch\ that\b
  | \bcorrection:
  | \bi\ (?:made|have\ made)\ (?:a|an|the)\ (?:\w+\ )?(?:mistake|error)\b
  | \bi\ was\ wrong\b
  | \b(?:that|this)(?:\ is|'s|\ was)\ (?:wrong|not\ right|incorrect|a\ mistake)\b
  | \blet\ me\ (?:re-?check|double-?check|check\ again|re-?calculate|re-?consider|re-?think
      |try\ again|verify|correct\ (?:that|this|myself))\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def count_waits(texts: Iterable[str]) -> int:
    """Count the occurrences of the word "wait"."""
    return sum(len(_WAIT.findall(text)) for text in texts)


def count_self_corrections(texts: Iterable[str]) -> int:
    """Count the phrases by which a model corrects itself."""
    return sum(len(_PHRASES.findall(text)) for text in texts)


def compute_response_metrics(texts: Iterable[str]) -> dict[str, float]:
    """Return metrics of the length and the self-corrections of an episode's actions.

    ``response_chars``, ``response_words``, ``waits`` and ``self_corrections``.
    """
    actions = list(texts)
    return {
        "response_chars": float(sum(len(text) for text in actions)),
        "response_words": float(sum(len(text.split()) for text in actions)),
        "waits": float(count_waits(actions)),
        "self_corrections": float(count_self_corrections(actions)),
    }
