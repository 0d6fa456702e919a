"""The laws of engines, for the engine over transformers."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.engine_help import engine
from helpers.engine_laws import EngineLaws
from helpers.small_models import model


@pytest.fixture(scope="module")
def net() -> Any:
    return model("Qwen2")


@pytest.fixture(scope="module")
def eng(net: Any) -> Any:
    return engine(net)


class TestTransformersEngine(EngineLaws):
    pass
