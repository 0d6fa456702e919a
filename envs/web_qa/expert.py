"""The scripted player of WebQA: searches, follows links, reads, answers, and errs on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..search_qa.expert import ANSWER_SHARE, ENOUGH, MORE, Expert
from ..search_qa.findings import find_shown_answer
from ..search_qa.questions import Question
from ..search_qa.world.queries import Probe
from .sites.pages import Page, find_parts, split_sentences, strip_links
from .text import GRAMMAR

if TYPE_CHECKING:
    from .env import WebQA, WebState

_WRONG_PAGE_SHARE = 3 / 7


class WebExpert(Expert):
    """A policy for :class:`WebQA`.

    It searches for a thing unless a page that it has read links to it, and reads pages from their
    first part on, as long as there are turns to spare; then it goes straight to the page and part.

    Args:
        mistakes: Probability that a search is poor or that a wrong page is opened; an answer is
            copied from elsewhere with 3/7 of it. After missing a page it copies what there is.
        seed: Seed of the mistakes.
    """

    grammar = GRAMMAR

    def choose_action(self, env: WebQA) -> str:
        """Return the next action of the episode in ``env``."""
        episode = env.episode
        question, state = episode.task.payload, episode.state
        left = env.max_turns - 1 - episode.turn
        if not question.plan and not state.searches and left > 0:
            probe = Probe(question.text, "", ())
            return self._act(env.prompt, "I need to look this up.", "search", self._query(probe))
        missing = [p for p in question.plan if not any(x in state.found for x in p.passages)]
        missed = self.mistakes > 0 and _missed(env, missing)
        if missing and left > 0 and not missed:
            needed = {place for probe in missing for place in _find_places(env, probe)}
            spare = left > len(needed.difference(state.opened))
            return self._act_next(env, missing[0], spare)
        wrong = missed or self._rng.random() < self.mistakes * ANSWER_SHARE
        if wrong:
            said = self._find_other_link(state, question)
            return self._act(env.prompt, ENOUGH, "answer", said)
        read = strip_links("".join(state.shown))
        thought = self._reason(env, (read,) * len(question.plan))
        said = find_shown_answer(question, (read, thought))
        return self._act(env.prompt, thought, "answer", said)

    def _act_next(self, env: WebQA, probe: Probe, spare: bool) -> str:
        """Search for the probe's page, or open the part of it that comes next."""
        state, site = env.episode.state, env.web.generated
        assert site is not None
        address = site.address_of(probe.passages[0])
        linked = any(f"({address})" in text for text in state.shown)
        if address not in state.results and not linked and spare:
            thought = MORE if state.searches else "I need to look this up."
            return self._act(env.prompt, thought, "search", self._query(probe))
        needed = [part for _, part in _find_places(env, probe)]
        wanted = range(1, needed[-1] + 1) if spare else needed
        part = next(p for p in wanted if (address, p) not in state.opened)
        place = address
        if address in state.results:
            number = state.results.index(address) + 1
            if len(state.results) > 1 and spare:
                number = self._maybe_wrong(number, len(state.results))
            place = str(number)
        content = place if part == 1 else f"{place} page {part}"
        return self._act(env.prompt, "This page should say it.", "open", content)

    def _maybe_wrong(self, number: int, results: int) -> int:
        if self._rng.random() >= self.mistakes * _WRONG_PAGE_SHARE:
            return number
        others = [n for n in range(1, results + 1) if n != number]
        return others[int(self._rng.integers(len(others)))]

    def _find_other_link(self, state: WebState, question: Question) -> str:
        """A name that was shown last, other than an accepted answer."""
        return self._find_last_name(
            split_sentences(strip_links(state.shown[-1]) if state.shown else ""), question
        )


def _find_places(env: WebQA, probe: Probe) -> list[tuple[str, int]]:
    """Address and part of all that must be read for the passage of ``probe``."""
    site = env.web.generated
    assert site is not None
    page = site.page(site.address_of(probe.passages[0]))
    assert isinstance(page, Page)
    span = next(s for s in page.spans if s.passage in probe.passages)
    parts = find_parts(page.text, env.page_chars, span.start, span.end)
    return [(page.address, part) for part in parts]


def _missed(env: WebQA, missing: list[Probe]) -> bool:
    """Whether the last search did not bring the page that it was for."""
    episode, site = env.episode, env.web.generated
    if site is None or not missing or not episode.steps:
        return False
    read = GRAMMAR.parse(episode.steps[-1].action)
    searched = getattr(read, "tag", "") == "search"
    return searched and site.address_of(missing[0].passages[0]) not in episode.state.results
