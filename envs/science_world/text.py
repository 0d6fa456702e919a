"""What the agent is told beside the world's own words: the rules, and how a turn is laid out."""

from __future__ import annotations

from collections.abc import Mapping

PROMPTS: Mapping[str, str] = {
    "full": (
        "You are in a house with a laboratory's worth of things, and have a task to do. Write one "
        "action per turn, in one line. OBJ stands for the name of a thing; where several things "
        "have that name you are asked which one you mean, and answer with its number.\n"
        "look around: what is in this place. look at OBJ, look in OBJ, read OBJ: one thing.\n"
        "inventory: what you carry. task: the task again.\n"
        "open OBJ, close OBJ: doors and containers. go OBJ: to a place next door.\n"
        "teleport OBJ: to any place, where that is allowed.\n"
        "pick up OBJ, put down OBJ, move OBJ to OBJ, pour OBJ in OBJ, dunk OBJ in OBJ, mix OBJ.\n"
        "activate OBJ, deactivate OBJ, use OBJ on OBJ, connect OBJ to OBJ, disconnect OBJ, "
        "flush OBJ, eat OBJ.\n"
        "wait: ten ticks and one. wait1: two ticks.\n"
        "focus on OBJ: tell that this is the thing that the task asks for. The wrong thing ends "
        "the episode.\n\n"
    ),
    "micro": "",
}
PROMPT_MARK = "\n> "
"""Ends every observation; the action follows."""


def first_observation(description: str, room: str) -> str:
    """The task and the place that the episode starts in."""
    return f"{description}\n\n{room.strip()}\n{PROMPT_MARK}"


def observation(text: str) -> str:
    """An answer of the world, below the action."""
    return f"\n{text.strip()}\n{PROMPT_MARK}"
