"""A whole study: the bifurcation check, the same groups for all, the report and its pages."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bifurcation_world

from turngym.agents.warm_start.cache import ensure_starter
from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Credit, Credits
from turngym.algos.core.recipe import Recipe
from turngym.algos.credit import GroupCredit
from turngym.algos.recipes import make_recipe
from turngym.algos.runs.progress import Silent
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.microscope.crew import Bench, OwnProcess, hire
from turngym.benchmarks.microscope.giving import OwnPartError
from turngym.benchmarks.microscope.report import CreditReport, say_left_out, write_report
from turngym.benchmarks.microscope.study import Study, StudySettings
from turngym.benchmarks.microscope.truth import RandomTransitionError, TruthSettings
from turngym.benchmarks.viewer.page import page_data, render_page
from turngym.benchmarks.viewer.sources import read_source
from turngym.envs.core.errors import BadValueError

assert bifurcation_world.Bifurcation  # importing it registers the environment
ENV, LENGTH, AT = "Bifurcation-v0", 4, 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(ensure_starter(ENV, cache_dir=tmp_path_factory.mktemp("starter")))


def study(
    model: str,
    *names: str,
    env: dict[str, Any] | None = None,
    truth: Any = None,
    own: dict[str, Recipe] | None = None,
    **settings: Any,
) -> tuple[Study, OwnProcess]:
    changes = {"treegrpo": {}, "sft": {}}
    recipes = {
        name: make_recipe(name, changes.get(name, {"rollout.n": "6"}), small=True) for name in names
    }
    recipes |= own or {}
    config = TrainConfig(
        env=EnvConfig(id=ENV, settings={"length": LENGTH, "at": AT, **(env or {})}),
        model=model,
        recipe=next(iter(recipes.values())),
        budget=Budget(steps=1),
        max_tokens=1,
        max_batch=256,
    )
    bench = Bench(config)
    given = {"groups": 6, "samples": 100, "keep": 2, **settings}
    made = StudySettings(truth=truth or TruthSettings(continuations=32), **given)
    return Study(bench, recipes, made, Silent()), OwnProcess(bench)


@pytest.fixture(scope="module")
def done(model: str) -> tuple[Study, CreditReport]:
    made, crew = study(model, "grpo", "rloo", "dapo", "treegrpo")
    return made, made.run(crew)


def test_truth_is_nothing_off_the_bifurcation(done: tuple[Study, CreditReport]) -> None:
    truth = done[0]._seen[0].truth
    depth = np.array([turn for _, _, turn in truth.index.places])
    assert set(depth) == set(range(LENGTH))
    # after the choice nothing matters, and shared noise makes that exact
    assert (truth.whole[depth > AT] == 0).all()
    before = np.abs(truth.whole[depth < AT])
    assert (before <= 3 * truth.error[depth < AT] + 1e-12).mean() > 0.98
    assert (np.abs(truth.whole[depth == AT]) > 3 * truth.error[depth == AT]).mean() > 0.9
    # nothing else decides, so it is the whole share of what is known
    size = np.abs(truth.whole)
    assert size[depth == AT].sum() > 0.85 * size.sum()


def test_localisation_tells_truth_from_a_credit_of_whole_returns(
    done: tuple[Study, CreditReport],
) -> None:
    rows = {row.name: row for row in done[1].rows}
    chance = rows["grpo"].measures["localisation_chance"].value
    assert chance == pytest.approx(1 / LENGTH, abs=0.08)
    # GRPO gives every turn of a path the same
    assert rows["grpo"].measures["localisation"].value == pytest.approx(chance, abs=0.03)
    truth = rows["truth (grpo)"].measures  # judged by half of the continuations: fewer are certain
    assert truth["localisation"].value > 3 * truth["localisation_chance"].value
    assert rows["random (grpo)"].measures["localisation"].value == pytest.approx(chance, abs=0.12)


def test_truth_is_the_best_credit_and_random_the_worst(done: tuple[Study, CreditReport]) -> None:
    rows = {row.name: row.measures for row in done[1].rows}
    for name in ("rank", "explained", "cosine_batch", "cosine_turns"):
        best, ours, worst = (
            rows[row][name].value for row in ("truth (grpo)", "grpo", "random (grpo)")
        )
        assert best > ours > worst, name
    assert rows["truth (grpo)"]["cosine_batch"].value > 0.9
    assert abs(rows["random (grpo)"]["rank"].value) < 0.25
    # 4 turns of which one matters: a return says a fourth of what there is to say
    assert rows["grpo"]["cosine_turns"].value == pytest.approx(0.5, abs=0.12)
    assert rows["grpo"]["explained"].value == pytest.approx(0.25, abs=0.1)


def test_equal_rollouts_are_played_once_and_their_differences_are_paired(
    done: tuple[Study, CreditReport],
) -> None:
    rows = {row.name: row for row in done[1].rows}
    assert rows["grpo"].played == rows["rloo"].played
    assert rows["grpo"].played != rows["treegrpo"].played
    # RLOO is GRPO without the group's scale: the order within a group is the same
    same = rows["rloo"].differences["rank"]
    assert (same.value, same.low95, same.high95) == pytest.approx((0, 0, 0), abs=1e-9)
    assert rows["grpo"].differences == {}
    seen = {s.subject.name: s for s in done[0]._seen}
    known = {id(m) for m in seen["grpo"].sample.groups}
    assert any(id(m) in known for m in seen["dapo"].sample.groups)  # what its filter keeps
    for measured in seen["dapo"].sample.groups:
        returns = [sum(t.reward for t in tree.turns) for tree in measured.group.trees]
        assert len(set(returns)) > 1
    assert rows["dapo"].tokens >= rows["grpo"].tokens


def test_pages_and_the_viewer_show_credit_beside_truth(
    done: tuple[Study, CreditReport], tmp_path: Path
) -> None:
    files = done[0].write_dumps(tmp_path)
    written = write_report(done[1], tmp_path, files)
    assert [path.name for path in written] == ["credit.json", "credit.html", "credit.md"]
    assert CreditReport.read(tmp_path / "credit.json") == done[1]
    text = (tmp_path / "credit.md").read_text(encoding="utf-8")
    assert "| truth (grpo) |" in text
    assert "| treegrpo |" in text
    for name in ("credit.md", "credit.html"):  # nobody asked for bias and variance
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "--resample 8 measures them" in text
        assert Path(done[1].model).name in text
        assert done[1].model not in text  # a path of this machine
    source = read_source(str(tmp_path / files["grpo"]))
    streams = source.steps[0].dump.streams
    assert {"advantages", "credit", "true_advantage", "true_error"} <= set(streams)
    path = source.steps[0].dump.forest.paths[0]
    assert streams["true_advantage"][0][AT] == pytest.approx(
        done[0]._seen[0].truth.whole[done[0]._seen[0].truth.index.places.index((0, 0, AT))],
        abs=1e-6,
    )
    assert len(path.turns) == LENGTH
    data = page_data(source, 1e7)
    assert "true_advantage" in json.dumps(data)
    assert "true_advantage" in render_page(data)


def test_bias_and_variance_at_anchor_turns(model: str) -> None:
    few = TruthSettings(continuations=8)
    made, crew = study(model, "grpo", truth=few, resample=4, anchors=6)
    report = made.run(crew)
    row = report.rows[0]
    assert say_left_out(report) == ""
    anchors = [again for m in made._seen[0].sample.groups for again in m.resampled]
    assert len(anchors) == 6
    for (tree, turn), groups in anchors:
        kept = {tuple(t.action for t in g.trees[tree].turns[: turn + 1]) for g in groups}
        assert len(groups) == 4
        assert len(kept) == 1  # history and action stay
    # a return is right on average where it matters and noise elsewhere: variance leads
    assert row.measures["variance"].value > 0.05
    assert row.measures["bias"].value < 2.0
    tree, crew = study(model, "treegrpo", resample=4)
    with pytest.raises(BadValueError, match="independent chains"):
        tree.run(crew)


def test_random_transitions_are_found_out_or_refused(model: str) -> None:
    noisy = {"noise": True}
    few = TruthSettings(continuations=4)
    made, crew = study(model, "grpo", env=noisy, groups=2, truth=few)
    assert made.run(crew).transitions == "random"
    fixed = TruthSettings(continuations=4, transitions="fixed")
    made, crew = study(model, "grpo", env=noisy, groups=2, truth=fixed)
    with pytest.raises(RandomTransitionError, match="transitions random"):
        made.run(crew)


@pytest.mark.slow
def test_worker_processes_measure_what_one_process_measures() -> None:
    recipes = {"dapo": make_recipe("dapo", small=True), "grpo": make_recipe("grpo", small=True)}
    config = TrainConfig(
        env=EnvConfig(id="Password-v0"),
        model=str(ensure_starter("Password-v0")),
        recipe=recipes["grpo"],
        budget=Budget(steps=1),
    )
    made = StudySettings(groups=8, truth=TruthSettings(continuations=8), samples=100)
    found = []
    for workers in (1, 2):
        bench = Bench(config)
        one = Study(bench, recipes, made, Silent())
        with hire(bench, workers) as crew:
            report = one.run(crew)
        assert report.work["processes"] == workers
        found.append((report.rows, [seen.truth.whole.tolist() for seen in one._seen]))
    assert found[0][1] == found[1][1]
    assert found[0][0] == found[1][0]


@dataclass(frozen=True, kw_only=True)
class Breaking(Credit):
    """A rule with a bug, which shows where there are so many groups."""

    groups: int = 1

    def __call__(self, forest: Forest, annotations: Any) -> Credits:
        whole = GroupCredit()(forest, annotations)
        return replace(whole, advantages=[]) if len(forest.groups) < self.groups else 1 / 0


@dataclass(frozen=True, kw_only=True)
class Rightly(Breaking):
    """The same, right below."""

    def __call__(self, forest: Forest, annotations: Any) -> Credits:
        few = len(forest.groups) < self.groups
        return (GroupCredit() if few else Breaking())(forest, annotations)


def with_credit(rule: Credit) -> Recipe:
    return replace(make_recipe("grpo", {"rollout.n": "6"}, small=True), name="mine", credit=rule)


@pytest.mark.parametrize("batches", [0, 2])
@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (
            Breaking(),
            r"recipe 'mine': Breaking raised ZeroDivisionError: .*test_study\.py, line \d",
        ),
        (Breaking(groups=9), "Breaking gave 'advantages' as a list of 0"),
    ],
)
def test_a_rule_that_breaks_is_named_before_anything_is_measured(
    model: str, rule: Credit, reason: str, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in a traceback when all was measured, of the other recipes too."""
    monkeypatch.setattr(
        "turngym.benchmarks.microscope.crew.measure_group", lambda *_: pytest.fail("measured")
    )
    size = {"batches": batches, "batch_tokens": 24, "strict": False} if batches else {}
    made, crew = study(model, "grpo", own={"mine": with_credit(rule)}, **size)
    with pytest.raises(OwnPartError, match=reason):
        made.run(crew)


