"""A crawl that two agents share: the crawler's step waits while the selector decides."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from ...core.batched_calls import serve
from ...core.env import FiveTuple
from ...core.episode import Call
from ...core.errors import EnvFault, EpisodeError
from ..crawl.actions import ActionExecutor, JudgePapers, Ruling, make_plan
from ..crawl.grammar import Move
from ..crawl.state import Crawl, Record
from ..env import PaperCrawler
from ..papers import Judged, Paper, Request
from .decisions import Decision, read_decision, read_decisions, write_question
from .rewards import Guard, Weights, is_relevant

CRAWLER: str = "crawler"
SELECTOR: str = "selector"
AGENTS: tuple[str, ...] = (CRAWLER, SELECTOR)


class Bundle(NamedTuple):
    """New papers of one action, which the selector agent has to decide about.

    Attributes:
        request: What they may answer.
        papers: In the order found.
        paying: Whether each pays by the label or the selector that pays.
    """

    request: Request
    papers: tuple[Paper, ...]
    paying: tuple[bool, ...]


@dataclass(frozen=True)
class AskSelectorAgent:
    """The ``serve`` of a question to the selector agent, which only that agent's steps answer."""

    def __call__(self, requests: Sequence[Bundle]) -> list[Any]:
        """There is no one to ask here.

        Raises:
            EpisodeError: Always.
        """
        raise EpisodeError(
            f"PaperCrawler: {len(requests)} actions wait for the selector agent; step the "
            "environment of both agents, not the game inside it."
        )


class SharedExecutor(ActionExecutor):
    """A executor whose papers are judged by the selector agent, and paid for as the guard says.

    Args:
        executor: The environment's own.
        guard: Whose judgement pays.
    """

    def __init__(self, executor: ActionExecutor, guard: Guard) -> None:
        super().__init__(executor.rules, executor.library, executor.selector)
        self.guard = guard
        self._pay = None if guard.payer is None else JudgePapers(guard.payer)

    def execute(self, crawl: Crawl, request: Request, move: Move) -> Generator[Call, Any, Record]:
        """Carry ``move`` out, wait for the decisions, and fill the queue by them."""
        found, error = yield from self.find_results(crawl, request, move)
        papers = self.select_new(crawl, found)
        rulings: list[Ruling] = []
        if papers:
            scores: Mapping[str, float] = {paper.id: 0.0 for paper in papers}
            if self._pay is not None:
                given = yield Call(self._pay, [Judged(request, paper) for paper in papers])
                scores = dict(zip(scores, given, strict=True))
            paying = set(self.select_paying(request, scores))
            bundle = Bundle(request, tuple(papers), tuple(p.id in paying for p in papers))
            decisions = yield Call(AskSelectorAgent(), bundle)
            rulings = [
                Ruling(paper, decision.score, self.guard.pays(settled, decision))
                for paper, settled, decision in zip(papers, bundle.paying, decisions, strict=True)
            ]
        return self.record(crawl, move, (len(found), error), rulings)


@dataclass(slots=True)
class Turn:
    """A step of the crawler that is under way.

    Attributes:
        action: Its text.
        game: The copy of the game in which it is played.
        play: The step, waiting at a question.
        replies: What was sent to it so far; the first starts it.
        bundle: The papers that are asked about.
        decided: Decisions about the first of them.
        paid: What both agents got for this step so far.
        closes: Whether the session ends with it.
    """

    action: str
    game: PaperCrawler
    play: Generator[Call, Any, FiveTuple]
    closes: bool
    replies: list[Any] = field(default_factory=list)
    bundle: Bundle | None = None
    decided: tuple[Decision, ...] = ()
    paid: dict[str, float] = field(default_factory=lambda: dict.fromkeys(AGENTS, 0.0))


@dataclass(frozen=True)
class Tally:
    """A selector's decisions in an episode: how many, how many unreadable, how many right."""

    decisions: int = 0
    unreadable: int = 0
    right: int = 0


