"""Each agent with a model that only goes on with the world's own dialogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.prompting_help import QUESTION, FakeModel, actions, make_world, play

from turngym.agents.prompting import Cot, Direct, Ircot, Rag, React, SearchO1

START = f"Question: {QUESTION}\n"


@pytest.fixture
def env(tmp_path: Path) -> Any:
    return make_world(tmp_path)


def test_direct_is_the_question_and_an_opened_answer(env: Any) -> None:
    model = FakeModel(" R2 </answer> rest")
    episode = play(Direct(dialect="tags"), model, env)
    assert model.prompts == [f"{START}<answer>"]
    assert actions(episode) == ["<answer> R2 </answer>"]
    assert episode.info["status"] == "solved"


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("", "<answer></answer>"),
        (" R2", "<answer> R2</answer>"),
        (" R2 <search> a </search>", "<answer> R2 </answer>"),
    ],
)
def test_what_runs_on_is_cut(env: Any, said: str, action: str) -> None:
    assert actions(play(Direct(dialect="tags"), FakeModel(said), env)) == [action]


def test_cot_thinks_in_its_tag(env: Any) -> None:
    model = FakeModel(" by R2 <search> x", " R2 </answer>")
    episode = play(Cot(dialect="tags"), model, env)
    assert model.prompts[1] == f"{START}<think> by R2 </think><answer>"
    assert actions(episode) == ["<think> by R2 </think><answer> R2 </answer>"]


def test_rag_reads_the_information_block(env: Any) -> None:
    model = FakeModel(" R2 </answer>")
    episode = play(Rag(dialect="tags"), model, env)
    (prompt,) = model.prompts
    assert str(prompt).startswith(f"{START}<search> {QUESTION} </search>\n\n<information>Doc 1(")
    assert str(prompt).endswith("</information>\n\n<answer>")
    assert episode.info["status"] == "solved"


def test_ircot_opens_the_first_search_and_reads_at_the_end(env: Any) -> None:
    model = FakeModel(
        " Cork </search>",
        "<search> Brno </search>",
        "hm",
        " Doha </search>",
        "<answer> R9 </answer>",
        " R2 </answer>",
    )
    episode = play(Ircot(dialect="tags"), model, env)
    assert actions(episode) == [
        "<search> Cork </search>",
        "<search> Brno </search>",
        "<search> Doha </search>",
        "<answer> R2 </answer>",
    ]
    assert model.prompts[0] == f"{START}<search>"
    assert str(model.prompts[3]).endswith("</information>\n\n<search>")
    assert str(model.prompts[5]).endswith("</information>\n\n<answer>")


def test_ircot_stops_at_a_query_that_comes_again_and_at_the_limit(env: Any) -> None:
    model = FakeModel(" Cork </search>", "<search> Cork </search>", " R2 </answer>")
    assert play(Ircot(dialect="tags"), model, env).usage.tool_calls == 1
    said = [f"<search> {w} </search>" for w in "bcd"]
    model = FakeModel(" a </search>", *said, " R2 </answer>")
    episode = play(Ircot(dialect="tags"), model, env)
    assert episode.usage.tool_calls == 4
    assert episode.info["status"] == "solved"


def test_react_is_the_world_s_own_loop_with_an_answer_at_its_end(env: Any) -> None:
    model = FakeModel("<search> Cork </search>", "what", "<answer> R2 </answer>")
    episode = play(React(dialect="tags"), model, env)
    assert actions(episode) == ["<search> Cork </search>", "what", "<answer> R2 </answer>"]
    assert episode.info["metrics"]["invalid_actions"] == 1
    assert episode.usage.tool_calls == 1
    model = FakeModel(*["what"] * 4, " R2 </answer>")
    assert play(React(dialect="tags"), model, env).info["status"] == "solved"


def test_search_o1_shows_only_what_its_reader_found(env: Any) -> None:
    model = FakeModel(
        "<search> Cork town </search>",
        " R2 </answer>",
        "<answer> R2 </answer>",
    )
    episode = play(SearchO1(dialect="tags"), model, env)
    assert str(model.prompts[1]).count("Doc ") == 2
    assert str(model.prompts[1]).endswith("<answer>")
    assert str(model.prompts[2]).count("Doc ") == 1
    assert "Cork lies by the river R2" in str(model.prompts[2])
    assert actions(episode) == ["<search> Cork town </search>", "<answer> R2 </answer>"]


def test_search_o1_searches_where_nothing_was_said_and_answers_in_the_end(env: Any) -> None:
    rounds = [x for w in "abcd" for x in ("hm", f" {w} </search>", " nothing </answer>")]
    episode = play(SearchO1(dialect="tags"), FakeModel(*rounds, " R2 </answer>"), env)
    assert episode.usage.tool_calls == 4
    assert episode.info["status"] == "solved"
