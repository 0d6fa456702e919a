"""``turngym engine serve``: what is refused before a model is loaded."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

from turngym.benchmarks.cli.engine import check_token
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.core.errors import BadValueError


def refused(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["engine", "serve", *words]) == REFUSED
    return capsys.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.9.1"])
def test_this_machine_needs_no_token(host: str) -> None:
    check_token(host, "", "NAME")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.3", "node-3", "localhost.example"])
def test_others_need_one(host: str) -> None:
    check_token(host, "geheim", "NAME")
    with pytest.raises(BadValueError, match="Set NAME to a long random text"):
        check_token(host, "", "NAME")


def test_refusals(
    tiny_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGYM_ENGINE_TOKEN", raising=False)
    model = ["--model", str(tiny_model), "--port", "0", "--device", "cpu"]
    assert "other machines reach" in refused([*model, "--host", "0.0.0.0"], capsys)
    assert "--port is 70000" in refused(["--model", str(tiny_model), "--port", "70000"], capsys)
    assert "no such folder" in refused(["--model", "./none/at/all", "--port", "0"], capsys)
    http = ["--engine", "http", "--http.urls", "http://127.0.0.1:1"]
    assert "cannot be served" in refused([*model, *http], capsys)
    assert "on a CPU" in refused([*model, "--sleep"], capsys)
    assert "is not a folder" in refused([*model, "--weights-folder", "/no/such"], capsys)
    urls = ["--http.urls", "http://127.0.0.1:1"]
    assert "choose engine='http'" in refused([*model, *urls], capsys)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        busy = ["--model", str(tiny_model), "--port", port]
        assert f"port {port} of 127.0.0.1 is in use" in refused(busy, capsys)
