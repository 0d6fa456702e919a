"""The words of the Search-R1 game: prompt, tags, passages, replies (byte-exact interop constants).

Source: Search-R1 (arXiv 2503.09516) and its release; see ``specs/algorithms.md`` section 1.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from ..tools.action_parsing import TagGrammar, find_blocks
from ..tools.retrieval.base import Hit

GRAMMAR = TagGrammar({"search": "query", "answer": "answer"})
STOP = ("</search>", "</answer>")
BOTH_GRAMMAR = TagGrammar({"search": "query", "python": "code", "answer": "answer"})

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
    # Ours: ARPO's tags in the words of the prompt above; the tool blocks are the environment's.
    "search-python": (
        "Answer the given question. "
        "Reason inside <think> and </think> first, and again whenever you get new information. "
        "Then do one of three things. To look something up, write <search> query </search>; the "
        "best passages found come back between <information> and </information>. To compute "
        "something, write <python> code </python>; Python 3 with its standard library runs the "
        "code, in a fresh interpreter each time and without network or files, and what it prints "
        "comes back between <result> and </result>. You may use both as often as your turns allow. "
        "When you know the answer, write it between <answer> and </answer>, without an "
        "explanation. For example, <answer> Beijing </answer>. "
    ),
    "none": "",
}
INVALID = (
    "\nMy previous action is invalid. If I want to search, I should put the query between <search> "
    "and </search>. If I want to give the final answer, I should put the answer between <answer> "
    "and </answer>. Let me try again.\n"
)
BOTH_INVALID = (
    "\nMy previous action is invalid. If I want to search, I should put the query between <search> "
    "and </search>. If I want to run Python, I should put the code between <python> and </python>. "
    "If I want to give the final answer, I should put the answer between <answer> and </answer>. "
    "Let me try again.\n"
)
NOTHING_FOUND = "Nothing found."
_OPEN, _CLOSE = "\n\n<information>", "</information>\n\n"
_RESULT_CLOSE = "\n</result>\n\n"
RESULT_OPEN = "\n\n<result>\n"
"""How the observation after a python call begins; no other does."""
MIN_CHARS = len(_OPEN) + len(_CLOSE) + 40
"""Smallest observation budget: both tags and a few words."""


def write_question(question: str) -> str:
    """The question as the model first sees it."""
    return f"Question: {question}\n"


def end_with_question_mark(text: str) -> str:
    """``text`` stripped and ending with "?"."""
    text = text.strip()
    return text if text.endswith("?") else f"{text}?"


def find_last_answer(action: str) -> str | None:
    """Content of the last answer block of ``action``, None when it holds none."""
    blocks = find_blocks(action, "<answer>", "</answer>")
    return blocks[-1].strip() if blocks else None


def find_code(action: str) -> str:
    """Code of the first python block of ``action``, without the indentation that all lines share.

    It stands apart from the grammar's reading, which drops the blanks before the first line alone.
    """
    blocks = find_blocks(action, "<python>", "</python>")
    return textwrap.dedent(blocks[0].strip("\r\n")).strip() if blocks else ""


def write_information(hits: Sequence[Hit], max_chars: int | None) -> tuple[str, int]:
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


def write_result(text: str, max_chars: int) -> str:
    """The observation after a python call; a longer one loses its tail but not its closing tag."""
    room = max_chars - len(RESULT_OPEN) - len(_RESULT_CLOSE)
    return f"{RESULT_OPEN}{text[:room]}{_RESULT_CLOSE}"
