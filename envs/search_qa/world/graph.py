"""The facts of a world: things in three pools, and what relates them. All from one seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

import numpy as np

from .schema import Relation, Schema

NONE = -1
"""Stands for "has no such fact" in every array of facts."""


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Things 0 .. n-1 and their facts.

    Attributes:
        names: What text calls the thing.
        titles: The name, with its kind in brackets when another thing has the same name.
        aliases: Its second name, "" when it has none.
        kinds: Index of its kind [n].
        pools: 0 train, 1 dev, 2 test [n]; facts never cross pools.
        female: Grammatical gender of persons [n].
        facts: For each relation the object [n]: a thing, a literal's number, or ``NONE``.
        lists: For each listing ``{object: subjects}``.
    """

    names: list[str]
    titles: list[str]
    aliases: list[str]
    kinds: np.ndarray
    pools: np.ndarray
    female: np.ndarray
    facts: dict[str, np.ndarray]
    lists: dict[str, dict[int, list[int]]]


@dataclass(kw_only=True)
class _Things:
    names: list[str]
    kinds: np.ndarray
    pools: np.ndarray


def build_graph(schema: Schema, rng: np.random.Generator, distractors: float) -> Graph:
    """Draw all things and facts.

    Args:
        schema: The world's plan.
        rng: Draws everything.
        distractors: Near misses per thing: others of its category whose name is like its own,
            with facts of their own.
    """
    namer = schema.namer(rng)
    kinds = np.concatenate(
        [np.full(kind.amount, i, dtype=np.int32) for i, kind in enumerate(schema.kinds)]
    )
    pools = _draw_pools(schema, rng, kinds)
    names = [namer.draw_new(schema.kinds[k]) for k in kinds.tolist()]
    models = rng.permutation(len(kinds))[: round(distractors * len(kinds))].tolist()
    more_names, more_kinds = [], []
    for model, same in zip(models, rng.random(len(models)), strict=True):
        kind = int(kinds[model])
        wanted = same < schema.style.namesake_share
        alike = wanted and schema.kinds[kind].category in schema.style.namesakes
        twin = _draw_other_kind(schema, kind, rng) if alike else kind
        # Namesakes are told apart by their kind, so a kind without siblings has none.
        named = (
            names[model] if twin != kind else namer.draw_similar(names[model], schema.kinds[kind])
        )
        more_names.append(named)
        more_kinds.append(twin)
    names += more_names
    kinds = np.concatenate([kinds, np.array(more_kinds, dtype=np.int32)])
    pools = np.concatenate([pools, pools[models]])
    with_alias = rng.random(len(kinds)) < schema.style.alias_share
    aliases = [
        namer.draw_new(schema.kinds[k]) if chosen else ""
        for k, chosen in zip(kinds.tolist(), with_alias.tolist(), strict=True)
    ]
    facts = _draw_facts(schema, rng, kinds, pools)
    uses = Counter(names)
    titles = [
        f"{name} ({schema.kinds[k].name})" if uses[name] > 1 else name
        for name, k in zip(names, kinds.tolist(), strict=True)
    ]
    return Graph(
        names=names,
        titles=titles,
        aliases=aliases,
        kinds=kinds,
        pools=pools,
        female=rng.random(len(kinds)) < 0.5,
        facts=facts,
        lists={x.key: _group_subjects(facts[x.relation]) for x in schema.listings},
    )


def get_year(day: int) -> int:
    """Year of a proleptic Gregorian day number."""
    return date.fromordinal(day).year


def _draw_pools(schema: Schema, rng: np.random.Generator, kinds: np.ndarray) -> np.ndarray:
    """Pool of each thing; every kind is parted in the schema's shares."""
    pools = np.zeros(len(kinds), dtype=np.int8)
    for kind in range(len(schema.kinds)):
        members = rng.permutation(np.flatnonzero(kinds == kind))
        first, second, _ = schema.pools
        cuts = np.round(np.cumsum([first, second]) * len(members)).astype(int)
        pools[members[cuts[0] : cuts[1]]] = 1
        pools[members[cuts[1] :]] = 2
    return pools


