import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError, EnvFault
from turngym.envs.tools.retrieval.base import Batched, Corpus, Hit, Query, words
from turngym.envs.tools.retrieval.bm25 import Bm25
from turngym.envs.utils.disk_cache import cache_arrays, cache_dir, pack_strings, unpack_strings


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))


def corpus(texts: Sequence[str]) -> Corpus:
    ids = [f"p{i}" for i in range(len(texts))]
    return Corpus(ids=ids, titles=["t"] * len(texts), texts=list(texts))


TEXTS = ["red fox", "red wolf", "blue fox", "blue wolf", "red fox", "a stone"]


def test_words() -> None:
    assert words("Café O'Neil’s  DON'T stop_now") == ["cafe", "oneil", "dont", "stop", "now"]
    assert words("東京 Tower") == ["東", "京", "tower"]
    assert words("?! …") == []


def test_equal_scores_keep_the_corpus_order() -> None:
    hits = Bm25(corpus(TEXTS), name="a").search(["fox red"], 3)[0]
    assert [hit.id for hit in hits][:2] == ["p0", "p4"]
    assert hits[0].score == hits[1].score


def test_no_shared_word_finds_nothing() -> None:
    index = Bm25(corpus(TEXTS), name="a")
    assert index.search(["", "  ?", "zebra"], 3) == [[], [], []]


def test_a_remembered_answer_is_what_searching_again_gives() -> None:
    index = Bm25(corpus(TEXTS), name="a")
    new = index.search(["fox red", "fox"], 2)
    again = index.search(["fox", "fox red"], 2)
    assert again == new[::-1]
    again[0].clear()  # the list is the caller's own
    assert index.search(["fox"], 2)[0] == new[1]
    assert index.search(["fox"], 1)[0] == new[1][:1]  # another k is another question
    index.forget()
    assert index.search(["fox red", "fox"], 2) == new
    assert pickle.loads(pickle.dumps(index)).search(["fox red", "fox"], 2) == new


def test_refusals() -> None:
    with pytest.raises(BadValueError, match="empty"):
        Bm25(corpus([]), name="x")
    with pytest.raises(BadValueError, match="k is 0"):
        Bm25(corpus(TEXTS), name="a").search(["fox"], 0)


VOCABULARY = st.sampled_from(["ant", "bee", "cat", "dog", "elk"])
PASSAGES = st.lists(st.lists(VOCABULARY, min_size=1, max_size=6).map(" ".join), min_size=1)


@settings(max_examples=40, deadline=None)
@given(PASSAGES, st.lists(VOCABULARY, min_size=1, max_size=4), st.integers(1, 30))
def test_scores_equal_the_formula(texts: list[str], query: list[str], k: int) -> None:
    name = f"h{abs(hash(tuple(texts)))}"
    hits = Bm25(corpus(texts), name=name).search([" ".join(query)], k)[0]
    docs = [["t", *text.split()] for text in texts]
    mean = np.mean([len(doc) for doc in docs])
    expected = []
    for doc in docs:
        score = 0.0
        for word in query:
            df = sum(word in other for other in docs)
            idf = np.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
            tf = doc.count(word)
            score += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(doc) / mean))
        expected.append(score)
    best = sorted((s for s in expected if s > 0), reverse=True)[:k]
    np.testing.assert_allclose([hit.score for hit in hits], best, rtol=1e-4)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len({hit.id for hit in hits}) == len(hits)


def test_batched_serves_each_k_together_and_in_order() -> None:
    calls: list[tuple[list[str], int]] = []

    class Spy:
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            calls.append((list(queries), k))
            return [[Hit(q, "", "", 1.0)] * k for q in queries]

    spy = Spy()
    answers = Batched(spy)([Query("a", 2), Query("b", 1), Query("c", 2)])
    assert [[hit.id for hit in hits] for hits in answers] == [["a", "a"], ["b"], ["c", "c"]]
    assert sorted(calls, key=str) == [(["a", "c"], 2), (["b"], 1)]
    assert Batched(spy) == Batched(spy)
    assert Batched(spy) != Batched(Spy())


def test_a_broken_retriever_is_a_fault_of_the_world() -> None:
    class Down:
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            raise ConnectionError("refused")

    with pytest.raises(EnvFault, match="refused"):
        Batched(Down())([Query("a", 1)])


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        [Hit("1", "t", "x", 1.0)],
        [[{"id": "1"}]],
        [[Hit("1", None, None, 1.0)]],  # type: ignore[arg-type]
        [[Hit(str(i), "t", "x", 1.0) for i in range(4)]],
    ],
)
def test_a_retriever_that_answers_something_else_is_named(found: Any) -> None:
    class Own:
        def search(self, queries: Sequence[str], k: int) -> Any:
            return found

    with pytest.raises(BadValueError, match=r"Own\.search gave .* for 1 queries and k=3"):
        Batched(Own())([Query("a", 3)])


@given(st.lists(st.text()))
def test_packed_strings_come_back(texts: list[str]) -> None:
    packed = pack_strings(texts)
    assert unpack_strings(packed["bytes"], packed["ends"]) == texts


def test_a_damaged_cache_is_rebuilt() -> None:
    built = []

    def build() -> dict[str, np.ndarray]:
        built.append(1)
        return {"x": np.arange(5)}

    for _ in range(2):
        np.testing.assert_array_equal(cache_arrays("thing", build)["x"], np.arange(5))
    assert len(built) == 1
    (path,) = cache_dir().iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:-7], b"", whole[:40] + b"?" + whole[41:]):
        path.write_bytes(damaged)
        np.testing.assert_array_equal(cache_arrays("thing", build)["x"], np.arange(5))
        assert path.read_bytes() == whole
    assert len(built) == 4


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "file"))
    assert cache_arrays("thing", lambda: {"x": np.zeros(2)})["x"].tolist() == [0, 0]


def test_an_index_without_a_reload_pickles_whole() -> None:
    index = Bm25(corpus(TEXTS), name="a")
    twin = pickle.loads(pickle.dumps(index))
    assert twin.search(["wolf"], 2) == index.search(["wolf"], 2)


@given(st.text(st.characters(max_codepoint=127)))
def test_words_of_plain_texts_are_runs_of_letters_and_digits(text: str) -> None:
    bare = re.sub(r"'s\b", "", text.casefold()).replace("'", "")
    assert words(text) == re.findall(r"[a-z0-9]+", bare)
