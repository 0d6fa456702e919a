"""A micro batch of paths as one sequence that holds every distinct token once.

Turns are the same where a group's paths went the same way up to their end, whether they share a
tree or sampled equal actions: a model computes the same for them, and gradients of several paths
add up. So are the instructions that the contexts of several groups begin with. Tokens are numbered
so that a turn's follow each other and everything that grew from it comes right after; then a
token's descendants are one interval, and what a token may attend to is known from two numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ...core.forest import Forest

Ids = npt.NDArray[np.int64]
Range = tuple[int, int]

BLOCK_ENTRIES = 2**18
"""Most scores (queries times keys) per head of a block of several spans: what caches hold."""
OPENING = 64
"""Tokens from which on it is worth sharing what contexts of several groups begin with."""
CALL_ENTRIES = 2**13
"""Scores per head that cost as much as the fixed price of one more block."""


@dataclass(slots=True)
class _Node:
    """The tokens of one observation or action."""

    length: int
    children: list[_Node] = field(default_factory=list)
    start: int = 0


def number_tokens(forest: Forest) -> list[Ids]:
    """Number every token of each path ``[n]``; numbers are equal where paths share it.

    Observations and actions that continue the same token are one where their ids are equal, and so
    are those that start a context of the same group. Contexts of several groups share what they
    begin with where that is long (:data:`OPENING`): the instructions of an environment.
    """
    roots: list[tuple[_Node, Ids]] = []
    known: dict[tuple[object, ...], _Node] = {}

    def node(parent: _Node | None, key: tuple[object, ...], ids: Ids) -> _Node:
        if key not in known:
            known[key] = made = _Node(len(ids))
            if parent is None:
                roots.append((made, ids))
            else:
                parent.children.append(made)
        return known[key]

    lines: list[list[_Node]] = []
    for path in forest:
        line: list[_Node] = []
        tip = None
        for turn in forest.turns(path):
            for ids in (turn.obs_ids, turn.act_ids):
                if len(ids):
                    ids = np.asarray(ids, np.int64)
                    key = path.group, None if tip is None else id(tip), ids.tobytes()
                    line.append(tip := node(tip, key, ids))
        lines.append(line)
    openings = _join_openings(roots)
    _place(openings.get(id(root), root) for root, _ in roots)
    for line in lines:
        if (opening := openings.get(id(line[0]))) is not None:
            line.insert(0, opening)
    return [
        np.concatenate([np.arange(n.start, n.start + n.length) for n in line]) for line in lines
    ]


def _join_openings(roots: Sequence[tuple[_Node, Ids]]) -> dict[int, _Node]:
    """Cut what several roots begin with off them; return the new root by each one's identity."""
    alike: dict[bytes, list[tuple[_Node, Ids]]] = {}
    for root, ids in roots:
        if len(ids) > OPENING:
            alike.setdefault(ids[:OPENING].tobytes(), []).append((root, ids))
    openings: dict[int, _Node] = {}
    for members in alike.values():
        if len(members) < 2:
            continue
        common = members[0][1]
        for _, ids in members:
            n = min(len(common), len(ids) - 1)  # each keeps a token of its own
            differs = np.flatnonzero(common[:n] != ids[:n])
            common = common[: differs[0] if len(differs) else n]
        opening = _Node(len(common), [root for root, _ in members])
        for root, _ in members:
            root.length -= len(common)
            openings[id(root)] = opening
    return openings


