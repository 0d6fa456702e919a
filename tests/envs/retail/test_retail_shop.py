"""The shop: tables, overlay, and the tools in their three semantics."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from helpers.tiny_shop import ADDRESS, REFUSALS, SHOP
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.errors import UnknownNameError
from turngym.envs.retail.shop.generate import SPLITS, make_shop
from turngym.envs.retail.shop.overlay import Overlay
from turngym.envs.retail.shop.payments import find_original_method
from turngym.envs.retail.shop.read_tools import evaluate_expression
from turngym.envs.retail.shop.refusals import REASONS, Refused
from turngym.envs.retail.shop.semantics import get_semantics
from turngym.envs.retail.shop.tables import Shop
from turngym.envs.retail.shop.toolset import WRITES, get_toolset


def run(overlay: Overlay, name: str, mode: str = "strict", **given: Any) -> str:
    """What a tool says; the reason where it refuses."""
    result = get_toolset(mode).call(overlay, name, given)
    return result.refused or result.text


@pytest.mark.parametrize(("reason", "name", "arguments"), REFUSALS)
def test_every_refusal_names_its_reason_and_changes_nothing(
    reason: str, name: str, arguments: dict[str, Any]
) -> None:
    overlay = Overlay(SHOP)
    result = get_toolset("strict").call(overlay, name, arguments)
    assert result.refused == reason
    assert result.text.startswith("Error: ")
    assert overlay.changes() == {}


def test_every_reason_is_reached() -> None:
    overlay = Overlay(SHOP)
    run(overlay, "modify_pending_order_payment", order_id="#W4", payment_method_id="paypal_1")
    again = run(
        overlay, "modify_pending_order_payment", order_id="#W4", payment_method_id="gift_card_1"
    )
    assert again == "history"
    assert {"history", *(reason for reason, *_ in REFUSALS)} == set(REASONS)


def test_there_are_seventeen_tools_and_sixteen_in_each_published_mode() -> None:
    assert [len(get_toolset(mode).tools) for mode in ("strict", "tau", "tau1")] == [17, 16, 16]
    assert len(WRITES) == 7
    with pytest.raises(UnknownNameError, match="Did you mean 'strict'"):
        get_semantics("strickt")


def test_a_cancellation_refunds_what_is_still_paid_and_upstreams_refunds_every_entry() -> None:
    found = {}
    for mode in ("strict", "tau"):
        overlay = Overlay(SHOP)
        run(
            overlay,
            "modify_pending_order_payment",
            mode,
            order_id="#W4",
            payment_method_id="gift_card_1",
        )
        run(overlay, "cancel_pending_order", mode, order_id="#W4", reason="no longer needed")
        order, user = overlay.order("#W4"), overlay.user("ada")
        assert order
        assert user
        history = [
            (e["transaction_type"], e["payment_method_id"]) for e in order["payment_history"]
        ]
        found[mode] = (history[3:], user["payment_methods"]["gift_card_1"]["balance"])
    assert found["strict"] == ([("refund", "gift_card_1")], 20.0)
    assert len(found["tau"][0]) == 3


@pytest.mark.parametrize(
    ("mode", "new", "prices"),
    [
        ("strict", "21", [12.5, 10.0]),
        ("tau1", "21", [10.0, 12.5]),
        ("strict", "41", [80.0, 10.0]),
        ("tau1", "41", [80.0, 10.0]),
        ("tau", "41", [10.0, 10.0]),
    ],
)
def test_changing_two_items(mode: str, new: str, prices: list[float]) -> None:
    """Swapping two: strict resolves lines first, tau1 hits one line twice; tau2 misprices."""
    overlay = Overlay(SHOP)
    run(
        overlay,
        "modify_pending_order_items",
        mode,
        order_id="#W1",
        item_ids=["1", "2"],
        new_item_ids=list(new),
        payment_method_id="paypal_1",
    )
    order = overlay.order("#W1")
    assert order
    assert order["status"] == "pending (item modified)"
    assert [line["price"] for line in order["items"]][:2] == prices


def test_an_order_with_changed_items_is_closed_but_for_tau2s_address() -> None:
    for mode, text in (
        ("strict", "not_pending_modify"),
        ("tau1", "not_pending_modify"),
        ("tau", None),
    ):
        overlay = Overlay(SHOP)
        change = {"item_ids": ["1"], "new_item_ids": ["2"], "payment_method_id": "gift_card_1"}
        run(overlay, "modify_pending_order_items", mode, order_id="#W4", **change)
        said = run(overlay, "modify_pending_order_address", mode, order_id="#W4", **ADDRESS)
        assert (said == text) is (text is not None)
        assert (
            run(overlay, "cancel_pending_order", mode, order_id="#W4", reason="no longer needed")
            == "not_pending_cancel"
        )
        user = overlay.user("ada")
        assert user
        assert user["payment_methods"]["gift_card_1"]["balance"] == 17.5


def test_a_changed_address_is_found_by_its_new_zip_only() -> None:
    overlay = Overlay(SHOP)
    who = {"first_name": "ADA", "last_name": "lee"}
    assert run(overlay, "find_user_id_by_name_zip", zip="zip", **who) == "ada"
    run(overlay, "modify_user_address", user_id="ada", **ADDRESS)
    assert run(overlay, "find_user_id_by_name_zip", zip="zip", **who) == "user_unknown"
    assert run(overlay, "find_user_id_by_name_zip", zip="x", **who) == "ada"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7.0"),
        ("(10 - 4) / 4", "1.5"),
        ("-2 * -3.005", "6.01"),
        ("7 // 2", "3.0"),
        ("2 ** 10", "1024.0"),
    ],
)
def test_the_calculator(expression: str, value: str) -> None:
    assert evaluate_expression(expression) == value


@pytest.mark.parametrize(
    "bomb", ["9**9**9", "9" * 500, "(" * 150 + ")" * 150, "1e5", "", "(-8)**.5"]
)
def test_the_calculator_does_not_hang(bomb: str) -> None:
    with pytest.raises(Refused):
        evaluate_expression(bomb)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="<>"), max_size=8)
VALUES = st.one_of(TEXTS, st.lists(TEXTS, max_size=3), st.integers(), st.none(), st.booleans())
CALLS = st.fixed_dictionaries(
    {"name": st.sampled_from([*get_toolset("strict").tools, "no_tool", "cancel_order"])},
    optional={
        "arguments": st.dictionaries(
            st.sampled_from(
                ["order_id", "reason", "item_ids", "payment_method_id", "zip", "email"]
            ),
            VALUES,
        ),
        "more": VALUES,
    },
)


@settings(max_examples=150, deadline=None)
@given(CALLS, st.sampled_from(["{}", " {} ", "text {} text", "{}{}", "{"]))
def test_quick_reading_equals_the_grammars(call: dict[str, Any], form: str) -> None:
    tools = get_toolset("strict")
    text = form.replace("{}", f"<tool_call>{json.dumps(call)}</tool_call>")
    assert tools.parse(text) == tools.grammar.parse(text)


def test_shops_are_made_alike_and_share_nothing_between_splits() -> None:
    shops = [make_shop("full", 0, split) for split in SPLITS]
    for table in ("users", "orders", "variants", "products"):
        keys = [set(getattr(shop, table)) for shop in shops]
        assert len(set.union(*keys)) == sum(map(len, keys))
    make_shop.cache_clear()
    assert make_shop("full", 0, "train").digest() == shops[0].digest()
    assert make_shop("full", 1, "train").digest() != shops[0].digest()


def test_the_shapes_of_the_full_shop() -> None:
    shop = make_shop("full", 0, "train")
    assert (len(shop.users), len(shop.products)) == (500, 50)
    assert len(shop.orders) > 1000
    for order in shop.orders.values():
        history, total = order["payment_history"], sum(line["price"] for line in order["items"])
        assert history[0]["amount"] == pytest.approx(total)
        assert (order["fulfillments"] == []) == (order["status"] == "pending")
        assert history[0]["payment_method_id"] in shop.users[order["user_id"]]["payment_methods"]
    several = [len(user["payment_methods"]) > 1 for user in shop.users.values()]
    assert np.mean(several) > 0.35


def random_calls(
    shop: Shop, rng: np.random.Generator, count: int
) -> list[tuple[str, dict[str, Any]]]:
    """Calls with ids of the shop, mostly refused."""
    calls: list[tuple[str, dict[str, Any]]] = []
    orders = list(shop.orders.values())[:12]
    for _ in range(count):
        order = orders[int(rng.integers(len(orders)))]
        user = shop.users[order["user_id"]]
        method = list(user["payment_methods"])[int(rng.integers(len(user["payment_methods"])))]
        item = order["items"][int(rng.integers(len(order["items"])))]
        new = list(shop.products[item["product_id"]]["variants"])[int(rng.integers(3))]
        name = sorted(WRITES)[int(rng.integers(7))]
        every = {
            "order_id": order["order_id"],
            "user_id": user["user_id"],
            "reason": "no longer needed",
            "payment_method_id": method,
            "item_ids": [item["item_id"]],
            "new_item_ids": [new],
            **dict.fromkeys(ADDRESS, str(int(rng.integers(3)))),
        }
        wanted = get_toolset("strict").tools[name].parameters["properties"]
        calls.append((name, {key: every[key] for key in wanted}))
    return calls


@pytest.mark.parametrize("seed", range(12))
def test_random_traces_conserve_what_must_be_conserved(seed: int) -> None:
    """Money in the history adds up, gift cards stay above 0, an order ends once, goods stay."""
    shop = make_shop("micro", 3, "train")
    before, overlay, rng = shop.digest(), Overlay(shop), np.random.default_rng(seed)
    for name, arguments in random_calls(shop, rng, 60):
        get_toolset("strict").call(overlay, name, arguments)
        for order in overlay.orders.values():
            paid = sum(
                e["amount"] * (1 if e["transaction_type"] == "payment" else -1)
                for e in order["payment_history"]
            )
            total = sum(line["price"] for line in order["items"])
            assert paid == pytest.approx(0.0 if order["status"] == "cancelled" else total)
        for user in overlay.users.values():
            balances = [m.get("balance", 0) for m in user["payment_methods"].values()]
            assert min(balances) >= 0
    shop._digest = ""
    assert shop.digest() == before


@pytest.mark.parametrize("seed", range(6))
def test_comparing_touched_records_equals_comparing_everything(seed: int) -> None:
    shop = make_shop("micro", 4, "train")
    rng = np.random.default_rng(seed)
    calls = random_calls(shop, rng, 8)
    desks = []
    for part in (calls, calls[:4], calls[::-1], calls + calls, []):
        overlay = Overlay(shop)
        for name, arguments in part:
            get_toolset("strict").call(overlay, name, arguments)
        desks.append(overlay)
    digests = [overlay.full_digest() for overlay in desks]
    for one, first in zip(desks, digests, strict=True):
        for two, second in zip(desks, digests, strict=True):
            same = first == second
            assert one.is_at(two.changes()) == same == (one.changes() == two.changes())


def test_the_original_method_of_an_order_without_payments_is_nothing() -> None:
    assert find_original_method({"payment_history": []}) == ""
