"""Words are exchanged everywhere alike, and the question keeps its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.agents.selector.renaming import Renamer
from turngym.agents.selector.rows import SelectorRow

WORDS = ("gold", "iron", "salt", "wood", "clay", "glass")


def row(request, paper, label=True):
    text = f"request: {' '.join(request)}\npaper: {' '.join(paper)} 7\nDecision:"
    return SelectorRow(text, label, f"it is on {paper[0]}.")


words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
some = st.lists(st.builds(row, words, words, st.booleans()), min_size=2, max_size=6)


@given(some, st.integers(0, 99))
def test_equal_words_stay_equal_and_others_different(rows, seed):
    rows = [row(WORDS[:3], WORDS[3:]), row(WORDS[3:], WORDS[:3]), row(["tin"], ["tin"]), *rows]
    rename = Renamer(rows, 1.0)
    rng = np.random.default_rng(seed)
    for old in rows:
        new = rename(old, rng)
        before, after = old.prompt.split(), new.prompt.split()
        assert len(before) == len(after)
        pairs = set(zip(before, after, strict=True))
        assert len(pairs) == len(set(before)) == len(set(after))
        fixed = {"request:", "paper:", "7", "Decision:"}
        assert {b for b, a in pairs if a == b} >= fixed
        assert {a for b, a in pairs if b not in fixed} <= {*WORDS, "tin"}
        assert new.label == old.label
        named = dict(pairs)
        assert new.reason == f"it is on {named[old.reason.split()[-1][:-1]]}."


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (0.5, 120, 180), (1.0, 270, 300)])
def test_the_share_that_changes(share, low, high):
    rows = [row([a], [b]) for a in WORDS for b in WORDS]
    rename, rng = Renamer(rows, share), np.random.default_rng(0)
    changed = sum(rename(rows[i % 36], rng) != rows[i % 36] for i in range(300))
    assert low <= changed <= high
