"""Lines of an order: finding them and changing them to other variants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .semantics import Semantics
from .tables import Record, Shop


def missing_line(lines: Sequence[Record], item_ids: Sequence[str]) -> str | None:
    """An item that is named more often than it is ordered; None where all are there."""
    have = [line["item_id"] for line in lines]
    for item_id in item_ids:
        if item_id not in have:
            return item_id
    if len(set(item_ids)) != len(item_ids):
        ordered = Counter(have)
        for item_id, times in Counter(item_ids).items():
            if times > ordered[item_id]:
                return item_id
    return None


def replaced_lines(
    shop: Shop,
    lines: Sequence[Record],
    item_ids: Sequence[str],
    new_item_ids: Sequence[str],
    semantics: Semantics,
) -> list[Record]:
    """The order's lines with each old item changed to its new one."""
    new = list(lines)
    product_of = {line["item_id"]: line["product_id"] for line in lines}
    last = shop.products[product_of[item_ids[-1]]]["variants"][new_item_ids[-1]] if item_ids else {}
    taken: set[int] = set()
    for old_id, new_id in zip(item_ids, new_item_ids, strict=True):
        at = next(
            i
            for i, line in enumerate(new if semantics.one_by_one else lines)
            if line["item_id"] == old_id and (semantics.one_by_one or i not in taken)
        )
        taken.add(at)
        variant = shop.products[product_of[old_id]]["variants"][new_id]
        if semantics.last_for_all:
            variant = last
        new[at] = {
            **new[at],
            "item_id": new_id,
            "price": variant["price"],
            "options": variant["options"],
        }
    return new
