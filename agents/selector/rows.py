"""Supervised rows of a selector, in PaSa's file format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...envs.errors import DataError

_REASON = "Reason:"


@dataclass(frozen=True, slots=True)
class SelectorRow:
    """One question with its verdict.

    Attributes:
        prompt: The question, ready to be asked.
        label: Whether the paper answers the request.
        reason: The rationale after ``Reason:``; empty for none.
    """

    prompt: str
    label: bool
    reason: str = ""

    @property
    def answer(self) -> str:
        """What the assistant says."""
        return f"{self.label}\n{_REASON} {self.reason}" if self.reason else str(self.label)


def write_rows(path: Path | str, rows: Iterable[SelectorRow]) -> int:
    """Write rows as JSON lines of ``messages``; how many there were."""
    count = 0
    with Path(path).open("w", encoding="utf-8") as file:
        for count, row in enumerate(rows, start=1):  # noqa: B007 - counted for the caller
            said = [("user", row.prompt), ("assistant", row.answer)]
            messages = [{"role": role, "content": text} for role, text in said]
            file.write(json.dumps({"messages": messages}, ensure_ascii=False) + "\n")
    return count


def read_rows(path: Path | str) -> list[SelectorRow]:
    """Read what :func:`write_rows` writes, and PaSa's ``sft_selector`` files.

    Raises:
        DataError: No such file, no row in it, or a line that is not such a row.
    """
    place = Path(path)
    if not place.is_file():
        raise DataError(f"{place}: no such file; expected JSON lines of selector rows.")
    rows: list[SelectorRow] = []
    with place.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                rows.append(_row(line, f"{place}, line {number}"))
    if not rows:
        raise DataError(f"{place}: no row; expected JSON lines of selector rows.")
    return rows


def _row(line: str, where: str) -> SelectorRow:
    try:
        found: Any = json.loads(line)
    except ValueError as fault:
        raise DataError(f"{where}: not JSON ({fault}).") from fault
    messages: Any = found.get("messages") if isinstance(found, dict) else None
    if not isinstance(messages, list) or [_role(m) for m in messages] != ["user", "assistant"]:
        raise DataError(
            f"{where}: expected {{'messages': [a user's, an assistant's]}}, each with role and "
            f"content; got {line.strip()[:80]!r}."
        )
    said = messages[1]["content"].strip()
    verdict, _, rest = said.partition("\n")
    if verdict.strip() not in ("True", "False"):
        raise DataError(
            f"{where}: the assistant's first line is {verdict[:40]!r}; expected True or False."
        )
    reason = rest.strip().removeprefix(_REASON).strip()
    return SelectorRow(messages[0]["content"], verdict.strip() == "True", reason)


def _role(message: Any) -> object:
    """The role of a message with text; None for anything else."""
    fits = isinstance(message, dict) and isinstance(message.get("content"), str)
    return message.get("role") if fits else None
