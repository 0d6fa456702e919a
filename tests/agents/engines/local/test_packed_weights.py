"""Weights as the packed decoder multiplies with them, on processors of either kind."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from turngym.agents.engines.local.packed_weights import PackedLinear, can_prepack


@pytest.fixture(params=[True, False], ids=["narrow products", "none"])
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether oneDNN multiplies bfloat16 on this processor; pretended where it does not."""
    if request.param and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN does not multiply bfloat16 on this processor")
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: request.param)
    return request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_are_those_of_the_plain_layer(processor: bool, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    weight, x, bias, other = (
        torch.randn(shape, generator=generator).to(dtype)
        for shape in ((48, 32), (7, 32), 48, (7, 48))
    )
    layer = PackedLinear((48, 32), dtype, torch.device("cpu")).load(
        lambda out: out.copy_(weight), bias
    )
    plain = F.linear(x.float(), weight.float(), bias.float())
    tolerance = 1e-5 if dtype == torch.float32 else 0.05
    expected = {
        layer: plain,
        layer.silu: F.silu(plain),
        layer.gelu: F.gelu(plain, approximate="tanh"),
        layer.wide: plain,
    }
    for form, value in expected.items():
        torch.testing.assert_close(form(x).float(), value, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(
        layer.times(x, other).float(), plain * other.float(), rtol=tolerance, atol=tolerance
    )
    assert layer._packed == can_prepack(dtype)


def test_bfloat16_lies_plainly_where_onednn_cannot_multiply_it(processor: bool) -> None:
    assert can_prepack(torch.bfloat16) == (processor and can_prepack(torch.float32))
    assert not can_prepack(torch.float16)
