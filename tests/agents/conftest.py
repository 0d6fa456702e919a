"""Both ways of an engine's loops on a CPU: compiled by numba, and torch alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", params=["compiled", "torch"])
def loops(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test with the compiled loops, and as if numba were not there."""
    transformers_engine = pytest.importorskip("turngym.agents.engines.local.engine")
    sampling = pytest.importorskip("turngym.agents.engines.sampling")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "torch":
            for module in (transformers_engine, sampling):
                patch.setattr(module, "compiled_loops", lambda: None)
        yield request.param
