"""`turngym leaderboard build | token | season | reveal` from the outside, with a tiny suite."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jinja2")

from helpers.board_helpers import make_entry, tiny_suite
from helpers.server_helpers import sealed_base

from turngym.benchmarks.cli.main import REFUSED, main
from turngym.leaderboard.server import ServerSettings
from turngym.leaderboard.server.accounts import account_of
from turngym.leaderboard.server.store import open_database
from turngym.leaderboard.server.submissions import insert
from turngym.leaderboard.suites.files import write_suite
from turngym.leaderboard.suites.sealed import is_revealed


def test_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tiny_suite()
    file = str(write_suite(suite, tmp_path))
    make_entry(suite, tmp_path / "entries" / suite.id / "ours")
    given = ("--entries", str(tmp_path / "entries"), "--db", str(tmp_path / "db"))
    assert main(("leaderboard", "index", *given, "--suite-file", file)) == 0
    out = ("--suite-file", file, "--out", str(tmp_path / "site"))
    assert main(("leaderboard", "build", *given, *out, "--no-transcripts")) == 0
    page = tmp_path / "site" / "entries" / suite.id / "ours"
    assert (page / "index.html").is_file()
    assert not (page / "Fork-v0").exists()
    assert main(("leaderboard", "build", *given, *out)) == 0
    assert (page / "Fork-v0" / "episodes.js").is_file()
    said = capsys.readouterr().out
    assert "open" in said
    assert "not in the index" not in said
    make_entry(suite, tmp_path / "entries" / suite.id / "late")
    assert main(("leaderboard", "build", *given, *out)) == 0
    assert f"not in the index, so not on the site: {suite.id}/late" in capsys.readouterr().out


def test_token_season_and_reveal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))  # for the world of a secret seed
    file = str(write_suite(sealed_base(), tmp_path))
    home = tmp_path / "home"
    (home / "entries").mkdir(parents=True)
    settings, where = ServerSettings(home=home), ("--home", str(home))
    assert main(("leaderboard", "token", "alice", *where)) == 0
    token = capsys.readouterr().out.split()[-1]
    assert account_of(settings, token) == "alice"
    under_way = [settings.uploads / "coming-abc", home / "unpacking-abc"]  # of a running server
    for folder in under_way:
        folder.mkdir(parents=True)
    assert main(("leaderboard", "season", "spring", *where, "--suite", file)) == 0
    assert all(folder.exists() for folder in under_way)
    said = capsys.readouterr().out
    assert "commitment" in said
    assert "left out, since their tasks are listed: Password-v0" in said
    assert sorted(p.name for p in (home / "entries" / "spring-v1").iterdir()) == [
        "expert",
        "null",
        "random",
    ]
    assert main(("leaderboard", "season", "spring", *where, "--suite", file)) != 0
    with open_database(settings.database) as base:
        base.execute(
            "INSERT INTO sealed_episodes VALUES "
            "('1', 'spring', 'alice', 'MathWord-v0', 0, 0, '', 'running', '', 0)"
        )
        insert(base, "2", "bob", settings.uploads / "2", "spring")
        insert(base, "3", "carol", settings.uploads / "3")
    assert main(("leaderboard", "reveal", "spring", *where)) == 0
    said = capsys.readouterr().out
    assert "3 entries replayed" in said
    assert "not finished, so without an entry: the passes of alice" in said
    assert "finished, but not verified yet: the passes of bob;" in " ".join(said.split())
    assert is_revealed(settings.seasons, "spring")
    assert main(("leaderboard", "token", "alice", *where, "--revoke")) == 0
    assert account_of(settings, token) is None


@pytest.mark.parametrize("words", [("reveal", "spring"), ("token", "alice", "--revoke")])
def test_a_home_that_does_not_exist_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    home = tmp_path / "hoem"
    assert main(("leaderboard", *words, "--home", str(home))) == REFUSED
    said = capsys.readouterr().err
    assert said.startswith(f"error: --home {home}: there is no such folder; expected that of a ")
    assert not home.exists()
    home.mkdir()
    assert main(("leaderboard", "reveal", "spring", "--home", str(home))) == REFUSED
    assert "unknown season 'spring'" in capsys.readouterr().err


def test_a_taken_port_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("leaderboard", "serve", "--home", str(tmp_path / "home"), "--port", port)
        assert main(words) == REFUSED
    line = f"error: port {port} of 127.0.0.1 is in use; choose another with --port.\n"
    assert capsys.readouterr().err == line


def test_the_server_says_where_it_is_and_ends(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "entries").mkdir(parents=True)
    command = [sys.executable, "-m", "turngym.benchmarks.cli", "leaderboard", "serve"]
    with subprocess.Popen(
        [*command, "--home", str(home), "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found
            with urlopen(f"{found[0]}/submit") as answer:
                assert answer.status == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--port", "0", "--home"),
        ("token", "alice", "--home"),
        ("season", "spring", "--home"),
        ("reference", "--only", "null", "--out"),
        ("freeze", "Password-v0", "--out"),
        ("build", "--out"),
        ("index", "--db"),
        ("key",),
    ],
)
def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    (tmp_path / "entries").mkdir()
    given = ("--entries", str(tmp_path / "entries"))
    if words[0] == "build":
        assert main(("leaderboard", "index", *given, "--db", str(tmp_path / "db"))) == 0
        words = ("build", "--db", str(tmp_path / "db"), *given, "--out")
    if words[0] == "index":
        words = ("index", *given, "--db")
    name = "/proc/nope/file" if words[0] in ("key", "index") else "/proc/nope"
    assert main(("leaderboard", *words, name)) == REFUSED
    assert re.fullmatch(
        r"error: /proc/nope\S*: cannot be a folder \(.+\)\.\n", capsys.readouterr().err
    )
