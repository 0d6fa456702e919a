"""The processes of an engine's cards as members of a group, without vLLM: threads stand in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from turngym.agents.engines.hand_over.forms import Form
from turngym.agents.engines.hand_over.group import GroupError, Meeting, Membership, WeightGroup
from turngym.agents.engines.vllm.receiver import CardsReceiver

SENT = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.bfloat16)}
FORMS = [Form.of(name, t) for name, t in SENT.items()]


class Card:
    """A worker of vLLM's, as far as weights go."""

    def __init__(self, rank: int) -> None:
        self.rank, self.device = rank, torch.device("cpu")
        self.model_runner = self
        self.loaded: dict[str, torch.Tensor] = {}
        self.most, self.broken = 99, False

    def reload_weights(self, weights_iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        """Take some of what comes."""
        self.loaded = {}
        for name, tensor in weights_iterator:
            if self.broken:
                raise RuntimeError("the card is full")
            self.loaded[name] = tensor.clone()
            if len(self.loaded) == self.most:
                return


def learner(
    size: int, send: Callable[[WeightGroup], None], join_s: float = 3.0
) -> tuple[Membership, threading.Thread]:
    meeting = Meeting("127.0.0.1")
    place = Membership(
        name="g", host=meeting.host, port=meeting.port, size=size, rank=1, backend="gloo",
        join_s=join_s, wait_s=3.0,
    )  # fmt: skip

    def run() -> None:
        own = Membership(**place.to_json() | {"rank": 0})
        try:
            group = WeightGroup(own, torch.device("cpu"), meeting)
            send(group)
            group.close()
        except GroupError:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    return place, thread


def send(group: WeightGroup) -> None:
    group.begin()
    for tensor in SENT.values():
        group.broadcast(tensor)
    group.settle()


def receiver() -> tuple[list[Card], CardsReceiver]:
    cards = [Card(0), Card(1)]
    threads = ThreadPoolExecutor(2)

    def call(work: Any, args: Any = ()) -> list[Any]:
        return list(threads.map(lambda card: work(card, *args), cards))

    return cards, CardsReceiver(call)


def test_every_card_receives_all_and_keeps_what_it_asks_for() -> None:
    cards, made = receiver()
    assert (made.backend, made.cards, made.group) == ("gloo", ("", ""), "")
    cards[1].most = 1
    place, thread = learner(3, send)
    made.join(place)
    model, settle = made.incoming(FORMS)
    model.arrive()
    settle()
    thread.join()
    assert made.group == "g"
    assert cards[0].loaded.keys() == SENT.keys()
    assert all(torch.equal(cards[0].loaded[name], t) for name, t in SENT.items())
    assert cards[1].loaded.keys() == {"a"}
    made.leave()
    assert made.group == ""


def test_a_card_that_fails_is_named_and_no_answer_is_left_over() -> None:
    cards, made = receiver()
    place, thread = learner(3, send)
    made.join(place)
    cards[1].broken = True
    with pytest.raises(GroupError, match="the card is full"):
        made.incoming(FORMS)[0].arrive()
    made.leave()
    thread.join()
    cards[1].broken = False
    place, thread = learner(4, send, 0.7)  # somebody is missing
    with pytest.raises(GroupError, match="did not meet"):
        made.join(place)
    assert made.group == ""
    thread.join()
