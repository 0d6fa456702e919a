"""The scripted player: finds an item that fits, chooses its options, buys it; errs on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..core.noisy_expert import NoisyExpert
from .pages import BACK, BUY, NEXT, PREVIOUS
from .reward import Goal, find_best_choice
from .state import WebShopState

if TYPE_CHECKING:
    from .env import WebShop


class Expert(NoisyExpert):
    """A policy for :class:`WebShop`: searches for kind, attributes and options, chooses and buys.

    Args:
        mistakes: Probability per action of a mistake: a poor search, another item, another option,
            a purchase before all options are chosen.
        seed: Seed of the mistakes.
    """

    def choose_action(self, env: WebShop) -> str:
        """Return the next action of the episode in ``env``."""
        visit, goal = env.episode.state, env.episode.task.payload
        if self.draw_mistake():
            return self._mistake(env, visit, goal)
        if visit.page == "item":
            last = env.episode.turn + 1 >= env.max_turns
            return f"click[{BUY if last else self._act_on_item(env, visit, goal)}]"
        if visit.page in ("search", "results"):
            return self._act_on_results(env, visit, goal)
        return f"click[{PREVIOUS}]"

    def _act_on_results(self, shop: WebShop, visit: WebShopState, goal: Goal) -> str:
        """On the way to an item: search, turn pages, open it."""
        rank = choose_target(shop, goal, visit.found) if visit.page == "results" else -1
        if rank < 0:
            return f"search[{choose_query(shop, goal)}]"
        number = rank // shop.pages.per_page + 1
        if number == visit.number:
            return f"click[{shop.shop.items[visit.found[rank]].id}]"
        return f"click[{NEXT if number > visit.number else PREVIOUS}]"

    def _act_on_item(self, shop: WebShop, visit: WebShopState, goal: Goal) -> str:
        """The next label on the page of an item."""
        if choose_target(shop, goal, [visit.item]) < 0:
            return PREVIOUS if choose_target(shop, goal, visit.found) >= 0 else BACK
        missing = [pair for pair in find_best_choice(shop.pages.item(visit), goal)]
        missing = [value for name, value in missing if (name, value) not in visit.chosen]
        return missing[0] if missing else BUY

    def _mistake(self, shop: WebShop, visit: WebShopState, goal: Goal) -> str:
        labels = shop.pages.list_clickable(visit)
        if visit.page == "results" and (ids := [x for x in labels if x in shop.shop.places]):
            return f"click[{self._draw_one(ids)}]"
        if visit.page == "item":
            return f"click[{self._draw_one([x for x in labels if x not in (BACK, PREVIOUS)])}]"
        return f"search[{self._draw_one([goal.kind, *goal.attributes, *goal.options])}]"

    def _draw_one(self, labels: Sequence[str]) -> str:
        return labels[int(self._rng.integers(len(labels)))]


def choose_target(shop: WebShop, goal: Goal, places: Sequence[int]) -> int:
    """Rank of the item to buy among ``places``, or -1: one that fits, or the goal's own.

    Goals from files may have no item that earns everything; then it is the one they were made for.
    """
    rank = shop.find_fitting(goal, places)
    own = shop.shop.places[goal.item]
    return places.index(own) if rank < 0 and own in places else rank


def list_queries(goal: Goal) -> Iterator[str]:
    """What to search for, made of words of the instruction alone."""
    yield " ".join([*goal.attributes, goal.kind])
    yield " ".join([*goal.attributes, goal.kind, *goal.options])
    for attribute in goal.attributes:
        yield f"{attribute} {goal.kind}"
    yield goal.kind


def choose_query(shop: WebShop, goal: Goal) -> str:
    """The query with the item to buy on the first page, or as far in front as can be.

    Where no query finds it, the title of the goal's own item is searched for.
    """
    best, ahead = shop.shop[goal.item].title, shop.most_found
    best = " ".join(best.replace("[", " ").replace("]", " ").split())
    for query in list_queries(goal):
        hits = shop.shop.retriever.search([query], shop.most_found)[0]
        rank = choose_target(shop, goal, shop.find_places(hits))
        if 0 <= rank < shop.pages.per_page:
            return query
        if 0 <= rank < ahead:
            best, ahead = query, rank
    return best
