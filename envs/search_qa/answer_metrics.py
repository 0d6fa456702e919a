"""Scores of a short answer against accepted answers, with SQuAD's normalisation."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

_PUNCTUATION = str.maketrans("\n", " ", string.punctuation)
"""Line ends become blanks: the blocks of passages then go the shorter way below as well."""
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})


@lru_cache(4096)  # the accepted answers of a question come again with every path
def normalise_answer(text: str) -> str:
    """Lower case, ASCII punctuation deleted, articles removed, blanks collapsed (SQuAD).

    Punctuation is deleted and not replaced by a blank: "apple-pie" becomes "applepie". Curly
    quotes and other non-ASCII signs stay.
    """
    bare = text.lower().translate(_PUNCTUATION)
    if bare.isascii() and bare.isprintable():  # then words end at blanks alone
        return " ".join([word for word in bare.split() if word not in _ARTICLE_WORDS])
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(prediction: str, golds: Sequence[str]) -> float:
    """1.0 when the normalised prediction equals a normalised gold, else 0.0.

    A gold that normalises to nothing ("A", "...") is compared as it is written, but for case and
    blanks: every empty answer would equal it.
    """
    said = normalise_answer(prediction)
    for gold in golds:
        norm = normalise_answer(gold)
        if norm == said and (norm or _equal_as_written(prediction, gold)):
            return 1.0
    return 0.0


def _equal_as_written(prediction: str, gold: str) -> bool:
    said = prediction.lower().split()
    return said == gold.lower().split() and bool(said)


def sub_em(prediction: str, golds: Sequence[str]) -> float:
    """1.0 when a normalised gold is a substring of the normalised prediction, else 0.0.

    A gold that normalises to nothing ("The") never counts: it would match everything.
    """
    said = normalise_answer(prediction)
    for gold in golds:
        if (norm := normalise_answer(gold)) and norm in said:
            return 1.0
    return 0.0


def f1(prediction: str, golds: Sequence[str]) -> float:
    """Best token F1 over the golds, in [0, 1].

    When either side is "yes", "no" or "noanswer" only equality counts (HotpotQA's rule), and where
    a gold normalises to nothing equality as :func:`exact_match` has it.
    """
    said, best = normalise_answer(prediction), 0.0
    for gold in golds:
        norm = normalise_answer(gold)
        best = max(best, _f1(said, norm) if norm else float(_equal_as_written(prediction, gold)))
    return best


def _f1(said: str, gold: str) -> float:
    if said == gold:
        return 1.0
    if said in _CLOSED or gold in _CLOSED:
        return 0.0
    mine, theirs = said.split(), gold.split()
    if set(mine).isdisjoint(theirs):
        return 0.0
    common = sum((Counter(mine) & Counter(theirs)).values())
    precision, recall = common / len(mine), common / len(theirs)
    return 2 * precision * recall / (precision + recall)
