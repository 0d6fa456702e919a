"""The generated tasks: the same bytes, unique, minimal, disjoint, and harder by tier."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import chain, islice, pairwise

import numpy as np
import pytest
from helpers.bad_policies import plays
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import DataError
from turngym.envs.retail.customer.scenario import Scenario, build_call
from turngym.envs.retail.env import Retail, prove_solvable
from turngym.envs.retail.shop.generate import SPLITS, make_shop
from turngym.envs.retail.shop.overlay import Overlay
from turngym.envs.retail.shop.payments import find_original_method
from turngym.envs.retail.shop.toolset import get_toolset
from turngym.envs.retail.tasks.generated import DIGESTS, remake_tasks
from turngym.envs.retail.tasks.make import COUNTS, digest_tasks, make_tasks
from turngym.envs.retail.tasks.payload import RetailTask, apply_calls, read_task, task_json
from turngym.envs.retail.tasks.preferences import find_matching
from turngym.envs.retail.tasks.visit_plans import MIXED_REFUSALS, REFUSALS, draw_kinds

SIZES = ("full", "micro")
ENVS = {size: Retail(size=size) for size in SIZES}


def tasks(size: str, split: str) -> list[RetailTask]:
    found = ENVS[size].source
    return [found.task(split, i).payload for i in range(COUNTS[size][split])]


def scenario(task: RetailTask) -> Scenario:
    assert task.scenario is not None
    return task.scenario


def test_the_numbers_of_tasks() -> None:
    assert COUNTS["full"] == {"train": 3000, "dev": 200, "test": 300, "hard": 100}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("split", SPLITS)
def test_tasks_have_the_published_digests(size: str, split: str) -> None:
    assert digest_tasks(tasks(size, split)) == DIGESTS[size][split]


def test_tasks_are_made_again_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert remake_tasks("full", "dev", prove_solvable) == DIGESTS["full"]["dev"]
    monkeypatch.setitem(DIGESTS["micro"], "dev", "other")
    with pytest.raises(DataError, match="expected other"):
        remake_tasks("micro", "dev", prove_solvable)


PROBE = """
from turngym.envs.retail.env import prove_solvable
from turngym.envs.retail.tasks.make import digest_tasks, make_tasks
print(digest_tasks(make_tasks("micro", 5, "dev", prove_solvable)))
"""


def test_another_process_makes_the_same_tasks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )
    assert done.stdout.strip() == digest_tasks(make_tasks("micro", 5, "dev", prove_solvable))


@pytest.mark.parametrize("size", SIZES)
def test_a_task_survives_json(size: str) -> None:
    for task in tasks(size, "dev")[:40]:
        assert read_task(json.loads(json.dumps(task_json(task)))) == task


@pytest.mark.parametrize("split", ["dev", "test", "hard"])
def test_gold_replays_without_errors_and_every_write_counts(split: str) -> None:
    """P2, and minimality."""
    tools = get_toolset("strict")
    for task in tasks("full", split):
        overlay = Overlay(make_shop("full", 0, split))
        for way in task.accepted:
            end = apply_calls(overlay, tools, way)
            assert end is not None
            for at in range(len(way)):
                less = apply_calls(overlay, tools, (*way[:at], *way[at + 1 :]))
                assert less is None or not less.is_at(end.changes())


@pytest.mark.parametrize("split", SPLITS)
def test_no_amount_is_below_zero_in_words(split: str) -> None:
    limits = 0
    for task in tasks("full", split):
        assert "$-" not in task.brief
        for goal in scenario(task).goals:
            if goal.limit is not None:
                assert ("get back at least $" in task.brief) is (goal.limit < 0), task.brief
                limits += goal.limit < 0
    assert limits > 10


@pytest.mark.parametrize("split", SPLITS)
def test_nobody_asks_for_a_change_that_was_made(split: str) -> None:
    """Also a change that its price forbids could be made when it is asked for."""
    tools = get_toolset("strict")
    for task in tasks("full", split):
        visit = scenario(task)
        overlay = Overlay(make_shop("full", 0, split))
        for goal in (first.last() for first in visit.goals):
            if goal.expect != "done" or not goal.tool or not visit.identity.valid:
                continue
            order = overlay.order(goal.order_id)
            method = "" if order is None else find_original_method(order)
            over = goal.limit is not None and goal.value > goal.limit
            at = overlay.fork() if over else overlay
            call = build_call(goal, visit.identity.user_id, method)
            assert not tools.call(at, *call).refused, task.brief


@pytest.mark.parametrize("split", ["dev", "test", "hard"])
def test_every_preference_means_one_item(split: str) -> None:
    shop = make_shop("full", 0, split)
    checked = 0
    for task in tasks("full", split):
        for goal in (g for first in scenario(task).goals for g in first.stages()):
            if goal.intent in ("exchange", "modify") and goal.expect == "done":
                for want in goal.wants:
                    product = shop.products[shop.product_of[want.item_id]]
                    found = find_matching(want, list(product["variants"].values()))
                    assert [v["item_id"] for v in found] == [want.new_id]
                    checked += 1
    assert checked > 30


@pytest.mark.parametrize("size", SIZES)
def test_the_expert_solves_every_task_in_time(size: str) -> None:
    """P3; the train split is proved when it is made, and sampled here."""
    env = ENVS[size]
    for split in SPLITS:
        count = COUNTS[size][split]
        for i in range(0, count, 1 + count // 80):
            task_id = env.source.task(split, i).id
            assert plays(env, lambda e, o: e.expert()(e, o, {}), task_id, split) == "solved"


def test_an_unsolvable_task_is_no_task() -> None:
    task = next(t for t in tasks("full", "dev") if t.kind == "cancel")
    prove = prove_solvable("full", 0, make_shop("full", 0, "dev"))
    assert prove(task) == task.features["expert_turns"]
    (goal,) = scenario(task).goals
    hopeless = replace(scenario(task), goals=(replace(goal, reason="too dear"),))
    assert prove(replace(task, scenario=hopeless)) is None


def test_splits_share_nobody_and_nothing() -> None:
    """P11."""
    briefs = {split: [task.brief for task in tasks("full", split)] for split in SPLITS}
    every = [brief for split in SPLITS for brief in briefs[split]]
    assert len(set(every)) == len(every)
    users = [{scenario(t).identity.user_id for t in tasks("full", split)} for split in SPLITS]
    assert len(set.union(*users)) == sum(map(len, users))

    def grams(text: str) -> set[tuple[str, ...]]:
        words = text.split()
        return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}

    seen = set().union(*(grams(brief) for brief in briefs["train"]))
    shares = [len(grams(brief) & seen) / len(grams(brief)) for brief in briefs["test"]]
    assert np.mean(shares) < 0.5
    assert np.quantile(shares, 0.98) < 0.85
    assert max(shares) < 0.95


def test_a_quarter_is_refused_and_every_refused_visit_has_a_feasible_twin() -> None:
    found = {f"train/{i}": task for i, task in enumerate(tasks("full", "train"))}

    def refused(task: RetailTask) -> bool:
        return any(goal.last().expect != "done" for goal in scenario(task).goals)

    assert 0.2 <= sum(map(refused, found.values())) / len(found) <= 0.3
    pairs = [task for task in found.values() if task.twin]
    assert len(pairs) > 300
    for task in pairs:
        mate = found[task.twin]
        assert found[mate.twin] is task
        assert refused(task) != refused(mate)
        assert scenario(task).identity.user_id == scenario(mate).identity.user_id
    kinds = {task.kind for task in found.values()}
    assert {*chain(*REFUSALS), "several", "mixed", "long"} <= kinds


@given(st.integers(0, 2**32), st.integers(1, 80), st.integers(0, 40))
def test_kinds_are_drawn_by_their_shares(seed: int, count: int, skipped: int) -> None:
    drawn = draw_kinds(REFUSALS, np.random.default_rng(seed))
    part = list(islice(drawn, skipped, skipped + count))
    every = [*chain(*REFUSALS)]
    times = Counter(part)
    assert max(times.values()) - min(times[kind] for kind in every) <= 2
    for group in REFUSALS:
        share = count * len(group) / len(every)
        assert abs(sum(times[kind] for kind in group) - share) < 2
    first = list(islice(draw_kinds(REFUSALS, np.random.default_rng(seed)), 19))
    assert sorted(first) == sorted(every)
    assert first != list(islice(draw_kinds(REFUSALS, np.random.default_rng(seed + 1)), 19))


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_has_its_share_of_every_kind(split: str) -> None:
    """Kinds of single refused visits, and of refused goals among others; who needs a human."""
    found = tasks("full", split)
    alone = Counter(task.kind for task in found if task.kind in {*chain(*REFUSALS)})
    among = Counter(find_refused_kind(task) for task in found if task.kind == "mixed")
    assert abs(among.pop("") - sum(among.values())) <= 1
    for groups, times in ((REFUSALS, alone), (MIXED_REFUSALS, among)):
        every, total = [*chain(*groups)], sum(times.values())
        assert set(times) <= set(every)
        if total:
            assert max(times.values()) - min(times[kind] for kind in every) <= 1
            human = sum(times[kind] for kind in groups[1])
            assert abs(human - total * len(groups[1]) / len(every)) < 1
    assert total > 0  # tier 4 is in every split
    handed = [t for t in found if any(g.last().expect == "transferred" for g in scenario(t).goals)]
    assert 0.05 <= len(handed) / len(found) <= 0.08
    for task in handed:
        assert scenario(task).goals[-1].last().expect == "transferred"


def find_refused_kind(task: RetailTask) -> str:
    """Return the kind of the goal that is refused; those of humans are told by their words."""
    words = {
        "undone": "undo_cancel",
        "got lost": "lost_parcel",
        "sister": "foreign_refund",
        "email": "new_email",
        "price fell": "price_drop",
    }
    for goal in scenario(task).goals:
        if goal.expect == "denied":
            return goal.deny
        if goal.expect == "transferred":
            return next(kind for word, kind in words.items() if word in goal.about)
    return ""


def test_tiers_are_harder_one_by_one() -> None:
    """P16: the expert's turns, and how often a careless player still succeeds."""
    env, found = ENVS["full"], tasks("full", "train")
    turns, won = [], []
    for tier in (1, 2, 3, 4, 5):
        places = [i for i, task in enumerate(found) if task.tier == tier]
        turns.append(np.mean([found[i].features["expert_turns"] for i in places]))
        played = []
        for number, i in enumerate(places[:70]):
            careless = env.expert(mistakes=0.3, seed=number)
            status = plays(env, lambda e, o, c=careless: c(e, o, {}), f"train/{i}", "train")
            played.append(status == "solved")
        won.append(np.mean(played))
    assert all(a < b for a, b in pairwise(turns))
    assert all(a >= b - 0.05 for a, b in pairwise(won))
    assert won[0] > won[-1] + 0.2


def test_the_shares_of_the_tiers() -> None:
    shares = [sum(t.tier == n for t in tasks("full", "test")) / 300 for n in range(1, 6)]
    assert shares == pytest.approx([0.1, 0.2, 0.3, 0.25, 0.15], abs=0.005)
    assert all(t.features["writes"] >= 5 for t in tasks("full", "hard") if t.tier == 5)


def test_a_customer_without_preference_accepts_every_allowed_method() -> None:
    several = [t for t in tasks("full", "train") if len(t.accepted) > 1]
    assert len(several) >= 5
    env = ENVS["full"]
    for task in several[:5]:
        ends = env.knowledge.find_right_states(task.brief, task)
        assert len({str(end) for end in ends}) == len(ends)
