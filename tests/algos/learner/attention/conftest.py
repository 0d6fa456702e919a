"""FlexAttention without its compiler."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def flex_backward_on_cpu() -> Iterator[None]:
    """torch refuses it since its compiler cannot do it; the uncompiled one can."""
    module = sys.modules["torch.nn.attention.flex_attention"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_validate_device", lambda *_: None)
        yield
