"""The index on the disk ranks as the one in memory does, and as bm25s itself."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError, DataError
from turngym.envs.tools.retrieval.base import Corpus, Hit, words
from turngym.envs.tools.retrieval.bm25 import Bm25
from turngym.envs.tools.retrieval.index import Hybrid, open_index, open_indexes
from turngym.envs.tools.retrieval.index.bm25 import Bm25Index, _kth_highest
from turngym.envs.tools.retrieval.index.bm25_build import WordTable
from turngym.envs.tools.retrieval.index.build import build_index

WORDS = [f"w{i}" for i in range(40)]
texts = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=0, max_size=12), min_size=1, max_size=60
).filter(any)


def write(path: Path, passages: list[tuple[str, str]]) -> Path:
    rows = ({"id": f"p{i}", "contents": f"{t}\n{x}"} for i, (t, x) in enumerate(passages))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make(folder: Path, passages: list[tuple[str, str]], block: int = 7) -> Bm25Index:
    corpus = write(folder / "corpus.jsonl", passages)
    build_index(corpus, folder / "index", block=block, overwrite=True)
    made = open_index(folder / "index")
    assert isinstance(made, Bm25Index)
    return made


def zipf(n: int, seed: int = 0) -> list[tuple[str, str]]:
    rng = np.random.default_rng(seed)
    drawn = np.minimum(rng.zipf(1.3, size=(n, 30)), 400)
    return [(f"title{i}", " ".join(f"w{j}" for j in row)) for i, row in enumerate(drawn)]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bm25Index, Bm25]:
    passages = zipf(3000)
    index = make(tmp_path_factory.mktemp("long"), passages, block=800)
    ids = [f"p{i}" for i in range(len(passages))]
    whole = Corpus(ids, [t for t, _ in passages], [x for _, x in passages])
    return index, Bm25(whole, name="test-bm25-index")


@pytest.mark.parametrize("k", [1, 3, 20, 5000])
def test_the_ranking_is_that_of_the_index_in_memory(long: tuple[Bm25Index, Bm25], k: int) -> None:
    index, memory = long
    rng = np.random.default_rng(k)
    for _ in range(60 if k < 100 else 5):
        size = int(rng.integers(1, 9))
        query = " ".join(f"w{j}" for j in np.minimum(rng.zipf(1.3, size=size), 450))
        if rng.random() < 0.5:
            query += f" title{int(rng.integers(3100))}"
        same(index.search([query], k)[0], memory.search([query], k)[0])


def same(ours: list[Hit], theirs: list[Hit]) -> None:
    assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], rel=1e-5)
    # sums in another order may swap passages that are equal but for a rounding
    apart = [
        i
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
        if a.id != b.id and abs(a.score - b.score) > 1e-5 * b.score
    ]
    assert not apart
    inner = [h for h in theirs if theirs and h.score > theirs[-1].score * (1 + 1e-5)]
    assert {h.id for h in inner} <= {h.id for h in ours}


@settings(max_examples=60, deadline=None)
@given(texts, st.lists(st.sampled_from([*WORDS, "absent"]), max_size=6), st.integers(1, 8))
def test_any_small_corpus_ranks_as_bm25s_scores(
    tmp_path_factory: pytest.TempPathFactory,
    passages: list[list[str]],
    query: list[str],
    k: int,
) -> None:
    index = make(
        tmp_path_factory.mktemp("any"), [(f"t{i}", " ".join(p)) for i, p in enumerate(passages)]
    )
    tokens = [words(f"t{i} {' '.join(p)}") for i, p in enumerate(passages)]
    peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    peer.index(tokens, show_progress=False)
    known = [w for w in query if w in peer.vocab_dict]
    scores = peer.get_scores(known) if known else np.zeros(len(passages), np.float32)
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    order = [int(i) for i in order if scores[i] > 0]
    (hits,) = index.search([" ".join(query)], k)
    assert [h.score for h in hits] == pytest.approx([scores[i] for i in order], rel=1e-5)
    for hit in hits:
        assert hit.score == pytest.approx(scores[int(hit.id[1:])], rel=1e-5)
        assert hit.title == f"t{hit.id[1:]}"
    assert len({h.id for h in hits}) == len(hits)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(1, 3000), st.integers(0, 99))
def test_the_kth_highest_is_reached_by_k_scores(k: int, n: int, seed: int) -> None:
    scores = np.random.default_rng(seed).random(n + k).astype(np.float32)
    assert int((scores >= _kth_highest(scores, k)).sum()) >= k


@pytest.mark.parametrize("block", [1, 2, 5, 1000])
def test_the_size_of_blocks_changes_nothing(tmp_path: Path, block: int) -> None:
    passages = zipf(40, seed=3)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = make(tmp_path / "a", passages, block), make(tmp_path / "b", passages, 16)
    queries = ["w1", "w1 w2 w3", "title7 w5", "w9 w9 w4"]
    assert one.search(queries, 4) == two.search(queries, 4)


def test_it_knows_rows_words_and_its_size(tmp_path: Path) -> None:
    index = make(tmp_path, [('"Ada Brook"', "born in Élan"), ("Élan", "a town")])
    assert len(index) == 2
    (hits,) = index.search(["elan ADA"], 5)
    assert [h.id for h in hits] == ["p0", "p1"]
    assert index.row(hits[0]) == {"id": "p0", "contents": '"Ada Brook"\nborn in Élan'}
    assert index.row(Hit("nobody", "", "", 0.0)) is None
    table = WordTable(tmp_path / "index")
    assert table.find("elan") is not None
    assert table.find("ela") is None
    assert index.search(["", "…", "absent"], 3) == [[], [], []]
    assert index.search([], 3) == []
    with pytest.raises(BadValueError, match="k is 0"):
        index.search(["a"], 0)


def test_a_row_is_found_by_an_id_that_utf8_cannot_hold(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "a\\ud800", "contents": "T\\nriver"}\n')
    build_index(corpus, tmp_path / "out")
    index = open_index(tmp_path / "out")
    ((hit,),) = index.search(["river"], 1)
    assert hit.id == "a?"
    assert index.row(hit) == {"id": "a\ud800", "contents": "T\nriver"}  # type: ignore[attr-defined]


def test_copies_share_it_and_pickles_open_it_again(tmp_path: Path) -> None:
    index = make(tmp_path, zipf(20))
    assert copy.deepcopy(index) is index
    other = pickle.loads(pickle.dumps(index))
    assert other is index
    assert len(pickle.dumps(index)) < 1000


def test_reciprocal_ranks_by_hand(tmp_path: Path) -> None:
    class Fixed:
        def __init__(self, *names: str) -> None:
            self.names = names

        def search(self, queries: list[str], k: int) -> list[list[Hit]]:
            return [[Hit(n, n, n, 9.0) for n in self.names[:k]] for _ in queries]

    both = Hybrid((Fixed("a", "b", "c"), Fixed("c", "d", "b")), c=60)
    (hits,) = both.search(["x"], 4)
    # c: 1/63 + 1/61, b: 1/62 + 1/63, a: 1/61, d: 1/62
    assert [h.id for h in hits] == ["c", "b", "a", "d"]
    assert hits[0].score == pytest.approx(1 / 63 + 1 / 61)
    assert hits[1].score == pytest.approx(1 / 62 + 1 / 63)
    assert both.identity is None
    with pytest.raises(BadValueError, match="at least 2"):
        Hybrid((Fixed("a"),))


def test_a_hybrid_needs_one_corpus(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        make(tmp_path / name, zipf(10, seed))
    same_one = [tmp_path / "a" / "index", tmp_path / "a" / "index"]
    assert len(open_indexes(same_one).search(["w1"], 3)[0]) == 3
    assert open_indexes(same_one) == open_indexes(same_one)
    one, two = (open_index(tmp_path / name / "index").identity for name in ("a", "b"))  # type: ignore[attr-defined]
    assert one != two
    assert open_indexes(same_one).identity == f"{one}+{one}+50-60"  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="different corpora"):
        open_indexes([tmp_path / "a" / "index", tmp_path / "b" / "index"])
    with pytest.raises(BadValueError, match="no folder"):
        open_indexes([])
