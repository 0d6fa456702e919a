"""The game on a small library: queue, rewards, schedule, sessions, limits, bad input."""

import pickle

import gymnasium as gym
import pytest
from helpers.shelf import Requests, Shelf, Table, example_four, paper, random_shelf
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.paper_crawler.crawl.grammar import read_action, read_session
from turngym.envs.paper_crawler.env import PaperCrawler
from turngym.envs.paper_crawler.papers import Request


def crawler(shelf, table, *requests, **rules):
    source = requests[0] if hasattr(requests[0], "task") else Requests(*requests)
    return PaperCrawler(data=source, papers=shelf, selector=table, **rules)


def numbers(info):
    return [(a["n_results"], a["n_new"], a["n_relevant"]) for a in info["crawl"]["actions"]]


def test_example_four_rewards_what_is_new_and_relevant():
    shelf, table, request = example_four()
    env = crawler(shelf, table, request)
    env.reset(seed=0)
    _, _, _, _, info = env.step("[Search] start [StopSearch]")
    assert info["crawl"]["actions"][0]["new_ids"] == ["p1", "p2"]
    rewards = [env.step(f"[Expand] {name}")[1] for name in "ABC"]
    assert rewards == pytest.approx([2.9, 1.4, -0.1])


def test_example_four_with_annotated_labels_only():
    shelf, table, request = example_four()
    env = crawler(shelf, table, request, label="annotated", granularity="session")
    env.reset(seed=0)
    env.step("[Search] start [StopSearch]")
    info = env.step("[Expand]A[Expand]B[Expand]C[StopExpand]")[4]
    assert [a["reward"] for a in info["crawl"]["actions"]] == pytest.approx([1.4, 1.4, -0.1, 0.0])


@pytest.mark.parametrize("scores", [[0.5], [0.5] * 3, [float("nan"), 0.5], [93, 2], None])
def test_a_selector_that_answers_nonsense_breaks_the_episode(scores):
    shelf, table, request = example_four()
    table.probabilities = lambda judged: scores
    env = crawler(shelf, table, request)
    env.reset(seed=0)
    shown, *_, info = env.step("[Search] start [StopSearch]")
    assert info["status"] == "env_error"
    assert f"the selector gave {scores} for 2 papers" in shown


def test_the_source_and_later_papers_are_never_found():
    shelf = Shelf(
        [
            paper(0, "gold", {"1 x": [1, 2, 3]}),
            paper(1, "gold source"),
            paper(2, "gold future", date=20230101),
            paper(3, "same day", date=20210101),
            paper(4, "day before", date=20201231),
        ]
    )
    request = Request("gold", 20210101, ("p1", "p2"), source="p1")
    env = crawler(shelf, Table({}), request)
    env.reset(seed=0)
    info = env.step("[Search] gold [Stop]")[4]
    assert info["crawl"]["actions"][0]["new_ids"] == ["p0"]
    info = env.step("[Expand] 1 x")[4]
    assert info["crawl"]["actions"][0]["n_results"] == 0


def test_a_layer_is_opened_best_first_and_cut_below_the_first():
    papers = [paper(0, "a", {"s": [3, 4, 5]}), paper(1, "a", {"s": [0]}), paper(2, "a")]
    papers += [paper(i, sections={"s": [0]}) for i in (3, 4, 5)]
    table = Table({"p0": 0.2, "p1": 0.9, "p2": 0.99, "p3": 0.3, "p4": 0.7, "p5": 0.7})
    env = crawler(Shelf(papers), table, Request("a", 20230101, ("p5",)), layer_cap=2)
    env.reset(seed=0)
    opened = []
    info = env.step("[Search] a [Stop]")[4]
    while info["status"] == "running":
        opened.append(env.session_key())
        info = env.step("[Expand] s [Stop]")[4]
    assert opened == ["p1", "p0", "p4", "p5"]  # p2 has no sections, p3 is beyond the cap
    assert info["status"] == "solved"
    assert info["metrics"]["crawler_recall"] == 1.0


