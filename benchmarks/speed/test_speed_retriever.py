"""BM25 over a million generated passages: building, searching, serving over HTTP.

Passages of 100 words drawn by Zipf's law from 400,000; questions of nine words, six of them out of
one passage, three drawn like the passages' words. Peer: bm25s on the very same postings, one query
after the other, as the field's stock server does it.
Run with ``pytest benchmarks/speed/test_speed_retriever.py --benchmark-only -s`` (three minutes at
first;
the corpus and the index stay in turngym's cache). ``TURNGYM_PASSAGES`` sets another size.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.envs.tools.retrieval.base import words
from turngym.envs.tools.retrieval.index import open_index
from turngym.envs.tools.retrieval.index.bm25 import Bm25Index
from turngym.envs.tools.retrieval.index.build import build_index
from turngym.envs.utils.disk_cache import cache_dir

pytestmark = pytest.mark.timeout(3600)

PASSAGES = int(os.environ.get("TURNGYM_PASSAGES", "1000000"))
WORDS, LENGTH, BATCH, BATCHES, K = 400_000, 100, 64, 10, 3
MOST_MINUTES, MOST_GB, LEAST_QPS, LEAST_RATIO = 5, 2.5, 300, 5


def drawer() -> Any:
    """Word numbers by Zipf's law."""
    share = (1 / np.arange(1, WORDS + 1) ** 1.07).cumsum()
    share /= share[-1]
    return lambda rng, shape: np.searchsorted(share, rng.random(shape))


@pytest.fixture(scope="module")
def corpus() -> Path:
    path = cache_dir() / f"benchmark-{PASSAGES}.jsonl"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    draw, rng = drawer(), np.random.default_rng(0)
    with path.with_suffix(".part").open("w") as file:
        for start in range(0, PASSAGES, 10_000):
            for i, row in enumerate(draw(rng, (min(10_000, PASSAGES - start), LENGTH))):
                text = " ".join(f"w{j:x}" for j in row)
                contents = f'"Title {start + i}"\n{text}'
                file.write(json.dumps({"id": str(start + i), "contents": contents}) + "\n")
    path.with_suffix(".part").replace(path)
    return path


@pytest.fixture(scope="module")
def index(corpus: Path) -> Bm25Index:
    folder = corpus.with_suffix(".bm25")
    build_index(corpus, folder)
    made = open_index(folder)
    assert isinstance(made, Bm25Index)
    return made


@pytest.fixture(scope="module")
def questions(index: Bm25Index) -> list[str]:
    draw, rng = drawer(), np.random.default_rng(1)
    made = []
    for number in rng.integers(len(index), size=BATCH * BATCHES):
        own = index.passages.row(int(number))["contents"].split("\n")[1].split()
        picked = [own[i] for i in rng.integers(len(own), size=6)]
        made.append(" ".join(picked + [f"w{j:x}" for j in draw(rng, 3)]))
    return made


def test_build(corpus: Path, tmp_path: Path, benchmark: Any) -> None:
    script = (
        "import sys, resource; from turngym.envs.tools.retrieval.index.build import build_index; "
        "build_index(sys.argv[1], sys.argv[2]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks: list[float] = []

    def build() -> None:
        out = str(tmp_path / f"index-{len(peaks)}")
        done = subprocess.run(
            [sys.executable, "-c", script, str(corpus), out], check=True, stdout=subprocess.PIPE
        )
        peaks.append(int(done.stdout) / 1e6)

    benchmark.pedantic(build, rounds=1)
    took = benchmark.stats.stats.min
    benchmark.extra_info |= {"seconds": round(took), "peak_gb": round(max(peaks), 2)}
    print(f"\n{PASSAGES:,} passages indexed in {took:.0f} s, peak {max(peaks):.2f} GB")
    assert took < MOST_MINUTES * 60


def test_search(index: Bm25Index, questions: list[str], benchmark: Any) -> None:
    import bm25s

    peer = bm25s.BM25(method="lucene")
    peer.nonoccurrence_array = None
    peer.scores = {
        "data": index._scores,
        "indices": index._docs.astype(np.int32),
        "indptr": index._starts,
        "num_docs": len(index),
    }
    asked = questions[:BATCH]
    known = [[n for w in words(q) if (n := index._table.find(w)) is not None] for q in asked]

    def plain() -> tuple[np.ndarray, float]:
        start, best = time.perf_counter(), []
        for ids in known:
            scores = peer.get_scores_from_ids(ids)
            top = np.argpartition(scores, len(scores) - K)[len(scores) - K :]
            best.append(np.sort(scores[top])[::-1])
        return np.array(best), time.perf_counter() - start

    theirs, slow = plain()
    index.search(asked, K)
    ours = benchmark.pedantic(lambda: index.search(asked, K), rounds=BATCHES)
    fast = benchmark.stats.stats.median
    assert np.allclose([[h.score for h in hits] for hits in ours], theirs, rtol=1e-4)
    benchmark.extra_info |= {"queries_per_second": round(BATCH / fast), "ratio": slow / fast}
    print(f"\n{BATCH / fast:,.0f} queries/s, {slow / fast:.1f} times bm25s one by one")
    assert slow / fast >= LEAST_RATIO


@pytest.fixture
def server(index: Bm25Index) -> Iterator[tuple[int, int]]:
    """Port and process id of ``turngym retriever serve``."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-m", "turngym.benchmarks.cli", "retriever", "serve"]
    command += ["--index", str(index.folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    port = None
    for line in process.stdout:
        if found := re.search(r"http://[\d.]+:(\d+)", line):
            port = int(found[1])
            break
    assert port is not None, "the server did not start"
    yield port, process.pid
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def ask(port: int, queries: list[str]) -> list[Any]:
    body = json.dumps({"queries": queries, "topk": K, "return_scores": True})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/retrieve", body, {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())["result"]


def memory(process: int) -> tuple[float, float]:
    """Resident memory in GB: all of it, and without pages of files."""
    text = Path(f"/proc/{process}/status").read_text()
    whole, own = (re.search(rf"{k}:\s+(\d+)", text) for k in ("VmRSS", "RssAnon"))
    assert whole is not None
    assert own is not None
    return int(whole[1]) / 1e6, int(own[1]) / 1e6


def test_serve(
    server: tuple[int, int], index: Bm25Index, questions: list[str], benchmark: Any
) -> None:
    port, process = server
    batches = [questions[i : i + BATCH] for i in range(0, len(questions), BATCH)]
    ask(port, batches[0])

    def all_batches() -> None:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda batch: ask(port, batch), batches))
        assert [len(found) for found in answers] == [BATCH] * BATCHES

    benchmark.pedantic(all_batches, rounds=3)
    rate = len(questions) / benchmark.stats.stats.median
    whole, own = memory(process)
    start = time.perf_counter()
    for question in questions[:BATCH]:
        ask(port, [question])
    singly = BATCH / (time.perf_counter() - start)
    (found,) = ask(port, questions[:1])
    (hits,) = index.search(questions[:1], K)
    assert [d["document"]["id"] for d in found] == [h.id for h in hits]
    benchmark.extra_info |= {"queries_per_second": round(rate), "resident_gb": round(whole, 2)}
    print(
        f"\nserver: {rate:,.0f} queries/s in batches of {BATCH} ({singly:,.0f}/s one by one), "
        f"resident {whole:.2f} GB, {own:.2f} of it without pages of files"
    )
    assert rate >= LEAST_QPS
    assert whole < MOST_GB
