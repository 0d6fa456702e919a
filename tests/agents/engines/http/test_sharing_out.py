"""Thousands of requests that wait for servers are not looked through with every answer."""

from __future__ import annotations

from typing import Any

from turngym.agents.engines.http.engine import HttpEngine


class Full:
    """A server that has no room."""

    lost = False
    away_until = 0.0

    def room(self, _now: float) -> int:
        return 0


class Waiting:
    """A request that counts how often somebody looks for its server."""

    looks = 0

    @property
    def owner(self) -> Any:
        Waiting.looks += 1
        return None


def test_full_servers_leave_the_others_waiting_in_their_order() -> None:
    Waiting.looks = 0
    full: Any = Full()
    engine = HttpEngine.__new__(HttpEngine)
    jobs: list[Any] = [Waiting() for _ in range(1000)]
    engine._servers, engine._waiting, engine._timer = [full], list(jobs), None
    engine._share_out()
    assert engine._waiting == jobs
    assert Waiting.looks == 0
