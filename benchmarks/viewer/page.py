"""The page: rollouts packed as compact JSON and rendered into one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path as FilePath
from typing import Any, TypedDict

import numpy as np

from ...algos.core.forest import Edge, Path, Turn
from ...algos.training.rollout_dump import Pieces, RolloutDump
from ...envs.core.errors import BadValueError, MissingExtraError
from .before_after import BeforeAfter
from .sources import Source

HERE = FilePath(__file__).parent
SCRIPTS = (
    "model",
    "colour",
    "tokens",
    "inspector",
    "turns",
    "tree",
    "crawl",
    "find",
    "pair",
    "main",
)
"""Parts of the script, in order."""
DIGITS = 4
"""Significant digits of numbers on the page."""
_NOT_TOOLS = ("think", "reasoning", "step", "information", "result", "documents", "tool_call")
_TAG = re.compile(r"<([a-z_]+)>(.*?)(?:</\1>|$)", re.DOTALL)
_TOOL_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)
_MARKER = re.compile(r"\[(Search|Expand|StopSearch|StopExpand)\]([^\[\n]*)")
_BRACKET = re.compile(r"^\s*([a-z]+)\[([^\]\n]*)\]\s*$", re.MULTILINE)
_HALVES = re.compile("[\ud800-\udfff]")


class Call(TypedDict):
    """A tool call.

    Attributes:
        tool: Its name.
        args: Its arguments as text.
    """

    tool: str
    args: str


class TextTable:
    """A table of distinct texts, referred to by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def numbers(self, pieces: Iterable[str]) -> list[int]:
        """Return the numbers of these texts; new ones are added."""
        return [self._number(_whole(piece)) for piece in pieces]

    def _number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


def page_data(source: Source, limit_bytes: float) -> dict[str, Any]:
    """Make the data of the page.

    Groups are added until the limit is reached: the first group of every step before any second
    one, and steps far apart before those between them. Only steps that come up are read.

    Raises:
        BadValueError: Even one group is too large.
        DataError: A line is damaged or of another version; names file and line.
    """
    words = TextTable()
    trained_in = cache(lambda s: _trained(source.steps[s].dump))
    taken: dict[int, dict[int, Any]] = {}
    used, shown = 0.0, 0
    order = _order([step.groups for step in source.steps])
    total = len(order)
    for s, g in order:
        before = len(words.texts)
        group = _group(source.steps[s].dump, g, trained_in(s), words)
        size = _size(group) + sum(_size(text) + 1 for text in words.texts[before:])
        if used + size > limit_bytes:
            if not shown:
                raise BadValueError(
                    f"view: one group alone takes {size / 1e6:.1f} MB, but --limit is "
                    f"{limit_bytes / 1e6:g}. Give a larger --limit."
                )
            break
        used += size
        shown += 1
        taken.setdefault(s, {})[g] = group
    notes = list(source.notes)
    if shown < total:
        notes.append(
            f"This page holds {shown} of {total} groups, spread over the steps: `--limit "
            f"{limit_bytes / 1e6:g}` (megabytes) is reached."
        )
    return {
        "title": _whole(source.title),
        "place": _whole(source.place),
        "about": {k: _whole(v) for k, v in source.about.items()},
        "notes": [_whole(note) for note in notes],
        "curve": [[step, _round(a), _round(b)] for step, a, b in source.curve],
        "pair": None if source.before_after is None else _pair(source.before_after),
        "words": words.texts,
        "steps": [_step(source.steps[s].dump, taken[s]) for s in sorted(taken)],
    }


def _step(dump: RolloutDump, groups: Mapping[int, Any]) -> dict[str, Any]:
    return {
        "step": dump.step,
        "sampled": bool(dump.about.get("sampled", True)),
        "tokens": bool(dump.about.get("tokens", True)),
        "groups": [groups[g] for g in sorted(groups)],
    }


def _pair(pair: BeforeAfter) -> dict[str, Any]:
    """Make the data of a task's two episodes."""
    both = zip(pair.steps, (pair.before, pair.after), strict=True)
    return {
        "set": _whole(pair.name),
        "task": _whole(pair.after.task_id),
        "decoding": _whole(pair.after.decoding),
        "episodes": [
            {
                "step": step,
                "status": episode.status,
                "return": _round(episode.total),
                "turns": [[_whole(seen), _whole(wrote)] for seen, wrote in episode.turns()],
            }
            for step, episode in both
        ],
    }


def _order(groups: Sequence[int]) -> list[tuple[int, int]]:
    """Return (step, group) in the order of adding."""
    steps = _spread(len(groups))
    return [(s, g) for g in range(max(groups, default=0)) for s in steps if g < groups[s]]


