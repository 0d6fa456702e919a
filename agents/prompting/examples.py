"""Worked examples for the prompts, as dialogues; people and places in them are invented."""

from __future__ import annotations

from collections.abc import Sequence

from .text_model import Message

Pairs = Sequence[tuple[str, str]]
FORM = "Give the shortest answer that is complete: a name, a date, a number, yes or no."
ANSWER_FORM = f"{FORM} Write it as <answer> your answer </answer>."

ANTHEM = "Who composed the anthem of the town where the painter Orla Vint was born?"
LIGHT = "Which lighthouse is older, Skerry Point or Dun Head?"
VINT = "Doc 1(Title: Orla Vint) Orla Vint was a painter from the harbour town of Marrowick."
MARROWICK = 'Doc 2(Title: Marrowick) The town\'s anthem, "Grey Water", was composed by Teo Brandt.'
SKERRY = "Doc 1(Title: Skerry Point) Skerry Point Lighthouse was lit for the first time in 1841."
DUN = "Doc 2(Title: Dun Head) The lighthouse of Dun Head has been in service since 1867."

DIRECT: Pairs = (
    (f"Question: {ANTHEM}", "<answer> Teo Brandt </answer>"),
    (f"Question: {LIGHT}", "<answer> Skerry Point </answer>"),
)

COT: Pairs = (
    (
        f"Question: {ANTHEM}",
        "Orla Vint was born in Marrowick. The anthem of Marrowick was composed by Teo Brandt. So "
        "the answer is: <answer> Teo Brandt </answer>",
    ),
    (
        f"Question: {LIGHT}",
        "Skerry Point Lighthouse was lit in 1841, Dun Head Lighthouse in 1867. 1841 is earlier. So "
        "the answer is: <answer> Skerry Point </answer>",
    ),
)

REACT: Pairs = (
    (
        f"Question: {ANTHEM}",
        "Thought: I need the birthplace of Orla Vint first, then the composer of its anthem.\n"
        "Action: Search[Orla Vint painter birthplace]",
    ),
    (
        f"Observation: {VINT}",
        "Thought: She was born in Marrowick. Now I need the anthem of Marrowick.\n"
        "Action: Search[anthem of Marrowick composer]",
    ),
    (
        f"Observation: {MARROWICK}",
        "Thought: The anthem was composed by Teo Brandt, which answers the question.\n"
        "Action: Finish[Teo Brandt]",
    ),
    (
        f"Question: {LIGHT}",
        "Thought: I need the year of each lighthouse.\n"
        "Action: Search[Skerry Point and Dun Head lighthouse first lit]",
    ),
    (
        f"Observation: {SKERRY}\n{DUN}",
        "Thought: 1841 is before 1867, so Skerry Point is older.\nAction: Finish[Skerry Point]",
    ),
)


def shown(intro: str, pairs: Pairs, task: str) -> list[Message]:
    """Instructions and examples as a dialogue that ends with the task."""
    talk: list[Message] = []
    for asked, reply in pairs:
        talk += [Message("user", asked), Message("assistant", reply)]
    talk.append(Message("user", task))
    return [Message("user", f"{intro}\n\n{talk[0].content}"), *talk[1:]]
