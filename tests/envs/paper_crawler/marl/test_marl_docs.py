"""The loop that the documentation shows."""

import re
from pathlib import Path

import pytest
from helpers.shelf import example_four
from helpers.two_agents import ground

from turngym.envs.paper_crawler.marl import aec_env

PAGE = Path(__file__).parents[4] / "docs" / "two-agents.md"


def test_the_loop_of_the_page_plays_an_episode():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [block for block in blocks if "aec_env" in block]
    names = {}
    exec(code, names)
    assert names["aec_env"] is aec_env

    def crawler(text):
        return "[Expand] A [Stop]" if "Sections:" in text else "[Search] start [Stop]"

    def selector(text):
        return "True 0.9" if "Paper 3" in text else "False"

    returns = names["play"](aec_env(**ground(example_four())), crawler, selector, 0)
    # p1, p3 and p4 pay for a search and an expansion; only p3 is an answer
    assert returns == {"crawler": pytest.approx(3 * 1.5 - 2 * 0.1), "selector": 1.0}
