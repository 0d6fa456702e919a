"""What a selector learns from: requests with papers that answer them and papers that do not.

Negatives come from a partial crawl, as in PaSa (arXiv 2501.10120, section 4.3): they are what a
crawler meets, close to the request, and not papers drawn from everywhere. Rows are in PaSa's file
format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.core.settings import check_integer, check_number
from ...envs.core.tasks import ENDLESS, get_split_size
from ...envs.paper_crawler.papers import Judged, Paper, Request, Search
from ...envs.paper_crawler.prompts import PROMPTS
from ...envs.utils.file_rows import read_rows as read_json_lines

_REASON = "Reason:"
PATIENCE = 1000
"""Requests of a split without end that may give no pair one after another."""


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
            turns = [("user", row.prompt), ("assistant", row.answer)]
            messages = [{"role": role, "content": text} for role, text in turns]
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
    rows = [_row(found, where) for where, found in read_json_lines(place)]
    if not rows:
        raise DataError(f"{place}: no row; expected JSON lines of selector rows.")
    return rows


def _row(found: Mapping[str, Any], where: str) -> SelectorRow:
    messages = found.get("messages")
    if not isinstance(messages, list) or [_role(m) for m in messages] != ["user", "assistant"]:
        raise DataError(
            f"{where}: expected {{'messages': [a user's, an assistant's]}}, each with role and "
            f"content; got {str(found)[:80]!r}."
        )
    answer = messages[1]["content"].strip()
    verdict, _, rest = answer.partition("\n")
    if verdict.strip() not in ("True", "False"):
        raise DataError(
            f"{where}: the assistant's first line is {verdict[:40]!r}; expected True or False."
        )
    reason = rest.strip().removeprefix(_REASON).strip()
    return SelectorRow(messages[0]["content"], verdict.strip() == "True", reason)


def _role(message: Any) -> object:
    """Return the role of a message with text; None for anything else."""
    fits = isinstance(message, dict) and isinstance(message.get("content"), str)
    return message.get("role") if fits else None


if TYPE_CHECKING:
    from ...envs.paper_crawler.env import PaperCrawler


class Pair(NamedTuple):
    """A request, a paper, and whether that answers it."""

    request: Request
    paper: Paper
    label: bool

    @property
    def judged(self) -> Judged:
        """The question, as a selector takes it."""
        return Judged(self.request, self.paper)


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """How pairs are drawn.

    Attributes:
        n: Pairs in all; half of them are answers.
        per_request: Maximum number of answers of one request, and as many others.
        enter: Probability that a paper which the crawl meets enters its queue (PaSa: 0.5).
        other_sections: Probability that the crawl opens a section that cites no answer; those that
            cite one are always opened (PaSa's rule for imitation, 0.1).
        layers: Layers of citations that it follows.
        others: What is shown as no answer. ``"met"``: any paper that the crawl met (PaSa).
            ``"answers"``: of these, only papers that answer another request of the split. Where
            splits share no topic, as in generated worlds, the rest would teach that papers of
            held-out topics are never right.
        seed: Of everything that is drawn.
    """

    n: int = 20_000
    per_request: int = 3
    enter: float = 0.5
    other_sections: float = 0.1
    layers: int = 1
    others: Literal["met", "answers"] = "met"
    seed: int = 0

    def __post_init__(self) -> None:
        where = "selector pairs"
        for name, low in (("n", 2), ("per_request", 1), ("layers", 0), ("seed", 0)):
            check_integer(name, getattr(self, name), where, min=low)
        if self.others not in ("met", "answers"):
            raise UnknownNameError("others", self.others, ("met", "answers"), where)
        for name in ("enter", "other_sections"):
            check_number(name, getattr(self, name), where, min=0.0, max=1.0)


def selector_pairs(
    env: PaperCrawler, split: str, settings: PairSettings | None = None
) -> list[Pair]:
    """Balanced pairs from the requests of a split.

    Every request gives as many answers as other papers, so that its words alone tell nothing. A
    paper counts as an answer where it is annotated as one; where all answers of a request are
    known (generated worlds), the others among them are left out. The same settings give the same
    pairs; a split that is too small gives fewer than ``n``, and so does one without end of which
    :data:`PATIENCE` requests in a row gave none.

    Args:
        env: Library, requests and rules: searches, results per search, the date.
        split: Of the requests.
        settings: How they are drawn.

    Raises:
        UnknownNameError: There is no such split.
        BadValueError: No request of the split that was tried gave a pair, or it has no end where
            all of its answers are asked for.
        EnvFault: The library is broken.
    """
    settings = settings or PairSettings()
    rng = np.random.default_rng([settings.seed, 1])
    size = get_split_size(env.source, split, env.name)
    allowed = _answers(env, split, size) if settings.others == "answers" else None
    pairs: list[Pair] = []
    fruitless = 0
    for index in _order(size, rng):
        request = env.source.task(split, index).payload
        met = partial_crawl(env, request, rng, settings)
        others = [p for p in met if allowed is None or p.id in allowed]
        found = _of_request(env, request, others, (rng, settings.per_request))
        pairs += found
        fruitless = 0 if found else fruitless + 1
        if len(pairs) >= settings.n or (size is None and fruitless == PATIENCE):
            break
    if not pairs:
        raise BadValueError(
            f"selector pairs: no request of split {split!r} gave one; expected requests with "
            "answers in the library, and searches that find other papers."
        )
    pairs = pairs[: settings.n - settings.n % 2]
    return [pairs[i] for i in rng.permutation(len(pairs))]


def rows_of(pairs: Iterable[Pair], prompt: str) -> list[SelectorRow]:
    """Supervised rows, asked in the style ``prompt``."""
    ask = PROMPTS[prompt].select
    return [
        SelectorRow(ask(pair.request, pair.paper), pair.label, reason_of(pair)) for pair in pairs
    ]


def reason_of(pair: Pair) -> str:
    """Return a rationale by rule: what the paper is about, where that is known, and the verdict."""
    paper = pair.paper
    about = " with ".join(part for part in (paper.topic, " and ".join(paper.methods)) if part)
    known = f"the {paper.kind} is about {about}, which" if about else f"the {paper.kind}"
    return f"{known} {'meets' if pair.label else 'does not meet'} the request."


def _order(size: int | None, rng: np.random.Generator) -> Iterator[int]:
    """Every index of a split once, shuffled; of a split without end, draws of it."""
    if size is not None:
        yield from (int(i) for i in rng.permutation(size))
        return
    while True:
        yield int(rng.integers(ENDLESS))


def _answers(env: PaperCrawler, split: str, size: int | None) -> set[str]:
    """Return the ids of all papers that answer a request of a split."""
    if size is None:
        raise BadValueError(
            f"selector pairs: others='answers' needs all requests, but split {split!r} has no "
            "end; use others='met'."
        )
    found: set[str] = set()
    for index in range(size):
        request = env.source.task(split, index).payload
        found.update(request.answers, request.oracle)
    return found


def _of_request(
    env: PaperCrawler,
    request: Request,
    others: Sequence[Paper],
    drawn: tuple[np.random.Generator, int],
) -> list[Pair]:
    """At limit so many answers, and as many of ``others`` that are none."""
    found = (env.library.find(answer) for answer in request.answers)
    right = [paper for paper in found if paper is not None]
    relevant = {*request.answers, *request.oracle}
    wrong = [paper for paper in others if paper.id not in relevant]
    rng, limit = drawn
    k = min(len(right), len(wrong), limit)
    pairs: list[Pair] = []
    for one, other in zip(_draw(right, k, rng), _draw(wrong, k, rng), strict=True):
        pairs += [Pair(request, one, True), Pair(request, other, False)]
    return pairs


def _draw(papers: Sequence[Paper], k: int, rng: np.random.Generator) -> list[Paper]:
    return [papers[int(i)] for i in rng.permutation(len(papers))[:k]]


def partial_crawl(
    env: PaperCrawler, request: Request, rng: np.random.Generator, settings: PairSettings
) -> list[Paper]:
    """Papers of a crawl that keeps only some of what it meets, in the order that they came."""
    queue: dict[str, Paper] = {}
    met: set[str] = set()

    def enter(papers: Iterable[Paper]) -> None:
        for paper in papers:
            if paper.id not in met:
                met.add(paper.id)
                if rng.random() < settings.enter:
                    queue[paper.id] = paper

    k, before = env.rules.top_k, request.date
    queries = env.parts.names.queries(request)
    for ids in env.library.search([Search(text, k, before) for text in queries]):
        enter(env.executor.look_up(request, ids))
    opened = 0
    for _ in range(settings.layers):
        layer = list(queue.values())[opened:]
        opened = len(queue)
        for paper in layer[: env.rules.layer_cap]:
            for heading in paper.sections:
                cited = env.executor.read_section(request, paper, heading)
                pays = any(p.id in request.answers for p in cited)
                if pays or rng.random() < settings.other_sections:
                    enter(cited)
    return list(queue.values())
