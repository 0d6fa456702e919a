"""WebShop-v0: an instruction, a shop of text pages, one purchase."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from ..core.env import Call, Episode, Outcome, Play, TextEnv
from ..core.episode import Verdict
from ..core.errors import BadValueError, UnknownNameError
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from ..tools.retrieval.base import Batched, Hit, Query
from .goals import load_goals
from .items import Shop
from .pages import BUY, NEXT, Pages, read_action, write_price
from .reward import Goal, count_options_met, is_right, match_goal
from .state import WebShopState

SIZES = ("full", "micro")
RESULTS = {"full": 50, "micro": 12}
PER_PAGE = {"full": 10, "micro": 4}
RULES = """\
You are in a web shop. Buy something that fits the instruction: the right kind of thing, with the
attributes and the options that it asks for, within the price limit.
Write one action per turn:
search[words] to search, from any page
click[label] to click on a label of the page you see: labels stand in square brackets
Open an item by clicking its number, choose options by clicking their values, read about it under
description and features, and end with click[buy now].
"""
HOW = "Write search[words] or click[label]."


class WebShop(TextEnv[WebShopState, Goal]):
    """Buy what an instruction describes (WebShop's game, AgentBench's limits).

    Description:
        The first observation is the instruction. ``search[words]`` shows the first results, with
        titles and prices; ``click[label]`` follows what stands in square brackets on the page:
        the number of an item, a value of an option, ``description``, ``features``, ``< prev``,
        ``next >``, ``back to search``, ``buy now``, which ends the episode. Labels are read in any
        case. The first such action in what is written counts; thinking before it is free. Leaving
        an item drops its chosen options.

        The shop is generated from a seed. The goals of train, dev and test are about different
        items and worded by different forms; several items can fit a goal.

        Verdicts: +1 for a search that finds a fitting item where the last one did not, for
        turning the page towards it, for opening one, for an option that was asked for and for a
        purchase that earns 1; -1 for losing such an option, for any other purchase, and for what
        cannot be clicked or read; else 0.

    Rewards:
        ``outcome``: how well the purchase matches, from 0 to 1; see
        :mod:`turngym.envs.web_shop.reward`. Nothing without a purchase.

    Args:
        size: ``"full"`` (3,840 items of 60 kinds) or ``"micro"`` (120 items, short texts).
        world_seed: Seed of the generated shop.
        data: Folder with WebShop's own files in place of a generated shop; see
            :func:`~turngym.envs.web_shop.files.load_files`.
        max_turns: Actions per episode.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: No such size.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: Files that do not hold what they should.

    References:
        WebShop, arXiv 2207.01206; AgentBench, arXiv 2308.03688; ARMAP, arXiv 2502.12130.

    Version history:
        v0: first.
    """

    stop = ("]",)

    def __init__(
        self,
        *,
        size: str | None = None,
        world_seed: int | None = None,
        data: str | os.PathLike[str] | None = None,
        max_turns: int = 10,
        render_mode: str | None = None,
    ) -> None:
        source, size = _load_source(size, world_seed, data)
        super().__init__(source=source, max_turns=max_turns, render_mode=render_mode)
        self.shop: Shop = source.shop
        self.pages = Pages(self.shop, PER_PAGE[size])
        self.most_found = RESULTS[size]
        self.micro = size == "micro"
        self.instructions = "" if self.micro else RULES
        self._serve = Batched(self.shop.retriever)

    def begin(self, task: Task[Goal], random: EpisodeRandom) -> tuple[WebShopState, str]:  # noqa: ARG002
        """The instruction, on the search page."""
        return WebShopState(), f"{'' if self.micro else 'Instruction: '}{task.payload.text}\n"

    def play(self, episode: Episode[WebShopState], action: str) -> Play:
        """Search, click or buy, or be told how to."""
        read = read_action(action)
        if read is None:
            return Outcome.unreadable(f"That is no action. {HOW}\n", verdict=-1)
        if read.name == "search":
            return self._search(episode, read.argument)
        visit: WebShopState = episode.state
        labels = {label.lower(): label for label in reversed(self.pages.list_clickable(visit))}
        if read.argument not in labels:
            return Outcome.move(self._write_absent(visit, read.argument), verdict=-1)
        if read.argument == BUY:
            return self._buy(episode)
        return self._click(episode, labels[read.argument])

    def fork_state(self, state: WebShopState) -> WebShopState:
        """A copy; its fields are immutable."""
        return state.copy()

    def identify_state(self, episode: Episode[WebShopState]) -> Any:
        """The open page, what was found and chosen, and the purchase, without the counts.

        So going back, or choosing another option and the first one again, returns to the state.
        """
        visit = episode.state
        chosen = sorted(visit.chosen)
        return visit.page, visit.found, visit.number, visit.item, chosen, visit.bought

    def hidden_answers(self, episode: Episode[WebShopState]) -> Sequence[str]:
        """The number of the item that the goal was made for."""
        return (episode.task.payload.item,)

    def metrics(self, episode: Episode[WebShopState]) -> Mapping[str, float]:
        """The score and its parts, the price paid (0 without a purchase), searches, items opened.

        ``type``, ``attributes``, ``options`` and ``in_budget`` are the parts of the reward.
        """
        visit = episode.state
        bought = visit.bought
        metrics = {"score": 0.0, "type": 0.0, "attributes": 0.0, "options": 0.0, "in_budget": 0.0}
        if bought is not None:
            metrics = {
                "score": bought.score,
                "type": bought.type,
                "attributes": bought.attributes,
                "options": bought.options,
                "in_budget": bought.price,
            }
        return {
            **metrics,
            "bought": float(bought is not None),
            "price": 0.0 if bought is None else self.pages.item(visit).price,
            "searches": float(visit.searches),
            "opened": float(visit.opened),
        }

    def legal_actions(self) -> list[str]:
        """Clicks on all labels of the page; on the search page, a search for the instruction."""
        episode = self.episode
        if episode.state.page == "search":
            words = " ".join(episode.task.payload.text.replace("[", " ").replace("]", " ").split())
            return [f"search[{words}]"]
        return [f"click[{label}]" for label in self.pages.list_clickable(episode.state)]

    def find_places(self, hits: Sequence[Hit]) -> tuple[int, ...]:
        """Places of the items that a search found."""
        return tuple(self.shop.places[hit.id] for hit in hits)

    def find_fitting(self, goal: Goal, places: Sequence[int]) -> int:
        """Rank of the first item among ``places`` that can earn all for ``goal``, or -1."""
        items = self.shop.items
        return next((i for i, place in enumerate(places) if is_right(items[place], goal)), -1)

    def _search(self, episode: Episode[WebShopState], words: str) -> Generator[Call, Any, Outcome]:
        visit, goal = episode.state, episode.task.payload
        hits: list[Hit] = yield Call(self._serve, Query(words, self.most_found))
        had = visit.rank >= 0
        visit.page, visit.number, visit.item, visit.chosen = "results", 1, -1, ()
        visit.found = self.find_places(hits)
        visit.searches += 1
        visit.rank = self.find_fitting(goal, visit.found)
        verdict: Verdict = 1 if visit.rank >= 0 and not had else 0
        return Outcome.move(self.pages.show(visit), verdict=verdict)

    def _click(self, episode: Episode[WebShopState], label: str) -> Outcome:
        visit, goal = episode.state, episode.task.payload
        before, page = self._judge_choices(visit, goal), visit.page
        self.pages.click(visit, label)
        verdict: Verdict = 0
        if page == "item" == visit.page:
            change = self._judge_choices(visit, goal) - before
            verdict = 1 if change > 0 else -1 if change < 0 else 0
        elif page == "results" and visit.page == "item":
            verdict = 1 if is_right(self.pages.item(visit), goal) else 0
        elif label == NEXT:
            verdict = 1 if visit.rank >= (visit.number - 1) * self.pages.per_page else 0
        return Outcome.move(self.pages.show(visit), verdict=verdict)

    def _buy(self, episode: Episode[WebShopState]) -> Outcome:
        visit, goal = episode.state, episode.task.payload
        item = self.pages.item(visit)
        visit.bought = match_goal(item, visit.chosen, goal)
        terms = {"outcome": visit.bought.score}
        if visit.bought.score >= 1:
            return Outcome.solved(f"bought for {write_price(item.price)}\n", terms, verdict=1)
        return Outcome.failed(f"bought for {write_price(item.price)}\n", terms, verdict=-1)

    def _judge_choices(self, visit: WebShopState, goal: Goal) -> int:
        if visit.item < 0:
            return 0
        return count_options_met(self.pages.item(visit), visit.chosen, goal.options)

    def _write_absent(self, visit: WebShopState, label: str) -> str:
        how = "" if self.micro else f" {HOW}"
        return f"There is no [{label[:60]}] to click here.{how}\n{self.pages.show(visit)}"


def _load_source(size: str | None, world_seed: int | None, data: Any) -> tuple[Any, str]:
    """The tasks, with their shop, and the size of pages."""
    if data is not None:
        for name, value in (("size", size), ("world_seed", world_seed)):
            if value is not None:
                raise BadValueError(
                    f"WebShop: {name} is set, and data too; {name} is about the generated shop. "
                    "Give one of them."
                )
        from .files import load_files

        return load_files(data), "full"
    size = "full" if size is None else size
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, "WebShop")
    seed = 0 if world_seed is None else check_integer("world_seed", world_seed, "WebShop", min=0)
    return load_goals(size, seed), size
