"""The laws of engines, for the engine over transformers."""

from __future__ import annotations

from typing import Any

import pytest
from engine_help import engine
from engine_laws import EngineLaws
from small_models import model


@pytest.fixture(scope="module")
def net() -> Any:
    return model("Qwen2")


@pytest.fixture(scope="module")
def eng(net: Any) -> Any:
    return engine(net)


class TestTransformersEngine(EngineLaws):
    pass
