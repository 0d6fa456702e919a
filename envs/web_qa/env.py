"""WebQA-v0: a question, a search engine with snippets, pages to open, an answer."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.env import TextEnv
from ..core.episode import Call, Episode, GoldAnswer, Outcome, Play
from ..core.errors import UnknownNameError
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from ..search_qa.questions import Question
from ..search_qa.rewards import (
    Piece,
    Rewards,
    compute_metrics,
    count_evidence,
    grade_answer,
    is_well_formed,
)
from ..search_qa.source import has_kinds
from ..search_qa.text import write_question
from ..tools.action_parsing import Tagged
from ..tools.retrieval.base import Hit, Query
from .build import EndpointSettings, Web, find_web
from .sites.pages import NoPage, Page, Served, Site, Visit, find_parts
from .text import (
    GRAMMAR,
    INVALID,
    PROMPTS,
    STOP,
    read_target,
    write_missing_page,
    write_missing_result,
    write_page,
    write_results,
)

if TYPE_CHECKING:
    from ..search_qa.data import Data

_OPENED = re.compile(r"<(/?)open>")
_TOP_K = {"micro": 3}
MAX_RESULTS = 100
_PAGE_CHARS = {"micro": 600}
FEWEST_CHARS, MOST_CHARS = 40, 50_000


@dataclass(slots=True)
class WebState:
    """What was searched, opened, found and shown, and the answer."""

    searches: int = 0
    opens: int = 0
    failed_opens: int = 0
    results: tuple[str, ...] = ()  # addresses of the last search, by number
    opened: tuple[tuple[str, int], ...] = ()  # address and part of what was shown
    found: tuple[str, ...] = ()  # passages of a generated world whose fact was shown
    shown: tuple[str, ...] = ()  # texts of the information blocks
    answer: str | None = None


class WebQA(TextEnv[WebState, Question]):
    """Answer a question by searching and reading pages (the web setting of Tree-GRPO).

    Description:
        The first observation is ``Question: …``. ``<search> query </search>`` is answered by the
        best results, numbered, each with title, address and snippet; ``<open> address </open>`` or
        ``<open> number </open>`` by a page, long ones in parts (``<open> address page 2 </open>``);
        both in ``<information>``. ``<answer> text </answer>`` ends the episode; ``<think>`` before
        an action is free. Anything else is answered by a reminder and costs a turn. In the last
        turn nothing is searched or opened: only an answer counts there.

        The default site is generated: the articles of SearchQA's world as pages that link to each
        other; many facts stand in no snippet. With ``data`` the questions are somebody's own, over
        a folder of pages (``site``) or the web (``search_url``).

    Rewards:
        ``outcome`` (F1 or EM of the answer), ``format`` and ``retrieval`` (0 unless set).

    Args:
        size: ``"full"`` (14,388 pages) or ``"micro"`` (1,500 pages of six short sentences).
        hops: As in SearchQA.
        kinds: The same.
        distractors: The same.
        world_seed: The same.
        snippets: Of the generated site: ``"fitting"`` (the sentence that fits the query best;
            default in the full world) or ``"first"`` (the page's first sentence; micro's default).
        top_k: Results per search (10; 3 in the micro world).
        max_turns: Actions per episode (6: five tool calls and the answer).
        page_chars: Characters of a part of a page (2,000; 600 in the micro world).
        snippet_chars: Most characters of a snippet. The published setting has 1,000.
        prompt: ``"web"`` or ``"none"`` (micro's default).
        outcome: ``"f1"`` or ``"em"``.
        structure_score: Search-R1's ladder for form, see :class:`Rewards`; opening counts as a
            search there.
        format_score: The same.
        retrieval_score: The same.
        data: Question file, or ``{split: file}``; see :mod:`turngym.envs.search_qa.data`.
        site: Folder of ``.html``, ``.md`` and ``.txt`` files that goes with ``data``, or a
            :class:`turngym.envs.web_qa.sites.pages.Site` of your own.
        search_url: In place of ``site`` an endpoint that answers ``?q=…&format=json`` as SearXNG
            does. Such an environment is as repeatable as the web is.
        allow: Hosts whose pages may be opened: ``"example.org"``, ``"*.example.org"``, ``"*"``,
            ``"localhost:8080"``; every other is refused in an observation. Only for ``search_url``,
            as all that follow.
        allow_private: Open private, loopback, link-local and reserved addresses too, if allowed.
        timeout_s: Seconds that one request may take, redirects included.
        max_bytes: Largest page, in bytes.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown value; names the nearest.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: A file that does not hold what it should.

    References:
        Tree-GRPO, arXiv 2509.21240 (snippets only; opening pages is added here).

    Version history:
        v0: first.
    """

    has_gold = True
    stop = STOP

    def __init__(  # noqa: PLR0913 - the knobs are what gym.make takes
        self,
        *,
        size: str | None = None,
        hops: int | Sequence[int] | None = None,
        kinds: str | Sequence[str] | None = None,
        distractors: float | None = None,
        world_seed: int | None = None,
        snippets: str | None = None,
        top_k: int | None = None,
        max_turns: int = 6,
        page_chars: int | None = None,
        snippet_chars: int = 200,
        prompt: str | None = None,
        outcome: str = "f1",
        structure_score: float = 0.0,
        format_score: float = 0.0,
        retrieval_score: float = 0.0,
        data: Data | None = None,
        site: str | Path | Site | None = None,
        search_url: str | None = None,
        allow: str | Sequence[str] = EndpointSettings.allow,
        allow_private: bool = EndpointSettings.allow_private,
        timeout_s: float = EndpointSettings.timeout_s,
        max_bytes: int = EndpointSettings.max_bytes,
        render_mode: str | None = None,
    ) -> None:
        check_integer("snippet_chars", snippet_chars, "WebQA", min=FEWEST_CHARS, max=MOST_CHARS)
        self.rewards = Rewards(
            outcome=outcome,
            structure_score=structure_score,
            format_score=format_score,
            retrieval_score=retrieval_score,
            where="WebQA",
        )
        made = {"size": size, "hops": hops, "kinds": kinds, "distractors": distractors}
        made |= {"world_seed": world_seed, "snippets": snippets}
        net = EndpointSettings(
            allow=allow, allow_private=allow_private, timeout_s=timeout_s, max_bytes=max_bytes
        )
        self.web: Web = find_web(
            made=made,
            data=data,
            site=site,
            search_url=search_url,
            net=net,
            snippet_chars=snippet_chars,
        )
        size = self.web.size or "full"
        self.top_k = _TOP_K.get(size, 10) if top_k is None else top_k
        self.page_chars = _PAGE_CHARS.get(size, 2000) if page_chars is None else page_chars
        check_integer("top_k", self.top_k, "WebQA", min=1, max=MAX_RESULTS)
        check_integer("page_chars", self.page_chars, "WebQA", min=FEWEST_CHARS, max=MOST_CHARS)
        prompt = ("none" if size == "micro" else "web") if prompt is None else prompt
        if prompt not in PROMPTS:
            raise UnknownNameError("prompt", prompt, PROMPTS, "WebQA")
        super().__init__(
            source=self.web.source,
            max_turns=max_turns,
            reward_range=self.rewards.range,
            render_mode=render_mode,
        )
        self.blocking = search_url is not None
        self.prompt = prompt
        self.instructions = PROMPTS[prompt]
        self._serve = Served(self.web.site)

    def begin(self, task: Task[Question], random: EpisodeRandom) -> tuple[WebState, str]:  # noqa: ARG002
        """The question; nothing has been searched yet."""
        return WebState(), write_question(task.payload.text)

    def play(self, episode: Episode[WebState], action: str) -> Play:
        """Search, open, answer, or be reminded of how to."""
        read = GRAMMAR.parse(action)
        if not isinstance(read, Tagged):
            return Outcome.unreadable(INVALID, verdict=-1)
        if read.tag == "answer":
            return grade_answer(self.rewards, episode, action, _is_formed)
        if read.tag == "open" and read_target(read.content) is None:
            return Outcome.unreadable(INVALID, verdict=-1)
        if episode.turn >= self.max_turns:
            return Outcome.move("")
        if read.tag == "search":
            return self._search(episode, read.content)
        return self._visit(episode, read.content)

    def fork_state(self, state: WebState) -> WebState:
        """A copy; its fields are immutable."""
        return WebState(
            state.searches,
            state.opens,
            state.failed_opens,
            state.results,
            state.opened,
            state.found,
            state.shown,
            state.answer,
        )

    def identify_state(self, episode: Episode[WebState]) -> Any:
        """The numbered results, the parts of pages that were shown, what was found, the answer.

        So a state comes again where a page is opened again, and after other pages in another order
        where the last search was the same.
        """
        state = episode.state
        evidence = count_evidence(state, episode.task.payload)
        shown = frozenset(state.opened), frozenset(state.found)
        return state.results, *shown, evidence, state.answer

    def hidden_answers(self, episode: Episode[WebState]) -> Sequence[str]:
        """The accepted answers; none for real questions, some of which name their answer."""
        return episode.task.payload.answers if episode.task.payload.plan else ()

    def gold_answers(self, episode: Episode[WebState]) -> Sequence[GoldAnswer]:
        """The accepted answers, of real questions as well, in the tag that ends the episode."""
        return [GoldAnswer("<answer>", f" {answer}") for answer in episode.task.payload.answers]

    def metrics(self, episode: Episode[WebState]) -> Mapping[str, float]:
        """EM and F1 of the answer, what was searched and opened, and what that brought.

        ``recall`` is the share of the plan's facts that were shown (for real questions, which have
        no plan, whether an accepted answer was shown), ``failed_opens`` counts pages, parts and
        numbers that there are none of or that may not be visited. Where questions are of several
        kinds, ``em_counting`` and the like have the EM of each.
        """
        state = episode.state
        metrics = compute_metrics(episode, _is_formed, by_kind=has_kinds(self.source))
        metrics["searches"] = float(state.searches)
        metrics["opens"] = float(state.opens)
        metrics["failed_opens"] = float(state.failed_opens)
        metrics["pages"] = float(len({address for address, _ in state.opened}))
        return metrics

    def _search(self, episode: Episode[WebState], query: str) -> Generator[Call, Any, Outcome]:
        state, question = episode.state, episode.task.payload
        hits: list[Hit] = yield Call(self._serve, Query(query, self.top_k))
        before = count_evidence(state, question)
        state.searches += 1
        state.results = tuple(hit.id for hit in hits)
        if (site := self.web.generated) is not None:
            for hit in hits:
                state.found += tuple(site.find_revealed(hit, question))
        return self._show(episode, write_results(hits, MOST_CHARS), before)

    def _visit(self, episode: Episode[WebState], content: str) -> Generator[Call, Any, Outcome]:
        state, question = episode.state, episode.task.payload
        state.opens += 1
        target = read_target(content)
        assert target is not None
        address = target.address
        if target.number is not None:
            if not 1 <= target.number <= len(state.results):
                state.failed_opens += 1
                text = write_missing_result(target.number, len(state.results))
                return Outcome.move(text, verdict=0)
            address = state.results[target.number - 1]
        page: Page | NoPage = yield Call(self._serve, Visit(address))
        if isinstance(page, NoPage):
            state.failed_opens += 1
            return Outcome.move(write_missing_page(page), verdict=0)
        text, there = write_page(page, target.part, self.page_chars)
        if not there:
            state.failed_opens += 1
            return Outcome.move(text, verdict=0)
        before = count_evidence(state, question)
        state.opened += ((page.address, target.part),)
        state.found += self._read(page, state)
        return self._show(episode, text, before)

    def _read(self, page: Page, state: WebState) -> tuple[str, ...]:
        """Passages of a page of which every part was shown, in one part or several."""
        seen = {part for address, part in state.opened if address == page.address}
        return tuple(
            span.passage
            for span in page.spans
            if seen.issuperset(find_parts(page.text, self.page_chars, span.start, span.end))
        )

    def _show(self, episode: Episode[WebState], text: str, before: int) -> Outcome:
        state = episode.state
        state.shown += (text,)
        more = count_evidence(state, episode.task.payload) > before
        return Outcome.move(text, verdict=1 if more else 0)


def _is_formed(parts: Iterable[Piece]) -> bool:
    """Whether a trajectory is well formed, opening taken for searching."""
    return is_well_formed(
        Piece(_OPENED.sub(r"<\1search>", text), by_model) if by_model else Piece(text, by_model)
        for text, by_model in parts
    )
