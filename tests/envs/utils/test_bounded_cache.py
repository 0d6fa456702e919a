"""The bounded memory of computed values."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.bounded_cache import BoundedCache


def test_what_was_not_asked_for_longest_goes_first() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3)
    for n, name in enumerate("abc"):
        cache.put(name, n)
    assert cache.get("a") == 0  # now the newest
    cache.put("d", 3)
    assert [cache.get(name) for name in "abcd"] == [0, None, 2, 3]
    assert len(cache) == cache.weight == 3


def test_weights_bound_the_whole() -> None:
    cache: BoundedCache[str, str] = BoundedCache(10)
    cache.put("small", "s", 4)
    cache.put("large", "l", 6)
    cache.put("huge", "h", 11)
    assert (cache.get("huge"), cache.get("small"), cache.weight) == (None, "s", 10)
    cache.put("small", "again", 5)
    assert (cache.get("small"), cache.get("large"), cache.weight) == ("again", None, 5)
    cache.clear()
    assert (len(cache), cache.weight, cache.get("small")) == (0, 0, None)


def test_a_pickle_is_empty() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3)
    cache.put("a", 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert (len(copy), copy.capacity) == (0, 3)


def test_no_room_at_all_is_refused() -> None:
    with pytest.raises(BadValueError, match="capacity is 0"):
        BoundedCache(0)


def test_threads_keep_the_weight_right() -> None:
    cache: BoundedCache[int, int] = BoundedCache(50)

    def use(start: int) -> None:
        for i in range(2000):
            key = (start + 7 * i) % 90
            found = cache.get(key)
            assert found in (None, key)
            cache.put(key, key, 1 + key % 3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert cache.weight == sum(1 + key % 3 for key in range(90) if cache.get(key) is not None) <= 50
