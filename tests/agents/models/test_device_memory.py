"""A process's share of a card, with a card that is made up."""

from __future__ import annotations

import pytest
import torch

from turngym.agents.models.device_memory import (
    SHARE,
    cache_bytes,
    card_share,
    device_memory,
    prepare_card,
    share_of,
)
from turngym.envs.core.errors import BadValueError

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
GIB = 2**30


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """A card of 80 GiB, 50 of them free, of which this process has reserved 10 and uses 4."""
    state = {"free": 50 * GIB, "total": 80 * GIB, "reserved": 10 * GIB, "used": 4 * GIB}
    monkeypatch.delenv(SHARE, raising=False)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (state["free"], state["total"]))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: state["reserved"])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: state["used"])
    limits: dict[int, float] = {}

    def limit(share: float, device: int | torch.device) -> None:
        limits[torch.cuda._utils._get_device_index(device)] = share  # as torch does

    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", limit)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", lambda _: None)
    return limits


def test_alone_a_process_has_the_card(card: dict[int, float]) -> None:
    assert device_memory(CUDA) == (56 * GIB, 80 * GIB)
    assert cache_bytes(None, CUDA) == 28 * GIB
    prepare_card(CUDA)
    assert card == {}


def test_a_share_counts_as_the_card(
    card: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHARE, "0.25")
    assert device_memory(CUDA) == (10 * GIB + 6 * GIB, 20 * GIB)
    assert cache_bytes(None, CUDA) == 8 * GIB
    prepare_card(CPU)
    assert card == {}
    prepare_card(CUDA)
    assert card == {3: 0.25}
    prepare_card(torch.device("cuda:1"))
    assert card == {3: 0.25, 1: 0.25}
    monkeypatch.setenv(SHARE, "0.1")  # less than it has reserved: only that is left
    assert device_memory(CUDA) == (6 * GIB, 8 * GIB)
    monkeypatch.setenv(SHARE, "0.9")  # others have taken what would be its own
    assert device_memory(CUDA) == (56 * GIB, 72 * GIB)


def test_what_was_asked_for_and_a_processor_s_memory_are_as_they_were() -> None:
    assert cache_bytes(0.5, CUDA) == GIB // 2
    assert cache_bytes(None, CPU) == 2 * GIB


@pytest.mark.parametrize("given", ["0", "-1", "1.5", "half", "nan", ""])
def test_a_bad_share_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARE, given)
    with pytest.raises(BadValueError, match=f"{SHARE} is '{given}'.*Unset it"):
        card_share()


@pytest.mark.parametrize("processes", [1, 2, 3, 7, 12])
def test_shares_of_one_card_fit_on_it(processes: int) -> None:
    share = share_of(1 / processes)
    assert 0.9 < share * processes <= 1.0
    assert (share == 1.0) == (processes == 1)
