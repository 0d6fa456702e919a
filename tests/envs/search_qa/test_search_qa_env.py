import pickle
import subprocess
import sys
from collections.abc import Sequence

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turngym.envs
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.expert import Expert
from turngym.envs.search_qa.text import INVALID, PROMPTS
from turngym.envs.tools.retrieval.base import Hit


def play(env: SearchQA, policy, split: str, task: int) -> dict:
    observation, info = env.reset(seed=1, options={"split": split, "task": task})
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation, info))
    return info


@pytest.mark.parametrize(
    ("size", "hops"), [(size, n) for size in ("full", "micro") for n in (1, 2, 3, 4)]
)
def test_expert_finds_the_evidence_and_answers(size: str, hops: int) -> None:
    env = SearchQA(size=size, hops=hops)
    expert = env.expert()
    for task in range(500):
        info = play(env, expert, "dev", task)
        assert info["status"] == "solved"
        assert info["metrics"]["recall"] == 1.0
        assert info["metrics"]["hops"] == hops
        assert info["metrics"]["em"] == info["metrics"]["f1"] == info["metrics"]["return"] == 1.0
        assert info["metrics"]["well_formed"] == float(size == "full")


def test_the_floor() -> None:
    """Neither nothing, nor garbage, nor a constant guess, nor a word of the question scores."""
    env = SearchQA()
    rng = np.random.default_rng(0)

    def garbage(env, observation, info) -> str:
        return env.action_space.sample()

    def echo(env, observation, info) -> str:
        said = observation.split()
        return f"<answer> {said[int(rng.integers(len(said)))]} </answer>"

    guesses = {"null": lambda *_: "", "garbage": garbage, "echo": echo}
    guesses["number"] = lambda *_: "<answer> 6 </answer>"
    for name, policy in guesses.items():
        solved = sum(play(env, policy, "dev", i)["status"] == "solved" for i in range(300))
        assert solved / 300 < 0.03 if name == "number" else solved / 300 < 0.02


def test_mistakes_make_a_middling_player() -> None:
    env = SearchQA(size="micro")
    rates = []
    for mistakes in (0.0, 0.5, 1.0):
        expert = env.expert(mistakes=mistakes, seed=3)
        infos = [play(env, expert, "train", i) for i in range(200)]
        rates.append(np.mean([info["status"] == "solved" for info in infos]))
    assert rates[0] == 1.0
    assert rates[0] > rates[1] > rates[2]
    with pytest.raises(BadValueError, match="mistakes is 2"):
        env.expert(mistakes=2)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_haste_answers_with_what_a_search_before_the_last_found(hops: int) -> None:
    env = SearchQA(size="micro", hops=hops)
    infos = [play(env, Expert(seed=i, haste=1.0), "train", i) for i in range(40)]
    searches = {info["metrics"]["searches"] for info in infos}
    solved = np.mean([info["status"] == "solved" for info in infos])
    assert searches == {1.0}
    assert solved == (1.0 if hops == 1 else pytest.approx(0.0, abs=0.05))


def test_haste_is_a_share_and_without_it_nothing_is_drawn() -> None:
    env = SearchQA(size="micro", hops=2)
    hasty = Expert(seed=1, haste=0.8)
    early = [play(env, hasty, "train", i)["metrics"]["searches"] == 1 for i in range(200)]
    assert np.mean(early) == pytest.approx(0.8, abs=0.09)
    for mistakes in (0.0, 0.4):
        one, two = Expert(mistakes, 5, 0.0), env.expert(mistakes, 5)
        assert [play(env, one, "train", i) for i in range(20)] == [
            play(env, two, "train", i) for i in range(20)
        ]
    with pytest.raises(BadValueError, match="haste is 2"):
        Expert(haste=2)


