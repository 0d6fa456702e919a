"""SearchQA-v0: a question, a search engine, an answer."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.env import TextEnv
from ..core.episode import Call, Episode, GoldAnswer, Outcome, Play
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from ..tools.action_parsing import Tagged
from ..tools.python.tool import PythonResult, PythonTool
from ..tools.retrieval.base import Batched, Hit, Query, Retriever
from .build import Knowledge, generate_knowledge, load_knowledge, make_retriever, make_toolbox
from .questions import Question
from .rewards import (
    Piece,
    Rewards,
    compute_metrics,
    count_evidence,
    form_so_far,
    grade_answer,
    is_answer_shown,
    is_well_formed,
    iterate_pieces,
)
from .source import has_kinds
from .text import (
    MIN_CHARS,
    PROMPTS,
    RESULT_OPEN,
    STOP,
    find_code,
    write_information,
    write_question,
    write_result,
)

if TYPE_CHECKING:
    from .data import Data


@dataclass(slots=True)
class SearchState:
    """What was searched, found and shown, and the answer."""

    searches: int = 0
    found: tuple[str, ...] = ()  # ids of the passages shown whole
    shown: tuple[str, ...] = ()  # texts of the information blocks
    answer: str | None = None


class SearchQA(TextEnv[SearchState, Question]):
    """Answer a question by searching a body of passages (Search-R1's game).

    Description:
        The first observation is ``Question: …``. An action holds ``<search> query </search>``,
        answered by the best passages in ``<information>``, or ``<answer> text </answer>``, which
        ends the episode; ``<think>`` before it is free. Anything else is answered by a reminder
        and costs a turn. A search in the last turn is not executed: only an answer counts there.
        With the python tool, ``<python> code </python>`` is run in a closed-off process and
        answered by what it prints in ``<result>``; a call in the last turn is not executed.

        Questions are drawn from a generated world (1 to 4 hops; bridge, intersection, comparison,
        counting; train, dev and test share no thing), or read from files with ``data``.

    Rewards:
        ``outcome`` (EM or F1 of the answer), ``format`` and ``retrieval`` (0 unless set).

    Args:
        size: ``"full"`` (at least 20,000 passages of several sentences) or ``"micro"`` (about
            9,000 passages of one short sentence, two-word names from a small vocabulary).
        hops: Facts that a question needs: one number or several, 1 to 4. Default: all in the full
            world, 1 in the micro world.
        kinds: ``"bridge"``, ``"intersection"``, ``"comparison"``, ``"counting"``; default all.
        distractors: Near misses per thing: namesakes, and others with half its name. Default 0.2
            in the full world, 0 in the micro world.
        world_seed: Seed of the generated world.
        top_k: Passages per search.
        max_turns: Actions per episode (5: four searches and the answer).
        max_observation_chars: Budget of an observation in characters, None for the most that
            the observation space holds. The tail is cut, the closing tag stays. 2,000 characters
            are about Search-R1's 500 tokens.
        tools: ``"search"``, or ``("search", "python")`` for ARPO's pair of tools.
        python_tool: Settings of the python tool, ``{"timeout_s": 5}``, or a
            :class:`~turngym.envs.tools.python.tool.PythonTool`.
        prompt: ``"search-r1"`` (its published prompt), ``"search-python"`` (the default with the
            python tool) or ``"none"`` (micro's default).
        outcome: ``"em"`` or ``"f1"``.
        structure_score: Search-R1's ladder for form, see :class:`Rewards`.
        format_score: The same.
        retrieval_score: The same.
        data: Question file (``.jsonl``, ``.parquet``, ``.csv``, ``.json``), which is the train
            split; a folder with a file per split; or ``{split: file}``, with several files as
            ``{split: {name: file}}``. See :mod:`turngym.envs.search_qa.data`.
        weights: Shares of the data sets of train, ``{"nq": 1, "hotpotqa": 3}``; by their sizes
            unless given. See :mod:`turngym.envs.core.interleave`.
        corpus: Passage file (``.jsonl``) that goes with ``data``, or the folder of an index over
            one (``turngym index build``), or several folders, searched as a hybrid.
        retriever: Searches in place of BM25 over the passages: the address of a server that
            speaks Search-R1's ``/retrieve``, as ``"http://localhost:8000"``, or an object.
        retriever_settings: Settings of the server's client, ``{"timeout_s": 5}``; see
            :class:`~turngym.envs.tools.retrieval.http.HttpRetriever`.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown value; names the nearest.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: A file that does not hold what it should.

    References:
        Search-R1, arXiv 2503.09516; format rewards, arXiv 2505.15117.

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
        top_k: int = 3,
        max_turns: int = 5,
        max_observation_chars: int | None = 2000,
        tools: str | Sequence[str] = ("search",),
        python_tool: PythonTool | Mapping[str, Any] | None = None,
        prompt: str | None = None,
        outcome: str = "em",
        structure_score: float = 0.0,
        format_score: float = 0.0,
        retrieval_score: float = 0.0,
        data: Data | None = None,
        weights: Mapping[str, float] | None = None,
        corpus: str | Path | Sequence[str | Path] | None = None,
        retriever: Retriever | str | None = None,
        retriever_settings: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_integer("top_k", top_k, "SearchQA", min=1)
        if max_observation_chars is not None:
            check_integer("max_observation_chars", max_observation_chars, "SearchQA", min=MIN_CHARS)
        self.rewards = Rewards(
            outcome=outcome,
            structure_score=structure_score,
            format_score=format_score,
            retrieval_score=retrieval_score,
        )
        made = {"size": size, "hops": hops, "kinds": kinds, "distractors": distractors}
        made["world_seed"] = world_seed
        search = make_retriever(retriever, retriever_settings)
        if data is None and corpus is None and weights is None:
            self.knowledge: Knowledge = generate_knowledge(retriever=search, **made)
        else:
            self.knowledge = load_knowledge(
                data=data, corpus=corpus, retriever=search, made=made, weights=weights
            )
        self.toolbox = make_toolbox(tools, python_tool)
        prompt = self.toolbox.prompt(prompt, self.knowledge.size)
        super().__init__(
            source=self.knowledge.source,
            max_turns=max_turns,
            reward_range=self.rewards.range,
            render_mode=render_mode,
        )
        self.prompt = prompt
        self.instructions = PROMPTS[prompt]
        self.top_k = top_k
        self.max_observation_chars = (
            self.observation_space.max_chars
            if max_observation_chars is None
            else max_observation_chars
        )
        self.retriever = self.knowledge.retriever
        self._serve = Batched(self.retriever)
        self.stop = self.toolbox.grammar.stop
        waits = getattr(self.retriever, "blocking", False)
        self.blocking = waits or self.toolbox.python is not None
        self.repeatable = self.toolbox.python is None  # programs may draw

    def begin(self, task: Task[Question], random: EpisodeRandom) -> tuple[SearchState, str]:  # noqa: ARG002
        """The question; nothing has been searched yet."""
        return SearchState(), write_question(task.payload.text)

    def play(self, episode: Episode[SearchState], action: str) -> Play:
        """Search, compute, answer, or be reminded of how to."""
        read = self.toolbox.grammar.parse(action)
        if not isinstance(read, Tagged):
            return Outcome.unreadable(self.toolbox.invalid, verdict=-1)
        if read.tag == "answer":
            return grade_answer(self.rewards, episode, action, self._is_formed)
        if episode.turn >= self.max_turns:
            return Outcome.move("")
        if read.tag == "python":
            return self._run_python(action)
        return self._search(episode, read.content)

    def fork_state(self, state: SearchState) -> SearchState:
        """A copy; its fields are immutable."""
        return SearchState(state.searches, state.found, state.shown, state.answer)

    def identify_state(self, episode: Episode[SearchState]) -> Any:
        """What was found and the answer: passages shown whole, in whatever order.

        So a state comes again where a search brings nothing new, and after the same searches in
        another order. What python printed is not in it: it changes nothing but the context. Where
        a reward depends on the trajectory's form, the form so far is, and whether an accepted
        answer was shown.
        """
        state, question = episode.state, episode.task.payload
        found = frozenset(state.found), count_evidence(state, question), state.answer
        if not self.rewards.needs_form:
            return found
        form = form_so_far(iterate_pieces(episode), self.toolbox.names)
        return *found, form, is_answer_shown(state, question)

    def hidden_answers(self, episode: Episode[SearchState]) -> Sequence[str]:
        """The accepted answers; none for real questions, some of which name their answer."""
        return episode.task.payload.answers if episode.task.payload.plan else ()

    def gold_answers(self, episode: Episode[SearchState]) -> Sequence[GoldAnswer]:
        """The accepted answers, of real questions as well, in the tag that ends the episode."""
        return [GoldAnswer("<answer>", f" {answer}") for answer in episode.task.payload.answers]

    def metrics(self, episode: Episode[SearchState]) -> Mapping[str, float]:
        """EM and F1 of the answer, and what the searches brought.

        ``recall`` is the share of the plan's passages that were shown (for real questions, which
        have no plan, whether a shown passage holds an accepted answer). ``answer_shown`` is whether
        one was shown as a text, which a number that must be counted seldom is. Where questions are
        of several kinds, ``em_counting`` and the like have the EM of each.
        """
        metrics = compute_metrics(episode, self._is_formed, by_kind=has_kinds(self.source))
        metrics["searches"] = float(episode.state.searches)
        if self.toolbox.python is not None:  # the call of a last turn was not executed
            seen = (step.observation for step in episode.steps)
            metrics["python_calls"] = float(sum(text.startswith(RESULT_OPEN) for text in seen))
        return metrics

    def _search(self, episode: Episode[SearchState], query: str) -> Generator[Call, Any, Outcome]:
        state, question = episode.state, episode.task.payload
        hits: list[Hit] = yield Call(self._serve, Query(query, self.top_k))
        text, whole = write_information(hits, self.max_observation_chars)
        before = count_evidence(state, question)
        state.searches += 1
        state.found += tuple(hit.id for hit in hits[:whole])
        state.shown += (text,)
        return Outcome.move(text, verdict=1 if count_evidence(state, question) > before else 0)

    def _run_python(self, action: str) -> Generator[Call, Any, Outcome]:
        assert self.toolbox.python is not None  # the grammar reads no call of an absent tool
        printed: PythonResult = yield Call(self.toolbox.python, find_code(action))
        return Outcome.move(write_result(printed.text, self.max_observation_chars), verdict=0)

    def _is_formed(self, parts: Iterable[Piece]) -> bool:
        return is_well_formed(parts, self.toolbox.names)
