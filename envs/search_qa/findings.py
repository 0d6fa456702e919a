"""What searches of a generated world found, put into words: the thoughts of a player that reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from .questions import Question
from .world.graph import NONE
from .world.queries import Probe
from .world.schema import Listing, Relation
from .world.wording import join_with_and, list_names, list_object_texts, write_mention
from .world.world import World, load_world


def write_finding(world: World, probe: Probe, shown: str) -> str:
    """What a search brought, as one sentence; empty where ``shown`` does not say it.

    A relation is said with its noun ("The mentor of Ada Finch is Tom Ruck."), a listing is counted
    ("1 Iron Lighthouse, 2 Salt Courtyard."), and of things that are looked for by what relates them
    the title is said ("It is Ada Finch.").

    Args:
        world: The world of the question.
        probe: The search.
        shown: What was shown in answer.
    """
    thing = _number_things(*world.key).get(probe.subject)
    if thing is None:
        return _say_title(world, probe, shown)
    match _find_asked(world, probe, thing):
        case Listing() as listing:
            return _count_members(world, listing, thing, shown)
        case Relation() as relation:
            said = list_object_texts(world.schema, world.graph, relation.key, thing)
            value = _find_said(said, shown)
            noun = relation.noun.format(s=probe.subject)
            return f"{noun[0].upper()}{noun[1:]} is {value}." if value else ""
        case None:
            return ""


def write_findings(world: World, question: Question, shown: tuple[str, ...]) -> str:
    """What to think before an answer, from all that was shown; empty where the answer was read.

    Comparisons say what they compare and in which order it is, lists are counted aloud, and what
    two relations lead to is named; the answer to any other question stands in the passage that was
    read last.

    Args:
        world: The world of the question.
        question: The question.
        shown: What each search of its plan was answered with, in its order.
    """
    count = min(len(question.plan), len(shown))
    if question.kind == "bridge" or not count:
        return ""
    first = 0 if question.kind == "comparison" else count - 1
    said: list[str] = []
    for i in range(first, count):
        if not (finding := write_finding(world, question.plan[i], shown[i])):
            return ""
        order = write_order(world, question.text, question.plan[: i + 1], shown[: i + 1])
        said += [finding, order]
    return " ".join(filter(None, said))


def write_order(world: World, question: str, probes: Sequence[Probe], shown: Sequence[str]) -> str:
    """Which of two compared values is which, and which of them is asked for.

    "The least is 167, the most is 2,106. The longer: the most is 2,106." Each of the three is one
    step for who imitates it: to put numbers in order, to tell what a word such as "longer" means,
    and to say again what was said. Empty unless the last search was for the second value, and where
    the text does not say them.

    Args:
        world: The world of the question.
        question: Its text.
        probes: The searches so far.
        shown: What was shown in answer to each.
    """
    numbers = _number_things(*world.key)
    things = [numbers.get(probe.subject) for probe in probes]
    asked = [
        None if thing is None else _find_asked(world, probe, thing)
        for probe, thing in zip(probes, things, strict=True)
    ]
    relation = asked[-1]
    if not isinstance(relation, Relation) or not relation.order or asked.count(relation) != 2:
        return ""
    values: list[tuple[int, str]] = []
    for other, thing, text in zip(asked, things, shown, strict=True):
        if other is relation and thing is not None:
            said = list_object_texts(world.schema, world.graph, relation.key, thing)
            values.append((int(world.graph.facts[relation.key][thing]), _find_said(said, text)))
    (_, low), (_, high) = sorted(values)
    if not low or not high:
        return ""
    ends = ("least", "most") if relation.literal == "number" else ("earliest", "latest")
    highest = relation.order[1] in question
    word = relation.order[highest].removeprefix("the ").removesuffix(" of")
    asked_for = f"The {word}: the {ends[highest]} is {(low, high)[highest]}."
    return f"The {ends[0]} is {low}, the {ends[1]} is {high}. {asked_for}"


def find_said_name(world: World, probe: Probe, seen: str, top_k: int) -> str:
    """The name of a search's subject that somebody who read ``seen`` would search for.

    That is the subject's title, unless the text calls it otherwise (an alias, or the name without
    what tells namesakes apart) and a search for that name finds the same.

    Args:
        world: The world of the question.
        probe: The search.
        seen: The question and all that was shown.
        top_k: Passages per search.
    """
    thing = _number_things(*world.key).get(probe.subject)
    if thing is None or probe.subject in seen:
        return probe.subject
    names = [name for name in list_names(world.graph, thing) if name in seen]
    found = world.index.search([f"{name} {probe.keyword}" for name in names], top_k)
    return next(
        (
            name
            for name, hits in zip(names, found, strict=True)
            if any(hit.id in probe.passages for hit in hits)
        ),
        probe.subject,
    )


def find_shown_answer(question: Question, texts: Sequence[str]) -> str:
    """The accepted answer that somebody who read ``texts`` would give.

    The usual one where they say it or none of them, else another: an alias, a date as it is
    written there.

    Args:
        question: The question.
        texts: All that was shown and thought.
    """
    answers = question.answers
    return next((x for x in answers if any(x in text for text in texts)), answers[0])


@lru_cache(maxsize=4)
def _number_things(size: str, seed: int, distractors: float) -> dict[str, int]:
    """The number of each thing of a world, by its title, which no other has."""
    titles = load_world(size, seed, distractors).graph.titles
    return {title: thing for thing, title in enumerate(titles)}


def _find_asked(world: World, probe: Probe, thing: int) -> Relation | Listing | None:
    """The fact that a search is for: by its keyword, and by the passage where it stands."""
    kind = int(world.graph.kinds[thing])
    schema = world.schema
    for asked in (*schema.relations_of[kind], *schema.listings_of[kind]):
        place = int(world.places[asked.key][thing])
        if asked.keyword == probe.keyword and place != NONE and str(place) in probe.passages:
            return asked
    return None


def _count_members(world: World, listing: Listing, thing: int, shown: str) -> str:
    """The members of a list with their numbers, in the order in which the passage tells them."""
    members = world.graph.lists[listing.key].get(thing, ())
    if not members:
        return ""
    if join_with_and([write_mention(world.schema, world.graph, m) for m in members]) not in shown:
        return ""  # cut off, or another passage
    named = (f"{i} {world.graph.names[m]}" for i, m in enumerate(members, 1))
    return f"{', '.join(named)}."


def _say_title(world: World, probe: Probe, shown: str) -> str:
    titles = [world.corpus.titles[int(place)].strip('"') for place in probe.passages]
    found = _find_said(titles, shown)
    return f"It is {found}." if found else ""


def _find_said(texts: Iterable[str], shown: str) -> str:
    """The first of several writings that was shown; empty if none was."""
    return next((text for text in texts if text in shown), "")
