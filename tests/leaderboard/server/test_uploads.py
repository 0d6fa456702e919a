"""Uploads from the outside: tokens, limits, quotas, the queue, what survives a restart."""

from __future__ import annotations

import asyncio
import errno
import io
import re
import sqlite3
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from helpers.board_helpers import edit_episodes, edit_manifest
from helpers.server_helpers import Place, wait_for, zipped

from turngym.leaderboard.entries_io.archive import unpack
from turngym.leaderboard.ranking.board import make_boards
from turngym.leaderboard.ranking.index import entries_folder, entry_folders, read_index
from turngym.leaderboard.schema.limits import ReadLimits, ReplayLimits
from turngym.leaderboard.schema.result import Verdict
from turngym.leaderboard.server import new_token, revoke_tokens, verifier
from turngym.leaderboard.server.accounts import account_of
from turngym.leaderboard.server.app import make_app
from turngym.leaderboard.server.publishing import prepare, reindex, write_site
from turngym.leaderboard.server.store import open_database
from turngym.leaderboard.server.submissions import find, take_next, update
from turngym.leaderboard.suites.files import known_suites
from turngym.leaderboard.verification.sandbox import Cancelled
from turngym.leaderboard.verification.verify import verify_folder


def archive(**files: bytes) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name, data)
    return memory.getvalue()


