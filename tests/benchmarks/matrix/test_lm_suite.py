"""The suite ``lm``: what its model is taught has room in what it may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngym.agents.models.loading import load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.scripted import text_env
from turngym.agents.warm_start.demonstrations import Demonstrator
from turngym.agents.warm_start.thoughts import with_thought
from turngym.algos.training.config import EnvConfig
from turngym.benchmarks.matrix.suite import NamedStart
from turngym.benchmarks.matrix.suites import LM

EPISODES = 50


@pytest.mark.slow
@pytest.mark.timeout(1200)  # the model's download
@pytest.mark.parametrize("name", [column.name for column in LM.envs])
def test_an_expert_that_speaks_the_models_tokens_is_not_cut_off(name: str) -> None:
    column = LM.column(name)
    assert isinstance(column.start, NamedStart)
    env = text_env(EnvConfig(id=column.id, settings=column.settings).prototype)
    renderer = make_renderer(load_tokenizer(column.start.name), tools=env.tools)
    source = Demonstrator(env, column.eval_split, 0)
    fitting = 0
    for talk in source.take(EPISODES):
        written = [renderer.write(with_thought(action, env.tools)) for _, action in talk]
        fitting += max(map(len, written)) < column.max_tokens  # and the end of the message
    assert fitting >= 0.95 * EPISODES


def test_the_page_on_the_matrix_knows_how_many_cells_there_are() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "matrix.md").read_text(encoding="utf-8")
    assert f"; {len(LM.cells)} cells, " in page