def test_each_kind_of_question_has_a_score_of_its_own() -> None:
    env = SearchQA(hops=1)
    kinds = set()
    for task in range(30):
        metrics = play(env, env.expert(), "train", task)["metrics"]
        kind = env.episode.task.payload.kind
        assert {name for name in metrics if name.startswith("em_")} == {f"em_{kind}"}
        assert metrics[f"em_{kind}"] == metrics["em"] == 1.0
        kinds.add(kind)
    assert kinds == {"bridge", "counting"}
    one = SearchQA(size="micro")
    assert "em_bridge" not in play(one, one.expert(), "train", 0)["metrics"]


def test_the_published_prompt() -> None:
    env = SearchQA()
    observation, _ = env.reset(seed=0)
    prompt = env.instructions + observation
    assert prompt.startswith(
        "Answer the given question. You must conduct reasoning inside <think> and </think> first "
        "every time you get new information. After reasoning, if you find you lack some knowledge, "
        "you can call a search engine by <search> query </search> and it will return the top "
        "searched results between <information> and </information>. You can search as many times "
        "as your want. If you find no further external knowledge needed, you can directly provide "
        "the answer inside <answer> and </answer>, without detailed illustrations. For example, "
        "<answer> Beijing </answer>. Question: "
    )
    assert prompt.endswith("?\n")
    assert env.stop == ("</search>", "</answer>")


def test_a_micro_episode_reads_as_planned() -> None:
    env = SearchQA(size="micro")
    question, _ = env.reset(seed=0, options={"split": "dev", "task": 0})
    assert env.instructions == PROMPTS["none"] == ""
    probe = env.episode.task.payload.plan[0]
    found, reward, *_ = env.step(f"<search> {probe.subject} {probe.keyword} </search>")
    first = found.splitlines()[2]
    assert question.startswith("Question: ")
    assert first.startswith(f'<information>Doc 1(Title: "{probe.subject}") ')
    assert env.episode.task.payload.answers[0] in first
    assert probe.keyword in first
    assert probe.keyword in question
    assert reward == 0.0


def test_an_answer_in_the_prompt_or_a_passage_is_never_graded() -> None:
    env = SearchQA(size="micro", max_turns=2)
    env.reset(seed=0, options={"split": "dev", "task": 0})
    gold = env.episode.task.payload.answers[0]
    _, _, terminated, truncated, info = env.step("<search> x </search>")
    observation, reward, terminated, truncated, info = env.step(f"I think {gold}, or </answer>")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert observation == INVALID
    assert info["metrics"]["em"] == 0.0


def test_a_search_on_the_last_turn_is_not_executed() -> None:
    class Counting:
        calls = 0

        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            Counting.calls += len(queries)
            return [[] for _ in queries]

    env = SearchQA(size="micro", max_turns=2, retriever=Counting())
    env.reset(seed=0)
    observation, *_ = env.step("<search> a </search>")
    assert observation == "\n\n<information>Nothing found.</information>\n\n"
    observation, reward, terminated, truncated, info = env.step("<search> a </search>")
    assert (observation, reward, terminated, truncated) == ("", 0.0, False, True)
    assert Counting.calls == 1
    assert info["metrics"]["searches"] == 1.0


def test_a_broken_retriever_is_an_env_error() -> None:
    class Down:
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            raise TimeoutError("no answer")

    env = SearchQA(size="micro", retriever=Down())
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("<search> a </search>")
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "env_error")


def test_unreadable_actions_are_moves() -> None:
    env = SearchQA(size="micro")
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step("hello")
    assert observation == INVALID
    assert not info["valid_action"]
    assert (reward, terminated, truncated, info["turn"]) == (0.0, False, False, 1)


def test_reward_terms_and_observation_budget() -> None:
    env = SearchQA(
        structure_score=0.2, format_score=0.1, retrieval_score=0.05, max_observation_chars=120
    )
    env.reset(seed=0, options={"split": "dev", "task": 3})
    observation, *_ = env.step("<think> a </think> <search> the novel </search>")
    assert len(observation) == 120
    assert observation.endswith("</information>\n\n")
    _, reward, *_, info = env.step("<think> b </think> <answer> wrong </answer>")
    assert info["reward_terms"] == {"outcome": 0.0, "format": 0.2, "retrieval": 0.0}
    assert reward == pytest.approx(0.2)