def send(client: Any, place: Place, data: bytes, **headers: str) -> Any:
    return client.post("/api/submissions", content=data, headers=place.headers | headers)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify in this process and write no pages: for tests that are about the queue alone."""

    def verify_here(
        archive: Path, *, suites: Any, read: Any, replay: Any, on_progress: Any, cancel: Any
    ) -> Verdict:
        with tempfile.TemporaryDirectory() as room:
            folder = unpack(archive, Path(room), read)
            return verify_folder(folder, known_suites(suites), read, on_progress)

    monkeypatch.setattr("turngym.leaderboard.server.verifier.verify", verify_here)
    monkeypatch.setattr("turngym.leaderboard.server.verifier.write_site", lambda *_: None)


def test_a_good_a_forged_and_a_poisoned_entry(place: Place, entry: Path, tmp_path: Path) -> None:
    good = zipped(entry, tmp_path / "good")

    def lie(episodes: list[Any]) -> None:
        episodes[0]["chain"][-1] = "0" * 16

    edit_episodes(entry, lie)
    forged = zipped(entry, tmp_path / "forged")
    bomb = archive(**{"entry.json": b"0" * 30_000_000, "episodes/a.jsonl": b"{}"})
    with place.client(background=True) as client:
        sent = [send(client, place, data).json() for data in (bomb, forged, good)]
        told = [wait_for(client, one["id"]) for one in sent]
        assert [one["state"] for one in told] == ["refused", "refused", "accepted"]
        assert [one["reason"] for one in told] == ["archive", "observation", ""]
        assert told[2]["score"] == 1.0
        assert told[2]["done"] == told[2]["total"] == 12
        assert "differs from the recorded one" in told[1]["message"]
        assert "differs from the recorded one" in client.get(f"/submissions/{sent[1]['id']}").text
        page = f"/entries/{told[2]['entry_id']}/index.html"
        for _ in range(2400):
            if page.removeprefix("/") in client.get("/").text:  # the page that is written last
                break
            time.sleep(0.05)
        assert "12 episodes replayed" in client.get(page).text
        assert "an entry" in client.get("/").text
        assert client.get(f"{page.replace('index.html', '')}Fork-v0/episodes.js").status_code == 200
    assert not list(place.settings.uploads.iterdir())
    assert (place.settings.entries / told[2]["entry_id"] / "entry.json").is_file()


def test_a_restart_resumes_the_queue(
    place: Place, entry: Path, tmp_path: Path, quick: None
) -> None:
    data = zipped(entry, tmp_path / "good")
    with place.client() as client:
        names = [send(client, place, data).json()["id"] for _ in range(3)]
        assert client.get(f"/api/submissions/{names[2]}").json()["before"] == 2
    interrupted = take_next(place.settings)  # a server that stops here leaves it "verifying"
    assert interrupted is not None
    assert interrupted.id == names[0]
    with place.client(background=True) as client:
        told = [wait_for(client, name) for name in names]
    assert [one["state"] for one in told] == ["accepted", "refused", "refused"]
    assert [one["reason"] for one in told] == ["", "copy", "copy"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "a 7B model", "organisation": "others", "date": "0001-01-01"}, "copy"),
        ({"reproduces": "somebody else's"}, "copy"),
        ({"reproduces": "an entry"}, ""),
        ({"reproduces": "ID"}, ""),
        ({"reference": "expert"}, "reserved"),
        ({"organisation": "TurnGym"}, "reserved"),
    ],
)
def test_who_copies_is_refused_or_says_so(
    place: Place, entry: Path, tmp_path: Path, quick: None, change: dict[str, Any], reason: str
) -> None:
    first = zipped(entry, tmp_path / "first")
    mallory = place.changed()
    mallory.token = new_token(place.settings, "mallory")
    with place.client(background=True) as client:
        accepted = wait_for(client, send(client, place, first).json()["id"])
        assert accepted["state"] == "accepted"
        if change.get("reproduces") == "ID":
            change = {"reproduces": accepted["entry_id"]}
        edit_manifest(entry, lambda data: data.update(change))
        second = zipped(entry, tmp_path / "second")
        told = wait_for(client, send(client, mallory, second).json()["id"])
    assert told["reason"] == reason
    known = {one.record.account: one for one in read_index(place.settings.index)}
    assert set(known) == ({"alice"} if reason else {"alice", "mallory"})
    assert re.match(r"20\d\d-", known["alice"].record.accepted)
    rows = make_boards(list(known.values()))[0].rows
    assert [row.rank for row in rows] == [None] * len(rows)
    assert [bool(row.copy_of) for row in rows] == [False, True][: len(rows)]


async def call(app: Any, place: Place, receive: Any) -> dict[str, Any]:
    """Send an upload whose body comes as ``receive`` says; return status and body."""
    headers = [(b"authorization", place.headers["Authorization"].encode())]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": "/api/submissions", "raw_path": b"/api/submissions",
        "query_string": b"", "headers": headers, "client": ("test", 1), "server": ("test", 80),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return {"status": sent[0]["status"], "body": b"".join(m.get("body", b"") for m in sent[1:])}


def test_an_acceptance_adds_to_the_index_without_a_look_at_the_others(
    place: Place, entry: Path, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every acceptance read all entries again: with a thousand of them, a thousand times."""
    prepare(place.settings)
    began = reindex(place.settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifier, "reindex", lambda *_, **__: began)
        with place.client(background=True) as client:
            told = wait_for(client, send(client, place, zipped(entry, tmp_path)).json()["id"])
    assert told["state"] == "accepted"
    (one,) = (i for i in read_index(place.settings.index) if i.entry_id == told["entry_id"])
    assert (one.verdict.accepted, one.record.account) == (True, "alice")
    assert reindex(place.settings) == read_index(place.settings.index)
    assert len(read_index(place.settings.index)) == len(began) + 1
    assert read_index(place.settings.index, one.manifest.suite.id)[-1:] == [one]
    assert read_index(place.settings.index, "other-v1") == []


def test_uploads_under_way_count_and_slow_ones_end(place: Place) -> None:
    small = place.changed(waiting=2, upload_s=1.0)
    app = make_app(small.settings, background=False)

    async def never() -> Any:
        await asyncio.sleep(60)

    async def three() -> list[dict[str, Any]]:
        return await asyncio.gather(*(call(app, place, never) for _ in range(3)))

    answers = asyncio.run(three())
    assert sorted(answer["status"] for answer in answers) == [408, 408, 429]
    assert any(b"more than 1 seconds" in answer["body"] for answer in answers)
    assert any(b"2 uploads wait" in answer["body"] for answer in answers)
    assert not list(place.settings.uploads.iterdir())

    async def empty() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    assert asyncio.run(call(app, place, empty))["status"] == 415  # the places are free again