class SharedCrawl:
    """The game, and whose move it is.

    Args:
        game: The environment; its executor is exchanged for one that asks the selector agent.
        guard: Whose judgement pays the crawler.
        weights: What the selector earns.
        batch: Whether one text decides about all papers of an action.
    """

    def __init__(self, game: PaperCrawler, guard: Guard, weights: Weights, *, batch: bool) -> None:
        game.executor = SharedExecutor(game.executor, guard)
        self.game = game
        self.guard = guard
        self.weights = weights
        self.batch = batch
        self.turn: Turn | None = None
        self.result: FiveTuple | None = None
        self.due = dict.fromkeys(AGENTS, 0.0)
        self.tally = Tally()
        self.log: list[tuple[str, str, str]] = []

    # ------------------------------------------------------------------ whose move

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Start an episode; the crawler begins."""
        observation, info = self.game.reset(seed=seed, options=options)
        self.turn = None
        self.result = (observation, 0.0, False, False, info)
        self.due = dict.fromkeys(AGENTS, 0.0)
        self.tally = Tally()
        self.log = []

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self.result is None or self.result[2] or self.result[3]

    @property
    def asked(self) -> list[Judged]:
        """What the selector agent has to answer next; empty when it is the crawler's move."""
        if self.turn is None or self.turn.bundle is None:
            return []
        request, papers, _ = self.turn.bundle
        left = papers[len(self.turn.decided) :]
        return [Judged(request, paper) for paper in (left if self.batch else left[:1])]

    @property
    def pending(self) -> int:
        """Number of papers of the present action that nobody has decided about."""
        turn = self.turn
        return 0 if turn is None or turn.bundle is None else len(turn.bundle[1]) - len(turn.decided)

    def shown(self, agent: str) -> str:
        """What an agent sees: the session's text, or the question about the papers it is asked."""
        if self.over or agent == CRAWLER:
            return self.game.episode.observation
        return write_question(self.game.prompts, self.asked, batch=self.batch)

    def collect_rewards(self) -> dict[str, float]:
        """Return what both agents got since this was last called."""
        due, self.due = self.due, dict.fromkeys(AGENTS, 0.0)
        return due

    # ------------------------------------------------------------------ moves

    def act(self, action: str) -> None:
        """The crawler's move: it pays for its action at once."""
        self.log.append((CRAWLER, self.shown(CRAWLER), action))
        game = cast("PaperCrawler", self.game.fork())
        crawl = game.episode.state
        readable = game.action_space.contains(action)
        plan = make_plan(game.rules, crawl, action) if readable else None
        cost = plan.cost(game.rules, crawl.kind) if plan else 0.0
        turn = Turn(action, game, game.open_step(action), bool(plan and plan.ended))
        self.turn = turn
        self._resume(None)
        if self.turn is None and self.result is not None:
            self.due[CRAWLER] += self.result[1]
        else:
            self._pay(turn, CRAWLER, 0.0 - cost)

    def answer(self, text: str) -> tuple[Decision, ...]:
        """The selector's move: its decisions about the papers of :attr:`asked`."""
        turn, asked = self.turn, self.asked
        if turn is None or turn.bundle is None:
            raise EpisodeError("PaperCrawler: no paper waits for the selector's decision.")
        self.log.append((SELECTOR, self.shown(SELECTOR), text))
        if not self.game.action_space.contains(text):
            made = [Decision(False, 0.0, "the text is too long or no valid UTF-8")] * len(asked)
        else:
            made = read_decisions(text, len(asked)) if self.batch else [read_decision(text)]
        for (request, paper), decision in zip(asked, made, strict=True):
            self._settle(turn, request, paper, decision)
        if not self.pending:
            self._resume(turn.decided)
        return tuple(made)

    def _settle(self, turn: Turn, request: Request, paper: Paper, decision: Decision) -> None:
        settled = turn.bundle is not None and turn.bundle.paying[len(turn.decided)]
        turn.decided += (decision,)
        if self.guard.pays(settled, decision):
            self._pay(turn, CRAWLER, self.game.rules.alpha)
        relevant = is_relevant(request, paper.id)
        self._pay(turn, SELECTOR, self.weights.reward(decision.accepted, relevant))
        self.tally = Tally(
            self.tally.decisions + 1,
            self.tally.unreadable + bool(decision.error),
            self.tally.right + (decision.accepted == relevant),
        )

    def _pay(self, turn: Turn, agent: str, amount: float) -> None:
        turn.paid[agent] += amount
        self.due[agent] += amount

    def _resume(self, reply: Any) -> None:
        """Play until the selector is asked, or until the step is done."""
        turn = self.turn
        if turn is None:
            raise EpisodeError("PaperCrawler: no step of the crawler is under way.")
        while True:
            turn.replies.append(reply)
            try:
                call = turn.play.send(reply)
            except StopIteration as done:
                return self._finish(turn, done.value)
            if isinstance(call.request, Bundle):
                turn.bundle, turn.decided = call.request, ()
                return None
            try:
                reply = serve(call.serve, [call.request])[0]
            except EnvFault as fault:
                reply = fault

    def _finish(self, turn: Turn, result: FiveTuple) -> None:
        self.game, self.turn, self.result = turn.game, None, result
        if result[4]["status"] == "env_error":  # a broken step never becomes a score
            for agent, amount in turn.paid.items():
                self.due[agent] -= amount

    # ------------------------------------------------------------------ copies

    def fork(self) -> SharedCrawl:
        """An independent copy at this very state."""
        twin: SharedCrawl = object.__new__(SharedCrawl)
        vars(twin).update(vars(self))
        twin.game = cast("PaperCrawler", self.game.fork())
        twin.due = self.due.copy()
        twin.log = self.log.copy()
        twin.turn = self.turn and _replayed(twin.game, self.turn)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        turn = self.turn
        bare = turn and replace(turn, game=self.game, play=None)
        return {**vars(self), "turn": bare}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.turn = self.turn and _replayed(self.game, self.turn)


def _replayed(game: PaperCrawler, turn: Turn) -> Turn:
    """The turn once more from its start, with the replies that it got; nothing is asked again."""
    twin = cast("PaperCrawler", game.fork())
    play = twin.open_step(turn.action)
    for reply in turn.replies:
        play.send(reply)
    return replace(turn, game=twin, play=play, replies=turn.replies.copy(), paid=turn.paid.copy())
