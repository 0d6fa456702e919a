"""How well a purchase matches a goal: WebShop's reward.

With ``A`` the goal's attributes, ``O`` its options and the price limit, a purchase ``y`` earns

    r(y) = r_type * (attributes met + options met + [price <= limit]) / (|A| + |O| + 1)

An attribute is met when one of the item's attributes resembles it, or when it stands in the title,
the features or the description. An option is met when a chosen value resembles it; sizes must be
equal. Resembling is a token set ratio above 85. ``r_type`` compares the kinds by the nouns of the
titles: with ``t`` the share of the goal's nouns that the item has,

    r_type = 0 if t = 0;  0.1 if t < 0.1;  else 1 if t > 0.2, or the kinds are equal, or the
             shelves share two names;  else 0.5

Differs from the original: options met are counted up to |O| (the original counts chosen values, so
that more of them than were asked for can earn more than 1); colours are compared as they are
written, without its table of colour names; nouns are known of generated items and are all content
words of titles read from files (the original tags parts of speech with a language model).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .items import Chosen, Item

ALIKE = 85
EXACT = ("size",)
"""Options whose values have to be equal."""
NO_LIMIT = 1_000_000.0
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be bought.

    Attributes:
        text: The instruction.
        item: The id of an item that it was made for.
        kind: What it is, as of an item.
        nouns: As of an item.
        path: As of an item.
        attributes: What it has to be like; at least one.
        options: Values that have to be chosen.
        price_limit: The highest price, :data:`NO_LIMIT` for none.
    """

    text: str
    item: str
    kind: str
    nouns: frozenset[str]
    path: tuple[str, ...]
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_limit: float


@dataclass(frozen=True, slots=True)
class Match:
    """The parts of a reward, each in [0, 1]; ``options`` is 1 where the goal names none."""

    score: float
    type: float
    attributes: float
    options: float
    price: float


def match_goal(item: Item, chosen: Chosen, goal: Goal) -> Match:
    """What buying ``item`` with the options ``chosen`` earns."""
    kind = match_type(item, goal)
    attributes = sum(has_attribute(item, wanted) for wanted in goal.attributes)
    options = count_options_met(item, chosen, goal.options)
    cheap = item.price <= goal.price_limit
    parts = len(goal.attributes) + len(goal.options) + 1
    return Match(
        score=kind * (attributes + options + cheap) / parts,
        type=kind,
        attributes=attributes / len(goal.attributes),
        options=options / len(goal.options) if goal.options else 1.0,
        price=float(cheap),
    )


def match_type(item: Item, goal: Goal) -> float:
    """Whether an item is of the goal's type, from 0 to 1."""
    share = len(item.nouns & goal.nouns) / len(goal.nouns) if goal.nouns else 0.2
    if share < 0.1:
        return 0.1 if share else 0.0
    same = item.kind == goal.kind or len(set(item.path) & set(goal.path)) >= 2
    return 1.0 if same or share > 0.2 else 0.5


def has_attribute(item: Item, wanted: str) -> bool:
    """Whether an item has an attribute, by its list or in its texts."""
    if any(are_alike(attribute, wanted) for attribute in item.attributes):
        return True
    return any(wanted in text for text in item.texts)


def count_options_met(item: Item, chosen: Chosen, wanted: Sequence[str]) -> int:
    """How many of the wanted options the chosen values meet, at most all of them."""
    met = 0
    for name, value in chosen:
        found = value in wanted if name in EXACT else any(are_alike(want, value) for want in wanted)
        met += found or any(value in text for text in item.texts)
    return min(met, len(wanted))


def find_best_choice(item: Item, goal: Goal) -> Chosen:
    """Of each option of an item, the value that a goal asks for, where there is one."""
    chosen = []
    for name, values in item.options:
        for value in values:
            if name in EXACT:
                found = value in goal.options
            else:
                found = any(are_alike(wanted, value) for wanted in goal.options)
            if found:
                chosen.append((name, value))
                break
    return tuple(chosen)


def is_right(item: Item, goal: Goal) -> bool:
    """Whether the item, with the best choice of options, earns all that a goal can pay."""
    if item.price > goal.price_limit or match_type(item, goal) < 1:
        return False
    return match_goal(item, find_best_choice(item, goal), goal).score >= 1


@lru_cache(maxsize=1 << 16)
def are_alike(one: str, other: str) -> bool:
    """Whether two short texts count as the same."""
    return one == other or round(compute_token_set_ratio(one, other)) > ALIKE


def compute_token_set_ratio(one: str, other: str) -> float:
    """The token set ratio of two texts.

    The common words, and these with the words of each text alone, are three texts of sorted words;
    the best similarity of two of them counts. A text whose words all stand in the other is worth
    100. A text without words is worth 0.
    """
    left, right = (set(_WORD.findall(text.lower())) for text in (one, other))
    if not left or not right:
        return 0.0
    common = left & right
    if common and common in (left, right):
        return 100.0
    shared = " ".join(sorted(common))
    whole = [" ".join([*sorted(common), *sorted(only - common)]) for only in (left, right)]
    best = compute_similarity(*whole)
    if common:
        best = max(best, *(compute_similarity(shared, text) for text in whole))
    return best


def compute_similarity(one: str, other: str) -> float:
    """Twice the longest common subsequence over the sum of the lengths, from 0 to 100."""
    if not one and not other:
        return 100.0
    return 200.0 * _find_longest_common(one, other) / (len(one) + len(other))


def _find_longest_common(one: str, other: str) -> int:
    row = [0] * (len(other) + 1)
    for a in one:
        before = 0
        for j, b in enumerate(other, start=1):
            here = row[j]
            row[j] = before + 1 if a == b else max(here, row[j - 1])
            before = here
    return row[-1]
