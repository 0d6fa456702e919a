"""Annotators ask the learner, or take what was recorded."""

from __future__ import annotations

import numpy as np
from helpers.forests import Fixed, tree, turn

from turngym.algos.core.annotators import CriticValues, OldLogprobs, RefLogprobs, sampled_logprobs
from turngym.algos.core.forest import Forest, Group


def two_turn_forest() -> Forest:
    first = turn(n=2, logprobs=np.array([-0.1, -0.2], np.float32))
    last = turn(parent=0, status="solved", logprobs=np.array([-0.3], np.float32))
    return Forest.of([Group("u", "t", [tree(first, last)])])


def test_each_asks_for_what_it_provides() -> None:
    scorer = Fixed(logprobs=["a"], ref_logprobs=["b"], values=["c"])
    annotations = {}
    for annotate in (OldLogprobs(), RefLogprobs(), CriticValues()):
        got = annotate(two_turn_forest(), scorer)
        assert set(got) == annotate.provides
        annotations |= got
    assert annotations == {"old_logprobs": ["a"], "ref_logprobs": ["b"], "values": ["c"]}


def test_as_sampled_costs_no_forward_pass() -> None:
    scorer = Fixed()
    got = OldLogprobs(source="sampled")(two_turn_forest(), scorer)["old_logprobs"]
    assert scorer.calls == []
    np.testing.assert_array_equal(got[0], np.array([-0.1, -0.2, -0.3], np.float32))
    np.testing.assert_array_equal(got[0], sampled_logprobs(two_turn_forest())[0])
