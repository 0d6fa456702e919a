"""The scripted player: searches along the hidden plan, answers, and errs on request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..core.noisy_expert import NoisyExpert
from ..core.settings import check_number
from .findings import (
    find_said_name,
    find_shown_answer,
    write_finding,
    write_findings,
    write_order,
)
from .questions import Question
from .source import GeneratedQuestions
from .text import GRAMMAR
from .world.queries import Probe

if TYPE_CHECKING:
    from ..core.env import TextEnv
    from .env import SearchQA
    from .world.world import World

ENOUGH = "I know enough to answer."
MORE = "I still need a fact."
ANSWER_SHARE = 3 / 7
"""Wrong copies per poor search: 30 to 70."""
_NO_RELATION = 0.6
"""Share of the poor searches that lack the relation; the others lack half of the name."""
_DOC = re.compile(r"^Doc \d+\(Title: \"?(.*?)\"?\) (.*)$", re.MULTILINE)
_NAME = re.compile(r"[A-Z][\w'-]*(?: (?:(?:of|the|in|and) )?[A-Z][\w'-]*)*")


class Expert(NoisyExpert):
    """A policy for :class:`SearchQA`: searches along the question's hidden plan, then answers.

    It searches for things by the names that it was shown, where those find what is looked for, and
    answers in the words that it was shown.

    Where the prompt asks for thoughts it thinks what a reader would need to: what a search found
    before the next one, and before an answer that no passage holds as such what it follows from
    (lists are counted aloud, compared values said and put in order).

    Args:
        mistakes: Probability that a search is poor (no relation, or half of the name); an answer is
            copied from another passage with 3/7 of it, so that 70 percent of the mistakes are poor
            searches. After missing the evidence it copies what there is.
        seed: Seed of the mistakes.
        haste: Probability, after each search but the last of the plan, of answering with what that
            search found: the subject of the next one. It is a wrong strategy, not a slip: at .8
            the likeliest player stops after one of two hops.

    Raises:
        BadValueError: ``mistakes`` or ``haste`` is no probability.
    """

    grammar = GRAMMAR

    def __init__(self, mistakes: float = 0.0, seed: int = 0, haste: float = 0.0) -> None:
        super().__init__(mistakes, seed)
        self.haste = check_number("haste", haste, "expert", min=0, max=1)

    def choose_action(self, env: Any) -> str:
        """Return the next action of the episode in ``env``."""
        task_env: SearchQA = env
        episode = task_env.episode
        question, state = episode.task.payload, episode.state
        probes = question.plan or (Probe(question.text, "", ()),)
        missed = state.searches > 0 and self._lacks_evidence(probes[: state.searches], state.found)
        if self._hurries(missed, state.searches, len(probes)):
            said = probes[state.searches].subject
            return self._act(task_env.prompt, ENOUGH, "answer", said)
        if not missed and state.searches < len(probes) and episode.turn + 1 < task_env.max_turns:
            probe = self._name_as_said(task_env, probes[state.searches])
            thought = self._think_of_next(task_env)
            return self._act(task_env.prompt, thought, "search", self._query(probe))
        if missed or self._rng.random() < self.mistakes * ANSWER_SHARE:
            said = self._copy_answer(state.shown, question)
            return self._act(task_env.prompt, ENOUGH, "answer", said)
        thought = self._reason(task_env, state.shown)
        said = find_shown_answer(question, (*state.shown, thought))
        return self._act(task_env.prompt, thought, "answer", said)

    def _name_as_said(self, env: SearchQA, probe: Probe) -> Probe:
        """The search, for the name that was shown where it finds the same."""
        if not env.episode.state.searches or not isinstance(env.source, GeneratedQuestions):
            return probe
        seen = "\n".join((env.episode.task.payload.text, *env.episode.state.shown))
        said = find_said_name(env.source.world, probe, seen, env.top_k)
        return probe._replace(subject=said)

    def _think_of_next(self, env: SearchQA) -> str:
        """What the last search found, in which order it is, and that it is not enough."""
        searches, shown = env.episode.state.searches, env.episode.state.shown
        if not searches:
            return "I need to look this up."
        world = _find_world(env)
        if world is None:
            return MORE
        question = env.episode.task.payload
        probes = question.plan[:searches]
        found = write_finding(world, probes[-1], shown[-1])
        order = write_order(world, question.text, probes, shown)
        return " ".join(filter(None, (found, order, MORE)))

    def _reason(self, env: TextEnv[Any, Question], shown: tuple[str, ...]) -> str:
        """What the answer follows from, where the searches of the plan showed ``shown``."""
        world = _find_world(env)
        said = "" if world is None else write_findings(world, env.episode.task.payload, shown)
        return said or ENOUGH

    def _hurries(self, missed: bool, searches: int, hops: int) -> bool:
        """Whether to answer before the last search; nothing is drawn without haste."""
        if not self.haste or missed or not 0 < searches < hops:
            return False
        return self._rng.random() < self.haste

    def _act(self, prompt: str, thought: str, tag: str, content: str) -> str:
        action = self.grammar.write(tag, content)
        return action if prompt == "none" else f"<think> {thought} </think> {action}"

    def _lacks_evidence(self, probes: tuple[Probe, ...], found: tuple[str, ...]) -> bool:
        """Whether evidence of the searches so far is missing; a flawless player has no doubts."""
        if self.mistakes == 0:
            return False
        return any(p.passages and not any(x in found for x in p.passages) for p in probes)

    def _query(self, probe: Probe) -> str:
        whole = f"{probe.subject} {probe.keyword}".strip()
        if self._rng.random() >= self.mistakes:
            return whole
        names = probe.subject.split()
        if len(names) < 2 or self._rng.random() < _NO_RELATION:
            return probe.subject
        half = names[int(self._rng.integers(len(names)))]
        return f"{half} {probe.keyword}".strip()

    def _copy_answer(self, shown: tuple[str, ...], question: Question) -> str:
        """A name from a passage that was shown, other than an accepted answer."""
        texts = (text for _, text in _DOC.findall(shown[-1] if shown else ""))
        return self._find_last_name(texts, question)

    def _find_last_name(self, texts: Iterable[str], question: Question) -> str:
        """The last name of one of the texts, none of those that are an accepted answer."""
        names = [name[-1] for text in texts if (name := _NAME.findall(text))]
        options = [name for name in names if name not in question.answers]
        return options[int(self._rng.integers(len(options)))] if options else "unknown"


def _find_world(env: TextEnv[Any, Question]) -> World | None:
    """The world that the question is of, None where nothing is thought or it is a real one."""
    thinks = getattr(env, "prompt", "none") != "none"
    return env.source.world if thinks and isinstance(env.source, GeneratedQuestions) else None
