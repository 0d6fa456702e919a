"""Reading what a model wrote: short answers, sentences, and nothing of its hidden thoughts."""

from __future__ import annotations

import re

_SAID = re.compile(
    r"\banswer[*_]*(?:\s+to\b[^.:\n]{0,60}?)?(?:\s+is\b\s*:?|\s*:)[\s*_]*(?=\S)",
    re.IGNORECASE,
)
_BOXED = r"\boxed{"
_WRAPPER = re.compile(r"\\text(?:bf|it|rm)?\{(.*)\}", re.DOTALL)
_AROUND = '*_`"“”'
_END = re.compile(r"[.!?][\"')\]*_]*(?=\s|$)")
_SHORT = re.compile(
    r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Mt|Ft|Jr|Sr|Prof|Rev|Gov|Sen|Gen|Col|Maj|Capt|Lt|Sgt|vs|ca|e\.g|i\.e"
    r"|etc)\.$"
)
_NUMBERED = re.compile(r"\bNo\.(?=\s+\d)")
"""The abbreviation; any other "No." is an answer."""


def spoken(text: str) -> str:
    """Return what follows the model's ``<think>`` block; empty when the block was never closed."""
    if "</think>" in text:
        return text.rsplit("</think>", 1)[1].strip()
    return "" if text.lstrip().startswith("<think>") else text.strip()


def short_answer(text: str) -> str:
    r"""Return the answer in free text.

    The last ``<answer>`` block counts, closed or not; else the last ``\boxed{}``; else what
    follows the last "answer is", to the end of the sentence; else the last line. Empty when there
    is no text.
    """
    if (found := tagged_answer(text)) is not None or (found := boxed(text)) is not None:
        return found
    if said := list(_SAID.finditer(text)):
        below = "\n" in said[-1][0]
        return _bare(first_sentence(text[said[-1].end() :], listed=below))
    lines = [line for line in text.splitlines() if line.strip()]
    return _bare(lines[-1]) if lines else ""


def tagged_answer(text: str) -> str | None:
    """Return the content of the last ``<answer>`` block, closed or not; None without one."""
    _, tag, rest = text.rpartition("<answer>")
    return _bare(rest.partition("</answer>")[0]) if tag else None


def boxed(text: str) -> str | None:
    r"""Return the content of the last ``\boxed{}`` that is closed; None without one."""
    at = text.rfind(_BOXED)
    while at >= 0:
        start, depth = at + len(_BOXED), 1
        for i in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[i], 0)
            if depth == 0:
                return _bare(_WRAPPER.sub(r"\1", text[start:i]))
        at = text.rfind(_BOXED, 0, at)
    return None


def concludes(text: str) -> bool:
    """Return whether the text says what the answer is."""
    return _SAID.search(text) is not None or "<answer>" in text


def first_sentence(text: str, listed: bool = True) -> str:
    """The first sentence on the first line that holds text, without a list mark before it.

    Unless lines may be ``listed``, "4." is a sentence and no such mark.
    """
    lines = (line.strip() for line in text.splitlines())
    mark = r"^(?:[-*•]|\d+[.)])\s+" if listed else r"^(?:[-*•]|\d+\))\s+"
    line = re.sub(mark, "", next(filter(None, lines), ""))
    for end in _END.finditer(line):
        sentence = line[: end.end()]
        numbered = _NUMBERED.match(line, max(0, end.end() - len("No.")))
        if not (numbered or _SHORT.search(sentence)):
            return sentence
    return line


def _bare(text: str) -> str:
    """Without Markdown, quotes and the full stop around a short phrase."""
    text = text.strip().strip(_AROUND).strip()
    if text.endswith(".") and not re.search(r"\b[A-Z]\.$", text):
        text = text[:-1]
    return text.strip().strip(_AROUND).strip()
