"""An index on the disk, served by the command and asked by SearchQA."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

from turngym.agents.retrieval.server import make_app
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.tools.retrieval.index import open_index
from turngym.envs.tools.retrieval.index.build import build_index


def test_the_command_serves_an_index(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    rows = [
        {"id": "0", "contents": '"Ada Brook"\nAda Brook was born in Lum Tor.', "url": "kept"},
        {"id": "1", "contents": '"Red Lamp"\nRed Lamp is a novel by Ada Brook.'},
    ]
    corpus, asked = tmp_path / "corpus.jsonl", tmp_path / "q.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    question = {"id": "q", "question": "where was ada brook born", "golden_answers": ["Lum Tor"]}
    asked.write_text(json.dumps(question) + "\n")
    build_index(corpus, tmp_path / "index")
    words = ["retriever", "serve", "--index", str(tmp_path / "index"), "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, "-m", "turngym.benchmarks.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"Serving 2 passages on (http://\S+)/retrieve", said)
        assert found is not None, said
        env = SearchQA(data=asked, retriever=found[1])
        env.reset(seed=0)
        there, *_ = env.step("<search> ada brook born </search>")
        env = SearchQA(data=asked, corpus=tmp_path / "index")
        env.reset(seed=0)
        here, *_ = env.step("<search> ada brook born </search>")
        assert there == here
        assert "Lum Tor" in there
    finally:
        server.send_signal(signal.SIGINT)
        rest, _ = server.communicate(timeout=20)
    assert server.returncode == 130
    assert "Traceback" not in rest
    index = open_index(tmp_path / "index")
    (hits,) = index.search(["ada brook born"], 1)
    with TestClient(make_app(index)) as client:  # rows come as the corpus has them
        reply = client.post("/retrieve", json={"queries": ["ada brook born"], "topk": 1})
    assert reply.json() == {"result": [[rows[0]]]}
    assert hits[0].id == "0"
