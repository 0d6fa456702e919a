"""A library that waits and fails as it is told to, around another one."""

import time
from collections.abc import Sequence

from turngym.envs.core.errors import EnvFault
from turngym.envs.paper_crawler.papers import Library, Paper, Search


class TroubledLibrary:
    """Fails at every ``period``-th call, and waits before each."""

    blocking = True

    def __init__(self, inner: Library, *, wait_s: float = 0.0, period: int = 0) -> None:
        self.inner, self.wait_s, self.period = inner, wait_s, period
        self.identity = f"troubled-{inner.identity}"
        self.calls = 0

    def _call(self) -> None:
        self.calls += 1
        time.sleep(self.wait_s)
        if self.period and self.calls % self.period == 0:
            raise EnvFault(f"the library failed at call {self.calls}")

    def find(self, paper_id: str) -> Paper | None:
        self._call()
        return self.inner.find(paper_id)

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        self._call()
        return self.inner.search(requests)
