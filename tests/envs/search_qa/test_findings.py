import calendar
import itertools
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.expert import ENOUGH, MORE, Expert
from turngym.envs.search_qa.findings import write_finding, write_findings
from turngym.envs.search_qa.source import GeneratedQuestions
from turngym.envs.search_qa.world.queries import Probe

MONTHS = tuple(calendar.month_name)
ORDERED = re.compile(
    r"The (least|earliest) is (.*?), the (most|latest) is (.*?)\. "
    r"The (.*?): the (.*?) is (.*?)\.(?: |$)"
)
THOUGHT = re.compile(r"^<think> (.*?) </think> <(search|answer)> (.*?) </\2>$")


def think(env: SearchQA, task: int, mistakes: float = 0.0) -> list[tuple[str, str, str]]:
    """(thought, tag, content) of an episode's actions."""
    observation, info = env.reset(seed=1, options={"split": "train", "task": task})
    expert, said = Expert(mistakes, seed=task), []
    while info["status"] == "running":
        action = expert(env, observation, info)
        found = THOUGHT.match(action)
        assert found is not None, action
        said.append((found[1], found[2], found[3]))
        observation, _, _, _, info = env.step(action)
    return said


def count_up(text: str) -> int:
    """A number, a year or a date as a number that grows with it."""
    words = text.replace(",", "").split()
    if len(words) == 1:
        return int(words[0])
    month = next(word for word in words if word.isalpha())
    day = next(word for word in words[:2] if word.isdigit())
    return int(words[2]) * 10_000 + MONTHS.index(month) * 100 + int(day)


def shown_in(env: SearchQA) -> str:
    return " ".join(env.episode.state.shown)


@settings(max_examples=40, deadline=None)
@given(task=st.integers(0, 1999), hops=st.integers(1, 4))
def test_lists_are_counted_aloud_up_to_the_answer(task: int, hops: int) -> None:
    env = SearchQA(kinds="counting", hops=hops)
    thought, tag, answer = think(env, task)[-1]
    members = thought.removesuffix(".").split(", ")
    assert tag == "answer"
    assert [member.split()[0] for member in members] == [str(i) for i in range(1, int(answer) + 1)]
    places = [shown_in(env).index(member.split(" ", 1)[1]) for member in members]
    assert len(set(places)) == len(members)


@settings(max_examples=40, deadline=None)
@given(task=st.integers(0, 1999), hops=st.integers(2, 4))
def test_comparisons_say_what_they_compare(task: int, hops: int) -> None:
    env = SearchQA(kinds="comparison", hops=hops)
    said = think(env, task)
    thought = said[-1][0]
    plan = env.episode.task.payload.plan
    assert thought.count(" is ") >= len(plan) or thought == ENOUGH
    for probe, (after, _, _) in zip(plan, said[1:], strict=True):
        assert probe.subject in after or after in (MORE, ENOUGH)


@settings(max_examples=40, deadline=None)
@given(task=st.integers(0, 1999), hops=st.integers(2, 4))
def test_compared_values_are_put_in_order_and_the_wanted_one_is_told(task: int, hops: int) -> None:
    env = SearchQA(kinds="comparison", hops=hops)
    thoughts = [thought for thought, _, _ in think(env, task)]
    ordered = [ORDERED.search(thought) for thought in thoughts]
    if thoughts[-1] == ENOUGH:  # a value that is not shown as such
        return
    assert ordered[-1] is not None
    assert ordered[:2] == [None, None]
    first, low, last, high, asked_for, end, value = ordered[-1].groups()
    assert count_up(low) < count_up(high)
    assert (first, last) in (("least", "most"), ("earliest", "latest"))
    assert all(f" is {found}." in thoughts[-1] for found in (low, high))
    assert value == {first: low, last: high}[end]
    question = env.episode.task.payload
    assert f"the {asked_for} of " in question.text
    if hops == 2:
        assert value in question.answers
        assert {low, high} - set(question.answers) == {low, high} - {value}


def test_a_thing_is_searched_for_by_the_name_that_was_shown() -> None:
    env = SearchQA(kinds="bridge", hops=2)
    renamed = unknown = 0
    for task in range(200):
        said = think(env, task)
        plan = env.episode.task.payload.plan
        query, title = said[1][2], plan[1].subject
        shown = env.episode.task.payload.text + env.episode.state.shown[0]
        renamed += title not in query
        unknown += query.removesuffix(f" {plan[1].keyword}") not in shown
        assert env.episode.status == "solved"
    assert renamed > 10  # namesakes and aliases
    assert unknown < 8  # whose other name does not find the passage


