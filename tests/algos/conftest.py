"""Shared by the tests of algorithms."""

from __future__ import annotations

import pytest


@pytest.fixture
def drawn() -> None:
    """Asked for by a test whose runs draw their curves."""


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the curves of other runs out: a small one is trained sooner than drawn."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(
            "turngym.algos.training.run_writer.draw_curve", lambda *_args, **_kwargs: None
        )
