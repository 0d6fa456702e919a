"""What a text will do, as far as it does not depend on what is found."""

import pytest

from turngym.envs.paper_crawler.crawl.actions import make_plan
from turngym.envs.paper_crawler.crawl.rules import Rules
from turngym.envs.paper_crawler.crawl.state import Crawl

THREE = "[Search] a [Search] b [Search] c [Stop]"


def plan(text, taken=(), actions=0, **rules):
    made = make_plan(Rules(**rules), Crawl(args_taken=taken, actions=actions), text)
    moves = "".join(m.arg for m in made.moves), "".join(m.arg for m in made.beyond)
    return *moves, made.stop is not None, made.ended


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, ("abc", "", True, "stop")),
        ({"max_search": 3}, ("abc", "", False, "cap")),
        ({"max_search": 2}, ("ab", "", False, "cap")),
        ({"max_search": 2, "over_cap": "charge"}, ("ab", "c", False, "cap")),
        ({"max_search": 2, "over_cap": "charge", "max_actions": 2}, ("ab", "", False, "cap")),
        ({"max_actions": 2, "over_cap": "charge"}, ("ab", "", False, "limit")),
        ({"max_actions": 3}, ("abc", "", False, "limit")),
        ({"max_actions": 4}, ("abc", "", True, "stop")),
        ({"max_actions": 4, "actions": 3}, ("a", "", False, "limit")),
        ({"max_search": 3, "taken": ("x",)}, ("ab", "", False, "cap")),
    ],
)
def test_a_sessions_text_ends_at_its_stop_its_cap_or_the_limit(rules, expected):
    assert plan(THREE, granularity="session", **rules) == expected


def test_a_session_without_a_stop_ends_with_its_text():
    assert plan("[Search] a [", granularity="session") == ("a", "", False, "eos")
    assert plan("[Stop]", granularity="session") == ("", "", True, "stop")


def test_one_action_leaves_the_session_open():
    assert plan(THREE) == ("a", "", True, "stop")
    assert plan("[Search] a [Search] b") == ("a", "", False, "")
    assert plan("[Search] a [Stop]", max_search=1) == ("a", "", False, "cap")
    assert plan("[Stop]") == ("", "", True, "stop")


def test_the_price_counts_what_is_charged_and_the_stop():
    prices = {"cost_search": 1.0, "cost_stop": 0.25, "invalid_cost": 0.5}
    rules = Rules(granularity="session", max_search=2, over_cap="charge", **prices)
    assert make_plan(rules, Crawl(), THREE).cost(rules, "search") == 3.0
    assert make_plan(rules, Crawl(), "[Search] a [Search] [Stop]").cost(rules, "search") == 1.5
    assert make_plan(rules, Crawl(), "[Search] a [Stop]").cost(rules, "search") == 1.25