def test_f1_outcome() -> None:
    env = SearchQA(size="micro", outcome="f1")
    env.reset(seed=0, options={"split": "dev", "task": 0})
    half = env.episode.task.payload.answers[0].split()[0]
    _, reward, terminated, _, info = env.step(f"<answer> {half} </answer>")
    assert reward == pytest.approx(2 / 3)
    assert terminated
    assert info["status"] == "failed"


def test_a_pickle_is_small_and_a_second_make_instant() -> None:
    env = SearchQA()
    env.reset(seed=4)
    env.step("<search> novel </search>")
    data = pickle.dumps(env)
    assert len(data) < 20_000
    assert pickle.loads(data).digest() == env.digest()
    assert SearchQA().retriever is env.retriever


def test_copies_are_served_together() -> None:
    envs = gym.make_vec("SearchQA-v0", num_envs=4, size="micro")
    envs.reset(seed=0)
    observations, *_ = envs.step(["<search> Ada Brook </search>"] * 4)
    assert len(set(observations)) == 1
    serves = {envs.envs[i].unwrapped._serve for i in range(4)}
    assert len(serves) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="<>/searchnw \n") | st.text(), max_size=6))
def test_no_text_breaks_it(actions: list[str]) -> None:
    env = SearchQA(size="micro", structure_score=0.2)
    env.reset(seed=0)
    for action in actions:
        if not env.action_space.contains(action):
            continue
        observation, reward, terminated, truncated, _ = env.step(f"<search>{action}</search>")
        assert env.observation_space.contains(observation)
        assert reward == 0.0
        if terminated or truncated:
            break


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"size": "mirco"}, UnknownNameError, "'micro'"),
        ({"prompt": "searchr1"}, UnknownNameError, "'search-r1'"),
        ({"kinds": "bridges"}, UnknownNameError, "'bridge'"),
        ({"outcome": "f2"}, UnknownNameError, "'f1'"),
        ({"topk": 3}, UnknownNameError, "'top_k'"),
        ({"max_turns": 0}, BadValueError, "max_turns is 0"),
        ({"top_k": 0}, BadValueError, "top_k is 0"),
        ({"max_observation_chars": 5}, BadValueError, "max_observation_chars is 5"),
        ({"hops": 5}, BadValueError, "1 to 4"),
        ({"hops": 1.5}, BadValueError, "hops is 1.5"),
        ({"hops": "2"}, BadValueError, "hops is '2'"),
        ({"hops": True}, BadValueError, "hops is True"),
        ({"hops": ()}, BadValueError, "hops is empty"),
        ({"hops": 1, "kinds": "comparison"}, BadValueError, "has 1 hops"),
        ({"size": "micro", "kinds": "counting"}, BadValueError, "no counting questions"),
        ({"distractors": 9}, BadValueError, "distractors is 9"),
        ({"world_seed": -1}, BadValueError, "world_seed is -1"),
        ({"corpus": "c.jsonl"}, BadValueError, "without data"),
        ({"data": "q.jsonl"}, BadValueError, "without passages"),
        ({"data": "q.jsonl", "corpus": "c.jsonl", "hops": 2}, BadValueError, "hops=2"),
    ],
)
def test_refusals(settings: dict, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        SearchQA(**settings)
    assert str(caught.value).count("SearchQA") == 1


def test_micro_takes_distractors() -> None:
    env = SearchQA(size="micro", distractors=0.1)
    assert len(env.retriever) > len(SearchQA(size="micro").retriever)
    assert play(env, env.expert(), "test", 5)["status"] == "solved"
    with pytest.raises(BadValueError, match="no names left"):
        SearchQA(size="micro", distractors=3)


def test_the_import_stays_light() -> None:
    code = (
        "import sys, turngym.envs; import turngym.envs.search_qa.env;"
        "bad = {'torch', 'transformers', 'pyarrow', 'pandas', 'bm25s', 'scipy'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_conformance() -> None:
    turngym.envs.check_text_env("SearchQA-v0", size="micro", hops=2)
