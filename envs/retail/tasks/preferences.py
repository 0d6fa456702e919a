"""Preferences as constraints: what a customer asks of a new item, and which item that means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from ..customer.scenario import LineChange
from ..shop.tables import Record


def find_matching(want: LineChange, variants: Sequence[Record]) -> list[Record]:
    """Return the available variants that satisfy a preference; a tie gives several."""
    found = [
        v
        for v in variants
        if v["available"] and v["item_id"] != want.item_id and _satisfies(v["options"], want)
    ]
    if want.pick and found:
        edge = (min if want.pick == "cheapest" else max)(v["price"] for v in found)
        found = [v for v in found if v["price"] == edge]
    return found


def _satisfies(options: dict[str, str], want: LineChange) -> bool:
    if any(options.get(key) != value for key, value in want.set.items()):
        return False
    if any(options.get(key) == value for key, value in want.avoid.items()):
        return False
    if not want.same:
        return True
    return all(
        options.get(key) == value for key, value in want.options.items() if key not in want.set
    )


def draw_preference(
    line: Record, target: Record, variants: Sequence[Record], rng: np.random.Generator
) -> LineChange | None:
    """Draw a preference that means exactly ``target``; return None where no short one does.

    The style is drawn too: the same but for some options, a few options, a superlative, a negation.
    """
    base = LineChange(
        item_id=line["item_id"],
        name=line["name"],
        options=dict(line["options"]),
        new_id=target["item_id"],
        new_options=dict(target["options"]),
    )
    styles = [_make_same_but, _make_partial, _make_superlative, _make_negation]
    for at in rng.permutation(len(styles)).tolist():
        for want in styles[at](base, target, variants):
            found = find_matching(want, variants)
            if len(found) == 1 and found[0]["item_id"] == target["item_id"]:
                return want
    return None


def _make_same_but(base: LineChange, target: Record, _: Sequence[Record]) -> list[LineChange]:
    changed = {k: v for k, v in target["options"].items() if base.options.get(k) != v}
    return [replace(base, set=changed, same=True)] if len(changed) <= 2 else []


def _make_partial(base: LineChange, target: Record, _: Sequence[Record]) -> list[LineChange]:
    options = list(target["options"].items())
    return [
        replace(base, set=dict(some))
        for size in range(1, len(options) + 1)
        for some in combinations(options, size)
    ]


def _make_superlative(base: LineChange, target: Record, _: Sequence[Record]) -> list[LineChange]:
    made = [replace(base, pick=pick) for pick in ("cheapest", "dearest")]
    for key, value in target["options"].items():
        made += [replace(base, set={key: value}, pick=pick) for pick in ("cheapest", "dearest")]
    return made


def _make_negation(
    base: LineChange, target: Record, variants: Sequence[Record]
) -> list[LineChange]:
    made = []
    for key, value in target["options"].items():
        others = sorted({v["options"][key] for v in variants} - {value})
        for other, name in [(o, k) for o in others for k in target["options"] if k != key]:
            made.append(replace(base, set={name: target["options"][name]}, avoid={key: other}))
    return made
