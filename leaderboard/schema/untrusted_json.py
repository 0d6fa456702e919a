"""Parse untrusted JSON: bounded size and depth, no duplicate keys, no NaN, no stated results."""

from __future__ import annotations

import json
import re
from typing import Any

from .limits import ReadLimits
from .result import refused

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"')
STATED = frozenset(
    (
        "accuracy",
        "episode_return",
        "metrics",
        "pass_all",
        "pass_at",
        "pass_at_k",
        "pass_hat_k",
        "rank",
        "result",
        "results",
        "return",
        "return_",
        "returns",
        "reward",
        "reward_terms",
        "rewards",
        "score",
        "scores",
        "solved",
        "success",
        "terms",
        "total_reward",
        "verdict",
    )
)
"""Names of fields that state a result; results are recomputed, so entries must not contain any."""


def parse_untrusted_json(data: bytes, where: str, limits: ReadLimits) -> Any:
    """Decode one untrusted JSON value.

    Args:
        data: UTF-8 bytes.
        where: File, and line where there is one.
        limits: Bounds.

    Raises:
        Refused: Too long, too deep, not JSON, a duplicate key, NaN, or a stated result.
    """
    if len(data) > limits.line_bytes:
        raise refused(
            "format", f"{where}: has {len(data)} bytes; at most {limits.line_bytes} are read."
        )
    if _depth(data) > limits.json_depth:
        raise refused("format", f"{where}: nested deeper than {limits.json_depth} levels.")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=lambda pairs: _object(pairs, where),
            parse_constant=lambda name: _no_number(name, where),
        )
    except ValueError as error:  # also of bad UTF-8
        raise refused("format", f"{where}: not JSON: {error}.") from error


def _depth(data: bytes) -> int:
    bare = _STRINGS.sub(b"", data)
    deepest = depth = 0
    for byte in re.findall(rb"[\[{\]}]", bare):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _object(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise refused("format", f"{where}: the key {key!r} occurs twice in one object.")
        if key.lower() in STATED:
            raise refused(
                "score_field",
                f"{where}: the field {key!r} states a result. Entries hold actions; every result "
                "is recomputed by replaying them.",
                got=value,
            )
        found[key] = value
    return found


def _no_number(name: str, where: str) -> Any:
    raise refused("format", f"{where}: {name} is not a valid JSON number.")