@pytest.mark.parametrize(
    ("schedule", "order"), [("fifo", ["p0", "p1", "p2"]), ("best_first", ["p1", "p0", "p2"])]
)
def test_other_schedules(schedule, order):
    papers = [paper(0, "a", {"s": [2]}), paper(1, "a", {"s": [0]}), paper(2, "", {"s": [0]})]
    table = Table({"p0": 0.2, "p1": 0.9, "p2": 0.1})
    env = crawler(Shelf(papers), table, Request("a", 20230101, ("p2",)), schedule=schedule)
    env.reset(seed=0)
    info, opened = env.step("[Search] a [Stop]")[4], []
    while info["status"] == "running":
        opened.append(env.session_key())
        info = env.step("[Expand] s [Stop]")[4]
    assert opened == order


def test_the_sampled_schedule_draws_with_the_episode():
    shelf, table, source = random_shelf(3)
    env = crawler(shelf, table, source, schedule="sampled", per_layer=2)
    seen = set()
    for seed in range(6):
        for _ in range(2):
            env.reset(seed=seed, options={"task": 0})
            info, opened = env.step("[Search] gold iron [Stop]")[4], []
            while info["status"] == "running":
                opened.append(env.session_key())
                info = env.step("[Stop]")[4]
            seen.add((seed, tuple(opened)))
            assert len(opened) <= 2
    assert len(seen) == 6
    assert len({opened for _, opened in seen}) > 1


def test_sections_are_matched_by_letters_and_unknown_ones_cost():
    shelf, table, request = example_four()
    shelf.papers["p1"] = paper(1, "start", {"2.1 Gated Memory": [3], "2.2 Gated Memory": [5]})
    env = crawler(shelf, table, request)
    env.reset(seed=0)
    env.step("[Search] start [Stop]")
    info = env.step("[Expand] gated memory")[4]
    assert info["crawl"]["actions"][0]["new_ids"] == ["p3"]
    _, reward, _, _, info = env.step("[Expand] nowhere")
    assert reward == pytest.approx(-0.1)
    assert info["valid_action"]
    assert "no section 'nowhere'" in info["crawl"]["actions"][0]["error"]
    info = env.step("[Expand] 2.2 Gated Memory")[4]
    assert info["crawl"]["actions"][0]["new_ids"] == ["p5"]


def test_what_cannot_be_read_costs_and_counts_towards_the_cap():
    shelf, table, request = example_four()
    env = crawler(shelf, table, request, max_search=3, cost_search=0.2)
    env.reset(seed=0)
    assert env.step("hello")[1] == pytest.approx(-0.2)
    assert not env.step("[Search] [")[4]["valid_action"]
    _, _, _, _, info = env.step("[Search] nobody wrote this")
    assert info["crawl"]["end_reason"] == "cap"
    assert info["status"] == "failed"
    assert info["metrics"]["return"] == pytest.approx(-0.6)


def test_text_beyond_the_cap_is_free_or_charged():
    shelf, table, request = example_four()
    text = "[Search] start [Search] b [Search] c [Stop]"
    for over_cap, cost in (("ignore", 0.1), ("charge", 0.3)):
        env = crawler(shelf, table, request, granularity="session", max_search=1, over_cap=over_cap)
        env.reset(seed=0)
        info = env.step(text)[4]
        assert info["reward_terms"]["cost"] == pytest.approx(-cost)
        assert info["crawl"]["end_reason"] == "cap"


def test_max_actions_truncates():
    shelf, table, request = example_four()
    env = crawler(shelf, table, request, max_actions=2)
    env.reset(seed=0)
    env.step("[Search] start [Stop]")
    _, _, terminated, truncated, info = env.step("[Expand] A")
    assert (terminated, truncated, info["crawl"]["end_reason"]) == (False, True, "limit")
    assert info["metrics"]["crawler_recall"] == 0.5


def test_feedback_stays_in_the_session():
    shelf, table, request = example_four()
    for feedback, shown in (
        ("counts", "Result: 2 new papers, 1 judged relevant.\n"),
        ("titles", "Result: 2 new papers, 1 judged relevant.\n- start here\n- start too\n"),
        ("none", ""),
    ):
        env = crawler(shelf, table, request, feedback=feedback)
        env.reset(seed=0)
        observation, _, _, _, info = env.step("[Search] start")
        assert observation == shown
        assert (info["session"], info["crawl"]["context_reset"]) == (0, False)


