"""Each agent in words, against a model that says what is written here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.prompting_help import QUESTION, FakeModel, actions, make_world, play

from turngym.agents.prompting import PROMPTING, Cot, Direct, Ircot, Rag, React, SearchO1, prompting
from turngym.envs.core.errors import BadValueError, UnknownNameError

FOUND = "The town of Cork lies by the river R2."


@pytest.fixture
def env(tmp_path: Path) -> Any:
    return make_world(tmp_path)


def test_direct_answers_at_once(env: Any) -> None:
    model = FakeModel("<answer> R2 </answer> and more")
    episode = play(Direct(), model, env)
    assert actions(episode) == ["<answer> R2 </answer>"]
    assert episode.info["status"] == "solved"
    assert model.last().endswith(f"Question: {QUESTION}")
    assert model.asked[0]["stop"] == ("</answer>",)
    assert episode.usage.metrics() == {
        "model_calls": 1.0,
        "tool_calls": 0.0,
        "prompt_tokens": 10.0,
        "completion_tokens": 2.0,
        "uncounted_calls": 0.0,
    }


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("R2.", "<answer> R2 </answer>"),
        ("", "<answer>  </answer>"),
        ("<think> never closed", "<answer>  </answer>"),
        ("<think> a </think> <answer> R2", "<answer> R2 </answer>"),
        ("<answer> R2 <search> x </search></answer>", "<answer> R2 x </answer>"),
    ],
)
def test_whatever_direct_says_is_one_answer(env: Any, said: str, action: str) -> None:
    assert actions(play(Direct(), FakeModel(said), env)) == [action]


def test_cot_reasons_first_and_does_not_search(env: Any) -> None:
    model = FakeModel("Cork is by R2. So the answer is: R2.\n<answer> R2 </answer>")
    episode = play(Cot(), model, env)
    assert actions(episode) == ["<answer> R2 </answer>"]
    assert model.last().endswith(f"Question: {QUESTION}")
    assert "Reason step by step" in str(model.prompts[0][0])


def test_rag_searches_the_question_and_reads(env: Any) -> None:
    model = FakeModel("<answer> R2 </answer>")
    episode = play(Rag(), model, env)
    assert actions(episode) == [f"<search> {QUESTION} </search>", "<answer> R2 </answer>"]
    assert FOUND in model.last()
    assert episode.usage.tool_calls == 1
    assert episode.info["metrics"]["searches"] == 1


def test_rag_answers_where_there_is_no_room_to_search(tmp_path: Path) -> None:
    model = FakeModel("<answer> R2 </answer>")
    episode = play(Rag(), model, make_world(tmp_path, max_turns=1))
    assert actions(episode) == ["<answer> R2 </answer>"]
    assert "Passages:\nnone" in model.last()


# ---------------------------------------------------------------- ircot


def test_ircot_alternates_sentences_and_searches(env: Any) -> None:
    model = FakeModel(
        "Sentence 1: Cork is a town by a river. It is nice.",
        "The river of Brno is R1.",
        "So the answer is: R2.",
        "<answer> R2 </answer>",
    )
    episode = play(Ircot(), model, env)
    assert actions(episode) == [
        f"<search> {QUESTION} </search>",
        "<search> Cork is a town by a river. </search>",
        "<search> The river of Brno is R1. </search>",
        "<answer> R2 </answer>",
    ]
    assert model.last(1).endswith("Sentence 1: Cork is a town by a river.\nSentence 2:")
    assert model.last(2).count(FOUND) == 1  # found twice, shown once
    assert FOUND in model.last(3)
    assert episode.usage.model_calls == 4


def test_ircot_leaves_the_last_turn_to_the_answer(env: Any) -> None:
    model = FakeModel("One.", "Two.", "Three.", "Four.", "<answer> R2 </answer>")
    episode = play(Ircot(), model, env)
    assert episode.usage.tool_calls == 4
    assert episode.info["status"] == "solved"


@pytest.mark.parametrize("said", [["", "R2"], ["The same.", "The same.", "R2"]])
def test_ircot_stops_where_the_chain_does_not_go_on(env: Any, said: list[str]) -> None:
    episode = play(Ircot(), FakeModel(*said), env)
    assert episode.usage.tool_calls == len(said) - 1
    assert episode.info["status"] == "solved"


def test_ircot_keeps_its_limits(env: Any) -> None:
    model = FakeModel("One.", "R2")
    episode = play(Ircot(rounds=1, keep=1), model, env)
    assert episode.usage.tool_calls == 1
    assert model.last().count("(Title:") == 1
    with pytest.raises(BadValueError, match=r"Ircot\.rounds is 0"):
        Ircot(rounds=0)


# ---------------------------------------------------------------- react


def test_react_goes_from_thought_to_thought(env: Any) -> None:
    model = FakeModel(
        "Thought: where?\nAction: Search[Cork river]\nAction: Finish[R9]\nObservation: made up",
        "Thought: R2.\nAction: Finish[R2]",
    )
    episode = play(React(), model, env)
    assert actions(episode) == ["<search> Cork river </search>", "<answer> R2 </answer>"]
    first, said, seen = model.prompts[1][-3:]
    assert first.content == f"Question: {QUESTION}"
    assert said.content == "Thought: where?\nAction: Search[Cork river]"
    assert seen.content.startswith("Observation: Doc 1(Title:")


def test_react_tells_about_broken_lines_and_costs_no_turn(env: Any) -> None:
    model = FakeModel("I wonder.", "", "Action: Finish[R2]")
    episode = play(React(), model, env)
    assert actions(episode) == ["<answer> R2 </answer>"]
    assert "could not be read" in model.last(1)
    assert model.prompts[2][-2].content == "Thought:"


def test_react_must_finish_after_three_broken_lines(env: Any) -> None:
    model = FakeModel("a", "b", "c", "It is R2.")
    episode = play(React(), model, env)
    assert "Write one last line" in model.last(3)
    assert actions(episode) == ["<answer> It is R2 </answer>"]


def test_react_that_searches_endlessly_must_finish(env: Any) -> None:
    model = FakeModel(*["Action: Search[x]"] * 4, "Thought: ok\nAction: Finish[R2]")
    episode = play(React(), model, env)
    assert episode.usage.tool_calls == 4
    assert episode.info["status"] == "solved"
    assert "No search is left" in model.last()
    assert "Observation: " in model.last()


def test_react_that_searches_even_then_gives_its_words_as_the_answer(env: Any) -> None:
    model = FakeModel(*["Thought: R2?\nAction: Search[x]"] * 5)
    episode = play(React(), model, env)
    assert episode.usage.tool_calls == 4
    assert actions(episode)[-1] == "<answer> Thought: R2? </answer>"


# ---------------------------------------------------------------- search-o1


def ask(query: str) -> str:
    return f"I need it. <|begin_search_query|>{query}<|end_search_query|>"


def test_search_o1_reads_documents_apart(env: Any) -> None:
    model = FakeModel(
        f"<think> {ask('Cork river')} ignored",
        "The passages say so.\n**Final information:** Cork lies by R2.",
        r"</think> So \boxed{R2}",
    )
    episode = play(SearchO1(), model, env)
    assert actions(episode) == ["<search> Cork river </search>", "<answer> R2 </answer>"]
    assert "up to 4 times" in model.prompts[0][0].content
    assert FOUND in model.last(1)
    assert "Query: Cork river" in model.last(1)
    assert "I need it." in model.last(1)
    said, told = model.prompts[2][-2:]
    assert said.content == ask("Cork river")
    assert told.content.startswith(
        "<|begin_search_result|>Cork lies by R2.<|end_search_result|>\nGo on"
    )
    assert FOUND not in told.content
    assert episode.usage.model_calls == 3
    assert episode.usage.tool_calls == 1


def test_search_o1_searches_after_a_thought_about_the_answer(env: Any) -> None:
    model = FakeModel(
        rf"<think> I end with \boxed{{answer}}. {ask('Cork river')}",
        "Final information: Cork lies by R2.",
        r"\boxed{R2}",
    )
    episode = play(SearchO1(), model, env)
    assert actions(episode) == ["<search> Cork river </search>", "<answer> R2 </answer>"]


def test_search_o1_is_told_when_no_search_is_left(env: Any) -> None:
    turns = [x for i in range(4) for x in (ask(f"q{i}"), "Final information: none")]
    model = FakeModel(*turns, ask("more"), r"\boxed{R2}")
    episode = play(SearchO1(), model, env)
    assert episode.usage.tool_calls == 4
    assert "No search is left" in model.last(8)
    assert episode.info["status"] == "solved"


def test_search_o1_that_never_answers_still_ends(env: Any) -> None:
    model = FakeModel(ask("q"), "Final information: x", ask("q"), ask("q"), ask("q"), ask("q"))
    episode = play(SearchO1(), model, env)
    assert actions(episode) == ["<search> q </search>", "<answer> I need it </answer>"]
    assert "You have searched for this before" in model.last(3)


def test_search_o1_with_nothing_to_say(env: Any) -> None:
    model = FakeModel("", "")
    episode = play(SearchO1(), model, env)
    assert actions(episode) == ["<answer>  </answer>"]


def test_search_o1_asks_once_more_for_a_box(env: Any) -> None:
    model = FakeModel("It is R2, I think.", "<answer> R2 </answer>")
    assert play(SearchO1(), model, env).info["status"] == "solved"


# ---------------------------------------------------------------- all


@pytest.mark.parametrize("name", PROMPTING)
def test_garbage_ends_every_episode_with_an_answer(env: Any, name: str) -> None:
    class Babbling(FakeModel):
        async def complete(self, prompt: Any, **more: Any) -> Any:
            self.replies = ["</search> ## \\boxed{ Action: [ <answer <search> <|begin_search"]
            return await super().complete(prompt, **more)

    episode = play(prompting(name), Babbling(), env)
    assert episode.info["status"] == "failed"
    assert episode.info["metrics"]["invalid_actions"] == 0


@pytest.mark.parametrize("name", PROMPTING)
@pytest.mark.parametrize("dialect", ["chat", "tags"])
def test_silence_ends_every_episode(env: Any, name: str, dialect: Any) -> None:
    class Silent(FakeModel):
        async def complete(self, prompt: Any, **more: Any) -> Any:
            self.replies = [""]
            return await super().complete(prompt, **more)

    episode = play(prompting(name, dialect), Silent(), env)
    assert episode.info["status"] == "failed"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="'search-o1'"):
        prompting("search-01")
    with pytest.raises(UnknownNameError, match="'tags'"):
        prompting("rag", "tag")  # pyright: ignore
