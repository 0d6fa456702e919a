"""Claims that run: trained arms, resuming, outcomes, the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.made_claims import above, tiny_claim

from turngym.benchmarks.claims.catalogue import CLAIMS, find_claims
from turngym.benchmarks.claims.outcome import Outcome
from turngym.benchmarks.claims.report import write_report
from turngym.benchmarks.claims.run import run_claims
from turngym.benchmarks.claims.training import PersistentExecutor, largest_drop
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.matrix.board import Board
from turngym.benchmarks.matrix.executors import Ended
from turngym.benchmarks.matrix.jobs import Job, perform
from turngym.envs.core.errors import BadValueError, UnknownNameError


class Here:
    """Does jobs in this process."""

    slots = 1

    def __init__(self) -> None:
        self.done: list[str] = []
        self.stopped = 0
        self._ended: list[Ended] = []

    def submit(self, job: Job) -> None:
        self.done.append(str(job))
        perform(job)
        self._ended.append(Ended(job, ""))

    def wait(self, seconds: float) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def stop(self) -> None:
        self.stopped += 1


class Quiet:
    """Shows nothing."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        return None

    def show(self, board: Board, ended: object, slots: int) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Outcome], Here]:
    out, here = tmp_path_factory.mktemp("claims"), Here()
    curves = tiny_claim(
        "curves",
        *(above(measure=m, unit="plain") for m in ("return", "area_tokens", "fall", "turns")),
    )
    refused = tiny_claim("refused", settings={"credit.scale": "nothing"})
    claims = [tiny_claim(), curves, refused]
    return out, run_claims(claims, out, 2, here, Quiet, lambda _: None), here


def test_arms_are_cells_of_a_matrix_and_shared_between_claims(ran) -> None:
    _, (first, curves, _), here = ran
    assert [f.seeds for f in first.findings] == [2]
    assert [len(arm.runs) for arm in first.arms] == [2, 2]
    assert len(first.arms[0].runs[0].values["success"]) == 4
    assert first.arms[0].runs[0].used.calls >= 24 or first.arms[0].runs[0].used.tokens >= 60
    trained = [line for line in here.done if "grpo on Bandit" in line]
    assert len(trained) == 2 * 2 + 2  # `curves` computes nothing; `refused` tries its second arm
    assert [f.test for f in curves.findings][1:] == ["Student's t over seeds"] * 3
    assert here.stopped == 1


def test_what_cannot_run_is_not_decided_and_says_why(ran) -> None:
    refused = ran[1][2]
    assert refused.verdict == "not decided"
    assert "refused" in refused.findings[0].why


def test_outcomes_are_files_and_a_second_call_computes_nothing(ran) -> None:
    out, (first, *_), _ = ran
    assert Outcome.read(out / "results" / "tiny.json") == first
    again = Here()
    (outcome,) = run_claims([tiny_claim()], out, 2, again, Quiet, lambda _: None)
    assert again.done == []
    assert outcome.findings == first.findings
    more = Here()
    run_claims([tiny_claim()], out, 3, more, Quiet, lambda _: None)
    assert sum("seed 2" in line for line in more.done) == 2
    assert not any("seed 0" in line for line in more.done)


def test_the_report_holds_everything_and_escapes_it(ran) -> None:
    out = ran[0]
    page, text = (path.read_text(encoding="utf-8") for path in write_report(out))
    for name in ("tiny", "curves", "refused"):
        assert f'id="{name}"' in page
        assert f"## {name}" in text
    assert "Ours is above &lt;theirs&gt;." in page
    assert "<theirs>" not in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "src=" not in page.replace("default-src", "")
    assert "definition has changed since" in page  # none of these is in the catalogue


def test_an_executor_lasts_until_it_is_closed_or_stopped_in_the_middle() -> None:
    here = Here()
    persistent = PersistentExecutor(here)
    persistent.stop()
    assert here.stopped == 0
    here.submit = lambda job: None  # type: ignore[method-assign]
    persistent.submit(Job(out="nowhere", column="Bandit-v0"))
    persistent.stop()
    assert here.stopped == 1


@pytest.mark.parametrize(
    ("curve", "deepest"), [([0, 0.5, 1], 0), ([0.2, 0.9, 0.3, 0.8], 0.6), ([1, 0.9, 0.7], 0.3)]
)
def test_the_deepest_fall_of_a_curve(curve, deepest) -> None:
    assert largest_drop(curve) == pytest.approx(deepest)


def test_the_catalogue() -> None:
    assert len(CLAIMS) >= 18
    for claim in CLAIMS.values():
        assert claim.minutes <= 5
        assert claim.digest == type(claim).model_validate_json(claim.model_dump_json()).digest
    assert [c.name for c in find_claims(["masking", "tree-leaves"])] == ["tree-leaves", "masking"]
    with pytest.raises(UnknownNameError, match="Did you mean 'masking'"):
        find_claims(["maskign"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"better": "nobody"}, "no arm 'nobody'"),
        ({"measure": "joy"}, "no metric 'joy'"),
        ({"min_effect": 0.0}, "greater than 0"),
        ({"beyond": ("ours", "nobody")}, "no arm 'nobody'"),
    ],
)
def test_definitions_are_checked(changes, says) -> None:
    with pytest.raises(ValueError, match=says):
        tiny_claim("bad", above(**changes))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "maskign"], "Did you mean 'masking'?"),
        (["--list", "--report"], "exclude each other"),
        (["--workers", "0"], "expected at least 1"),
        (["--seeds", "0"], "expected 1 to 20"),
        (["--report", "--out", "nowhere"], "no outcome of a claim"),
    ],
)
def test_refusals(words, says, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["claims", *words]) == REFUSED
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_list_names_every_claim(capsys) -> None:
    assert main(["claims", "--list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in CLAIMS)


def test_too_many_seeds(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="expected 1 to 20"):
        run_claims([], tmp_path, 21, Here(), Quiet, lambda _: None)
