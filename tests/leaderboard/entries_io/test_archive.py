"""Uploads are hostile: what an archive may not be, each tried."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from turngym.leaderboard.entries_io.archive import unpack
from turngym.leaderboard.schema.limits import ReadLimits
from turngym.leaderboard.schema.result import Refused

SMALL = ReadLimits(
    archive_bytes=2**20, total_bytes=3 * 2**20, file_bytes=2 * 2**20, members=20, ratio=50
)


def zipped(path: Path, files: dict[str, bytes], packed: bool = True) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return path


def tarred(path: Path, add: Callable[[tarfile.TarFile], None], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as made:
        add(made)
    return path


def add_file(made: tarfile.TarFile, name: str, data: bytes = b"{}") -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    made.addfile(member, io.BytesIO(data))


def refusal(archive: Path, limits: ReadLimits = SMALL) -> str:
    room = archive.parent / "room"
    room.mkdir()
    with pytest.raises(Refused) as caught:
        unpack(archive, room, limits)
    assert caught.value.refusal.reason == "archive"
    outside = {p.name for p in archive.parent.iterdir()} - {"room", archive.name}
    assert not outside, "nothing may be written outside of the folder"
    return caught.value.refusal.message


GOOD = {"entry.json": b"{}", "episodes/A.jsonl": b"{}\n", "README.md": b"# Hello\n"}


@pytest.mark.parametrize("prefix", ["", "mine/"])
def test_good_archives_come_out_whole(tmp_path: Path, prefix: str) -> None:
    made = zipped(tmp_path / "a.zip", {prefix + name: data for name, data in GOOD.items()})

    def add(tar: tarfile.TarFile) -> None:
        for name, data in GOOD.items():
            add_file(tar, prefix + name, data)

    tar = tarred(tmp_path / "a.tar", add, "w:")
    packed = tarred(tmp_path / "a.tgz", add)
    for archive in (made, tar, packed):
        room = tmp_path / f"room-{archive.name}"
        room.mkdir()
        root = unpack(archive, room, SMALL)
        assert {name: (root / name).read_bytes() for name in GOOD} == GOOD


@pytest.mark.parametrize(
    "name",
    [
        "../outside.json",
        "episodes/../../outside.json",
        "/etc/outside.json",
        "C:/outside.json",
        "episodes\\..\\outside.json",
        "a/b/c/d/deep.json",
        ".hidden.json",
        "epi sodes.json",
        "a" * 150 + ".json",
        "episodes\n/A.jsonl",
    ],
)
def test_paths_that_lead_astray(tmp_path: Path, name: str) -> None:
    refusal(zipped(tmp_path / "a.zip", {name: b"{}"}))


@pytest.mark.parametrize("name", ["../outside.json", "/tmp/outside.json", "x/../../outside.json"])
def test_paths_that_lead_astray_in_a_tar(tmp_path: Path, name: str) -> None:
    refusal(tarred(tmp_path / "a.tgz", lambda made: add_file(made, name)))


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.pt", "m.pth", "m.bin", "m.PKL", "m.npy"])
def test_files_that_may_hold_pickles(tmp_path: Path, name: str) -> None:
    assert "pickle" in refusal(zipped(tmp_path / "a.zip", {name: b"harmless"}))


@pytest.mark.parametrize("name", ["run.py", "entry.yaml", "entry", "inner.zip", "page.html"])
def test_other_kinds_of_file(tmp_path: Path, name: str) -> None:
    assert "expected one of" in refusal(zipped(tmp_path / "a.zip", {name: b"harmless"}))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("entry.json", b"\x80\x04\x95pickle"),
        ("notes.md", b"\x80\x02}q\x00."),
        ("entry.json", b"PK\x03\x04"),
        ("entry.json", b"\x1f\x8b\x08\x00"),
        ("notes.md", b"\x7fELF"),
        ("notes.md", b"a\x00b"),
        ("model.safetensors", b"\x80\x04\x95pickle"),
        ("model.safetensors", b"PK\x03\x04\x00\x00\x00\x00\x00"),
        ("model.safetensors", struct.pack("<Q", 2**40) + b"{}"),
    ],
)
def test_files_that_are_not_what_their_names_say(tmp_path: Path, name: str, start: bytes) -> None:
    assert name in refusal(zipped(tmp_path / "a.zip", {name: start + b" " * 32}))


def test_safetensors_are_taken(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    data = struct.pack("<Q", len(header)) + header + b"\x00" * 4
    room = tmp_path / "room"
    room.mkdir()
    root = unpack(zipped(tmp_path / "a.zip", GOOD | {"model.safetensors": data}), room, SMALL)
    assert (root / "model.safetensors").read_bytes() == data


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE],
)
def test_links_and_devices_in_a_tar(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("entry.json")
    member.type = kind
    member.linkname = "/etc/passwd"
    said = refusal(tarred(tmp_path / "a.tgz", lambda made: made.addfile(member)))
    assert "link or a device" in said


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_in_a_zip(tmp_path: Path, kind: int) -> None:
    member = zipfile.ZipInfo("entry.json")
    member.create_system = 3
    member.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr(member, "/etc/passwd")
    assert "link or a device" in refusal(tmp_path / "a.zip")


def test_a_bomb_in_a_zip(tmp_path: Path) -> None:
    assert "bombs" in refusal(zipped(tmp_path / "a.zip", {"entry.json": b" " * 1_900_000}))


def test_a_bomb_in_a_tar(tmp_path: Path) -> None:
    made = tarred(tmp_path / "a.tgz", lambda tar: add_file(tar, "entry.json", b" " * 1_900_000))
    assert "bombs" in refusal(made)


def test_a_file_too_large(tmp_path: Path) -> None:
    limits = ReadLimits(file_bytes=1000)
    made = zipped(tmp_path / "a.zip", {"entry.json": b" " * 1001}, packed=False)
    assert "larger than 1000 bytes" in refusal(made, limits)


def test_files_too_large_together(tmp_path: Path) -> None:
    limits = ReadLimits(total_bytes=1000)
    files = {f"{i}.json": b" " * 600 for i in range(2)}
    made = zipped(tmp_path / "a.zip", files, packed=False)
    assert "more than 1000 bytes" in refusal(made, limits)


def test_an_archive_too_large(tmp_path: Path) -> None:
    made = zipped(tmp_path / "a.zip", GOOD)
    assert "at most 10 are accepted" in refusal(made, ReadLimits(archive_bytes=10))


def test_too_many_members(tmp_path: Path) -> None:
    files = {f"{i}.json": b"{}" for i in range(21)}
    assert "more than 20 members" in refusal(zipped(tmp_path / "a.zip", files))


def test_a_listing_too_long_to_be_read(tmp_path: Path) -> None:
    files = {f"{i}{'x' * 90}.json": b"{}" for i in range(200)}
    assert "lists more than 20 members" in refusal(zipped(tmp_path / "a.zip", files))


@pytest.mark.parametrize("comment", [b"", b"x" * 65535])
def test_a_listing_in_the_zip64_form(tmp_path: Path, comment: bytes) -> None:
    files = {f"{i}{'x' * 90}.json": b"{}" for i in range(200)}
    plain = zipped(tmp_path / "a.zip", files)
    data = plain.read_bytes()
    plain.unlink()
    at = data.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack("<HLL", data[at + 10 : at + 20])
    record = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 1, 1, 46, start, len(comment))
    made = tmp_path / "b.zip"
    made.write_bytes(data[:at] + record + locator + end + comment)
    with zipfile.ZipFile(made) as opened:
        assert len(opened.infolist()) == 200  # Python's reader believes the zip64 record
    assert "zip64" in refusal(made)


def test_a_member_twice(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr("entry.json", "{}")
        made.writestr("Entry.json", "{}")
    assert "twice" in refusal(tmp_path / "a.zip")


def test_a_file_below_a_file(tmp_path: Path) -> None:
    files = {"a.json": b"{}", "a.json/b.json": b"{}"}
    assert "both a file and a folder" in refusal(zipped(tmp_path / "a.zip", files))


def test_a_size_that_the_listing_understates(tmp_path: Path) -> None:
    """The stated size is not believed: what comes out is counted."""
    path = zipped(tmp_path / "a.zip", {"entry.json": b" " * 5000}, packed=False)
    data = bytearray(path.read_bytes())
    for head, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(head) + at
        data[start : start + 4] = struct.pack("<I", 10)
    path.write_bytes(data)
    refusal(path, ReadLimits(file_bytes=1000))


def test_an_encrypted_member(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"entry.json": b"{}"})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert "encrypted" in refusal(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_packing(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as made:
        made.writestr("entry.json", "{}")
    assert "deflate" in refusal(tmp_path / "a.zip")


@pytest.mark.parametrize("mode", ["w:xz", "w:bz2"])
def test_other_tars(tmp_path: Path, mode: str) -> None:
    refusal(tarred(tmp_path / "a.tar", lambda made: add_file(made, "entry.json"), mode))


def test_a_header_that_announces_too_much(tmp_path: Path) -> None:
    """A long name is read into memory whole; its length is bounded."""
    member = tarfile.TarInfo("././@LongLink")
    member.type = tarfile.GNUTYPE_LONGNAME
    member.size = 2**33
    header = member.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "a.tgz").write_bytes(gzip.compress(header + b"a" * 100_000))
    refusal(tmp_path / "a.tgz")


@pytest.mark.parametrize("cut", [3, 30, 60, 100])
def test_cut_archives(tmp_path: Path, cut: int) -> None:
    whole = zipped(tmp_path / "whole", GOOD).read_bytes()
    (tmp_path / "whole").unlink()
    (tmp_path / "a.zip").write_bytes(whole[:-cut])
    refusal(tmp_path / "a.zip")


@pytest.mark.parametrize("data", [b"", b"{}", b"PK", b"\x1f\x8b", b"\x1f\x8b\x08" + b"\xff" * 50])
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    refusal(tmp_path / "a.zip")