def test_sessions_say_who_asked_for_them():
    shelf, table, request = example_four()
    shelf.papers["p4"] = paper(4, "deeper", {"D": [5]})
    env = crawler(shelf, table, request)
    first, _ = env.reset(seed=0)
    assert first == env.prompts.search(request, 5)
    info = env.step("[Search] start [Stop]")[4]
    assert (info["session"], info["parent_session"]) == (1, 0)
    spawned = info["crawl"]["actions"][0]["spawned"]
    assert [(s["paper_id"], s["expandable"]) for s in spawned] == [("p1", True), ("p2", False)]
    observation, _, _, _, info = env.step("[Expand] A [Stop]")
    assert (info["session"], info["parent_session"]) == (2, 1)
    assert observation == env.prompts.expand(request, env.prompts.outline(shelf.papers["p4"]))
    assert info["crawl"]["paper_id"] == "p1"
    assert info["crawl"]["valid_args"] == ["D"]


def test_pickles_carry_no_remembered_texts():
    shelf, table, request = example_four()
    env = crawler(shelf, table, request)
    env.reset(seed=0)
    prompt, _, _, _, _ = env.step("[Search] start [Stop]")
    twin = pickle.loads(pickle.dumps(env))
    assert len(env.outlines) > 0
    assert len(twin.outlines) == 0
    assert twin.session_prompt(request, "p1") == prompt


def test_sessions_can_be_opened_out_of_turn():
    shelf, table, source = random_shelf(1)
    env = crawler(shelf, table, source)
    env.reset(seed=0, options={"task": 0})
    env.step("[Search] gold iron salt [Stop]")
    waiting = [opening.key for opening in env.waiting()]
    assert waiting[0] == env.session_key()
    observation, _ = env.open_session(waiting[2])
    assert observation == next(o.observation for o in [*env.waiting()] if o.key == waiting[2])
    assert set(waiting) == {opening.key for opening in env.waiting()}
    with pytest.raises(UnknownNameError, match="session"):
        env.open_session("p999")


def test_a_request_without_answers_scores_nothing():
    shelf, table, _ = example_four()
    env = crawler(shelf, table, Request("start", 20230101, ()), label="annotated")
    env.reset(seed=0)
    info = env.step("[Search] nothing [Stop]")[4]
    assert info["status"] == "failed"
    assert info["metrics"]["crawler_recall"] == info["metrics"]["precision"] == 0.0


def play_session(env, text):
    """A session's text, action by action."""
    kind = env.episode.state.kind
    session = read_session(text, kind)
    cap = env.rules.cap(kind)
    rewards, info = [], {}
    for move in session.moves[:cap]:
        _, reward, _, _, info = env.step(text[slice(*move.span)])
        rewards.append(reward)
        if info["crawl"]["end_reason"]:
            return rewards, info
    _, reward, _, _, info = env.step("[Stop]")
    return [*rewards, reward], info


