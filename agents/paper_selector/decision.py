"""The decision token: which ids say True and False where a prompt ends."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...envs.core.errors import BadValueError

_CUE = "Decision:"
"""How every selector prompt ends."""


class Decision(NamedTuple):
    """Ids of the two verdicts.

    Attributes:
        true: Id of the token that says True.
        false: Id of the token that says False.
        blank: Whether these tokens begin with a blank.
    """

    true: int
    false: int
    blank: bool


def decision_of(tokenizer: Any, *, chat: bool = False, blank: bool | None = None) -> Decision:
    """Return the tokens that follow ``Decision:`` when `` True`` or `` False`` is written after it.

    Args:
        tokenizer: Any transformers tokenizer.
        chat: The verdict is the first word of a chat message rather than the next of the prompt.
        blank: Whether the verdict begins with a blank. None takes the blank where that is one
            token (and never in a chat message). PaSa's released checkpoint has none.

    Raises:
        BadValueError: A verdict is not one token, or both are the same.
    """
    before = "" if chat else _CUE
    tries = [blank] if blank is not None else [False] if chat else [True, False]
    written: list[str] = []
    for one in tries:
        ids = []
        for word in ("True", "False"):
            text = f"{' ' if one else ''}{word}"
            tail = _after(tokenizer, before, text)
            written.append(f"{text!r} is {_shown(tokenizer, tail)}")
            ids.append(tail[0] if len(tail) == 1 else -1)
        if -1 not in ids and ids[0] != ids[1] and tokenizer.unk_token_id not in ids:
            return Decision(ids[0], ids[1], one)
    place = "at the start of a message" if chat else f"after {_CUE!r}"
    raise BadValueError(
        f"selector: the tokenizer does not write True and False as one token each {place}: "
        f"{'; '.join(written)}. The selector reads its verdict off one token; use a tokenizer "
        "that knows both words."
    )


def _after(tokenizer: Any, before: str, text: str) -> list[int]:
    """Return the ids that ``text`` adds to ``before``; none where the two merge."""
    start = [int(i) for i in tokenizer.encode(before, add_special_tokens=False)]
    whole = [int(i) for i in tokenizer.encode(before + text, add_special_tokens=False)]
    return whole[len(start) :] if whole[: len(start)] == start else []


def _shown(tokenizer: Any, ids: list[int]) -> str:
    if not ids:
        return "merged with what stands before it"
    if ids == [tokenizer.unk_token_id]:
        return "unknown"
    return f"{len(ids)} tokens" if len(ids) > 1 else f"token {ids[0]}"