@settings(max_examples=40, deadline=None)
@given(task=st.integers(0, 1999), hops=st.integers(1, 3))
def test_answers_are_given_in_words_that_were_shown(task: int, hops: int) -> None:
    env = SearchQA(kinds=["bridge", "comparison"] if hops > 1 else "bridge", hops=hops)
    answer = think(env, task)[-1][2]
    assert answer in shown_in(env)
    assert env.episode.status == "solved"


def test_an_alias_is_the_answer_where_no_text_has_the_usual_name() -> None:
    env = SearchQA(kinds="bridge", hops=1)
    said = [(think(env, task)[-1][2], env.episode.task.payload.answers) for task in range(200)]
    assert 5 < sum(answer != answers[0] for answer, answers in said) < 40


@settings(max_examples=40, deadline=None)
@given(task=st.integers(0, 1999), hops=st.integers(2, 4))
def test_what_a_search_found_is_said_before_the_next(task: int, hops: int) -> None:
    env = SearchQA(kinds="bridge", hops=hops, distractors=0)
    said = think(env, task)
    assert said[0][0] == "I need to look this up."
    assert said[-1][0] == ENOUGH
    for before, after in itertools.pairwise(said[:-1]):
        assert after[0].endswith(MORE)
        named = after[0].removesuffix(MORE).removesuffix(". ").rsplit(" is ", 1)[-1]
        assert named in shown_in(env)
        assert before[2] != after[2]


@settings(max_examples=60, deadline=None)
@given(task=st.integers(0, 1999), mistakes=st.sampled_from([0.3, 0.7, 1.0]))
def test_nothing_is_said_that_was_not_shown(task: int, mistakes: float) -> None:
    env = SearchQA()
    for thought, _, _ in think(env, task, mistakes):
        if re.match(r"\d", thought):
            values = [part.split(" ", 1)[1] for part in thought.removesuffix(".").split(", ")]
        else:
            said = thought.removesuffix(MORE).strip().split(". ")
            values = [part.rsplit(" is ", 1)[1] for part in said if " is " in part]
        for value in values:
            assert value.removesuffix(".").split(" (")[0] in shown_in(env)


def test_findings_are_seldom_missing() -> None:
    """Where the text says a thing otherwise, or is cut, nothing is said; that is the exception."""
    compared = SearchQA(kinds="comparison", hops=2)
    silent = [think(compared, task)[-1][0] == ENOUGH for task in range(60)]
    assert sum(silent) <= 3
    chains = SearchQA(kinds="bridge", hops=2)
    said = [think(chains, task)[1][0] for task in range(60)]
    assert sum(thought in (MORE, ENOUGH) for thought in said) <= 3


def test_a_cut_list_is_not_counted() -> None:
    env = SearchQA(kinds="counting", hops=1, max_observation_chars=120)
    assert {think(env, task)[-1][0] for task in range(20)} == {ENOUGH}


def test_nothing_is_thought_where_the_prompt_does_not_ask_for_it() -> None:
    env = SearchQA(prompt="none", hops=2, kinds="counting")
    observation, info = env.reset(seed=1, options={"split": "dev", "task": 0})
    while info["status"] == "running":
        action = env.expert()(env, observation, info)
        assert "<think>" not in action
        observation, _, _, _, info = env.step(action)
    assert info["status"] == "solved"


def test_a_search_for_nothing_known_has_no_finding() -> None:
    source = SearchQA().knowledge.source
    assert isinstance(source, GeneratedQuestions)
    question = next(
        task.payload
        for task in (source.task("train", i) for i in range(100))
        if task.payload.kind == "counting"
    )
    probe = question.plan[-1]
    shown = source.world.corpus.texts[int(probe.passages[0])]
    assert write_finding(source.world, probe, shown)
    assert write_finding(source.world, probe, "") == ""
    assert write_finding(source.world, probe._replace(keyword="?"), shown) == ""
    assert write_finding(source.world, Probe("nobody", "mentor", ("0",)), "") == ""
    assert write_findings(source.world, question, ()) == ""