def _place(roots: Iterable[_Node]) -> None:
    """Give every node the numbers after its parent's, all its descendants before its sibling's."""
    left = list({id(root): root for root in roots}.values())[::-1]
    count = 0
    while left:
        node = left.pop()
        node.start, count = count, count + node.length
        left.extend(reversed(node.children))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Spans that continue the same context, computed together.

    Attributes:
        prefix: What all of them attend to before themselves, as ranges of the pack in order.
        starts: First token of each span in the pack.
        lengths: Tokens of each span, the longest first.
    """

    prefix: tuple[Range, ...]
    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def n_prefix(self) -> int:
        """Tokens of the prefix."""
        return sum(stop - start for start, stop in self.prefix)

    def after_last(self, count: int) -> Block:
        """Return the block with the last ``count`` tokens of its prefix alone."""
        kept: list[Range] = []
        for start, stop in reversed(self.prefix):
            if count <= 0:
                break
            kept.append((max(start, stop - count), stop))
            count -= stop - start
        return replace(self, prefix=tuple(reversed(kept)))


@dataclass(frozen=True, slots=True, eq=False)
class FlatBlocks:
    """Blocks as the loops read them.

    Attributes:
        bounds: For each block where its ranges and its spans begin and end ``[blocks, 4]``.
        ranges: First token and one past the last of each range of a context ``[n, 2]``.
        spans: First token and number of tokens of each span ``[n, 2]``.
        longest: Most keys that a token sees.
        entries: Scores of one head.
        padded: The same where a block's spans are as long as its longest and hide nothing.
        tokens: Tokens in spans; they come before all others.
        window: How many tokens a token sees, itself the last.
    """

    bounds: Ids
    ranges: Ids
    spans: Ids
    longest: int
    entries: int
    padded: int
    tokens: int
    window: int

    @classmethod
    def of(cls, blocks: Sequence[Block], window: int | None = None) -> FlatBlocks:
        """Flatten blocks; ``window`` is how many tokens of its path a token sees, None for all."""
        bounds: list[tuple[int, int, int, int]] = []
        ranges: list[tuple[int, int]] = []
        spans: list[tuple[int, int]] = []
        longest = entries = padded = tokens = 0
        for block in blocks:
            before, first = len(ranges), len(spans)
            ranges += block.prefix
            spans += zip(block.starts, block.lengths, strict=True)
            bounds.append((before, len(ranges), first, len(spans)))
            p = block.n_prefix
            longest = max(longest, p + max(block.lengths))
            entries += sum(n * p + n * (n + 1) // 2 for n in block.lengths)
            padded += len(block.lengths) * max(block.lengths) * (p + max(block.lengths))
            tokens += sum(block.lengths)
        return cls(
            bounds=np.array(bounds, np.int64),
            ranges=np.array(ranges or [(0, 0)], np.int64),
            spans=np.array(spans, np.int64),
            longest=longest,
            entries=entries,
            padded=padded,
            tokens=tokens,
            window=window or longest,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Spans:
    """Maximal runs of tokens that the same paths pass through."""

    starts: list[int]
    stops: list[int]
    parents: list[int]

    @classmethod
    def of(cls, parents: Ids) -> _Spans:
        n = len(parents)
        children = np.bincount(parents[parents >= 0], minlength=n)
        begins = np.ones(n, bool)
        begins[1:] = (parents[1:] != np.arange(n - 1)) | (children[:-1] > 1)
        starts = np.flatnonzero(begins)
        span_of = np.cumsum(begins) - 1
        above = parents[starts]
        return cls(
            starts.tolist(),
            [*starts[1:].tolist(), n],
            np.where(above >= 0, span_of[above], -1).tolist(),
        )

    def ends_of_tokens(self) -> Ids:
        ends = list(self.stops)
        for i in range(len(ends) - 1, -1, -1):
            if (up := self.parents[i]) >= 0:
                ends[up] = max(ends[up], ends[i])
        return np.repeat(np.array(ends, np.int64), np.subtract(self.stops, self.starts))

    def blocks(self) -> Iterable[Block]:
        families: dict[int, list[int]] = {}
        for i, up in enumerate(self.parents):
            families.setdefault(up, []).append(i)
        for up in sorted(families):
            prefix = self._context(up)
            width = sum(stop - start for start, stop in prefix)
            length = {i: self.stops[i] - self.starts[i] for i in families[up]}
            order = sorted(families[up], key=lambda i: (-length[i], i))
            for members in _alike(order, length, width):
                yield Block(
                    prefix,
                    tuple(self.starts[i] for i in members),
                    tuple(length[i] for i in members),
                )

    def _context(self, span: int) -> tuple[Range, ...]:
        """Return the tokens up to the end of ``span``, as ranges in order."""
        ranges: list[Range] = []
        while span >= 0:
            start, stop = self.starts[span], self.stops[span]
            if ranges and ranges[-1][0] == stop:
                stop = ranges.pop()[1]
            ranges.append((start, stop))
            span = self.parents[span]
        return tuple(reversed(ranges))


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """Distinct tokens of some paths, and the indices of each path's tokens.

    Attributes:
        ids: Token ids ``[tokens]``.
        depths: Place of each token in its path: its position ``[tokens]``.
        parents: The token before it in its path, -1 at a start ``[tokens]``.
        ends: One past its last descendant ``[tokens]``: token ``q`` sees token ``k`` exactly when
            ``k <= q < ends[k]``.
        paths: Where the tokens of each path lie ``[n]``.
        spans: Runs of tokens that the same paths pass through.
    """

    ids: Ids
    depths: Ids
    parents: Ids
    ends: Ids
    paths: tuple[Ids, ...]
    spans: _Spans

    @classmethod
    def of(cls, ids: Sequence[Ids], numbers: Sequence[Ids]) -> Pack:
        """Pack paths.

        Args:
            ids: Token ids of each path ``[n]``.
            numbers: Their numbers, see :func:`number_tokens`.
        """
        lengths = [len(n) for n in numbers]
        distinct, index = np.unique(np.concatenate(numbers), return_inverse=True)
        bounds = np.cumsum(lengths)
        before = np.roll(index, 1)
        before[np.concatenate([[0], bounds[:-1]])] = -1
        table, depths, parents = (np.empty(len(distinct), np.int64) for _ in range(3))
        table[index] = np.concatenate(ids)
        depths[index] = np.concatenate([np.arange(n) for n in lengths])
        parents[index] = before
        spans = _Spans.of(parents)
        return cls(
            ids=table,
            depths=depths,
            parents=parents,
            ends=spans.ends_of_tokens(),
            paths=tuple(np.split(index, bounds[:-1])),
            spans=spans,
        )

    def blocks(self) -> tuple[Block, ...]:
        """Work the same relation out as work to do, contexts before what continues them."""
        return tuple(self.spans.blocks())

    def __len__(self) -> int:
        return len(self.ids)


def _alike(order: Sequence[int], length: dict[int, int], width: int) -> Iterable[list[int]]:
    """Cut spans, longest first, where padding them alike would cost more than a block of their own.

    Args:
        order: The spans.
        length: Their lengths.
        width: Tokens of their prefix.
    """
    members: list[int] = []
    spared = 0
    for i in order:
        if members:
            longest = length[members[0]]
            full = (len(members) + 1) * longest * (width + longest) > BLOCK_ENTRIES
            spared += longest * (width + longest) - length[i] * (width + length[i])
            if full or spared > CALL_ENTRIES:
                yield members
                members, spared = [], 0
        members.append(i)
    if members:
        yield members
