"""Three ways in which the same tools behave: repaired, and as published with all defects."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """What differs between the versions of the tools; the defaults are the repaired ones.

    Attributes:
        name: ``"strict"``, ``"tau"`` (tau2) or ``"tau1"`` (tau-bench).
        refund_every_entry: Cancelling refunds every line of the payment history, refunds included,
            in place of what is still paid.
        pending_by_word: Addresses and payments also change where the status merely holds the
            word "pending".
        must_differ: A new item must not be the old one.
        exchange_must_differ: The same for exchanges.
        last_for_all: Item changes give every line the price and options of the last new item.
        one_by_one: Lines are searched again after each change, and may be hit twice.
        rounded: Amounts are rounded to cents.
        filled_addresses: Address fields must not be empty (the second line may).
        without: Names of the tools that are left out.
    """

    name: str
    refund_every_entry: bool = False
    pending_by_word: bool = False
    must_differ: bool = True
    exchange_must_differ: bool = True
    last_for_all: bool = False
    one_by_one: bool = False
    rounded: bool = True
    filled_addresses: bool = True
    without: tuple[str, ...] = ()


STRICT = Semantics(name="strict")
TAU1 = Semantics(
    name="tau1",
    refund_every_entry=True,
    must_differ=False,
    exchange_must_differ=False,
    one_by_one=True,
    rounded=False,
    filled_addresses=False,
    without=("get_item_details",),
)
TAU2 = Semantics(
    name="tau",
    refund_every_entry=True,
    pending_by_word=True,
    exchange_must_differ=False,
    last_for_all=True,
    one_by_one=True,
    rounded=False,
    filled_addresses=False,
    without=("think",),
)
MODES = {"strict": STRICT, "tau": TAU2, "tau1": TAU1}


def get_semantics(mode: str) -> Semantics:
    """Return the semantics of a mode.

    Raises:
        UnknownNameError: There is no such mode.
    """
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES, "Retail")
    return MODES[mode]
