"""Hostile archives: refused, and nothing is written outside of the folder."""

from __future__ import annotations

import contextlib
import io
import stat
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from helpers.attack_cases import cases, filled

from turngym.leaderboard.entries_io.archive import unpack
from turngym.leaderboard.schema.limits import ReadLimits
from turngym.leaderboard.schema.result import Refused

LIMITS = ReadLimits(
    archive_bytes=2**20, total_bytes=4 * 2**20, file_bytes=3 * 2**20, members=20, ratio=50
)
LISTING = b"PK\x01\x02"


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return made.getvalue()


def tarred(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()


def refuse(folder: Path, data: bytes) -> str:
    """Unpack; the reason of the refusal, once it is certain that nothing got out or stayed odd."""
    room = folder / "a" / "room"
    room.mkdir(parents=True)
    (folder / "a" / "upload").write_bytes(data)
    with pytest.raises(Refused) as caught:
        unpack(folder / "a" / "upload", room, LIMITS)
    assert caught.value.refusal.reason == "archive"
    assert {path.name for path in (folder / "a").iterdir()} == {"room", "upload"}
    assert {path.name for path in folder.iterdir()} == {"a"}
    assert not any(path.is_symlink() for path in room.rglob("*"))
    message = caught.value.refusal.message
    assert all(sign.isprintable() for sign in message), message
    return message


@pytest.mark.parametrize("form", ["zip", "tar"])
@pytest.mark.parametrize("case", cases("archives", "name"))
def test_names(tmp_path: Path, case: dict[str, Any], form: str) -> None:
    member = tarfile.TarInfo(case["name"])
    made = zipped((case["name"], b"{}")) if form == "zip" else tarred((member, b"{}"))
    refuse(tmp_path, made)


@pytest.mark.parametrize("case", cases("archives", "start"))
def test_files_that_are_something_else(tmp_path: Path, case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"]) + b" " * 20
    assert "entry.json" in refuse(tmp_path, zipped(("entry.json", data)))


@pytest.mark.parametrize("case", cases("archives", "weights"))
def test_weights_that_are_something_else(tmp_path: Path, case: dict[str, Any]) -> None:
    made = zipped(("m.safetensors", bytes.fromhex(case["hex"])))
    assert "safetensors" in refuse(tmp_path, made)


@pytest.mark.parametrize("case", cases("archives", "tar_kind"))
def test_kinds_of_a_tar(tmp_path: Path, case: dict[str, Any]) -> None:
    member = tarfile.TarInfo("entry.json")
    member.type = getattr(tarfile, case["kind"])
    member.linkname = "/etc/passwd"
    refuse(tmp_path, tarred((member, b"")))


@pytest.mark.parametrize("case", cases("archives", "zip_kind"))
def test_kinds_of_a_zip(tmp_path: Path, case: dict[str, Any]) -> None:
    member = zipfile.ZipInfo("entry.json")
    member.create_system = 3
    member.external_attr = (getattr(stat, case["kind"]) | 0o777) << 16
    assert "link or a device" in refuse(tmp_path, zipped((member, b"/etc/passwd")))


def test_a_link_and_a_file_below_it(tmp_path: Path) -> None:
    link = tarfile.TarInfo("episodes")
    link.type, link.linkname = tarfile.SYMTYPE, "../.."
    made = tarred((link, b""), (tarfile.TarInfo("episodes/x.json"), b"{}"))
    assert "link or a device" in refuse(tmp_path, made)


@pytest.mark.parametrize("form", ["zip", "tar"])
@pytest.mark.parametrize("case", cases("archives", "twice"))
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_names_twice(tmp_path: Path, case: dict[str, Any], form: str) -> None:
    one, two = case["names"]
    if form == "zip":
        refuse(tmp_path, zipped((one, b"{}"), (two, b"[]")))
    else:
        refuse(tmp_path, tarred((tarfile.TarInfo(one), b"{}"), (tarfile.TarInfo(two), b"[]")))


@pytest.mark.parametrize("form", ["zip", "tar"])
@pytest.mark.parametrize("case", cases("archives", "cut"))
def test_archives_cut_off(tmp_path: Path, case: dict[str, Any], form: str) -> None:
    noise = bytes((i * i * 31 + i // 7) % 251 + 1 for i in range(3000))
    made = zipped(("a.md", noise)) if form == "zip" else tarred((tarfile.TarInfo("a.md"), noise))
    refuse(tmp_path, made[: -case["cut"]])


@pytest.mark.parametrize("case", cases("archives", "noise"))
def test_what_is_no_archive(tmp_path: Path, case: dict[str, Any]) -> None:
    refuse(tmp_path, bytes.fromhex(case["hex"]))


@pytest.mark.parametrize("case", cases("archives", "listing"))
def test_listings_that_lie(tmp_path: Path, case: dict[str, Any]) -> None:
    inside = b'{"a": "' + b"abcdefgh" * 40 + b'"}'
    data = bytearray(zipped(("entry.json", inside)))
    at = data.index(LISTING) + case["offset"]
    data[at : at + case["width"]] = case["value"].to_bytes(case["width"], "little")
    if not case.get("harmless"):
        refuse(tmp_path, bytes(data))
        return
    (tmp_path / "room").mkdir()  # nobody believes what it says, so the true file comes out
    (tmp_path / "upload").write_bytes(data)
    try:
        root = unpack(tmp_path / "upload", tmp_path / "room", LIMITS)
    except Refused as refused:
        assert "Overlapped entries" in str(refused)  # noqa: PT017 - newer Pythons see some lies
        return
    assert [(path.name, path.read_bytes()) for path in root.iterdir()] == [("entry.json", inside)]


@pytest.mark.parametrize("form", ["zip", "tar"])
@pytest.mark.parametrize("case", cases("archives", "bomb"))
def test_bombs(tmp_path: Path, case: dict[str, Any], form: str) -> None:
    data = filled(case["fill"]).encode()
    member = tarfile.TarInfo("a.md")
    made = zipped(("a.md", data)) if form == "zip" else tarred((member, data))
    assert len(made) < 50_000
    assert "bombs" in refuse(tmp_path, made)


def test_a_bomb_of_names(tmp_path: Path) -> None:
    made = zipped(*((f"{i}.json", b"{}") for i in range(21)))
    assert "20 members" in refuse(tmp_path, made)


def test_members_that_share_their_bytes(tmp_path: Path) -> None:
    """Overlapping members: every entry of the listing points at the same packed kilobytes."""
    data = zipped(("0.md", b"a" * 250_000))
    listing = data[data.index(LISTING) : data.rindex(b"PK\x05\x06")]
    rows = [listing.replace(b"0.md", f"{i:x}.md".encode()) for i in range(16)]
    start = data.index(LISTING)
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 16, 16, 16 * len(listing), start, 0)
    refuse(tmp_path, data[:start] + b"".join(rows) + end)


@pytest.mark.parametrize("place", ["before", "after", "comment"])
def test_zip64_wherever_it_stands(tmp_path: Path, place: str) -> None:
    data = zipped(("entry.json", b"{}"))
    at = data.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack("<HLL", data[at + 10 : at + 20])
    record = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    if place == "after":  # two ends: readers take the last
        data += record + struct.pack("<4sLQL", b"PK\x06\x07", 0, len(data), 1) + data[at:]
    else:
        end = data[at:-2] + b"\x05\x00abcde" if place == "comment" else data[at:]
        data = data[:at] + record + locator + end
    assert "zip64" in refuse(tmp_path, data)


def test_a_header_of_a_tar_that_never_ends(tmp_path: Path) -> None:
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 2**33
    refuse(tmp_path, member.tobuf(tarfile.GNU_FORMAT) + b"a" * 10_000)


@pytest.mark.parametrize("field", ["path", "linkpath", "size", "GNU.sparse.realsize", "hdrcharset"])
def test_extended_headers_of_a_tar(tmp_path: Path, field: str) -> None:
    value = {"path": "../../x.json", "size": str(2**62)}.get(field, "9" * 30)
    member = tarfile.TarInfo("ok.json")
    member.pax_headers = {field: value}
    if field in ("path", "size"):
        refuse(tmp_path, tarred((member, b"{}")))
        return
    room = tmp_path / "room"
    room.mkdir()
    (tmp_path / "a").write_bytes(tarred((member, b"{}")))
    with contextlib.suppress(Refused):
        unpack(tmp_path / "a", room, LIMITS)
    assert [p.name for p in room.iterdir() if p.name != "ok.json"] == []
