"""``turngym retriever serve``: a process that answers, and what is refused."""

from __future__ import annotations

import json
import pickle
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.core.errors import DataError
from turngym.envs.tools.retrieval.base import Hit
from turngym.envs.tools.retrieval.http import HttpRetriever, as_retriever


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "corpus.jsonl"
    texts = {"Ada Brook": "Ada Brook was born in Lum Tor.", "Lum Tor": "Lum Tor is a town."}
    rows = [
        {"id": str(i), "contents": f'"{title}"\n{text}'}
        for i, (title, text) in enumerate(texts.items())
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "turngym.benchmarks.cli", "retriever", "serve", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+?/retrieve", line)
            assert found, line
            yield process, found.group()
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    return process.returncode, said


def test_the_expert_plays_over_a_server(corpus: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    row = {"id": "1", "question": "where was Ada Brook born?", "golden_answers": ["Lum Tor"]}
    questions.write_text(json.dumps(row))
    with serving("--corpus", str(corpus), "--port", "0", "--topk", "1") as (process, url):
        env = gym.make("SearchQA-v0", data=str(questions), retriever=url)
        expert = env.unwrapped.expert()  # type: ignore[attr-defined]
        observation, info = env.reset(seed=0)
        searched = ""
        while info["status"] == "running":
            observation, _, _, _, info = env.step(expert(env, observation, info))
            searched += observation
        assert info["status"] == "solved"
        assert 'Doc 1(Title: "Ada Brook") Ada Brook was born in Lum Tor.' in searched
        local = gym.make("SearchQA-v0", data=str(questions), corpus=str(corpus))
        query = ["town Lum"]
        own = local.unwrapped.retriever.search(query, 2)  # type: ignore[attr-defined]
        assert HttpRetriever(url).search(query, 2) == own
        assert ended(process) == (130, "stopped.\n")


def test_eval_over_a_server_and_without_it(corpus: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    row = {"id": "1", "question": "where was Ada Brook born?", "golden_answers": ["Lum Tor"]}
    questions.write_text(json.dumps(row))
    out = tmp_path / "scores.json"
    words = ["eval", "--agent", "expert", "--split", "train", "--data", str(questions)]
    words += ["--env.retriever_settings", '{"attempts": 1}', "--out", str(out)]
    with serving("--corpus", str(corpus), "--port", "0") as (process, url):
        assert main([*words, "--env.retriever", url]) == 0
        assert ended(process)[0] == 130
    (score,) = json.loads(out.read_text())
    assert (score["n"], score["errors"]) == (1, 0)
    assert score["metrics"]["answer_shown"] == 1
    assert main([*words, "--env.retriever", url]) == 0  # the server is gone: counted, not scored
    (score,) = json.loads(out.read_text())
    assert (score["n"], score["errors"]) == (0, 1)


def test_the_client_sends_the_token_that_its_server_asks_for(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVER_TOKEN", "a long random text")
    with serving("--corpus", str(corpus), "--port", "0", "--token-variable", "RETRIEVER_TOKEN") as (
        _,
        url,
    ):
        asking = as_retriever(url, {"token_variable": "RETRIEVER_TOKEN"})
        ((hit,),) = pickle.loads(pickle.dumps(asking)).search(["town Lum"], 1)
        assert hit.id == "1"
        with pytest.raises(DataError, match=r"status 401: .* name that as token_variable"):
            HttpRetriever(url).search(["town Lum"], 1)
        monkeypatch.setenv("RETRIEVER_TOKEN", "another")
        with pytest.raises(DataError, match="status 401"):
            asking.search(["town Lum"], 1)


def refused(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["retriever", "serve", *words]) == REFUSED
    return capsys.readouterr().err


def test_refusals(corpus: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    free = ["--port", "0"]
    assert "neither of --index and --corpus" in refused(free, capsys)
    both = [*free, "--corpus", str(corpus), "--index", str(tmp_path)]
    assert "both of --index and --corpus" in refused(both, capsys)
    assert "is not a file" in refused([*free, "--corpus", str(tmp_path / "none")], capsys)
    assert "--port is 70000" in refused(["--port", "70000"], capsys)
    assert "cannot listen on no.such.host" in refused(["--host", "no.such.host.invalid"], capsys)
    topk = [*free, "--corpus", str(corpus), "--topk", "0"]
    assert "default_k is 0" in refused(topk, capsys)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused(["--port", port], capsys)
        assert said == f"error: port {port} of 127.0.0.1 is in use; choose another with --port.\n"


@pytest.mark.parametrize("package", ["uvicorn", "fastapi"])
def test_a_missing_package_names_the_extra(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = refused(["--port", "0", "--corpus", str(corpus)], capsys)
    assert package in said
    assert "turngym[web]" in said


def test_several_indexes_are_opened_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Both:
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            return [[] for _ in queries]

    opened: list[Any] = []
    fake = ModuleType("turngym.envs.tools.retrieval.index")
    fake.open_indexes = lambda paths: opened.append(paths) or Both()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "turngym.envs.tools.retrieval.index", fake)
    served = SimpleNamespace(run=lambda sockets: None)
    monkeypatch.setattr("uvicorn.Server", lambda config: served)
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    words = ["--index", str(one), "--index", str(two), "--port", "0"]
    assert main(["retriever", "serve", *words]) == 0
    assert opened == [[one, two]]
    assert "Serving passages on http://127.0.0.1:" in capsys.readouterr().out
    assert "none is not a folder" in refused(
        ["--index", str(tmp_path / "none"), "--port", "0"], capsys
    )
