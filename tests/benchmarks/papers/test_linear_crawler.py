"""Session PPO with a linear policy: the paper's ablations as regression tests."""

import numpy as np
import pytest

from turngym.benchmarks.papers.linear_crawler import (
    LinearCrawler,
    LinearSettings,
    linear_world,
    score_linear,
    train_linear,
)
from turngym.envs.core.errors import BadValueError


def trained(seed, env=(), **changed):
    settings = LinearSettings(**changed)
    drawn = {} if settings.full else {"schedule": "sampled", "per_layer": settings.drawn}
    crawler = train_linear(linear_world(**drawn, **dict(env)), settings, seed)
    return score_linear(crawler, linear_world(), 100)


def test_costs_alone_teach_to_open_nothing():
    settings = LinearSettings(steps=12, frozen_steps=2, requests=4)
    env = linear_world(size="micro", schedule="sampled", per_layer=2, alpha=0.0)
    crawler = train_linear(env, settings, 0)
    open_all = score_linear(LinearCrawler(0), linear_world(size="micro"), 10)
    assert score_linear(crawler, linear_world(size="micro"), 10).actions < open_all.actions / 2


def test_free_rewards_teach_to_open_more():
    settings = LinearSettings(steps=12, frozen_steps=2, requests=4, kl_coef=0.0)
    env = linear_world(size="micro", schedule="sampled", per_layer=2, cost_expand=0.0, alpha=5.0)
    crawler = train_linear(env, settings, 0)
    assert crawler.weights[0] > 0.2


def test_only_the_critic_learns_at_first():
    settings = LinearSettings(steps=2, frozen_steps=2, requests=2)
    env = linear_world(size="micro", schedule="sampled", per_layer=2)
    crawler = train_linear(env, settings, 0)
    assert not crawler.weights.any()
    assert crawler.critic.any()


@pytest.mark.parametrize("full", [True, False])
def test_the_schedule_must_fit(full):
    env = linear_world(size="micro", schedule="sampled" if full else "layered")
    with pytest.raises(BadValueError, match="schedule"):
        train_linear(env, LinearSettings(full=full))
    with pytest.raises(BadValueError, match="steps"):
        LinearSettings(steps=0)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_ablations_go_as_in_the_paper():
    def mean(**changed):
        return np.mean([trained(seed, **changed) for seed in range(3)], axis=0)

    untrained = np.mean([score_linear(LinearCrawler(s), linear_world(), 100) for s in range(3)], 0)
    base = mean()
    rows = {
        "untrained": untrained,
        "base": base,
        **{f"alpha {a}": mean(env={"alpha": a}) for a in (0.5, 1.0, 2.0)},
        **{f"cost {c}": mean(env={"cost_search": c, "cost_expand": c}) for c in (0.0, 0.2)},
        "no selector": mean(env={"label": "annotated"}),
        "full crawls": mean(full=True),
    }
    for name, row in rows.items():
        print(f"{name:12} recall {row[0]:.3f} actions {row[1]:.0f} return {row[2]:.1f}")
    assert base[0] >= 0.75
    assert base[2] > untrained[2]
    actions = [rows[k][1] for k in ("alpha 0.5", "alpha 1.0", "base", "alpha 2.0")]
    assert actions == sorted(actions)
    assert rows["cost 0.0"][1] > base[1] > rows["cost 0.2"][1]
    assert rows["no selector"][0] < 0.6
    assert rows["full crawls"][1] < base[1]
    assert rows["full crawls"][2] > base[2]
