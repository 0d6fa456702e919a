"""Builds that stop, files that are wrong, disks that are full."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.tools.retrieval.index import build as build_module
from turngym.envs.tools.retrieval.index import open_index, read_manifest
from turngym.envs.tools.retrieval.index.build import build_index


def lines(n: int) -> list[str]:
    return [json.dumps({"id": str(i), "contents": f"T{i}\nword{i} all"}) for i in range(n)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(lines(25)) + "\n")
    return path


class Stop(Exception):
    pass


def test_an_interrupted_build_goes_on(tmp_path: Path, corpus: Path) -> None:
    whole = build_index(corpus, tmp_path / "whole", block=4)
    seen: list[tuple[str, int]] = []

    def stop(stage: str, done: int, total: int) -> None:
        seen.append((stage, done))
        if len(seen) == 3:
            raise Stop

    out = tmp_path / "out"
    with pytest.raises(Stop):
        build_index(corpus, out, block=4, progress=stop)
    with pytest.raises(DataError, match="not finished; run the same"):
        open_index(out)
    again: list[tuple[str, int]] = []
    made = build_index(corpus, out, block=4, progress=lambda s, d, t: again.append((s, d)))
    assert made == whole
    first, second = ([d for s, d in told if s == "reading"] for told in (seen, again))
    assert first + second == sorted({*first, *second})
    assert len(first) == 3
    assert len(second) == 4
    for name in ("docs.npy", "scores.npy", "starts.npy", "words.npy", "offsets.npy"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(p.name for p in out.iterdir()) == sorted(
        p.name for p in (tmp_path / "whole").iterdir()
    )


def test_a_finished_build_is_not_done_again(tmp_path: Path, corpus: Path) -> None:
    made = build_index(corpus, tmp_path / "out")
    before = (tmp_path / "out" / "docs.npy").stat().st_mtime_ns
    assert build_index(corpus, tmp_path / "out") == made
    assert (tmp_path / "out" / "docs.npy").stat().st_mtime_ns == before
    corpus.write_text(corpus.read_text().replace("word3", "word4"))
    with pytest.raises(DataError, match="which is another one; choose another folder, or say"):
        build_index(corpus, tmp_path / "out")
    assert build_index(corpus, tmp_path / "out", overwrite=True) != made


def test_an_unfinished_build_of_something_else_is_refused(tmp_path: Path, corpus: Path) -> None:
    def stop(stage: str, done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        build_index(corpus, tmp_path / "out", block=4, progress=stop)
    with pytest.raises(DataError, match=r"something else \(differs in block\)"):
        build_index(corpus, tmp_path / "out", block=5)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(DataError, match="not empty and holds no index"):
            build_index(corpus, tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", r"corpus.jsonl:3: not JSON"),
        ("[1]", r"corpus.jsonl:3: a list; expected a JSON object"),
        ('{"contents": "a"}', r"corpus.jsonl:3: id is None"),
        ('{"id": "x"}', r"corpus.jsonl:3: no text; expected contents, or title and text"),
        ('{"id": "x", "contents": " "}', r"corpus.jsonl:3: the passage is empty"),
        ('{"id": "x", "title": 3, "text": "a"}', r"corpus.jsonl:3: title is 3"),
        ('{"id": "0", "contents": "a"}', r"corpus.jsonl:3: id '0' was used before, in line 1"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join([*lines(2), line]) + "\n")
    with pytest.raises(DataError, match=message):
        build_index(path, tmp_path / "out")
    with pytest.raises(DataError, match="not finished"):
        open_index(tmp_path / "out")


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"id": "a", "contents": "b"}\n{"id": "\xff"}\n')
    with pytest.raises(DataError, match=r"corpus.jsonl:2: not UTF-8"):
        build_index(path, tmp_path / "out")


def test_blank_lines_marks_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    rows = [
        '{"id": 7, "title": "A", "text": "one"}',
        "",
        "  ",
        '{"id": "b", "contents": "B\\ntwo"}',
    ]
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(rows).encode())
    build_index(path, tmp_path / "out", block=1)
    hits = [h for found in open_index(tmp_path / "out").search(["one", "two"], 3) for h in found]
    assert [(h.id, h.title, h.text) for h in hits] == [("7", "A", "one"), ("b", "B", "two")]


def test_empty_missing_and_packed_corpora(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DataError, match="holds no passage"):
        build_index(tmp_path / "empty.jsonl", tmp_path / "out")
    with pytest.raises(DataError, match="cannot be read"):
        build_index(tmp_path / "missing.jsonl", tmp_path / "out2")
    (tmp_path / "wiki.jsonl.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(DataError, match="is compressed; unpack"):
        build_index(tmp_path / "wiki.jsonl.gz", tmp_path / "out3")
    (tmp_path / "dots.jsonl").write_text('{"id": "a", "contents": "… !"}\n')
    with pytest.raises(DataError, match="no passage of the corpus holds a word"):
        build_index(tmp_path / "dots.jsonl", tmp_path / "out4")


def test_unknown_kinds_and_settings(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(UnknownNameError, match="bm25"):
        build_index(corpus, tmp_path / "out", kind="bm24")
    with pytest.raises(BadValueError, match="no setting 'k1'"):
        build_index(corpus, tmp_path / "out", settings={"k1": 2})
    with pytest.raises(BadValueError, match="block is 0"):
        build_index(corpus, tmp_path / "out", block=0)
    assert not (tmp_path / "out").exists()


def test_a_corpus_that_changed_or_moved(tmp_path: Path, corpus: Path) -> None:
    build_index(corpus, tmp_path / "out")
    moved = tmp_path / "elsewhere.jsonl"
    corpus.rename(moved)
    with pytest.raises(DataError, match="is not there; give its new place"):
        open_index(tmp_path / "out")
    assert open_index(tmp_path / "out", corpus=moved).search(["word3"], 1)[0][0].id == "3"
    moved.write_text(moved.read_text().replace("word3", "word9"))
    with pytest.raises(DataError, match="built for another corpus"):
        open_index(tmp_path / "out", corpus=moved)


def test_a_full_disk_keeps_what_is_finished(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = build_module.save_arrays, []

    def full(path: Path, **arrays: np.ndarray) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, **arrays)

    monkeypatch.setattr(build_module, "save_arrays", full)
    with pytest.raises(DataError, match=r"disk is full\. .* finished parts .* are kept"):
        build_index(corpus, tmp_path / "out", block=4)
    assert len(list((tmp_path / "out" / "parts").iterdir())) == 2
    with pytest.raises(DataError, match="not finished"):
        open_index(tmp_path / "out")
    part = tmp_path / "out" / "parts" / "00001.npz"
    whole = part.read_bytes()
    for damaged in (b"", whole[:50], whole[:-50]):
        part.write_bytes(damaged)
        with pytest.raises(DataError, match=r"00001.npz: cannot be read .* with --overwrite"):
            build_index(corpus, tmp_path / "out", block=4)
    part.write_bytes(whole)
    calls.extend([Path()] * 3)
    assert build_index(corpus, tmp_path / "out", block=4).passages == 25
    assert len(calls) == 3 + 3 + 5


def test_a_build_that_could_not_begin_can_be_made_again(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, value: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "save_json", full)
        with pytest.raises(DataError, match="disk is full"):
            build_index(corpus, tmp_path / "out")
    (tmp_path / "out" / ".build.json-abc").touch()  # what a kill there leaves
    assert build_index(corpus, tmp_path / "out").passages == 25


def test_an_overwriting_that_is_killed_can_be_made_again(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder had lost its manifest, and was taken for one with other things."""
    out = tmp_path / "out"
    build_index(corpus, out)
    real, deleted = Path.unlink, []

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.name != build_module.LOCK:
            if len(deleted) == 3 and path.parent == out:
                raise Stop
            deleted.append(path)
        real(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(Stop):
            build_index(corpus, out, overwrite=True)
    with pytest.raises(DataError, match="not finished"):
        open_index(out)
    with pytest.raises(DataError, match=r"unfinished build of something else .* say --overwrite"):
        build_index(corpus, out)
    assert build_index(corpus, out, overwrite=True).passages == 25
    assert not (out / build_module.BEGUN).exists()


def test_what_killed_builds_left_is_deleted(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    build_index(corpus, whole)
    names = {path.name for path in whole.iterdir()}
    for last in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(build_module.Manifest, "save", stop)
            with pytest.raises(Stop):
                build_index(corpus, out, block=4)
        (out / ".scores.npy-x1y2z3_4").touch()  # killed within write_whole
        (out / "parts" / ".00001.npz-x1y2z3_4").touch()
        (out / ".index.json-x1y2z3_4").touch()
        if last:  # killed right behind the manifest
            shutil.copy(whole / "index.json", out)
        assert build_index(corpus, out, block=4).passages == 25
        assert {path.name for path in out.iterdir()} == names
        shutil.rmtree(out)


def stop(*about: object) -> None:
    raise Stop


def test_two_processes_do_not_build_in_one_folder(tmp_path: Path, corpus: Path) -> None:
    """The second one emptied files that the first had filled, which then called them finished."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    build_index(corpus, whole, block=4)

    def killed(stage: str, done: int, total: int) -> None:
        if stage == "merging":
            raise Stop

    def at_the_last(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("merging", total - 1):
            with pytest.raises((DataError, Stop)) as caught:
                build_index(corpus, out, block=4, progress=killed)
            faults.append(str(caught.value))

    faults: list[str] = []
    build_index(corpus, out, block=4, progress=at_the_last)
    for name in ("docs.npy", "scores.npy"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert "another process builds an index here" in faults[0]
    assert {p.name for p in out.iterdir()} == {p.name for p in whole.iterdir()}


def test_a_lock_that_its_owner_deletes_meanwhile_is_no_lock(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two builds wrote into one folder when the second opened the first one's lock at its end."""
    real, third = build_module.try_lock, []

    def late(file: IO[Any], what: str) -> bool:
        if not third:  # between opening and locking one build has ended, and another begun
            (tmp_path / "out" / build_module.LOCK).unlink()
            third.append((tmp_path / "out" / build_module.LOCK).open("ab"))
            assert real(third[0], what)
        return real(file, what)

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "try_lock", late)
        with pytest.raises(DataError, match="another process builds an index here"):
            build_index(corpus, tmp_path / "out")
    third[0].close()
    assert build_index(corpus, tmp_path / "out").passages == 25
    assert not (tmp_path / "out" / build_module.LOCK).exists()


def test_a_disk_that_is_full_for_the_postings(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(DataError, match="disk is full"):
            build_index(corpus, tmp_path / "out")
    assert build_index(corpus, tmp_path / "out").passages == 25


def test_damaged_indexes_are_told(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "out"
    build_index(corpus, out)
    with pytest.raises(DataError, match=r"not an index \(no index.json\)"):
        open_index(tmp_path)
    (out / "docs.npy").write_bytes(b"")
    with pytest.raises(DataError, match=r"docs.npy: cannot be read"):
        open_index(out)
    manifest = json.loads((out / "index.json").read_text())
    (out / "index.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(DataError, match="has format 99"):
        read_manifest(out)
    (out / "index.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        read_manifest(out)


def test_others_may_read_it(tmp_path: Path, corpus: Path) -> None:
    build_index(corpus, tmp_path / "out")
    mask = os.umask(0o022)
    os.umask(mask)
    assert all(p.stat().st_mode & 0o777 == 0o666 & ~mask for p in (tmp_path / "out").iterdir())
