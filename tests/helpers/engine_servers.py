"""Engine servers in this process, and engines that ask them."""

from __future__ import annotations

import re
import subprocess
import sys
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
    own = {"timeout_s": 20.0, "attempts": 3, "weights_by": "files"} | more
    return HttpEngine(HttpSettings(urls=tuple(urls), **own), tokenizer, learner)


@contextmanager
def spawned(model: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server in a process of its own; yields its address and the process."""
    command = [sys.executable, "-m", "turngym.benchmarks.cli", "engine", "serve", "--port", "0"]
    command += ["--model", str(model), "--engine-dtype", "float32", "--device", "cpu", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while not (found := re.search(r"http://\S+", said)):
                line = process.stdout.readline()
                assert line, said
                said += line
            yield found.group(), process
        finally:
            process.terminate()
