"""A simulated selector: it knows the answers and errs as often as it is told to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ...core.fork import Shared
from ...core.settings import check_number
from ..papers import Judged, Library, Paper, Request

HIT, NEAR, FAR = 0.78, 0.06, 0.004
_MAX_NOISE = 4.0
_KEPT = 4096
_ONE = float(1 << 64)


class _Wanted(NamedTuple):
    relevant: frozenset[str]
    topic: str
    methods: frozenset[str]
    key: bytes


class RuleSelector(Shared):
    """Judges by the request's own labels, with errors that depend on request and paper alone.

    A paper that answers is accepted with probability 0.78, one of the same topic or method with
    0.06, any other with 0.004; ``noise`` scales what is missing to certainty. Accepted papers get
    a probability in (0.55, 0.99), the others one in (0.01, 0.45).

    Args:
        library: Where topic and methods of the answers are looked up.
        noise: 0 judges as the labels say, 1 as above; at most 4.
        seed: Another seed errs elsewhere.

    Attributes:
        identity: Text that changes with how it judges.
        blocking: False.

    Raises:
        BadValueError: The noise is out of range.
    """

    blocking = False

    def __init__(self, library: Library, *, noise: float = 1.0, seed: int = 0) -> None:
        self.noise = check_number("noise", noise, "RuleSelector", min=0, max=_MAX_NOISE)
        self.library, self.seed = library, int(seed)
        self.identity = f"rule-{self.noise!r}-{self.seed}-{library.identity}"
        self._hit = 1.0 - self.noise * (1.0 - HIT)
        self._near, self._far = self.noise * NEAR, self.noise * FAR
        self._known: dict[Request, _Wanted] = {}

    def __reduce__(self) -> Any:
        return partial(RuleSelector, noise=self.noise, seed=self.seed), (self.library,)

    def probabilities(self, judged: Sequence[Judged]) -> list[float]:
        """Probability that each paper answers its request."""
        return [self._judge(request, paper) for request, paper in judged]

    def _judge(self, request: Request, paper: Paper) -> float:
        wanted = self._known.get(request)
        if wanted is None:
            wanted = self._look_up(request)
        if paper.id in wanted.relevant:
            chance = self._hit
        elif (paper.topic and paper.topic == wanted.topic) or not wanted.methods.isdisjoint(
            paper.methods
        ):
            chance = self._near
        else:
            chance = self._far
        drawn = hashlib.blake2b(paper.id.encode(), digest_size=16, key=wanted.key).digest()
        coin = int.from_bytes(drawn[:8], "little") / _ONE
        place = int.from_bytes(drawn[8:], "little") / _ONE
        return 0.55 + 0.44 * place if coin < chance else 0.01 + 0.44 * place

    def _look_up(self, request: Request) -> _Wanted:
        relevant = request.oracle or request.answers
        papers = [p for i in relevant[:12] if (p := self.library.find(i)) is not None]
        methods = [frozenset(paper.methods) for paper in papers]
        key = f"{self.seed}|{request.date}|{request.source}|{request.text}".encode()
        wanted = _Wanted(
            relevant=frozenset(relevant),
            topic=papers[0].topic if papers else "",
            methods=frozenset.intersection(*methods) if methods else frozenset(),
            key=hashlib.blake2b(key, digest_size=16).digest(),
        )
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[request] = wanted
        return wanted
