import re

import pytest

from turngym.envs.search_qa.expert import ENOUGH
from turngym.envs.web_qa.env import WebQA
from turngym.envs.web_qa.sites.generated import _names
from turngym.envs.web_qa.sites.pages import strip_links


def answer(env: WebQA, task: int) -> tuple[str, str]:
    """The expert's thought before its answer, and the answer."""
    observation, info = env.reset(seed=1, options={"split": "train", "task": task})
    expert, action = env.expert(), ""
    while info["status"] == "running":
        action = expert(env, observation, info)
        observation, _, _, _, info = env.step(action)
    assert info["status"] == "solved"
    found = re.match(r"^<think> (.*) </think> <answer> (.*) </answer>$", action)
    assert found is not None
    return found[1], found[2]


@pytest.mark.parametrize("hops", [1, 2])
def test_lists_that_were_read_are_counted_aloud(hops: int) -> None:
    env = WebQA(size="full", kinds="counting", hops=hops)
    for task in range(20):
        thought, said = answer(env, task)
        numbers = [int(part.split()[0]) for part in thought.removesuffix(".").split(", ")]
        assert numbers == list(range(1, int(said) + 1))


def test_comparisons_say_both_and_chains_neither() -> None:
    two = WebQA(size="full", kinds="comparison", hops=2)
    thought, found = answer(two, 0)
    said = re.fullmatch(
        r".* is (\d+)\. .* is (\d+)\. "
        r"The least is (\d+), the most is (\d+)\. .*: the (.*) is (\d+)\.",
        thought,
    )
    assert said is not None
    one, other, low, high = map(int, said.groups()[:4])
    assert [low, high] == sorted([one, other])
    assert said[6] == found == said[{"least": 3, "most": 4}[said[5]]]
    assert answer(WebQA(size="full", kinds="bridge", hops=2), 0)[0] == ENOUGH


def test_answers_are_given_in_words_that_were_read() -> None:
    env = WebQA(size="full", kinds="bridge", hops=1)
    unusual = 0
    for task in range(60):
        _, said = answer(env, task)
        assert said in strip_links("".join(env.episode.state.shown))
        unusual += said != env.episode.task.payload.answers[0]
    assert unusual


def test_a_digit_inside_another_number_names_nothing() -> None:
    assert not _names("The death of Ada is dated 8 February 1969.", "6")
    assert _names("There are 6 films.", "6")
    assert _names("Ada Moss's films.", "Ada Moss")
