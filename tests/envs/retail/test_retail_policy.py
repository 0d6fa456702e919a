"""Every rule of the policy has a step that breaks it alone, and one beside it that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from turngym.envs.retail.action_handlers import says_yes
from turngym.envs.retail.shop.policy import RULES, AgentStep, find_broken_rules

WRITE = AgentStep(
    tool="cancel_pending_order",
    arguments={"order_id": "#W1", "reason": "no longer needed"},
    writes=True,
    identified="ann_1",
    owner="ann_1",
    confirmed=True,
)
READ = AgentStep(tool="get_order_details", arguments={"order_id": "#W1"}, identified="ann_1")
TRANSFER = AgentStep(tool="transfer_to_human_agents", arguments={"summary": "help"}, outside=True)
MESSAGE = AgentStep(arguments={}, text="what is your email?")
BREAKERS = {
    "identify_first": replace(READ, identified=""),
    "own_only": replace(WRITE, owner="bob_2"),
    "confirm_first": replace(WRITE, confirmed=False),
    "one_thing": replace(READ, beside=True),
    "transfer_last": replace(TRANSFER, outside=False),
    "look_first": replace(WRITE, unread=True),
    "known_facts": replace(MESSAGE, invented=True),
    "no_advice": replace(MESSAGE, text="i recommend the red one."),
    "one_method": replace(
        MESSAGE,
        text="i will put half on each payment method. do you confirm (yes or no)?",
    ),
    "cancel_reasons": replace(WRITE, arguments={"order_id": "#W1", "reason": "too dear"}),
}


def test_what_breaks_nothing() -> None:
    assert [find_broken_rules(it) for it in (WRITE, READ, TRANSFER, MESSAGE)] == [[], [], [], []]


@pytest.mark.parametrize("key", [rule.key for rule in RULES])
def test_one_step_breaks_this_rule_alone(key: str) -> None:
    assert find_broken_rules(BREAKERS[key]) == [key]


def test_a_refused_call_breaks_no_rule_about_records() -> None:
    wrong = replace(WRITE, worked=False, confirmed=False, owner="bob_2", unread=True)
    assert find_broken_rules(wrong) == []


@pytest.mark.parametrize(
    ("words", "agrees"),
    [
        ("Yes, please go ahead.", True),
        ("That is correct, I do not want anything else.", True),
        ("No problem, please do.", True),
        ("No, nothing else. Yes, go ahead.", True),
        ("No, that is not correct.", False),
        ("I am not sure, wait please.", False),
        ("Wait, go ahead with what?", False),
        ("That isn’t correct.", False),
        ("Please do not cancel it.", False),
        ("Please don't confirm it yet.", False),
        ("I never said that you could go ahead.", False),
        ("The blue one.", False),
    ],
)
def test_a_yes_is_not_negated(words: str, agrees: bool) -> None:
    assert says_yes(words) == agrees
