from __future__ import annotations

import pytest

from turngym.algos.runs import metrics
from turngym.algos.runs.metrics import (
    METRICS,
    checked,
    declare_metric,
    evaluated_sets,
    without_times,
)
from turngym.envs.core.errors import BadValueError, UnknownNameError


def test_declared_keys_and_families_pass() -> None:
    row = {"rollout/return_mean": 0.5, "eval/dev/success_frac": 1, "rollout/term_em_mean": 0.0}
    assert checked(row) == {k: float(v) for k, v in row.items()}


@pytest.mark.parametrize("name", ["format/tags", "[red]a[/red] $b$", "two\nlines", "a/n"])
def test_a_name_in_a_key_is_any_text(name: str) -> None:
    row = {
        f"rollout/term_{name}_mean": 0.5,
        f"shaped/term_{name}_mean": 0.5,
        f"rollout/metric_{name}_mean": 0.5,
        f"eval/dev, {name}/n": 3.0,
        f"eval/dev, {name}/metric_{name}_mean": 0.5,
        f"eval/dev, {name}/greedy_n": 3.0,
    }
    assert checked(row) == row
    assert evaluated_sets(row) == [f"dev, {name}"]


@pytest.mark.parametrize(
    "key", ["rollout/return", "eval/success_frac", "eval/a/success", "eval/*", "new/x_s"]
)
def test_undeclared_keys_raise(key: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown metric"):
        checked({key: 1.0})


def test_nearest_declared_key_is_named() -> None:
    with pytest.raises(UnknownNameError, match="rollout/return_mean"):
        checked({"rollout/returns_mean": 1.0})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_are_finite(value: float) -> None:
    with pytest.raises(BadValueError, match="finite"):
        checked({"update/loss": value})


def test_keys_are_stage_and_quantity_with_a_description() -> None:
    for key, what in METRICS.items():
        assert key.count("/") == (2 if key.startswith("eval/") else 1)
        assert len(what) > 3


def test_only_times_may_differ_between_repetitions() -> None:
    row = {"step": 1, "time/step_s": 2.0, "update/loss": 0.1}
    assert without_times(row) == {"step": 1, "update/loss": 0.1}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of one's own, which nothing else sees."""
    monkeypatch.setattr(metrics, "METRICS", dict(METRICS))
    metrics._declared.cache_clear()


@pytest.mark.usefixtures("table")
def test_a_rule_of_one_s_own_declares_what_it_reports() -> None:
    with pytest.raises(UnknownNameError, match="declare_metric"):
        checked({"credit/median_mean": 0.5})
    for _ in range(2):  # a plugin may be loaded twice
        declare_metric("credit/median_mean", "mean of the groups' medians")
    assert checked({"credit/median_mean": 0.5}) == {"credit/median_mean": 0.5}
    with pytest.raises(BadValueError, match="declared already"):
        declare_metric("credit/median_mean", "something else")


@pytest.mark.parametrize("key", ["mine", "rollout/mine", "credit/Mine", "loss/a/b", "loss/*"])
def test_keys_of_another_form_are_refused(key: str) -> None:
    with pytest.raises(BadValueError, match=r"expected credit/NAME or loss/NAME"):
        declare_metric(key, "a number")
    assert key not in METRICS


@pytest.mark.usefixtures("table")
def test_a_cell_of_a_notebook_says_its_metric_anew() -> None:
    cell = "declare_metric(key, meaning)"
    names = {"__name__": "__main__", "declare_metric": declare_metric, "key": "credit/cell_mean"}
    for meaning in ("one thing", "another"):
        exec(cell, names | {"meaning": meaning})
        assert metrics.METRICS["credit/cell_mean"] == meaning
    with pytest.raises(BadValueError, match="declared already"):
        declare_metric("credit/cell_mean", "a third, of a module")
    declare_metric("credit/module_mean", "a module's")
    for key in ("credit/module_mean", next(k for k in METRICS if k.startswith("credit/"))):
        with pytest.raises(BadValueError, match=r"declared already|expected credit/NAME"):
            exec(cell, names | {"key": key, "meaning": "a cell's"})
