"""Claims that run: trained arms, resuming, outcomes, the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.made_claims import above, tiny_claim

from turngym.algos.recipes import make_recipe
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import EnvConfig
from turngym.benchmarks.claims.catalogue import CLAIMS, find_claims
from turngym.benchmarks.claims.claim import equal
from turngym.benchmarks.claims.experiments import CrawledArm, Crawling, TrainedArm, Training
from turngym.benchmarks.claims.outcome import RUN, ArmRuns, Finding, Outcome, word_verdict
from turngym.benchmarks.claims.packing import is_packed, read_outcomes
from turngym.benchmarks.claims.report import (
    VERDICTS,
    collect_repetitions,
    columns_of,
    unmatched,
    write_report,
)
from turngym.benchmarks.claims.run import run_claims
from turngym.benchmarks.claims.training import (
    PersistentExecutor,
    largest_drop,
)
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.matrix.board import Board
from turngym.benchmarks.matrix.executors import Ended
from turngym.benchmarks.matrix.jobs import Job, perform
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.utils.seed_tests import Edges, compare_seeds


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
        *(
            above(measure=m, unit="plain")
            for m in ("return", "area", "area_return", "area_tokens", "fall", "turns")
        ),
    )
    refused = tiny_claim("refused", settings={"credit.scale": "nothing"})
    claims = [tiny_claim(), curves, refused]
    return out, run_claims(claims, out, 2, here, Quiet, lambda _: None), here


def test_arms_are_cells_of_a_matrix_and_shared_between_claims(ran) -> None:
    _, (first, curves, _), here = ran
    assert [arm.name for arm in first.arms] == ["ours", "theirs", "theirs, other seeds"]
    assert [[run.seed for run in arm.runs] for arm in first.arms] == [[0, 1], [0, 1], [20, 21]]
    assert len(first.arms[0].runs[0].values["success"]) == 4
    assert first.arms[0].runs[0].used.calls >= 24 or first.arms[0].runs[0].used.tokens >= 60
    assert first.arms[1].folder == first.arms[2].folder
    trained = [line for line in here.done if "grpo on Bandit" in line]
    # `curves` computes nothing; `refused` tries its second arm and repeats it
    assert len(trained) == 3 * 2 + 2 * 2
    assert [f.units for f in curves.findings] == [4, *[1] * 5]
    assert all(f.test is not None for f in curves.findings)
    assert here.stopped == 1


def test_an_arm_is_compared_with_itself_on_other_seeds(ran) -> None:
    _, (first, curves, _), _ = ran
    (repeated,) = first.repetition
    assert repeated.comparison.arms == ("theirs, other seeds", "theirs")
    assert repeated.test is not None
    assert not repeated.test.paired
    assert (repeated.verdict, repeated.seeds) == ("not decided", 2)
    measures = [f.comparison.measure for f in curves.repetition]
    assert sorted(measures) == sorted(c.measure for c in curves.claim.comparisons)


def test_arms_without_training_are_repeated_too(tmp_path) -> None:
    usual, nothing = (
        CrawledArm(name="usual"),
        CrawledArm(name="nothing pays", env_settings={"alpha": 0.0}),
    )
    experiment = Crawling(
        arms=(usual, nothing),
        env_settings={"size": "micro"},
        requests=4,
        settings={"steps": 6, "frozen_steps": 2, "requests": 4},
    )
    more = above("usual", "nothing pays", measure="actions", unit="plain")
    claim = tiny_claim("crawls").model_copy(
        update={"experiment": experiment, "comparisons": (more,)}
    )
    said: list[str] = []
    (outcome,) = run_claims([claim], tmp_path, 2, Here(), Quiet, said.append)
    assert [[run.seed for run in arm.runs] for arm in outcome.arms] == [[0, 1], [0, 1], [20, 21]]
    assert [f.comparison.better for f in outcome.repetition] == ["nothing pays, other seeds"]
    assert outcome.findings[0].test is not None
    assert outcome.findings[0].test.paired
    assert columns_of(outcome) == [("actions", "plain")]
    again: list[str] = []
    run_claims([claim], tmp_path, 2, Here(), Quiet, again.append)
    assert sum("seed " in line for line in said) == 6
    assert not any("seed " in line for line in again[1:-1])


def test_areas_and_steps_come_from_what_training_logged(ran) -> None:
    out, (first, *_), _ = ran
    arm = first.arms[0]
    run = arm.runs[0]
    rows = read_metrics(next((out / "arms" / arm.folder / "runs").glob("*s0")) / "metrics.jsonl")
    steps = [row for row in rows if "rollout/success_frac" in row]
    assert run.used.optimizer_steps == sum(row["update/optimizer_steps"] for row in steps) > 0
    limit, before, total = 60, 0.0, 0.0
    for row in steps:
        end = min(row["budget/tokens"], limit)
        total += row["rollout/success_frac"] * (end - before)
        before = end
    total += steps[-1]["rollout/success_frac"] * (limit - before)
    assert run.values["area"] == {RUN: pytest.approx(total / limit)}
    assert run.values["area_return"] == run.values["area"]  # Bandit-v0 pays 1 for success
    assert "area_right" not in run.values  # it has no letters
    assert arm.optimizer_steps == sum(r.used.optimizer_steps for r in arm.runs) / 2
    assert set(run.values["greedy"]) == set(run.values["success"])
    assert columns_of(first) == [("success", "points"), ("greedy", "points")]


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
    assert sum("seed 2," in line or line.endswith("seed 2") for line in more.done) == 2
    assert sum("seed 22" in line for line in more.done) == 1
    assert not any("seed 0" in line for line in more.done)


def test_an_outcome_is_not_replaced_by_one_of_fewer_seeds(tmp_path) -> None:
    """Asked for one seed, a claim that five had decided became undecided."""
    experiment = Crawling(
        arms=(CrawledArm(name="ours"), CrawledArm(name="theirs", env_settings={"alpha": 0.0})),
        env_settings={"size": "micro"},
        requests=2,
        settings={"steps": 2, "frozen_steps": 1, "requests": 2},
    )
    more = above("ours", "theirs", measure="actions", unit="plain")
    claim = tiny_claim("crawls").model_copy(
        update={"experiment": experiment, "comparisons": (more,)}
    )
    run_claims([claim], tmp_path, 2, Here(), Quiet, lambda _: None)
    path = tmp_path / "results" / "crawls.json"
    two, said = Outcome.read(path), []
    run_claims([claim], tmp_path, 1, Here(), Quiet, said.append)
    assert Outcome.read(path).findings == two.findings
    assert said[1] == "crawls: judged over 2 seeds before, and still is"
    path.write_text("{")
    run_claims([claim], tmp_path, 1, Here(), Quiet, lambda _: None)
    assert Outcome.read(path).seeds == 1


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
    for said in ("A/A: arms against themselves", "theirs, other seeds", "optimiser steps"):
        assert said in page
        assert said in text
    assert "Within bounds." in page
    assert "Run again by others" in page
    assert "0.1 below (Another paper" in text


def test_a_folder_that_is_not_there_is_called_that(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothere does not exist"):
        read_outcomes(tmp_path / "nothere")
    with pytest.raises(DataError, match="has no outcome of a claim yet"):
        read_outcomes(tmp_path)


def test_packed_results_of_a_suite_are_no_outcomes() -> None:
    results = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
    with pytest.raises(DataError, match=r"no outcome of a claim; .*`turngym claims --pack` wrote"):
        read_outcomes(results / "turns.jsonl.gz")


def test_a_packed_file_gives_the_same_report(ran, tmp_path, capsys) -> None:
    out, file = ran[0], tmp_path / "claims.jsonl.gz"
    assert main(["claims", "--pack", str(file), "--out", str(out)]) == 0
    assert "3 claims" in capsys.readouterr().out
    words = ["claims", "--report", "--packed", str(file), "--out", str(tmp_path / "pages")]
    assert main(words) == 0
    for path in write_report(out):
        assert (tmp_path / "pages" / path.name).read_bytes() == path.read_bytes()
    assert is_packed(file)
    assert not is_packed(out / "results" / "tiny.json")
    assert main(["claims", "--pack", str(tmp_path), "--out", str(out)]) == REFUSED
    assert "is a folder" in capsys.readouterr().err
    file.write_bytes(file.read_bytes()[:-9])
    assert main(words) == REFUSED
    assert "damaged" in capsys.readouterr().err


def test_arms_that_took_other_steps_are_named(ran) -> None:
    first = ran[1][0]
    (comparison,) = first.claim.comparisons
    assert unmatched(first, comparison) == ""
    run = first.arms[0].runs[0]
    used = run.used.model_copy(update={"optimizer_steps": 50 * run.used.optimizer_steps})
    more = run.model_copy(update={"used": used})
    arm = first.arms[0].model_copy(update={"runs": (more,)})
    other = first.model_copy(update={"arms": (arm, *first.arms[1:])})
    assert "optimiser steps" in unmatched(other, comparison)


def test_repetitions_are_counted_and_bounded() -> None:
    def finding(low: float, p: float, verdict: str, high: float) -> Finding:
        test = compare_seeds([0.5, 0.6, 0.4, 0.5, 0.5], [0.5, 0.4, 0.6, 0.5, 0.45], paired=False)
        test = test.model_copy(update={"low95": low, "high95": high, "p_value": p})
        given = {"comparison": above("ours, again", "ours"), "seeds": 5, "units": 1}
        return Finding(**given, test=test, verdict=verdict)

    claim = tiny_claim()
    quiet = [finding(-0.1, 0.5, "not decided", 0.1)] * 19
    loud = [finding(0.1, 0.01, "reproduced", 0.2), finding(-0.2, 0.01, "not reproduced", -0.1)]

    def collected(findings: list[Finding]):
        outcomes = [
            Outcome(
                claim=claim,
                digest=claim.digest,
                seeds=5,
                verdict="not decided",
                why="",
                findings=(),
                repetition=(each,),
                arms=(ArmRuns(name="ours, again", folder=f"f{i}", runs=()),),
            )
            for i, each in enumerate(findings)
        ]
        return collect_repetitions([*outcomes, *outcomes[:3]])  # shared arms count once

    found = collected([*quiet, *loud])
    assert (found.count, found.different, found.significant, found.missed) == (21, 2, 2, 2)
    assert found.allowed == 3
    assert found.within
    assert not collected([*quiet[:2], *loud]).within
    # arms that both only guess cannot differ: they would hide the others
    guess = quiet[0].model_copy(update={"why": Edges().describe([0.0] * 5, [0.0] * 5)})
    found = collected([*[guess] * 19, *quiet[:2], *loud])
    assert (found.count, found.at_end, found.allowed, found.within) == (4, 19, 1, False)


def test_equal_arms_are_worded_by_what_was_expected() -> None:
    """ "Equivalent" confirmed a control and refuted any other claim, in one colour and tile."""
    same, better = equal("ours", "theirs"), above("ours", "theirs")
    assert word_verdict("equivalent", [same, same]) == "control holds"
    assert word_verdict("equivalent", [same, better]) == "no difference"
    assert word_verdict("equivalent", [better]) == "no difference"
    assert word_verdict("not reproduced", [same]) == "not reproduced"


def test_the_overview_of_packed_claims_has_the_verdict_second(tmp_path: Path) -> None:
    results = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
    page, table = write_report(tmp_path, results / "claims.jsonl.gz")
    html, text = page.read_text(encoding="utf-8"), table.read_text(encoding="utf-8")
    assert "| arpo-control | control holds |" in text
    assert "| arpo-above-grpo | no difference |" in text
    tiles = re.findall(r'<div class="tile [\w-]+"><b>(\d+)</b><span>([a-z ]+)</span>', html)
    assert [name for _, name in tiles] == list(VERDICTS)
    assert sum(int(count) for count, _ in tiles) == 30
    assert ">equivalent<" not in html
    first = re.search(r"<tbody>\s*<tr>(.*?)</tr>", html, re.DOTALL)
    assert first is not None
    assert "tag" in first[1].split("</td>")[0]


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
    assert len(CLAIMS) >= 26
    for claim in CLAIMS.values():
        assert claim.minutes <= 15
        assert claim.digest == type(claim).model_validate_json(claim.model_dump_json()).digest
    assert [c.name for c in find_claims(["masking", "tree-leaves"])] == ["tree-leaves", "masking"]
    with pytest.raises(UnknownNameError, match="Did you mean 'masking'"):
        find_claims(["maskign"])


def trained_arms() -> dict[str, TrainedArm]:
    return {
        f"{claim.name}: {arm.name}": arm
        for claim in CLAIMS.values()
        if isinstance(claim.experiment, Training)
        for arm in claim.experiment.arms
    }


def test_every_trained_arm_has_a_recipe_and_an_environment() -> None:
    made: set[str] = set()
    for where, arm in trained_arms().items():
        settings = {**arm.column.recipe_settings, **arm.settings}
        recipe = make_recipe(arm.recipe, settings, small=True)
        # equal tokens a step; pasa-training compares with its start
        assert recipe.tokens_per_step or where.startswith("pasa-training"), where
        env = EnvConfig(id=arm.column.id, settings=arm.column.settings)
        if repr(env) not in made:
            made.add(repr(env))
            assert env.make() is not None


def test_every_mechanism_has_a_control_and_arms_differ_by_their_recipe_alone() -> None:
    controls = [c for c in CLAIMS.values() if all(o.expected == "equal" for o in c.comparisons)]
    assert {claim.name for claim in controls} == {
        f"{paper}-control" for paper in ("tree", "arpo", "tarl", "pasa", "gigpo")
    }
    for claim in CLAIMS.values():
        experiment = claim.experiment
        if isinstance(experiment, Training):
            columns = {arm.column.model_dump_json(exclude={"limits"}) for arm in experiment.arms}
            limits = {arm.column.limits for arm in experiment.arms}
            unequal = {"arpo-half-calls", "pasa-training", "tarl-mixed"}
            assert (len(columns) == len(limits) == 1) or claim.name in unequal, claim.name
    assert any("39.8 against 44.5" in r.figure for r in CLAIMS["tree-above-grpo"].reruns)


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
        (["--list", "--report"], "--report does not go with claims --list, which takes --only."),
        (["--null", "--seeds", "7"], "does not go with claims --null, which takes no other option"),
        (["--report", "--only", "masking"], "--only does not go with claims --report"),
        (["--packed", "a.jsonl.gz"], "--packed is read by claims --report"),
        (["--pack", "a.jsonl", "--report"], "does not go with claims --report"),
        (["--workers", "0"], "expected at least 1"),
        (["--seeds", "0"], "expected 1 to 20"),
        (["--report", "--out", "nowhere"], "nowhere does not exist"),
    ],
)
def test_refusals(words, says, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["claims", *words]) == REFUSED
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arms", "status"),
    [
        ((ArmRuns(name="ours", folder="f", runs=()),), 0),
        ((ArmRuns(name="ours", folder="f", runs=(), problem="seed 0 failed: no memory"),), 1),
        ((), 1),
    ],
)
def test_a_run_that_failed_is_told_by_the_exit_status(
    arms: tuple[ArmRuns, ...], status: int, tmp_path: Path, monkeypatch, capsys
) -> None:
    """A script took claims of which nothing had run for finished ones."""
    claim = tiny_claim()
    found = Outcome(
        claim=claim,
        digest=claim.digest,
        seeds=5,
        verdict="not decided",
        why="the experiment failed",
        findings=(),
        arms=arms,
    )
    monkeypatch.setattr("turngym.benchmarks.claims.run.run_claims", lambda *_: [found])
    monkeypatch.setattr("turngym.benchmarks.cli.claims.report", lambda *_: None)
    words = ["claims", "--only", "masking", "--workers", "1", "--out", str(tmp_path)]
    if not status:
        assert main(words) == 0
        return
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == status
    assert "runs of tiny failed, for the reasons in the report" in capsys.readouterr().out


def test_the_list_names_every_claim(capsys) -> None:
    assert main(["claims", "--list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in CLAIMS)


def test_too_many_seeds(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="expected 1 to 20"):
        run_claims([], tmp_path, 21, Here(), Quiet, lambda _: None)
