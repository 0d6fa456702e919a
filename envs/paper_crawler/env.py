"""PaperCrawler-v0: find every paper that answers a request (PaSa's crawler as an environment)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.env import Policy, TextEnv
from ..core.episode import Call, Episode, Opening, Outcome, SessionSwitch, Verdict
from ..core.errors import BadValueError
from ..core.randomness import EpisodeRandom
from ..core.tasks import Task, TaskSource
from .baselines import BASELINES, CrawlView
from .build import build_parts, choose_prompt
from .crawl.actions import ActionExecutor, make_plan
from .crawl.agenda import Agenda
from .crawl.grammar import ALL_STOPS, STOPS, Move, write_action
from .crawl.rules import CAPS, MICRO_CAPS, Feedback, Granularity, Label, OverCap, Rules, Schedule
from .crawl.state import Crawl, Record
from .papers import Library, Request, Selector
from .prompts import PROMPTS, Outlines
from .report import (
    CrawlInfo,
    compute_crawl_metrics,
    list_sections,
    make_crawl_account,
    make_crawl_info,
)

DONE = "DONE"
"""The observation after the end."""
UNBOUNDED = 1_000_000


class PaperCrawler(TextEnv[Crawl, Request]):
    """Search for papers, read their outlines, follow their citations (PaSa's crawler).

    Description:
        An episode is one request. Its first session shows the request; the crawler writes
        ``[Search] query`` as often as it likes and ends with ``[StopSearch]``. Every paper that was
        found and has sections then gets a session of its own, which shows the request and that
        paper alone; the crawler writes ``[Expand] section`` for the sections whose references it
        wants and ends with ``[StopExpand]``. Papers found so get sessions in the next layer.
        Only papers dated before the request are found, never the one that it was made from.

        A session's results are not shown in it (PaSa; see ``feedback``), so each session is a
        context of its own with a constant prompt. A selector judges every paper that is found.

    Actions:
        With ``granularity="action"`` one ``[Search]`` or ``[Expand]`` per step (the first marker
        counts, a stop after it closes the session too), with ``"session"`` a whole session's text.
        The second equals the first applied to its parts. Unknown sections and what cannot be read
        bring nothing and cost as much.

    Rewards:
        ``found``: ``alpha`` for every paper that is new in the queue and relevant under ``label``.
        ``cost``: minus the price of the actions. There is no top that all requests share.

    Args:
        size: ``"full"`` (8,000 generated papers) or ``"micro"`` (small vocabulary, short texts).
        preset: Difficulty of the generated world, see :mod:`turngym.envs.paper_crawler.world`.
        world_seed: Seed of the generated world.
        answers: Which papers of the generated world are annotated: ``"annotated"`` (those that the
            section cites from which the request was made: a third of all that answer it, as in
            AutoScholarQuery) or ``"all"`` (as in RealScholarQuery).
        data: PaSa's request files; with ``papers``, in place of the generated world. See
            :mod:`turngym.envs.paper_crawler.real`.
        papers: Folder of PaSa's paper database.
        search: Search engine over real papers: ``"local"``, ``"serper"`` or ``"arxiv"``.
        search_settings: Settings of that search engine.
        data_settings: Of the request files: what becomes of unanswered ones, days before a
            request that count as too late.
        papers_settings: Of the paper database.
        selector: Judges papers; ``"lm:FOLDER"`` is a language model that was trained to. Default:
            the simulated selector of the generated world; for real papers the annotated answers
            alone.
        selector_noise: Error rates of the simulated selector are multiplied by it; 0 judges by
            the labels.
        prompt: ``"rules"`` (says how to write), ``"pasa"`` (does not) or ``"short"`` (micro's).
        granularity: See above.
        layers: Layers of citations: papers of depth below it get sessions.
        layer_cap: Most papers of a layer below the first that get sessions, the best first, when
            the schedule is ``"layered"``. Default 20, in the micro world 5.
        per_layer: Papers drawn per layer when the schedule is ``"sampled"``. Default 6.
        max_search: Searches per session; the last one closes it. Default 5, micro 3.
        max_expand: Expansions per session; the last one closes it.
        max_actions: Actions per episode, None for no limit; reaching it truncates.
        top_k: Papers per search. Default 10, micro 5.
        alpha: Reward of a relevant new paper.
        cost_search: Price of a search.
        cost_expand: Price of an expansion.
        cost_stop: Price of a stop.
        invalid_cost: Price of what cannot be read; None for the price of the session's own action.
        label: What is relevant: ``"annotated_or_selector"``, ``"annotated"`` or ``"oracle"``.
        schedule: ``"layered"`` (PaSa: layer by layer, the best first), ``"fifo"`` (in the order
            found), ``"best_first"``, or ``"sampled"`` (drawn with the episode's random numbers).
        feedback: What a session shows after each action: ``"none"``, ``"counts"`` or ``"titles"``.
        over_cap: Text of a session beyond the cap: ``"ignore"``, or ``"charge"`` for its price
            without carrying it out (the released code).
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown value; names the nearest.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: A file that does not hold what it should.

    References:
        PaSa, arXiv 2501.10120, sections 3 and 4, tables 3, 11 and 12.

    Version history:
        v0: first.
    """

    sessions = True
    open_ended = True

    def __init__(  # noqa: PLR0913 - the settings are what gym.make takes
        self,
        *,
        size: str | None = None,
        preset: str | None = None,
        world_seed: int | None = None,
        answers: str | None = None,
        data: TaskSource[Request] | str | Path | Mapping[str, Any] | None = None,
        papers: Library | str | Path | None = None,
        search: str | None = None,
        search_settings: Mapping[str, Any] | None = None,
        data_settings: Mapping[str, Any] | None = None,
        papers_settings: Mapping[str, Any] | None = None,
        selector: Selector | str | None = None,
        selector_noise: float | None = None,
        prompt: str | None = None,
        granularity: Granularity = "action",
        layers: int = 2,
        layer_cap: int | None = None,
        per_layer: int | None = None,
        max_search: int | None = None,
        max_expand: int = 5,
        max_actions: int | None = None,
        top_k: int | None = None,
        alpha: float = 1.5,
        cost_search: float = 0.1,
        cost_expand: float = 0.1,
        cost_stop: float = 0.0,
        invalid_cost: float | None = None,
        label: Label = "annotated_or_selector",
        schedule: Schedule = "layered",
        feedback: Feedback = "none",
        over_cap: OverCap = "ignore",
        render_mode: str | None = None,
    ) -> None:
        of_schedules = {"layered": ("layer_cap", layer_cap), "sampled": ("per_layer", per_layer)}
        for own, (name, value) in of_schedules.items():
            if value is not None and schedule != own:
                raise BadValueError(
                    f"PaperCrawler: {name}={value!r} is of schedule={own!r}, and the schedule is "
                    f"{schedule!r}; set that, or leave {name} out."
                )
        caps = MICRO_CAPS if size == "micro" else CAPS
        self.rules = Rules(
            granularity=granularity,
            layers=layers,
            layer_cap=caps["layer_cap"] if layer_cap is None else layer_cap,
            per_layer=Rules.per_layer if per_layer is None else per_layer,
            max_search=caps["max_search"] if max_search is None else max_search,
            max_expand=max_expand,
            max_actions=max_actions,
            top_k=caps["top_k"] if top_k is None else top_k,
            alpha=alpha,
            cost_search=cost_search,
            cost_expand=cost_expand,
            cost_stop=cost_stop,
            invalid_cost=invalid_cost,
            label=label,
            schedule=schedule,
            feedback=feedback,
            over_cap=over_cap,
        )
        self.parts = build_parts(
            made={"size": size, "preset": preset, "world_seed": world_seed, "answers": answers},
            real={
                "data": data,
                "papers": papers,
                "search": search,
                "search_settings": search_settings,
                "data_settings": data_settings,
                "papers_settings": papers_settings,
            },
            selector=selector,
            noise=selector_noise,
            label=label,
        )
        self.prompt = choose_prompt(prompt, self.parts.size)
        self.prompts = PROMPTS[self.prompt]
        self.library = self.parts.library
        self.outlines = Outlines(self.prompts.outline, self.library.find)
        self.executor = ActionExecutor(self.rules, self.library, self.parts.selector)
        self.agenda = Agenda(self.rules, self.library.find)
        turns, low, high = _find_bounds(self.rules)
        super().__init__(
            source=self.parts.source,
            max_turns=turns,
            reward_range=(low, high),
            render_mode=render_mode,
        )
        self.chance = schedule == "sampled"
        self.instructions = self.prompts.instructions
        self.stop = ALL_STOPS if granularity == "session" else ("\n", *ALL_STOPS)
        self.blocking = self.library.blocking or self.parts.selector.blocking

    # ------------------------------------------------------------------ the game

    def begin(self, task: Task[Request], random: EpisodeRandom) -> tuple[Crawl, str]:  # noqa: ARG002
        """The search session."""
        return Crawl(), self.session_prompt(task.payload, "")

    def play(self, episode: Episode[Crawl], action: str) -> Generator[Call, Any, Outcome]:
        """Carry out the actions of the text, and open the next session where this one ends."""
        crawl, request = episode.state, episode.task.payload
        plan = make_plan(self.rules, crawl, action)
        crawl.ended, crawl.acting = "", crawl.here
        records: list[Record] = []
        for move in plan.moves:
            records.append((yield from self.executor.execute(crawl, request, move)))
        records += [self._charge(crawl, move) for move in plan.beyond]
        if plan.stop is not None:
            records.append((yield from self.executor.execute(crawl, request, plan.stop)))
        crawl.last, crawl.ended = tuple(records), plan.ended
        return self._after(episode, crawl.actions >= (self.rules.max_actions or UNBOUNDED))

    def _charge(self, crawl: Crawl, move: Move) -> Record:
        cost = self.rules.cost(move.kind, crawl.kind)
        return Record(move, "beyond the session's cap: not carried out", cost, 0, (), 0, -cost)

    def _after(self, episode: Episode[Crawl], at_limit: bool) -> Outcome:
        crawl = episode.state
        found = sum(record.relevant for record in crawl.last)
        terms = {
            "found": self.rules.alpha * found,
            "cost": 0.0 - sum(record.cost for record in crawl.last),
        }
        acted = any(record.move.kind != "stop" for record in crawl.last)
        verdict: Verdict = 1 if found else (-1 if acted else 0)
        if not crawl.ended:
            outcome = Outcome.move(self._shown(crawl), terms, verdict=verdict)
        elif crawl.ended == "limit":
            return Outcome.truncated(DONE, terms, verdict=verdict)
        elif (paper := self.agenda.next(crawl, episode.random)) is None:
            answers = episode.task.payload.answers
            solved = bool(answers) and all(answer in crawl.queue for answer in answers)
            close = Outcome.solved if solved else Outcome.failed
            return close(DONE, terms, verdict=verdict)
        elif at_limit:
            return Outcome.truncated(DONE, terms, verdict=verdict)
        else:
            text, switch = self._open(episode, paper)
            outcome = Outcome.move(text, terms, verdict=verdict, session=switch)
        read = any(record.move.kind != "invalid" for record in crawl.last)
        return outcome._replace(valid=read)

    def _shown(self, crawl: Crawl) -> str:
        """What a session shows after an action."""
        if self.rules.feedback == "none":
            return ""
        record = crawl.last[-1]
        text = f"Result: {len(record.new)} new papers, {record.relevant} judged relevant."
        if self.rules.feedback == "titles":
            papers = (self.library.find(paper) for paper, _ in record.new)
            text += "".join(f"\n- {paper.title}" for paper in papers if paper)
        return text + "\n"

    def _open(self, episode: Episode[Crawl], paper: str) -> tuple[str, SessionSwitch]:
        crawl = episode.state
        self.agenda.open(crawl, paper)
        text = self.session_prompt(episode.task.payload, paper)
        return text, SessionSwitch(crawl.number, crawl.parent(paper))

    def session_prompt(self, request: Request, paper_id: str) -> str:
        """Return what the session of a paper begins with; without a paper, the search session."""
        if not paper_id:
            return self.prompts.search(request, self.rules.max_search)
        return self.prompts.expand(request, self.outlines[paper_id])

    def view(self) -> CrawlView:
        """Return what scripted crawlers see."""
        episode, parts = self.episode, self.parts
        return CrawlView(
            episode.state,
            episode.task.payload,
            episode.task.id,
            self.rules,
            self.executor,
            parts.names,
        )

    def fork_state(self, state: Crawl) -> Crawl:
        """A copy of the queue and the schedule; papers are shared."""
        return state.fork()

    def identify_state(self, episode: Episode[Crawl]) -> Any:
        """The papers found, the session, what was asked in it, and which sessions can come.

        The last step's report, the numbers of sessions and the counts of actions are left out, the
        limit ``max_actions`` too. A search that brings nothing new uses up a search of its session
        and so changes the state; searches in another order lead to the same one, unless the order
        in which papers were found decides which sessions come next.
        """
        crawl = episode.state
        found = {paper: (entry.score, entry.depth) for paper, entry in crawl.queue.items()}
        agenda = crawl.layer, crawl.waiting, crawl.later, frozenset(crawl.numbers)
        return crawl.here, sorted(crawl.args_taken), agenda, found

    # ------------------------------------------------------------------ sessions

    def asked(self) -> Sequence[Opening]:
        """Sessions of the papers that the last step found, where one can still come."""
        episode = self.episode
        if episode.status != "running":
            return ()
        new = (paper for record in episode.state.last for paper, _ in record.new)
        return self._openings(p for p in new if self.agenda.can_open(episode.state, p))

    def waiting(self) -> Sequence[Opening]:
        """Sessions that can be opened, in the schedule's order."""
        return self._openings(self.agenda.openable(self.episode.state))

    def session_key(self) -> str:
        """Id of the present session's paper."""
        return self.episode.state.here

    def enter(self, episode: Episode[Crawl], key: str) -> tuple[str, SessionSwitch]:
        """Open a waiting session; the present one waits again if nobody has acted in it."""
        self.agenda.enter(episode.state, key)
        return self._open(episode, key)

    def _openings(self, papers: Any) -> list[Opening]:
        crawl, request = self.episode.state, self.episode.task.payload
        return [
            Opening(p, self.session_prompt(request, p), found.score, found.depth + 1)
            for p in papers
            if (found := crawl.queue[p])
        ]

    # ------------------------------------------------------------------ what is told

    def details(self, episode: Episode[Crawl]) -> Mapping[str, CrawlInfo]:
        """Return ``crawl``: what the last step did, see :class:`CrawlInfo`."""
        info = make_crawl_info(
            episode.state,
            episode.task.payload,
            self.library,
            self.agenda,
            prompt=self.session_prompt,
            running=episode.status == "running",
        )
        return {"crawl": info}

    def debug_info(self, episode: Episode[Crawl]) -> Mapping[str, Any]:
        """Return ``crawl``: papers and scores by title, see :class:`CrawlAccount`."""
        return {"crawl": make_crawl_account(episode.state, episode.task.payload, self.library)}

    def metrics(self, episode: Episode[Crawl]) -> Mapping[str, float]:
        """Return PaSa's metrics, see :func:`.compute_crawl_metrics`."""
        return compute_crawl_metrics(episode.state, episode.task.payload, self.library.find)

    def hidden_answers(self, episode: Episode[Crawl]) -> Sequence[str]:
        """Titles of the answers; none for real requests, some of which name one."""
        if self.parts.size is None:
            return ()
        found = (self.library.find(answer) for answer in episode.task.payload.answers)
        return [paper.title for paper in found if paper]

    def valid_args(self) -> list[str]:
        """Names of the present paper's sections that were not opened in this session."""
        return list_sections(self.episode.state, self.library)

    def legal_actions(self) -> list[str]:
        """The request itself as a query, or the paper's sections; and to stop."""
        crawl = self.episode.state
        args = self.valid_args() if crawl.here else [self.episode.task.payload.text]
        whole = self.rules.granularity == "session"
        end = STOPS[crawl.kind] if whole else ""
        actions = [write_action(crawl.kind, arg) + end for arg in args if "[" not in arg]
        return [*actions, STOPS[crawl.kind]]

    def baselines(self) -> Mapping[str, Callable[[int], Policy]]:
        """Scripted policies that read no labels, by name."""
        return BASELINES


def _find_bounds(rules: Rules) -> tuple[int, float, float]:
    """Most turns of an episode, and bounds of its return."""
    sessions = rules.max_sessions
    if sessions is None:
        turns = actions = UNBOUNDED
    else:
        actions = rules.max_search + (sessions - 1) * rules.max_expand
        turns = sessions if rules.granularity == "session" else actions
    if rules.max_actions is not None:
        actions = min(actions, rules.max_actions)
    if rules.over_cap == "charge":  # a text may hold any number of actions beyond the cap
        actions = UNBOUNDED
    dearest = max(rules.cost_search, rules.cost_expand, rules.invalid_cost or 0.0)
    low = -dearest * actions - rules.cost_stop * (sessions or UNBOUNDED)
    return turns, low, rules.alpha * UNBOUNDED
