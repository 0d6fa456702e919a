"""Who pays whom: the guard against collusion, and the selector's own reward."""

import subprocess
import sys

import pytest
from helpers.shelf import Table, example_four
from helpers.two_agents import four, ground

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.paper_crawler.marl import aec_env
from turngym.envs.paper_crawler.papers import Request


def pays(env, *texts):
    """What the crawler gets for each of these decisions about section A: p3, p4, p6."""
    env.step("[Expand] A")
    gains = []
    for text in texts:
        env.step(text)
        gains.append(env.rewards["crawler"])
    return gains


def test_frozen_pays_by_the_worlds_selector_whatever_the_agent_says():
    assert pays(four(), "True", "True", "True") == [1.5, 1.5, 0.0]
    assert pays(four(), "False", "False", "False") == [1.5, 1.5, 0.0]


def test_live_pays_by_the_agents_decisions_and_the_labels():
    assert pays(four(reward_selector="live"), "False", "False", "True 0.2") == [1.5, 0.0, 1.5]


def test_ema_pays_by_the_copy_that_its_trainer_updates():
    slow = Table({"p6": 0.9})
    env = four(reward_selector="ema", slow_selector=slow)
    twin = env.fork()
    assert pays(env, "False", "True", "False") == [1.5, 0.0, 1.5]
    slow.scores = {"p4": 0.51}
    assert pays(twin, "False", "True", "False") == [1.5, 1.5, 0.0]
    env = four(reward_selector="ema", slow_selector=lambda asked: [0.5 for _ in asked])
    assert pays(env, "True", "True", "True") == [1.5, 0.0, 0.0]


@pytest.mark.parametrize("scores", [[], [0.5, 2.0], [float("nan"), 0.5], None, ["a", "b"]])
def test_a_slow_selector_that_answers_nonsense_breaks_the_episode(scores):
    world = ground(example_four())
    env = aec_env(**world, reward_selector="ema", slow_selector=lambda asked: scores)
    env.reset(seed=0)
    env.step("[Search] start")
    assert env.infos["crawler"]["status"] == "env_error"
    assert "slow_selector gave" in env.observe("crawler")["text"]
    assert env.truncations == {"crawler": True, "selector": True}


def test_with_annotated_labels_no_selector_pays_or_is_asked():
    env = four(label="annotated")
    assert pays(env, "True", "True", "True") == [1.5, 0.0, 0.0]
    assert env.game.parts.selector.calls == [1, 1]  # the test's own questions


def test_the_selectors_reward_is_by_labels_and_weights():
    weights = {"true_relevant": 2.0, "true_irrelevant": -3.0, "false_irrelevant": 0.25}
    env = four(selector_rewards=weights, reward_selector="live")
    env.step("[Expand] A")
    gains = []
    for text in ("True", "True", "nonsense"):
        env.step(text)
        gains.append(env.rewards["selector"])
    assert gains == [2.0, -3.0, 0.25]
    env.step("[Expand] B")
    env.step("False 0.9")
    assert env.rewards["selector"] == -1.0


def test_all_relevant_papers_count_for_the_selector_where_they_are_known():
    shelf, table, _ = example_four()
    request = Request("start", 20230101, ("p3",), oracle=("p3", "p1"))
    env = aec_env(**ground((shelf, table, request)))
    env.reset(seed=0)
    env.step("[Search] start")
    env.step("True")
    assert env.rewards["selector"] == 1.0
    env.step("True")
    assert env.rewards["selector"] == -0.5


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"reward_selector": "ema"}, "only its trainer can keep that copy"),
        ({"slow_selector": Table({})}, "reward_selector='frozen' does not ask it"),
        ({"reward_selector": "ema", "slow_selector": 0.5}, "slow_selector is 0.5"),
        ({"reward_selector": "live", "label": "annotated"}, "labels alone pay"),
        (
            {"reward_selector": "ema", "slow_selector": Table({}), "label": "annotated"},
            "labels alone pay",
        ),
        ({"selector_rewards": {"true_relevant": float("inf")}}, "'true_relevant'"),
        ({"selector_rewards": {"true_relevant": "1"}}, "expected a number"),
        ({"batch": 1}, "batch is 1"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(rules, message):
    with pytest.raises(BadValueError, match=message):
        aec_env(**ground(example_four(), **rules))


def test_unknown_words_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'frozen'"):
        aec_env(**ground(example_four()), reward_selector="frosen")
    with pytest.raises(UnknownNameError, match="Did you mean 'true_relevant'"):
        aec_env(**ground(example_four()), selector_rewards={"true_relevent": 1.0})


def test_only_making_one_needs_pettingzoo():
    code = (
        "import sys; sys.modules['pettingzoo'] = None\n"
        "import turngym.envs, turngym.envs.paper_crawler.env\n"
        "from turngym.envs.core.errors import MissingExtraError\n"
        "from turngym.envs.paper_crawler.marl import aec_env, parallel_env\n"
        "for make in (aec_env, parallel_env):\n"
        "    try: make()\n"
        "    except MissingExtraError as missing: print(missing)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.count("pip install 'turngym[marl]'") == 2
