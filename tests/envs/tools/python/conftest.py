from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.sandboxes import FULL, STAND_IN, Sandbox, need


@pytest.fixture(params=[FULL, STAND_IN], ids="+".join)
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    need(request.param)
    made = Sandbox(request.param, monkeypatch)
    yield made
    assert made.left_alive() == []


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    need(FULL)
    made = Sandbox(FULL, monkeypatch)
    yield made
    assert made.left_alive() == []
