"""Laws of the readers: they agree with zipfile, with a dict, and with what was written."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers.pasa_files import row, write_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.paper_crawler.papers import join_lines, make_title_key
from turngym.envs.paper_crawler.real.packed import Blank, HashTable, PackedTexts, hash_texts
from turngym.envs.paper_crawler.real.queries import open_queries
from turngym.envs.paper_crawler.real.zip_members import Members
from turngym.envs.utils.disk_cache import pack_strings

LETTERS = st.text(st.characters(categories=["L"]), min_size=1, max_size=8)


MARK = b"PK\5\6"


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNGYM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(LETTERS, st.tuples(st.binary(max_size=300), st.booleans()), max_size=6),
    st.binary(max_size=30).filter(lambda comment: MARK not in comment),  # zipfile cannot read it
)
def test_members_are_what_zipfile_reads(
    content: dict[str, tuple[bytes, bool]], comment: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.zip"
        with zipfile.ZipFile(path, "w") as out:
            for name, (data, packed) in content.items():
                kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
                out.writestr(name, data, kind)
            out.comment = comment
        found = Members(path)
        with zipfile.ZipFile(path) as whole:
            assert len(found) == len(whole.namelist())
            for name in whole.namelist():
                place = found.place(name)
                assert place is not None
                assert found.read(place, name) == (name, whole.read(name))
        in_order = [found.read(place)[0] for place in found.places()]
        assert in_order == list(content)


@pytest.mark.parametrize("comment", [MARK, b"x" + MARK, MARK + b"y" * 30, MARK * 9])
def test_a_comment_may_hold_the_mark_of_the_end(comment: bytes, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as out:
        out.writestr("a", b"some")
        out.comment = comment
    found = Members(tmp_path / "some.zip")
    place = found.place("a")
    assert place is not None
    assert found.read(place, "a") == ("a", b"some")


@given(st.lists(st.text(max_size=6), max_size=12), st.text(max_size=6))
def test_packed_texts_are_a_list_and_their_table_finds_them(texts: list[str], other: str) -> None:
    packed = PackedTexts(*pack_strings(texts).values())
    assert list(packed) == texts
    assert packed[1:3] == texts[1:3]
    assert list(Blank(len(texts))) == [""] * len(texts)
    table = HashTable(hash_texts(texts))
    for text in (*texts, other):
        assert list(table.places(text)) == [i for i, given in enumerate(texts) if given == text]
    assert table.distinct() == len(set(texts))


def test_equal_hashes_are_told_apart_by_their_texts() -> None:
    table = HashTable(np.array([7, 7, 3], dtype=np.uint64))
    assert table.distinct() == 2
    assert list(table.places("none of them")) == []


TITLES = st.text(min_size=1, max_size=12).filter(lambda text: bool(join_lines(text)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TITLES, st.integers(0, 30)), min_size=1, max_size=8))
def test_answers_are_distinct_by_id_and_by_letters(given: list[tuple[str, int]]) -> None:
    titles = [title.encode("utf-8", "replace").decode() for title, _ in given]
    ids = [f"2101.{n:05}v{n + 1}" for _, n in given]
    with tempfile.TemporaryDirectory() as folder:
        written = row("a", answer=titles, answer_arxiv_id=ids)
        source = open_queries(write_rows(Path(folder) / "q.jsonl", [written]))
    request = source.task("train", 0).payload
    keys = [key for title in request.titles if (key := make_title_key(title))]
    assert len(set(keys)) == len(keys)
    assert len(set(request.answers)) == len(request.answers) == len(request.titles)
    assert request.answers[0] == ids[0].partition("v")[0]
    assert source.repeated["train"] == len(given) - len(request.answers)
    pairs = [(i.partition("v")[0], join_lines(t)) for t, i in zip(titles, ids, strict=True)]
    kept = list(zip(request.answers, request.titles, strict=True))
    assert [pair for pair in dict.fromkeys(pairs) if pair in kept] == kept
