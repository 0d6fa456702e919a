"""The process around a replay: its limits hold, and a poisoned entry stops nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from helpers.board_helpers import edit_episodes
from helpers.processes import ends

from turngym.envs.core.errors import BadValueError, DataError
from turngym.leaderboard.ranking.index import entries_folder
from turngym.leaderboard.schema.limits import ReplayLimits
from turngym.leaderboard.schema.result import Verdict
from turngym.leaderboard.schema.suite import Suite
from turngym.leaderboard.suites.files import write_suite
from turngym.leaderboard.verification import sandbox
from turngym.leaderboard.verification.sandbox import verify, verify_queue

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are tested on Linux")


@pytest.fixture(scope="module")
def suite_file(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(suite, tmp_path_factory.mktemp("suites"))


def test_the_packages_expert_replays_and_nearly_reaches_the_top() -> None:
    """Also checks that the environments of micro-v3 are unchanged since it was frozen."""
    told: list[tuple[int, int]] = []
    verdict = verify(
        entries_folder() / "micro-v3" / "expert",
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert verdict.refusal is None
    assert verdict.scores is not None
    assert verdict.scores.errors == 0
    assert {env.env: env.score.mean for env in verdict.scores.envs if env.score.mean < 1} == {
        "PaperCrawler-v0": pytest.approx(0.564, abs=0.001)
    }
    assert told[-1] == (360, 360)
    assert told == sorted(told)


def test_a_queue_goes_on_after_poison(
    entry: Path, good: Path, suite_file: Path, tmp_path: Path
) -> None:
    edit_episodes(entry, lambda episodes: episodes[0].update(score=1.0))
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("entry.json", b" " * 20_000_000)
    archive = Path(shutil.make_archive(str(tmp_path / "good"), "zip", good.parent, good.name))
    queue = [bomb, entry, tmp_path / "nowhere", archive]
    outcomes = dict(verify_queue(queue, suites=[suite_file]))
    assert list(outcomes) == queue
    reasons = [o.refusal.reason for o in list(outcomes.values())[:2] if isinstance(o, Verdict)]  # type: ignore
    assert reasons == ["archive", "score_field"]
    assert isinstance(outcomes[queue[2]], DataError)
    last = outcomes[archive]
    assert isinstance(last, Verdict)
    assert last.accepted
    assert last.scores is not None
    assert last.scores.score.mean == 1.0
    assert last.seconds > 0


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (ReplayLimits(wall_s=0.05), "wall_limit"),
        (ReplayLimits(memory_mib=60), "memory_limit"),
    ],
)
def test_limits(good: Path, suite_file: Path, limits: ReplayLimits, reason: str) -> None:
    verdict = verify(good, suites=[suite_file], replay=limits)
    assert verdict.refusal is not None
    assert verdict.refusal.reason == reason
    assert verdict.scores is None


def test_a_cancelled_verification_ends_its_process(
    good: Path, suite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, begun = threading.Event(), []
    start = sandbox._Run._start

    def starting(run: Any, stderr: Any) -> Any:
        begun.append(start(run, stderr))
        threading.Timer(0.05, cancel.set).start()  # while nothing has come from it yet
        return begun[0]

    monkeypatch.setattr(sandbox._Run, "_start", starting)
    with pytest.raises(sandbox.Cancelled):
        verify(good, suites=[suite_file], cancel=cancel)
    assert begun[0].returncode == -signal.SIGKILL


def test_processor_time(entry: Path, suite_file: Path) -> None:
    """Four hundred thousand hashes in each of twelve episodes take several seconds to read."""
    many = '"chain":[' + '"0123456789abcdef",' * 400_000
    for path in (entry / "episodes").iterdir():
        path.write_text(path.read_text().replace('"chain":[', many))
    verdict = verify(entry, suites=[suite_file], replay=ReplayLimits(cpu_s=1))
    assert verdict.refusal is not None
    assert verdict.refusal.reason == "cpu_limit"
    assert "1 processor seconds" in verdict.refusal.message


def test_a_process_that_dies_is_told_by_its_last_words(good: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken-v1.json"
    broken.write_text("{}")
    verdict = verify(good, suites=[broken])
    assert verdict.refusal is not None
    assert verdict.refusal.reason == "crashed"
    assert "broken-v1.json" in verdict.refusal.message


def test_bad_limits() -> None:
    with pytest.raises(BadValueError, match="memory_mib is 0"):
        ReplayLimits(memory_mib=0)


SERVER = """
import subprocess, sys, time
child = [sys.executable, "-m", "turngym.leaderboard.verification.sandbox_child"]
process = subprocess.Popen(child, stdin=subprocess.PIPE, start_new_session=True)
print(process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_the_process_dies_with_its_server() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    child = int(server.stdout.readline())
    kept = os.open(f"/proc/{child}/fd/0", os.O_WRONLY)  # its input stays open: no end of file
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and "resource" not in Path(f"/proc/{child}/maps").read_text():
        time.sleep(0.02)  # until the module has begun to run
    time.sleep(0.2)
    server.kill()
    server.wait()
    server.stdout.close()
    ended = ends(child)
    os.close(kept)
    assert ended
