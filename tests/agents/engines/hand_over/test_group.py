"""A group of processes that weights are sent through: who is missing, gone or lies is noticed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.nets import small
from helpers.small_models import model

from turngym.agents.engines.hand_over.arriving import Arrivals, ArrivingModule, tied_to
from turngym.agents.engines.hand_over.forms import Form, check_fits, digest_of, tied_names
from turngym.agents.engines.hand_over.group import (
    GroupError,
    Meeting,
    Membership,
    WeightGroup,
    local_address,
)
from turngym.agents.engines.local.hf_forward import HfForward
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.envs.core.errors import BadValueError, EngineFault

CPU = torch.device("cpu")
Work = Callable[[WeightGroup], Any]


def place(meeting: Meeting, rank: int, **more: Any) -> Membership:
    given: dict[str, Any] = {
        "name": "g", "host": meeting.host, "port": meeting.port, "size": 2, "rank": rank,
        "backend": "gloo", "join_s": 5.0, "wait_s": 5.0,
    }  # fmt: skip
    return Membership(**given | more)


def two(first: Work, second: Work, **more: Any) -> list[Any]:
    """What both members return or raise, and the seconds until then."""
    meeting = Meeting("127.0.0.1")
    found: list[Any] = [None, None]
    began = time.monotonic()

    def run(rank: int, work: Work) -> None:
        try:
            group = WeightGroup(place(meeting, rank, **more), CPU, None if rank else meeting)
            found[rank] = work(group)
            group.close()
        except GroupError as fault:
            found[rank] = fault

    threads = [threading.Thread(target=run, args=at) for at in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [*found, time.monotonic() - began]


def test_every_format_arrives_bit_for_bit() -> None:
    rng = torch.Generator().manual_seed(0)
    wide = torch.randn(5, 3, generator=rng)
    sent = [wide, wide.bfloat16(), wide.half(), (9 * wide).long(), wide > 0, wide[0, 0], wide[:0]]

    def give(group: WeightGroup) -> None:
        group.begin()
        for tensor in sent:
            group.broadcast(tensor.contiguous())
        group.settle()

    def take(group: WeightGroup) -> list[torch.Tensor]:
        group.begin()
        came = [group.broadcast(torch.empty_like(tensor)) for tensor in sent]
        group.settle()
        return came

    gave, came, _ = two(give, take)
    assert gave is None
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(came, sent, strict=True))


def test_a_member_that_leaves_is_noticed_at_once_and_a_silent_one_in_time() -> None:
    big = torch.zeros(4_000_000)

    def give(group: WeightGroup) -> None:
        for _ in range(3):
            group.broadcast(big)

    gave, _, seconds = two(give, WeightGroup.close, wait_s=30.0)
    assert isinstance(gave, GroupError)
    assert "a member is gone" in str(gave)
    assert seconds < 10

    over = threading.Event()

    def give_up(group: WeightGroup) -> None:
        try:
            give(group)
        finally:
            over.set()

    gave, _, seconds = two(give_up, lambda _: over.wait(10), wait_s=0.5)
    assert "took more than" in str(gave)
    assert seconds < 10


def test_too_few_members_are_an_error_in_time() -> None:
    one, other, seconds = two(lambda _: None, lambda _: None, size=3, join_s=1.0)
    for fault in (one, other):
        assert isinstance(fault, GroupError)
        assert "3 processes did not meet" in str(fault)
    assert seconds < 8


def test_other_numbers_than_were_sent_are_not_taken() -> None:
    def give(group: WeightGroup) -> None:
        group.begin()
        group.broadcast(torch.ones(3))
        group.settle()

    def take(group: WeightGroup) -> None:
        group.begin()
        group.broadcast(torch.empty(3))
        group._sum += 1
        group.settle()

    assert "other numbers came" in str(two(give, take)[1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 0}, {"rank": 2}, {"size": 1}, {"size": 10**6}, {"port": 0}, {"port": "80"},
        {"host": ""}, {"backend": "mpi"}, {"wait_s": 0}, {"join_s": float("nan")},
        {"name": "n" * 101},
    ],
)  # fmt: skip
def test_places_that_nobody_can_take_are_refused(wrong: dict[str, Any]) -> None:
    meeting = Meeting("127.0.0.1")
    told = place(meeting, 1).to_json()
    assert Membership.read(told) == place(meeting, 1)
    with pytest.raises(ValueError, match="in a group"):
        Membership.read(told | wrong)


def test_the_way_to_this_machine_stays_on_it() -> None:
    assert local_address("127.0.0.1") == "127.0.0.1"
    with pytest.raises(GroupError, match="cannot be listened at"):
        Meeting("192.0.2.1")
    with pytest.raises(GroupError, match="no way to"):
        local_address("no.such.host.invalid")


def arriving(net: Any, sender: Any) -> tuple[ArrivingModule, Arrivals]:
    tied = tied_names(sender)
    sent = [(n, t) for n, t in sender.state_dict().items() if n not in tied]
    came = iter(sent)
    forms = [Form.of(n, t) for n, t in sent]
    arrivals = Arrivals(forms, lambda _: next(came)[1].clone(), tied_to(net))
    return ArrivingModule(net, arrivals), arrivals


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("forward", "family"), [(FastDecoder, "Qwen2"), (FastDecoder, "Gemma3"), (HfForward, "Qwen3")]
)
def test_an_engine_takes_weights_as_they_arrive(forward: Any, family: str, tied: bool) -> None:
    """In the order of a checkpoint, while it reads in its own; never is a second set whole."""
    more = {"tie_word_embeddings": tied, "num_hidden_layers": 4, "vocab_size": 64}
    if family == "Gemma3":
        more |= {"config": "Gemma3Text", "sliding_window": 8}
    net, sender = (model(family, **more) for _ in range(2))
    with torch.no_grad():
        for p in sender.parameters():
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
    eng, wanted = forward(net, torch.float32, 64), forward(net, torch.float32, 64)
    view, arrivals = arriving(net, sender)
    eng.load(view)
    arrivals.finish()
    wanted.load(sender)
    for one, two in zip(tensors(eng), tensors(wanted), strict=True):
        assert torch.equal(one, two)
    assert any(not torch.equal(a, b) for a, b in zip(tensors(eng), tensors(forward(
        net, torch.float32, 64)), strict=True))  # fmt: skip
    layer = sum(p.nbytes for p in sender.model.layers[0].parameters())
    table = sender.lm_head.weight.nbytes
    assert arrivals.most_held <= layer + table + sender.model.norm.weight.nbytes
    assert arrivals.most_held < 0.7 * sum(p.nbytes for p in sender.parameters())


def tensors(forward: Any) -> list[torch.Tensor]:
    if isinstance(forward, HfForward):
        return list(forward._model.state_dict().values())
    packed = [getattr(x, n) for x in forward._blocks for n in ("qkv", "out", "gate", "up", "down")]
    found = [layer._weight for layer in (*packed, forward._weights.head)]
    return [forward._weights.embed, *(t.to_dense() if t.is_mkldnn else t for t in found)]


def test_what_is_read_twice_or_does_not_fit_is_refused() -> None:
    net = small("qwen2")
    _, arrivals = arriving(net, net)
    arrivals.read("model.embed_tokens.weight", keep=False)
    with pytest.raises(EngineFault, match="read twice"):
        arrivals.read("model.embed_tokens.weight", keep=False)
    came = {n: (tuple(t.shape), "float32") for n, t in net.state_dict().items()}
    check_fits(came, net, "here")
    name = "model.norm.weight"
    with pytest.raises(BadValueError, match="1 names differ"):
        check_fits({n: f for n, f in came.items() if n != name}, net, "here")
    with pytest.raises(BadValueError, match=r"has shape \(33,\)"):
        check_fits(came | {name: ((33,), "float32")}, net, "here")
    with pytest.raises(BadValueError, match="in int32"):
        check_fits(came | {name: ((32,), "int32")}, net, "here")
    for wrong in ({}, [1, [2], "float32"], ["w", [-1], "float32"], ["w", [2], "complex64"]):
        with pytest.raises(ValueError, match="expected a name"):
            Form.read(wrong)
    form = Form.of("w", torch.zeros(2, 3))
    assert Form.read(["w", [2, 3], "float32"]) == form
    digests = {digest_of(fs, v, r) for fs in ([form], []) for v in (1, 2) for r in ("a", "b")}
    assert len(digests) == 8
