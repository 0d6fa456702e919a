"""How measures are written, and what a report says about its own reliability."""

from __future__ import annotations

from typing import Any

import pytest

from turngym.benchmarks.microscope.report import (
    GRADIENTS,
    TURNS,
    CreditReport,
    Row,
    Value,
    say_doubts,
    show,
    show_cell,
)


@pytest.mark.parametrize(
    ("value", "percent", "text"),
    [
        (Value(value=-0.001, low95=-0.004, high95=0.02), False, "0.00 (0.00 to 0.02)"),
        (Value(value=-0.001, low95=-0.2, high95=0.02), True, "0% (-20 to 2)"),
        (Value(value=-0.26), False, "-0.26"),
        (None, True, ""),
    ],
)
def test_what_rounds_to_nothing_has_no_sign(value: Value | None, percent: bool, text: str) -> None:
    assert show(value, percent) == text


def row(name: str, played: int, role: Any = "recipe", **measures: float) -> Row:
    return Row(
        name=name,
        role=role,
        rollout=f"Chains(n={8 - played})",
        played=played,
        groups=4,
        turns=12,
        left_out=0,
        tokens=10.0,
        success=0.5,
        deviation=0.0 if name == "gspo" else 0.1,
        within=0.0,
        measures={key: Value(value=value) for key, value in measures.items()},
        differences={},
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("constant_groups", Value(value=0.83, low95=0.4, high95=1.26), "83% (40 to 100)"),
        ("localisation", Value(value=0.12, low95=-0.19, high95=0.42), "12% (0 to 42)"),
        ("cosine_mean", Value(value=0.92, low95=-1.2, high95=1.63), "0.92 (-1.00 to 1.00)"),
        ("cosine_mean", Value(value=1.04, low95=0.9, high95=1.2), "1.04 (0.90 to 1.04)"),
        ("explained", Value(value=0.39, low95=-0.44, high95=1.22), "39% (-44 to 122)"),
        ("signal_per_1k", Value(value=0.5, low95=0.1, high95=3.0), "0.50 (0.10 to 3.00)"),
        ("rank", Value(value=0.5), "0.50"),
        ("rank", None, ""),
    ],
)
def test_an_interval_ends_where_its_measure_does(key: str, value: Value | None, text: str) -> None:
    """Of six groups 83 % were silent, with an interval up to 126 %."""
    column = next(column for column in (*TURNS, *GRADIENTS) if column.key == key)
    measured = row("grpo", 0)
    if value is not None:
        measured.measures[key] = value
    assert show_cell(measured, column) == text


def report(*rows: Row) -> CreditReport:
    return CreditReport(
        env_id="Password-v0",
        env_settings={},
        model="starter",
        model_digest="",
        split="train",
        seed=0,
        groups=4,
        continuations=4,
        noise=0,
        transitions="fixed",
        work={},
        commit="",
        rows=list(rows),
    )


def test_a_truth_that_is_not_reliable_is_said_by_recipe() -> None:
    """It named the rollout alone, and the terminal said nothing."""
    found = report(
        row("grpo", 0, rank=0.3, reliability=0.4, flat_groups=0.25),
        row("rloo", 0, rank=0.3, reliability=0.4),
        row("treegrpo", 1, rank=0.3, reliability=0.7),
        row("pasa", 2, rank=0.3),
        row("ppo", 3),  # episodes of one turn, a group each: nothing has a rank
        row("gspo", 4, rank=0.0, reliability=0.0),
        row("random", 0, "random", rank=0.0),
    )
    first, second, third = say_doubts(found)
    assert first.startswith("grpo, rloo: ")
    assert "0.40 reliable, below .5" in first
    assert "In 25% of the groups all turns have the same one" in first  # not for want of K
    assert "of the groups" not in second
    assert second.startswith("pasa: ")
    assert "not reliable" in second
    assert third.startswith("gspo: every measured advantage is 0")


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("/home/me/.cache/turngym/starters/Bandit-v0-69", "Bandit-v0-69"),
        ("/home/me/runs/mine/checkpoints/step-000040", "mine/step-000040"),
        ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
        ("runs/mine/checkpoints/step-000040", "runs/mine/checkpoints/step-000040"),
    ],
)
def test_pages_name_the_policy_without_a_path_of_this_machine(model: str, shown: str) -> None:
    assert report().model_copy(update={"model": model}).model_name == shown
