"""Many hostile visitors at once: the server answers them all, and no answer is a fault."""

from __future__ import annotations

import http.client
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from helpers.attack_cases import cases, filled

pytest.importorskip("fastapi", reason="the extra web is missing")
pytest.importorskip("jinja2", reason="the extra web is missing")

from helpers.http_servers import serve_app

from turngym.leaderboard.server import ServerSettings, new_token
from turngym.leaderboard.server.app import make_app

VISITORS, REQUESTS = 8, 250
PLACES = (
    ("GET", "/"),
    ("GET", "/submit"),
    ("GET", "/season"),
    ("GET", "/seasons/x/%2e%2e%2fserver.sqlite"),
    ("GET", "/seasons/..%2f../secret.json"),
    ("GET", "/api/seasons/%00"),
    ("GET", "/submissions/" + "a" * 3000),
    ("GET", "/submissions/%00"),
    ("GET", "/api/submissions/../../server.sqlite"),
    ("GET", "/..%2f..%2fetc/passwd"),
    ("GET", "/server.sqlite"),
    ("GET", "/entries/%2e%2e/%2e%2e/server.sqlite"),
    ("POST", "/api/submissions"),
    ("POST", "/api/seasons/x/episodes"),
    ("POST", "/api/seasons/..%2f/episodes"),
    ("POST", "/api/seasons/x/finish"),
    ("POST", "/api/episodes/x/steps"),
    ("POST", "/api/episodes/%00/steps"),
    ("PUT", "/api/seasons/x/entry"),
    ("DELETE", "/api/submissions/x"),
)
BODIES = [filled(param.values[0]["text"]).encode("utf-8", "replace") for param in cases("payloads")]


def visit(address: str, token: str, seed: int, requests: int) -> list[tuple[int, float]]:
    """Ask again and again; the status and the seconds of every answer."""
    random = np.random.default_rng(seed)
    host = urlsplit(address).netloc
    found: list[tuple[int, float]] = []
    for _ in range(requests):
        body = BODIES[int(random.integers(len(BODIES)))]
        headers = {
            "Authorization": ("Bearer " + token, "Bearer ", "Basic x", "Bearer " + "a" * 5000)[
                int(random.integers(4))
            ],
            "Content-Type": ("application/json", "application/zip", "text/html")[
                int(random.integers(3))
            ],
        }
        method, place = PLACES[int(random.integers(len(PLACES)))]
        link = http.client.HTTPConnection(host, timeout=60)
        begun = time.perf_counter()
        link.request(method, place, None if method == "GET" else body, headers)
        answer = link.getresponse()
        said = answer.read()
        assert b"Traceback" not in said
        assert b"SQLite format" not in said
        found.append((answer.status, time.perf_counter() - begun))
        link.close()
    return found


def load(home: Path, visitors: int, requests: int) -> list[tuple[int, float]]:
    settings = ServerSettings(home=home, requests_per_minute=10**6, uploads_per_day=10**6)
    settings.entries.mkdir(parents=True)
    token = new_token(settings, "mallory")

    def one(seed: int) -> list[tuple[int, float]]:
        return visit(address, token, seed, requests)

    app: Any = make_app(settings, background=False)
    with serve_app(app) as address, ThreadPoolExecutor(visitors) as pool:
        return [row for rows in pool.map(one, range(visitors)) for row in rows]


def check(found: list[tuple[int, float]]) -> None:
    statuses = Counter(status for status, _ in found)
    seconds = np.array([spent for _, spent in found])
    print(
        f"{len(found):,} requests, statuses {dict(sorted(statuses.items()))}, median "
        f"{1000 * np.median(seconds):.0f} ms, 99 % {1000 * np.quantile(seconds, 0.99):.0f} ms"
    )
    # 503: the pages are not written yet
    assert not {status for status in statuses if status >= 500} - {503}


def test_a_few_hostile_visitors(tmp_path: Path) -> None:
    check(load(tmp_path / "home", visitors=2, requests=30))


@pytest.mark.slow
def test_many_hostile_visitors(tmp_path: Path) -> None:
    check(load(tmp_path / "home", VISITORS, REQUESTS))
