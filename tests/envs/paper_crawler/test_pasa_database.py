"""The paper database: titles, members read on demand, citations, damage."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from helpers.pasa_files import PAPERS, UNZIPPED, members, record, write_database, write_zip

from turngym.envs.core.errors import DataError, EnvFault
from turngym.envs.paper_crawler.papers import make_title_key
from turngym.envs.paper_crawler.real import zip_members as members_module
from turngym.envs.paper_crawler.real.arxiv_ids import UNDATED
from turngym.envs.paper_crawler.real.database import PaperDatabase
from turngym.envs.paper_crawler.real.zip_members import Members, load_zip_table

GRIP, SLIP = "2105.90001", "2203.90417"
KEY = make_title_key(PAPERS[GRIP][0])


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))


def opened(folder: Path, **settings: Any) -> PaperDatabase:
    return PaperDatabase(folder / "id2paper.json", folder / "cs_paper_2nd.zip", **settings)


def test_a_paper_is_read_and_its_citations_are_ids(tmp_path: Path) -> None:
    database = opened(write_database(tmp_path))
    stored = database.find(GRIP)
    assert stored is not None
    paper = stored.paper
    assert paper.title == "GripLedger: Gated Recall for Tactile Policies"
    assert (paper.abstract, paper.date) == ("A memory of touches with gates.", 20210501)
    assert paper.sections == {
        "1 Introduction": (SLIP,),
        "2 Related Work 2.1 Tactile sensing": (SLIP, GRIP),
    }
    assert (stored.cited, stored.unresolved) == (5, 1)
    other = database.find(SLIP)
    assert other is not None
    assert other.paper.sections == {"1 Introduction": (GRIP,)}
    assert database.find("9999.00001") is None


def test_titles_without_letters_resolve_to_nothing(tmp_path: Path) -> None:
    stored = opened(write_database(tmp_path)).find("cs/0309040")
    assert stored is not None
    assert stored.paper.sections == {"1 Introduction": ()}
    assert stored.unresolved == 2


def test_a_paper_without_a_member_has_its_title_only(tmp_path: Path) -> None:
    database = opened(write_database(tmp_path))
    stored = database.find(UNZIPPED)
    assert stored is not None
    assert not stored.in_zip
    assert stored.paper.title == "Only a Title of Tactile Memory"
    assert stored.paper.sections == {}
    assert not database.in_zip(UNZIPPED)
    assert database.in_zip(GRIP)


def test_null_abstract_and_sections_mean_that_nothing_is_known(tmp_path: Path) -> None:
    bare = json.dumps({"title": PAPERS[GRIP][0], "abstract": None, "sections": None}).encode()
    stored = opened(write_database(tmp_path, {**members(), KEY: bare})).find(GRIP)
    assert stored is not None
    assert (stored.paper.abstract, stored.paper.sections, stored.in_zip) == ("", {}, True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"title": ', "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"[]", "is a list; expected an object"),
        (b'{"title": "x", "abstract": ""}', "lacks 'sections'"),
        (json.dumps({**record(GRIP), "title": 3}).encode(), "title is 3"),
        (json.dumps({**record(GRIP), "abstract": ["a"]}).encode(), "abstract is"),
        (json.dumps({**record(GRIP), "sections": ["a"]}).encode(), "sections is"),
        (json.dumps({**record(GRIP), "sections": {"1": "a"}}).encode(), "section '1' is 'a'"),
        (json.dumps({**record(GRIP), "sections": {"1": [1]}}).encode(), "expected a list of t"),
    ],
)
def test_a_damaged_record_names_file_and_member(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    database = opened(write_database(tmp_path, {**members(), KEY: content}))
    with pytest.raises(EnvFault, match=rf"cs_paper_2nd\.zip: member '{KEY}'.*{reason}"):
        database.find(GRIP)
    assert database.find(SLIP) is not None


def test_changed_bytes_are_found_out(tmp_path: Path) -> None:
    folder = write_database(tmp_path)
    path = folder / "cs_paper_2nd.zip"
    database = opened(folder)
    with zipfile.ZipFile(path) as whole:
        info = whole.getinfo(KEY)
    raw = bytearray(path.read_bytes())
    body = info.header_offset + 30 + len(KEY)
    for place in (body + 5, body + info.compress_size - 1):
        bad = bytearray(raw)
        bad[place] ^= 0x55
        path.write_bytes(bad)
        with pytest.raises(EnvFault, match=rf"member '{KEY}' is damaged"):
            database.find(GRIP)
    bad = bytearray(raw)
    bad[info.header_offset] = 0
    path.write_bytes(bad)
    with pytest.raises(EnvFault, match="does not lie where"):
        database.find(GRIP)
    bad = bytearray(raw)
    bad[info.header_offset + 30] = ord("z")
    path.write_bytes(bad)
    with pytest.raises(EnvFault, match="is called"):
        database.find(GRIP)
    path.unlink()
    with pytest.raises(EnvFault, match="cannot be read"):
        database.find(GRIP)
    path.write_bytes(raw)
    assert database.find(GRIP) is not None


def test_large_members_are_refused_by_what_the_zip_tells_and_by_what_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members_module, "MOST_BYTES", 5_000)
    folder = write_database(tmp_path, {**members(), KEY: b" " * 5_001})
    with pytest.raises(EnvFault, match="has 5,001 bytes"):
        opened(folder).find(GRIP)
    path = folder / "cs_paper_2nd.zip"
    raw = path.read_bytes()
    at = raw.rindex(KEY.encode()) - 46 + 24  # the directory's word for its unpacked size
    path.write_bytes(raw[:at] + struct.pack("<L", 4_000) + raw[at + 4 :])
    with pytest.raises(EnvFault, match="is damaged"):
        opened(folder).find(GRIP)


def test_other_packings_and_encryption_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("stored", b"plain", zipfile.ZIP_STORED)
        out.writestr("bzipped", b"x" * 100, zipfile.ZIP_BZIP2)
    found = Members(path)
    assert found.read(found.place("stored") or 0, "stored") == ("stored", b"plain")
    place = found.place("bzipped")
    assert place is not None
    with pytest.raises(EnvFault, match="packed by method 12"):
        found.read(place)
    raw = bytearray(path.read_bytes())
    raw[raw.rindex(b"stored") - 46 + 8] |= 1
    path.write_bytes(raw)
    locked = Members(path)
    with pytest.raises(EnvFault, match="encrypted"):
        locked.read(locked.place("stored") or 0)


def test_folders_names_and_repetitions_in_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.mkdir("papers")
        out.writestr("papers/größe", b"1")
        out.writestr("papers/again", b"old")
        with pytest.warns(UserWarning, match="Duplicate name"):
            out.writestr("papers/again", b"new")
    found = Members(path)
    assert (len(found), found.repeated) == (2, 1)
    for name, content in (("größe", b"1"), ("again", b"new")):
        place = found.place(name)
        assert place is not None
        assert found.read(place, name) == (name, content)
    assert found.place("papers") is None
    assert Members(write_zip(tmp_path / "none.zip", {})).place("a") is None


def test_a_zip_beyond_the_old_limits_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 10)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 400)
    content = {chr(97 + i) * 3: bytes([i]) * 700 for i in range(20)}
    path = write_zip(tmp_path / "large.zip", content)
    assert b"PK\6\6" in path.read_bytes()
    found = Members(path)
    assert len(found) == 20
    for name, data in content.items():
        place = found.place(name)
        assert place is not None
        assert found.read(place, name)[1] == data


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as out:
        out.writestr("a", b"1")
        out.writestr("b", b"2")
    raw = whole.getvalue()
    directory = raw.index(b"PK\1\2")
    broken = bytearray(raw)
    broken[directory] = 0
    for content, reason in (
        (b"", "no directory"),
        (raw[:-30], "no directory"),
        (raw[20:], "does not fit"),
        (bytes(broken), "member 0 of 2"),
    ):
        path = tmp_path / "bad.zip"
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"bad\.zip: is no readable zip: .*{reason}"):
            load_zip_table(path)
    with pytest.raises(DataError, match="cannot be read"):
        load_zip_table(tmp_path / "absent.zip")


def test_the_latest_papers_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened(write_database(tmp_path), kept=2)
    read: list[str] = []
    inner = Members.read

    def spied(self: Members, place: int, name: str = "") -> tuple[str, bytes]:
        read.append(name)
        return inner(self, place, name)

    monkeypatch.setattr(Members, "read", spied)
    first = database.find(GRIP)
    database.find(SLIP)
    assert database.find(GRIP) is first
    database.find("2306.00002")  # drops SLIP
    database.find(GRIP)
    assert len(read) == 3
    database.find(SLIP)
    assert len(read) == 4


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "id2paper.json:1: not JSON"),
        (b'{"a": "x"', "Is the download complete"),
        (b"[1]", "a list; expected an object"),
        (b'[["2104.00731", "x"]]', "a list; expected an object"),
        (b"{}", "holds no paper"),
        (b'{"2104.00731": 3}', "its title is 3"),
        (b'{"2104.00731": {"title": "x"}}', "its title is"),
        (b'{"": "x"}', "expected an id"),
        (b'{"2104.00731": "x", "2104.00731v2": "x"}', "is there twice"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_titles_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    folder = write_database(tmp_path)
    (folder / "id2paper.json").write_bytes(content)
    with pytest.raises(DataError, match=reason):
        opened(folder)


def test_titles_that_share_letters_and_ids_without_a_date(tmp_path: Path) -> None:
    folder = write_database(tmp_path)
    titles = {"2001.00001": "GPT-2", "2005.00001v3": "GPT-3", "mine": "Other"}
    (folder / "id2paper.json").write_text(json.dumps(titles))
    database = opened(folder)
    assert database.resolve("gpt 3") == "2001.00001"
    assert database.titles.shared_keys == 1
    assert database.titles.undated == 1
    stored = database.find("mine")
    assert stored is not None
    assert stored.paper.date == UNDATED
    assert "2005.00001" in database


def test_tables_come_from_the_cache_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_database(tmp_path)
    before = opened(folder)
    assert len(list((tmp_path / "cache").glob("*.arrays"))) == 2
    monkeypatch.setattr(members_module, "load_zip_table", load_zip_table)
    monkeypatch.setattr(
        "turngym.envs.paper_crawler.real.zip_members._read_entries",
        lambda *_: pytest.fail("the directory was read again"),
    )
    after = opened(folder)
    assert after.digest == before.digest
    assert after.find(GRIP) == before.find(GRIP)