WORDS = st.sampled_from(["gold", "iron salt", "wood", "0 gold", "1 iron", "2 salt", "3 clay", ""])
MARKS = st.sampled_from(["[Search]", "[Expand]", "[Search]", "[Expand]", "[Stop]", "["])
TEXTS = st.lists(st.tuples(MARKS, WORDS).map(" ".join), max_size=8).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5), st.lists(TEXTS, max_size=12), st.sampled_from(["layered", "best_first"]))
def test_a_session_equals_its_actions(seed, texts, schedule):
    shelf, table, source = random_shelf(seed)
    whole, parts = (
        crawler(shelf, table, source, granularity=g, schedule=schedule)
        for g in ("session", "action")
    )
    for env in (whole, parts):
        env.reset(seed=seed, options={"task": 0})
    for text in texts:
        if whole.episode.status != "running":
            break
        _, reward, _, _, info = whole.step(text)
        rewards, other = play_session(parts, text)
        assert reward == pytest.approx(sum(rewards))
        assert whole.session_key() == parts.session_key()
        assert whole.episode.state.queue == parts.episode.state.queue
        assert whole.episode.status == parts.episode.status
        assert info["crawl"]["queue_size"] == other["crawl"]["queue_size"]
        if info["metrics"]:
            same = {
                k: v for k, v in info["metrics"].items() if k not in ("turns", "invalid_actions")
            }
            assert same == pytest.approx({k: other["metrics"][k] for k in same})


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5), st.lists(TEXTS, min_size=1, max_size=15), st.integers(0, 14))
def test_a_fork_goes_on_as_the_original(seed, texts, at):
    shelf, table, source = random_shelf(seed)
    env = crawler(shelf, table, source, schedule="sampled")
    env.reset(seed=seed)
    for text in texts[:at]:
        if env.episode.status == "running":
            env.step(text)
    twin = env.fork()
    before = env.digest()
    for text in texts[at:]:
        if twin.episode.status == "running":
            twin.step(text)
    assert env.digest() == before
    for text in texts[at:]:
        if env.episode.status == "running":
            env.step(text)
    assert env.digest() == twin.digest()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5), st.lists(TEXTS, max_size=15))
def test_the_queue_holds_no_paper_twice_and_the_return_adds_up(seed, texts):
    shelf, table, source = random_shelf(seed)
    env = crawler(shelf, table, source)
    env.reset(seed=seed)
    found, total = [], 0.0
    for text in texts:
        if env.episode.status != "running":
            break
        _, reward, _, _, info = env.step(text)
        total += reward
        for action in info["crawl"]["actions"]:
            found += action["new_ids"]
            assert action["reward"] == pytest.approx(1.5 * action["n_relevant"] - action["cost"])
    assert len(found) == len(set(found)) == len(env.episode.state.queue)
    assert env.episode.task.payload.source not in found
    assert env.episode.total_reward == pytest.approx(total)


def test_the_first_action_says_how_it_is_read():
    assert read_action("[Search] a", "search")[0].arg == "a"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"layers": -1}, "layers is -1"),
        ({"top_k": 0}, "top_k is 0"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"cost_search": "x"}, "cost_search is 'x'"),
        ({"over_cap": "charge"}, "granularity='session'"),
        ({"max_actions": 0}, "max_actions is 0"),
        ({"label": "oracle"}, "label='oracle'"),
        ({"selector_noise": 1.0}, "selector_noise"),
        ({"size": "micro"}, "size='micro'"),
        ({"per_layer": 3}, "per_layer=3 is of schedule='sampled', and the schedule is 'layered'"),
        ({"layer_cap": 3, "schedule": "fifo"}, "layer_cap=3 is of schedule='layered'"),
        ({"search": "serper"}, "search='serper' is about files"),
        ({"data_settings": {}}, "data_settings={} is about files"),
    ],
)
def test_bad_settings_are_refused(rules, message):
    shelf, table, request = example_four()
    with pytest.raises(BadValueError, match=message):
        crawler(shelf, table, request, **rules)


@pytest.mark.parametrize("name", ["granularity", "label", "schedule", "feedback", "over_cap"])
def test_unknown_words_are_refused(name):
    shelf, table, request = example_four()
    with pytest.raises(UnknownNameError, match=name):
        crawler(shelf, table, request, **{name: "sesion"})


def test_it_is_a_gymnasium_environment():
    assert issubclass(PaperCrawler, gym.Env)


def test_sampled_schedules_draw_so_forks_are_redrawn() -> None:
    assert PaperCrawler(size="micro", schedule="sampled").chance
    assert not PaperCrawler(size="micro").chance


def test_a_text_may_cost_more_than_its_cap_where_the_rest_is_charged() -> None:
    env = PaperCrawler(size="micro", granularity="session", over_cap="charge")
    env.reset(seed=0)
    env.step("[Search] birds\n" * 400 + "[StopSearch]")
    assert env.reward_range[0] <= env.episode.total_reward < -10
