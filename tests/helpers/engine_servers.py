"""Engine servers in this process, and engines that ask them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.http_servers import serve_app

pytest.importorskip("fastapi", reason="the extra web is missing")
pytest.importorskip("uvicorn", reason="the extra web is missing")

from turngym.agents.engines.factory import EngineSettings
from turngym.agents.engines.http.app import make_app
from turngym.agents.engines.http.engine import HttpEngine
from turngym.agents.engines.http.host import EngineHost
from turngym.agents.engines.http.settings import HttpSettings
from turngym.agents.engines.serving import host_engine

FLOAT32 = EngineSettings(engine_dtype="float32", device="cpu", max_batch=8)


@contextmanager
def engine_servers(
    model: Path | str, count: int = 1, *, token: str = "", max_batch: int = 8, **more: Any
) -> Iterator[list[tuple[str, EngineHost]]]:
    """Serve the model ``count`` times; yield the addresses with what is behind them."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            host = host_engine(str(model), replace(FLOAT32, max_batch=max_batch), **more)
            stack.callback(host.close)
            found.append((stack.enter_context(serve_app(make_app(host, token=token))), host))
        yield found


def http_engine(urls: list[str], tokenizer: Any, learner: Any = None, **more: Any) -> HttpEngine:
    """An engine over these servers, impatient."""
    own = {"timeout_s": 20.0, "attempts": 3} | more
    return HttpEngine(HttpSettings(urls=tuple(urls), **own), tokenizer, learner)
