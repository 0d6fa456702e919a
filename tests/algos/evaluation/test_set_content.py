"""What a set is scored on: defaults, paths, and what stands in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from turngym.algos.evaluation import set_content
from turngym.algos.evaluation.set_content import file_digests, say_other_settings
from turngym.envs.core.registration import default_settings


def test_folders_and_lists_are_known_by_their_files(tmp_path: Path) -> None:
    one = tmp_path / "one.jsonl"
    one.write_text("1")
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "two.txt").write_text("2")
    settings: dict[str, Any] = {
        "corpus": [str(one), str(folder)],
        "data": {"train": str(one)},
        "size": "micro",
        "url": "http://localhost/x",
        "gone": str(tmp_path / "gone.txt"),
        "top_k": 3,
    }
    first = file_digests(settings)
    assert sorted(first) == ["corpus", "data"]
    assert file_digests(settings) == first
    (folder / "deep" / "two.txt").write_text("3")
    second = file_digests(settings)
    assert second["corpus"] != first["corpus"]
    assert second["data"] == first["data"]


def test_of_a_large_file_size_and_ends_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_content, "_WHOLE", 10)
    monkeypatch.setattr(set_content, "_END", 3)
    file = tmp_path / "large.bin"

    def digest(text: str) -> dict[str, str]:
        file.write_text(text)
        return file_digests({"corpus": str(file)})

    first = digest("abc" + "-" * 20 + "xyz")
    os.utime(file, (1, 1))  # a copy has another date
    assert file_digests({"corpus": str(file)}) == first
    assert digest("abc" + "+" * 20 + "xyz") == first
    for other in ("abd" + "-" * 20 + "xyz", "abc" + "-" * 20 + "xyy", "abc" + "-" * 21 + "xyz"):
        assert digest(other) != first


@pytest.mark.parametrize(
    ("there", "here", "said"),
    [
        ({}, {"top_k": 3}, ""),
        ({"top_k": 3}, {}, ""),
        ({}, {"size": "full"}, ""),
        ({}, {"top_k": 2}, "top_k is not given there and 2 here"),
        ({"nobody": 1}, {}, "nobody is 1 there and not given here"),
        ({"corpus": "a/b.txt"}, {"corpus": "./a/../a/b.txt"}, ""),
        ({"corpus": ["a/b.txt"]}, {"corpus": ["b.txt"]}, "['a/b.txt'] there and ['b.txt'] here"),
        ({"retriever": "http://a/b"}, {"retriever": "http://a//b"}, "retriever is 'http://a/b'"),
    ],
)
def test_settings_are_the_same_where_they_mean_the_same(
    there: dict[str, Any], here: dict[str, Any], said: str
) -> None:
    found = say_other_settings(there, here, default_settings("SearchQA-v0"))
    assert said in found
    assert bool(said) == bool(found)


def test_questions_are_compared_one_by_one_and_other_files_as_a_whole() -> None:
    changed = ({"data": "1", "corpus": "1"}, {"data": "2", "corpus": "2"})
    one = {"data": "q.jsonl", "corpus": "c.jsonl"}
    said = say_other_settings(one, one, {}, changed)
    assert said == "corpus is 'c.jsonl', and what stands in it is not the same"
    other = {"data": "other.jsonl", "corpus": "other.jsonl"}
    assert say_other_settings(one, other, {}, (changed[0], changed[0])) == ""
    assert "data is 'q.jsonl' there and 'other.jsonl' here" in say_other_settings(
        one, other, {}, changed
    )
