"""The words of the Search-R1 game: prompt, tags, passages, replies (byte-exact interop constants).

Source: Search-R1 (arXiv 2503.09516) and its release; see ``specs/algorithms.md`` section 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..grammar import TagGrammar
from ..retrieval import Hit

GRAMMAR = TagGrammar({"search": "query", "answer": "answer"})
STOP = ("</search>", "</answer>")

PROMPTS: Mapping[str, str] = {
    # "as your want" is the published spelling: released checkpoints were trained on it.
    "search-r1": (
        "Answer the given question. "
        "You must conduct reasoning inside <think> and </think> first every time you get new "
        "information. After reasoning, if you find you lack some knowledge, you can call a search "
        "engine by <search> query </search> and it will return the top searched results between "
        "<information> and </information>. You can search as many times as your want. If you find "
        "no further external knowledge needed, you can directly provide the answer inside <answer> "
        "and </answer>, without detailed illustrations. For example, <answer> Beijing </answer>. "
    ),
    "none": "",
}
INVALID = (
    "\nMy previous action is invalid. If I want to search, I should put the query between <search> "
    "and </search>. If I want to give the final answer, I should put the answer between <answer> "
    "and </answer>. Let me try again.\n"
)
NOTHING_FOUND = "Nothing found."
_OPEN, _CLOSE = "\n\n<information>", "</information>\n\n"
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
FEWEST_CHARS = len(_OPEN) + len(_CLOSE) + 40
"""Smallest observation budget: both tags and a few words."""


def first_observation(question: str) -> str:
    """The question as the model first sees it."""
    return f"Question: {question}\n"


def as_question(text: str) -> str:
    """``text`` stripped and ending with "?"."""
    text = text.strip()
    return text if text.endswith("?") else f"{text}?"


def last_answer(action: str) -> str | None:
    """Content of the last answer block of ``action``, None when it holds none."""
    blocks = _ANSWER.findall(action)
    return blocks[-1].strip() if blocks else None


def information(hits: Sequence[Hit], max_chars: int | None) -> tuple[str, int]:
    """The observation after a search, and how many passages it shows whole.

    A longer text than ``max_chars`` loses its tail but never its closing tag.
    """
    docs = [f"Doc {i}(Title: {hit.title}) {hit.text}" for i, hit in enumerate(hits, start=1)]
    body = "\n".join(docs).strip() or NOTHING_FOUND
    room = None if max_chars is None else max_chars - len(_OPEN) - len(_CLOSE)
    if room is None or len(body) <= room:
        return f"{_OPEN}{body}{_CLOSE}", len(docs)
    whole, used = 0, -1
    for doc in docs:
        used += len(doc) + 1
        whole += used <= room
    return f"{_OPEN}{body[:room]}{_CLOSE}", whole