def _spread(n: int) -> list[int]:
    """Return 0 to n - 1: the ends first, then middles of the widest gaps."""
    if n <= 2:
        return list(range(n))
    order, gaps = [0, n - 1], [(0, n - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return order


def _trained(dump: RolloutDump) -> dict[Path, tuple[int, float]]:
    """Return the number and the return of every path that is trained."""
    returns = dump.forest.returns().tolist()
    return {path: (i, returns[i]) for i, path in enumerate(dump.forest.paths)}


def _group(
    dump: RolloutDump, g: int, trained: Mapping[Path, tuple[int, float]], words: TextTable
) -> dict[str, Any]:
    group = dump.forest.groups[g]
    trees = [
        [
            _turn(turn, dump.pieces[g][t][i] if dump.pieces else None, words)
            for i, turn in enumerate(tree.turns)
        ]
        for t, tree in enumerate(group.trees)
    ]
    paths = []
    for t, tree in enumerate(group.trees):
        for leaf in tree.leaves():
            path = Path(g, t, tree.chain(leaf))
            at, total = trained.get(path, (None, None))
            streams = {} if at is None else {k: _rounded(v[at]) for k, v in dump.streams.items()}
            paths.append(
                {
                    "tree": t,
                    "turns": list(path.turns),
                    "reward": _round(sum(tree.turns[i].reward for i in path.turns)),
                    "return": None if total is None else _round(total),
                    "trained": at is not None and (not dump.streams or bool(streams)),
                    "streams": streams,
                }
            )
    return {
        "uid": _whole(group.uid),
        "task": _whole(group.task_id),
        "faults": group.faults,
        "pruned": [group.pruned_turns, group.pruned_tokens],
        "trees": trees,
        "paths": paths,
        "ends": [tree.finals() for tree in group.trees],
    }


def _turn(turn: Turn, pieces: Pieces | None, words: TextTable) -> dict[str, Any]:
    row: dict[str, Any] = {
        "parent": turn.parent,
        "status": turn.status,
        "stop": turn.stop,
        "n": [len(turn.obs_ids), len(turn.act_ids)],
        "calls": [{k: _whole(str(v)) for k, v in call.items()} for call in tool_calls(turn.action)],
        "logprobs": _rounded(turn.logprobs),
        "entropies": _rounded(turn.entropies),
        "rewards": [[int(i), _round(float(turn.rewards[i]))] for i in np.flatnonzero(turn.rewards)],
        "terms": _pairs(turn.reward_terms),
        "metrics": _pairs(turn.metrics),
    }
    if pieces is None:
        row["obs"], row["act"] = None, words.numbers([turn.action])
    else:
        row["obs"], row["act"] = words.numbers(pieces[0]), words.numbers(pieces[1])
    flags = {
        "spawn": turn.edge is Edge.SPAWN,
        "invalid": not turn.valid,
        "overflow": turn.overflow,
        "partial": turn.partial,
    }
    row |= {name: True for name, value in flags.items() if value}
    if turn.verdict:
        row["verdict"] = turn.verdict
    if turn.previous is not None:
        row["previous"] = turn.previous
    if turn.spawned:
        row["spawned"] = len(turn.spawned)
    if turn.debug_info.get("crawl"):
        row["crawl"] = _plain(turn.debug_info["crawl"])
    return row


def _pairs(pairs: Iterable[tuple[str, float]]) -> list[list[Any]]:
    return [[_whole(name), _round(value)] for name, value in pairs]


def _plain(value: Any) -> Any:
    """Convert to JSON data with valid characters and rounded numbers."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, float):
        return _round(value)
    if isinstance(value, Mapping):
        return {_whole(str(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _rounded(values: Any) -> list[float | None]:
    return [_round(float(v)) for v in values]


def _round(value: float) -> float | None:
    if not math.isfinite(value):
        return None  # as of turns without a truth, or after a diverged update
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def _whole(text: str) -> str:
    """Make text valid UTF-8; lone surrogates become U+FFFD."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def tool_calls(action: str) -> list[Call]:
    """Parse the calls of an action: JSON in ``<tool_call>``, tags, markers or brackets."""
    found: list[tuple[int, Call]] = []
    for match in _TOOL_CALL.finditer(action):
        found.append((match.start(), _from_json(match[1])))
    for match in _TAG.finditer(action):
        if match[1] not in _NOT_TOOLS:
            found.append((match.start(), Call(tool=match[1], args=match[2].strip())))
    for pattern in (_MARKER, _BRACKET):
        for match in pattern.finditer(action):
            found.append((match.start(), Call(tool=match[1], args=match[2].strip())))
    return [call for _, call in sorted(found, key=lambda place: place[0])]


def _from_json(text: str) -> Call:
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):  # invalid JSON of the model, shown as it is
        return Call(tool="tool_call", args=text.strip())
    if not isinstance(call, dict):
        return Call(tool="tool_call", args=text.strip())
    given = call.get("arguments", call.get("parameters", {}))
    if isinstance(given, dict):
        args = ", ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in given.items())
    else:
        args = json.dumps(given, ensure_ascii=False)
    return Call(tool=str(call.get("name", "tool_call")), args=args)


def render_page(data: dict[str, Any]) -> str:
    """Render the page as HTML.

    Raises:
        MissingExtraError: Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("turngym view", "jinja2", "web") from None
    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    style = (HERE / "style.css").read_text(encoding="utf-8")
    parts = [(HERE / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    return environment.get_template("page.html").render(
        title=data["title"],
        style=style,
        script=script,
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        data=embed_json(data),
    )


def embed_json(data: Any) -> str:
    """Encode JSON for a script element, safe for any text.

    Every ``<``, ``>``, ``&`` and Unicode line separator is escaped, so that no text can end the
    element or start another.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def source_hash(text: str) -> str:
    """Return the hash that identifies an inline part in a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
