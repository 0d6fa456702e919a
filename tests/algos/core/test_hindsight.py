"""Annotators by what came out later: the same numbers as one made-up row per question."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.branching import branching
from helpers.forests import tree, turn
from helpers.grown import forest as chains

from turngym.algos.core.forest import Forest, Group
from turngym.algos.core.forest_io import group_from_json, group_to_json
from turngym.algos.core.hindsight import GoldLogprobs, HindsightLogprobs
from turngym.algos.recipes import make_recipe
from turngym.envs.core.errors import BadValueError
from turngym.envs.diagnostic.recall import Recall
from turngym.envs.diagnostic.rooms import Keys


def score(context: list[int], token: int) -> float:
    """A log-probability that depends on every token before, in order."""
    value = 0
    for i in (*context, token):
        value = (31 * value + i) % 1009
    return -value / 1009


class Reader:
    """A scorer whose log-probabilities anybody can compute."""

    def __init__(self) -> None:
        self.seen: list[Forest] = []

    def logprobs(self, forest: Forest) -> list[Any]:
        self.seen.append(forest)
        rows = []
        for path in forest:
            context: list[int] = []
            row = []
            for t in forest.turns(path):
                context += t.obs_ids.tolist()
                for token in t.act_ids.tolist():
                    row.append(score(context, token))
                    context.append(token)
            rows.append(np.array(row, np.float32))
        return rows


def contexts(forest: Forest, at: int) -> list[list[int]]:
    """All tokens before each action of a path, for every token of the action."""
    seen: list[int] = []
    rows: list[list[int]] = []
    turns = forest.turns(forest.paths[at])
    for k, t in enumerate(turns):
        seen += t.obs_ids.tolist()
        first = rows[-1] if k and turns[k - 1].partial else list(seen)
        rows += [first] * len(t.act_ids)
        seen += t.act_ids.tolist()
    return rows


@pytest.mark.parametrize("forest", [chains(3), branching(2), branching(5)])
def test_the_gold_answer_is_asked_for_before_every_action(forest: Forest) -> None:
    (name,) = GoldLogprobs.provides
    found = GoldLogprobs()(forest, Reader())[name]  # pyright: ignore
    for i, path in enumerate(forest):
        first = forest.turns(path)[0]
        want = []
        for context in contexts(forest, i):
            means = []
            for answer in first.gold:
                line = context + first.gold_opener.tolist()
                lines = [(line + answer[:j].tolist(), int(answer[j])) for j in range(len(answer))]
                means.append(np.mean([score(*one) for one in lines]))
            want.append(max(means))
        assert len(first.gold) == 2
        np.testing.assert_allclose(found[i], want, rtol=1e-5)


@pytest.mark.parametrize("forest", [chains(3), branching(2)])
def test_hindsight_puts_the_end_in_front(forest: Forest) -> None:
    (name,) = HindsightLogprobs.provides
    reader: Any = Reader()
    found = HindsightLogprobs()(forest, reader)[name]
    (told,) = reader.seen
    assert [told.n_act(p) for p in told] == [forest.n_act(p) for p in forest]
    for i, path in enumerate(forest):
        turns = forest.turns(path)
        last = len(turns) - 1
        while last and turns[last - 1].partial:
            last -= 1
        hint = np.concatenate([turns[last].obs_ids, *(t.act_ids for t in turns[last:])]).tolist()
        context, want = hint, []
        for t in turns:
            context = context + t.obs_ids.tolist()
            for token in t.act_ids.tolist():
                want.append(score(context, token))
                context = [*context, token]
        np.testing.assert_allclose(found[i], want, rtol=1e-5)


def test_paths_without_recorded_answers_are_refused() -> None:
    bare = Forest.of([Group("u", "t", [tree(turn(1.0, status="solved"))])])
    reader: Any = Reader()
    with pytest.raises(BadValueError, match="a path has no accepted answers"):
        GoldLogprobs()(bare, reader)


def test_an_environment_without_accepted_answers_is_refused() -> None:
    recipe = make_recipe("igpo")
    recipe.check(Recall())
    with pytest.raises(BadValueError, match=r"Keys.* has no accepted answers \(has_gold\)"):
        recipe.check(Keys())
    assert recipe.reads_gold
    assert not make_recipe("grpo").reads_gold
    with pytest.raises(BadValueError, match=r"needs 'gold_logprobs'.*GoldLogprobs\(\)"):
        type(recipe)(**{**vars(recipe), "annotators": recipe.annotators[:1]})


def test_answers_and_end_states_survive_a_file() -> None:
    given = chains(1).groups[0]
    given.trees[0].turns[1] = turn(parent=0, status="solved", state="A", end_state="B")
    back = group_from_json(group_to_json(given))
    for one, two in zip(given.trees, back.trees, strict=True):
        for here, there in zip(one.turns, two.turns, strict=True):
            assert (here.state, here.end_state) == (there.state, there.end_state)
            assert here.gold_opener.tolist() == there.gold_opener.tolist()
            assert [a.tolist() for a in here.gold] == [a.tolist() for a in there.gold]
    assert back.trees[0].turns[1].gold == ()