def test_what_was_cut_off_is_swept_at_the_start(place: Place, quick: None) -> None:
    prepare(place.settings)
    (place.settings.uploads / "coming-abc").write_bytes(b"PK")
    whole = place.settings.uploads / f"{'a' * 32}.zip"
    whole.write_bytes(b"PK")
    (place.settings.home / "unpacking-abc" / "entry").mkdir(parents=True)
    outside = place.settings.home.parent / "outside"
    outside.mkdir()
    (place.settings.home / "unpacking-link").symlink_to(outside)
    with place.client(background=True):
        pass
    assert list(place.settings.uploads.iterdir()) == [whole]
    assert not list(place.settings.home.glob("unpacking-*"))
    assert outside.is_dir()


def test_an_entry_that_stops_the_server_is_given_up(
    place: Place, entry: Path, tmp_path: Path, quick: None
) -> None:
    data = zipped(entry, tmp_path / "good")
    with place.client() as client:
        poison, after = (send(client, place, data).json()["id"] for _ in range(2))
    update(place.settings, poison, state="verifying", attempts=2)
    with place.client(background=True) as client:
        assert wait_for(client, poison)["state"] == "broken"
        assert wait_for(client, after)["state"] == "accepted"


def test_a_server_that_stops_gives_back_what_it_verifies(
    place: Place, entry: Path, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the verdict, and at its first start for those of all entries, for minutes."""
    begun = threading.Event()

    def endless(archive: Path, *, cancel: threading.Event, **_: Any) -> Verdict:
        begun.set()
        assert cancel.wait(60)
        raise Cancelled

    with monkeypatch.context() as patch:
        patch.setattr(verifier, "verify", endless)
        with place.client(background=True) as client:
            name = send(client, place, zipped(entry, tmp_path / "good")).json()["id"]
            assert begun.wait(60)
    one = find(place.settings, name)
    assert one is not None
    assert (one.state, one.attempts) == ("queued", 0)
    with place.client(background=True) as client:
        assert wait_for(client, name)["state"] == "accepted"


def test_pages_that_are_being_written_do_not_keep_a_server(place: Place) -> None:
    prepare(place.settings)
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Cancelled):
        write_site(place.settings, stopped)
    assert not (place.settings.site / "index.html").exists()


def test_limits_of_the_replay_are_told(place: Place, entry: Path, tmp_path: Path) -> None:
    data = zipped(entry, tmp_path / "good")
    tight = place.changed(replay=ReplayLimits(wall_s=0.01))
    with tight.client(background=True) as client:
        told = wait_for(client, send(client, tight, data).json()["id"])
    assert (told["state"], told["reason"]) == ("refused", "wall_limit")


def test_a_failing_server_says_so_and_goes_on(
    place: Place, entry: Path, tmp_path: Path, quick: None
) -> None:
    data = zipped(entry, tmp_path / "good")
    with place.client() as client:
        lost, kept = (send(client, place, data).json()["id"] for _ in range(2))
    one = find(place.settings, lost)
    assert one is not None
    Path(one.path).unlink()
    with place.client(background=True) as client:
        assert wait_for(client, lost)["state"] == "broken"
        assert wait_for(client, kept)["state"] == "accepted"


def test_an_upload_that_cannot_be_queued_leaves_no_file(
    place: Place, entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("turngym.leaderboard.server.uploads.add_upload", failing)
    with TestClient(place.client().app, raise_server_exceptions=False) as client:
        assert send(client, place, zipped(entry, tmp_path / "good")).status_code == 500
    assert not list(place.settings.uploads.iterdir())


def test_an_accepted_upload_that_cannot_be_deleted_stays_accepted(
    place: Place, entry: Path, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Path) -> None:
        raise OSError(f"{path} is busy")

    monkeypatch.setattr(verifier, "_remove", failing)
    with place.client(background=True) as client:
        name, after = (
            send(client, place, zipped(entry, tmp_path / str(i))).json()["id"] for i in range(2)
        )
        for one in (name, after):  # the queue has gone on behind the first
            wait_for(client, one)
        assert wait_for(client, name)["state"] == "accepted"


@pytest.mark.parametrize("broken", ["take_next", "update"])
def test_a_database_that_fails_once_does_not_stop_the_queue(
    place: Place, entry: Path, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch,
    broken: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(verifier, "_POLL_S", 0.05)
    good, faults = getattr(verifier, broken), [sqlite3.OperationalError("database is locked")] * 4

    def failing(*given: Any, **fields: Any) -> Any:
        if faults:
            raise faults.pop()
        return good(*given, **fields)

    monkeypatch.setattr(verifier, broken, failing)
    wide = place.changed(attempts=9)
    with wide.client(background=True) as client:
        told = wait_for(client, send(client, wide, zipped(entry, tmp_path / "good")).json()["id"])
    assert (told["state"], faults) == ("accepted", [])


def test_a_start_that_was_cut_off_copies_every_entry_the_next_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.settings.entries.rmdir()

    def cut(root: Path) -> Iterator[tuple[str, Path]]:
        yield next(entry_folders(root))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("turngym.leaderboard.server.publishing.entry_folders", cut)
        with pytest.raises(OSError, match="No space left"):
            prepare(place.settings)
    prepare(place.settings)
    names = [name for name, _ in entry_folders(place.settings.entries)]
    assert names == [name for name, _ in entry_folders(entries_folder())]


@pytest.mark.parametrize("header", ["", "Bearer nonsense", "Basic YTpi", "Bearer "])
def test_no_token_no_upload(client: Any, header: str) -> None:
    answer = client.post("/api/submissions", content=b"PK", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.json()["error"]["kind"] == "token"


def test_tokens_are_kept_as_hashes_and_revoked(place: Place) -> None:
    assert account_of(place.settings, place.token) == "alice"
    assert place.token.encode() not in place.settings.database.read_bytes()
    assert revoke_tokens(place.settings, "alice") == 1
    assert account_of(place.settings, place.token) is None
    for name in ("../alice", "alice\n"):
        with pytest.raises(ValueError, match="lower-case"):
            new_token(place.settings, name)


def test_size_kind_and_quota(place: Place, entry: Path, tmp_path: Path) -> None:
    data = zipped(entry, tmp_path / "good")
    small = place.changed(read=ReadLimits(archive_bytes=1000), waiting=1)
    with small.client() as client:
        assert send(client, small, b"PK" + b"0" * 2000).status_code == 413
        unmeasured = iter([b"PK", b"0" * 600, b"0" * 600])
        answer = client.post("/api/submissions", content=unmeasured, headers=small.headers)
        assert answer.status_code == 413
        assert send(client, small, b"\x80\x04pickle").status_code == 415
        assert send(client, small, b"").status_code == 415
    assert not list(place.settings.uploads.iterdir())
    one = place.changed(waiting=1)
    with one.client() as client:
        assert send(client, one, data).status_code == 202
        again = send(client, one, data)
        assert again.status_code == 429
        assert again.json()["error"]["kind"] == "quota"
    daily = place.changed(uploads_per_day=1)
    with daily.client() as client:
        assert "in a day" in send(client, daily, data).json()["error"]["message"]


def test_an_upload_that_cannot_be_queued_is_not_kept(
    place: Place, entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*given: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("turngym.leaderboard.server.uploads.add_upload", locked)
    data = zipped(entry, tmp_path / "good")
    with TestClient(place.client().app, raise_server_exceptions=False) as client:
        assert send(client, place, data).status_code == 500
    assert not list(place.settings.uploads.iterdir())


def test_too_many_requests(place: Place) -> None:
    slow = place.changed(requests_per_minute=2)
    with slow.client() as client:
        codes = [client.get("/submit").status_code for _ in range(3)]
        assert codes == [200, 200, 429]
        answer = client.get("/submit")
        assert int(answer.headers["retry-after"]) > 0


def test_a_browser_gets_errors_as_pages_and_others_as_json(place: Place) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    with place.client() as client:
        for path in ("/nothing/here", "/submissions/none", "/api/submissions/none"):
            page = client.get(path, headers=browser)
            assert (page.status_code, page.headers["vary"]) == (404, "Accept"), path
            assert page.headers["content-type"].startswith("text/html")
            assert "there is no such" in page.text.lower()
            up = "../" * (path.count("/") - 1)
            assert f'href="{up}index.html"' in page.text  # the navigation, from where it stands
            assert f'href="{up}assets/site.css"' in page.text
            assert page.headers["x-content-type-options"] == "nosniff"
            other = client.get(path)
            assert other.status_code == 404
            assert set(other.json()["error"]) == {"kind", "message"}
        assert len(client.get("/x" + "/" * 5000, headers=browser).text) < 10_000
        page = client.post("/api/submissions", content=b"PK", headers=browser)
        assert (page.status_code, page.headers["www-authenticate"]) == (401, "Bearer")
    slow = place.changed(requests_per_minute=1)
    with slow.client() as client:
        client.get("/submit")
        page = client.get("/submit", headers=browser)
        assert "<h1>Too Many Requests</h1>" in page.text
        assert int(page.headers["retry-after"]) > 0
        assert 'http-equiv="refresh"' not in page.text


def test_pages_that_are_not_written_yet_come_by_themselves(place: Place) -> None:
    browser = {"Accept": "text/html"}
    with place.client() as client:
        for path in ("/", "/boards/tiny-v1-agents.html"):
            page = client.get(path, headers=browser)
            assert (page.status_code, page.headers["retry-after"]) == (503, "3")
            assert '<meta http-equiv="refresh" content="3">' in page.text
            assert "The pages are being written." in page.text
            assert "<nav" in page.text
        assert client.get("/nothing", headers=browser).status_code == 404
        assert client.get("/").json()["error"]["kind"] == "starting"
        assert client.get("/boards/tiny-v1-agents.html").status_code == 404
        (place.settings.site / "index.html").write_text("written")
        assert client.get("/", headers=browser).text == "written"
        assert client.get("/boards/none.html", headers=browser).status_code == 404


def test_a_failure_of_the_server_is_a_page_too(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise RuntimeError("a secret of the code")

    monkeypatch.setattr("turngym.leaderboard.server.uploads.find", failing)
    app = make_app(place.settings, background=False)
    with TestClient(app, raise_server_exceptions=False) as client:
        for accept, kind in (("text/html", "text/html"), ("*/*", "application/json")):
            answer = client.get("/submissions/one", headers={"Accept": accept})
            assert answer.status_code == 500
            assert answer.headers["content-type"].startswith(kind)
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "its operator finds the reason in the log" in answer.text
            assert "secret" not in answer.text


def test_pages_say_what_a_browser_may_do(client: Any) -> None:
    for path in ("/submit", "/season", "/api/submissions/none", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/../server.sqlite",
        "/%2e%2e/server.sqlite",
        "/entries/..%2f..%2fserver.sqlite",
        "/seasons/spring/secret.json",
        "/seasons/spring/spring-v1.json",
        "/seasons/..%2f..%2f/secret.json",
        "/submissions/%3Cscript%3E",
        "/openapi.json",
    ],
)
def test_nothing_else_is_served(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "<script>" not in answer.text


def test_an_error_that_ended_the_transaction_is_told_itself(place: Place) -> None:
    def fail() -> None:
        with open_database(place.settings.database) as base:
            base.execute("ROLLBACK")  # as SQLite does where a write fails
            raise sqlite3.OperationalError("disk I/O error")

    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        fail()


def test_another_database_is_refused(place: Place) -> None:
    place.settings.database.unlink()
    with sqlite3.connect(place.settings.database) as base:
        base.execute("CREATE TABLE other (x)")
    base.close()
    with pytest.raises(ValueError, match="not a database of this server"):
        new_token(place.settings, "bob")
