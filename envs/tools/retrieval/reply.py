"""What retrieval servers answer, read: Search-R1's shape and those of its relatives."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from ...core.errors import DataError
from ...utils.http import excerpt
from .base import Hit

EXPECTED = (
    'expected {"result": [[{"document": {"id", "contents"}, "score"}, …], …]}, one list per query'
)


def read_reply(reply: Any, asked: int, k: int, url: str) -> list[list[Hit]]:
    """The hits in the JSON of a reply.

    Args:
        reply: The JSON.
        asked: How many queries were asked.
        k: Most hits per query; more are dropped.
        url: Who replied, for messages.

    Raises:
        DataError: It has another shape.
    """
    result = reply.get("result") if isinstance(reply, dict) else None
    if not isinstance(result, list):
        raise DataError(f"{url}: the reply is {excerpt(reply)}; {EXPECTED}.")
    if len(result) != asked:
        raise DataError(
            f"{url}: the reply holds {len(result)} lists for {asked} queries; {EXPECTED}."
        )
    found: list[list[Hit]] = []
    for q, rows in enumerate(result):
        if not isinstance(rows, list):
            raise DataError(f"{url}: result[{q}] of the reply is {excerpt(rows)}; {EXPECTED}.")
        found.append([_hit(row, f"{url}: result[{q}][{d}]") for d, row in enumerate(rows[:k])])
    return found


def _hit(row: Any, where: str) -> Hit:
    document = row.get("document", row) if isinstance(row, dict) else row
    contents = _contents(document)
    if contents is None:
        raise DataError(f"{where} of the reply is {excerpt(row)}; {EXPECTED}.")
    contents = contents.encode("utf-8", "replace").decode()
    score = _score(row.get("score") if isinstance(row, dict) else None)
    if score is None:
        raise DataError(f"{where} of the reply is {excerpt(row)}; expected a number as score.")
    named = document.get("id") if isinstance(document, dict) else None
    if named is None or named == "":
        named = hashlib.blake2b(contents.encode(), digest_size=8).hexdigest()
    title, _, text = contents.partition("\n")
    return Hit(str(named), title.strip(), text, score)


def _contents(document: Any) -> str | None:
    if isinstance(document, str):
        return document
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("contents"), str):
        return document["contents"]
    title, text = document.get("title"), document.get("text")
    if isinstance(text, str) and (title is None or isinstance(title, str)):
        return f"{title or ''}\n{text}"
    return None


def _score(given: Any) -> float | None:
    """The score, 0 where the server gives none; None for something else than a number."""
    if given is None:
        return 0.0
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return float(given) if abs(given) < math.inf else None