def _draw_other_kind(schema: Schema, kind: int, rng: np.random.Generator) -> int:
    """Another kind of the same category, ``kind`` itself when there is none."""
    category = schema.kinds[kind].category
    others = [i for i in schema.members((category,)) if i != kind]
    return others[int(rng.integers(len(others)))] if others else kind


def _draw_facts(
    schema: Schema, rng: np.random.Generator, kinds: np.ndarray, pools: np.ndarray
) -> dict[str, np.ndarray]:
    facts: dict[str, np.ndarray] = {}
    for relation in schema.relations:
        row = np.full(len(kinds), NONE, dtype=np.int32)
        able = np.isin(kinds, schema.members(relation.subjects))
        if relation.needs is not None:
            able &= facts[relation.needs] != NONE
        able &= rng.random(len(kinds)) < relation.share
        if relation.literal is not None:
            subjects = np.flatnonzero(able)
            row[subjects] = _draw_literals(relation, rng, subjects, facts, schema)
        else:
            targets = np.isin(kinds, schema.members(relation.target))
            for pool in range(3):
                own = pools == pool
                _relate(
                    relation, rng, row, np.flatnonzero(able & own), np.flatnonzero(targets & own)
                )
        facts[relation.key] = row
    return facts


def _relate(
    relation: Relation,
    rng: np.random.Generator,
    row: np.ndarray,
    subjects: np.ndarray,
    targets: np.ndarray,
) -> None:
    """Give each of ``subjects`` an object out of ``targets``, never itself."""
    if len(subjects) == 0 or len(targets) == 0:
        return
    if relation.mutual:
        order = rng.permutation(subjects)
        half = len(order) // 2
        row[order[:half]], row[order[half : 2 * half]] = order[half : 2 * half], order[:half]
        return
    if relation.fan is None:
        objects = targets[rng.integers(len(targets), size=len(subjects))]
    else:
        low, high = relation.fan
        hands = rng.integers(low, high + 1, size=len(targets))
        objects = np.repeat(rng.permutation(targets), hands)[: len(subjects)]
        subjects = rng.permutation(subjects)[: len(objects)]
    row[subjects] = np.where(objects == subjects, NONE, objects)


def _draw_literals(
    relation: Relation,
    rng: np.random.Generator,
    subjects: np.ndarray,
    facts: dict[str, np.ndarray],
    schema: Schema,
) -> np.ndarray:
    low, high = relation.span
    if relation.literal == "number":
        # Log-uniform: numbers of all magnitudes, few of them equal.
        exponents = rng.uniform(np.log(low), np.log(high), size=len(subjects))
        return np.round(np.exp(exponents)).astype(np.int32)
    offsets = rng.integers(low, high + 1, size=len(subjects))
    if not relation.after:
        base = np.zeros(len(subjects), dtype=np.int64)
    else:
        base = _find_first_years(relation, rng, subjects, facts, schema)
    years = base + offsets
    if relation.literal == "year":
        return years.astype(np.int32)
    first_days = np.array([date(int(y), 1, 1).toordinal() for y in years], dtype=np.int64)
    return (first_days + rng.integers(0, 365, size=len(subjects))).astype(np.int32)


def _find_first_years(
    relation: Relation,
    rng: np.random.Generator,
    subjects: np.ndarray,
    facts: dict[str, np.ndarray],
    schema: Schema,
) -> np.ndarray:
    """Year at the end of ``relation.after`` for each subject, a drawn one where it is unknown."""
    at = subjects
    for key in relation.after[:-1]:
        at = np.where(at == NONE, NONE, facts[key][at])
    last = relation.after[-1]
    values = np.where(at == NONE, NONE, facts[last][at])
    if schema.by_key[last].literal == "date":
        values = np.array([NONE if v == NONE else get_year(int(v)) for v in values])
    return np.where(values == NONE, rng.integers(1700, 1940, size=len(values)), values)


def _group_subjects(row: np.ndarray) -> dict[int, list[int]]:
    """Subjects of each object, in ascending order."""
    lists: dict[int, list[int]] = {}
    for subject in np.flatnonzero(row != NONE).tolist():
        lists.setdefault(int(row[subject]), []).append(subject)
    return lists
