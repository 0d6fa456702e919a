"""What learns does not depend on PyTorch's settings of the cells before."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
import torch

from turngym.agents.models.usual_torch import usual_torch


@pytest.mark.usefixtures("other_torch")
def test_usual_within_and_the_caller_s_again_behind_a_fault() -> None:
    with torch.inference_mode():
        with suppress(KeyError), usual_torch():
            weight = torch.ones(2, requires_grad=True)
            (3 * weight).sum().backward()
            assert weight.grad is not None
            assert (weight.grad.dtype, weight.grad.device.type) == (torch.float32, "cpu")
            raise KeyError
        assert torch.is_inference_mode_enabled()
    assert not torch.is_grad_enabled()
    new = torch.ones(2)
    assert (new.dtype, new.device.type) == (torch.float64, "meta")


@pytest.mark.usefixtures("other_torch")
def test_two_threads_leave_the_process_s_type_in_any_order() -> None:
    entered, may_leave = threading.Event(), threading.Event()

    def learn() -> None:
        with usual_torch():
            entered.set()
            may_leave.wait(10)

    first = threading.Thread(target=learn)
    first.start()
    entered.wait(10)
    with usual_torch():
        may_leave.set()
        first.join()
        assert torch.get_default_dtype() == torch.float32
    assert torch.get_default_dtype() == torch.float64
