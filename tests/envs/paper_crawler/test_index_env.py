"""Numbered choices: the same game as the text environment's."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.shelf import example_four, random_shelf
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError
from turngym.envs.paper_crawler.env import PaperCrawler
from turngym.envs.paper_crawler.index_env import PaperCrawlerIndex, choice_features


def made(seed=0, **rules):
    shelf, table, source = random_shelf(seed)
    return PaperCrawlerIndex(data=source, papers=shelf, selector=table, **rules)


def test_gymnasiums_check_passes():
    check_env(made(), skip_render_check=True)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 4), st.lists(st.integers(0, 16), max_size=40))
def test_numbers_play_the_text_game(seed, actions):
    env = made(seed)
    text = PaperCrawler(
        data=env.inner.source, papers=env.inner.library, selector=env.inner.executor.selector
    )
    state, _ = env.reset(seed=seed)
    text.reset(seed=seed)
    for action in actions:
        if text.episode.status != "running":
            break
        assert env.observation_space.contains(state)
        written = env.text(action)
        state, reward, *_ = env.step(action)
        assert reward == text.step(written)[1]
        assert env.inner.digest() == text.digest()


def test_features_of_a_section():
    shelf, table, request = example_four()
    shelf.papers["p1"].sections.clear()
    shelf.papers["p1"].sections.update({"2.1 start here": ("p3",), "Appendix": ()})
    from helpers.shelf import Requests

    env = PaperCrawlerIndex(data=Requests(request), papers=shelf, selector=table, n_max=3)
    env.reset(seed=0)
    env.step(1)
    state, _, _, _, _ = env.step(0)
    np.testing.assert_allclose(state["choices"][0], [0, 0.5, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(state["choices"][1], [0, 0, 0, 0, 0, 0, 1])
    assert state["mask"].tolist() == [1, 1, 1, 0]
    np.testing.assert_allclose(state["state"], [1, 0.99, 0, 0, 2 / 3], rtol=1e-6)
    state, reward, *_ = env.step(3)  # no such choice
    assert reward == pytest.approx(-0.1)
    assert choice_features("start", "start", search=True) == [1, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("action", [-1, 17, "1"])
def test_bad_actions_are_refused(action):
    env = made()
    env.reset(seed=0)
    with pytest.raises(BadValueError, match="0 to 16"):
        env.step(action)


@pytest.mark.parametrize("bad", [{"n_max": 0}, {"granularity": "session"}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(BadValueError):
        made(**bad)