def test_what_is_measured_is_reported_beside_a_rule_that_breaks_later(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = TruthSettings(continuations=4)
    rule = with_credit(Rightly(groups=3))
    made, crew = study(model, "grpo", own={"mine": rule}, truth=few, groups=3)
    report = made.run(crew)
    assert "Rightly raised ZeroDivisionError" in made.failed["mine"]
    assert [row.name for row in report.rows if row.role == "recipe"] == ["grpo"]
    made, crew = study(model, own={"mine": rule}, truth=few, groups=3)
    with pytest.raises(OwnPartError, match="Rightly raised"):
        made.run(crew)
    recipes = {"grpo": make_recipe("grpo", {"rollout.n": "6"}, small=True), "mine": rule}
    monkeypatch.setattr("turngym.benchmarks.cli.credit.find_recipes", lambda _: recipes)
    words = ["--env", ENV, "--model", model, "--max-tokens", "1", "--out", str(tmp_path / "out")]
    words += ["--groups", "3", "--continuations", "4", "--workers", "1"]
    assert main(["credit", *words]) == REFUSED
    assert "Rightly raised ZeroDivisionError" in capsys.readouterr().err
    assert CreditReport.read(tmp_path / "out" / "credit.json").rows[0].name == "grpo"


def test_what_cannot_be_judged_is_refused(model: str) -> None:
    with pytest.raises(BadValueError, match="not sampled by the policy"):
        study(model, "sft")
    with pytest.raises(BadValueError, match="multiple of 4"):
        TruthSettings(continuations=6)
