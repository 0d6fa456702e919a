"""Tables of scores: what stands in them, and when."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from turngym.algos.evaluation.result import SetScore
from turngym.benchmarks.cli.tables import before_after, metric_table, score_table
from turngym.envs.utils.statistics import Estimate


def score(success: float = 0.5, **more: Any) -> SetScore:
    part = Estimate(mean=success, low95=success, high95=success)
    return SetScore(
        **{"name": "dev", "env_id": "E-v0", "split": "dev", "n": 4, "errors": 0}
        | {"success": part, "return": part, "metrics": {"em": 0.25, "hops": 2.0}}
        | more
    )


def printed(table: Any) -> list[str]:
    text = StringIO()
    Console(file=text, width=140).print(table)
    return text.getvalue().splitlines()


def test_counts_stand_in_the_table_where_there_are_any() -> None:
    head, row = printed(score_table([("rag", score())]))
    assert "errors" in head
    assert "agent" not in head.replace("agent ", "", 1)
    assert "context full" not in head
    assert row.split()[:5] == ["rag", "dev", "4", "0", "0.250"]
    rows = [("rag", score(errors=7)), ("cot", score(agent_errors=2, context_full=3))]
    head, one, two = printed(score_table(rows))
    assert head.index("errors") < head.index("agent errors") < head.index("context full")
    assert one.split()[2:6] == ["4", "7", "0", "0"]
    assert two.split()[2:6] == ["4", "0", "2", "3"]


def test_nothing_scored_is_no_score() -> None:
    _, row = printed(score_table([("rag", score(0.0, n=0, agent_errors=4))]))
    assert row.count("no score") == 2
    assert "0.0%" not in row
    lines = printed(before_after(score(), score(0.0, n=0, errors=4)))
    assert "no score after training: every episode broke" in lines[1]
    assert "errors 0 → 4" in lines[0]


def test_a_change_leaves_out_what_never_changes() -> None:
    new = score(0.75, metrics={"em": 0.5, "hops": 2.0}, context_full=1)
    text = "\n".join(printed(before_after(score(), new)))
    assert "dev (4 questions, context full 0 → 1)" in text
    assert "+25.0 pts" in text
    assert "+0.250" in text
    assert "hops" not in text


def test_names_are_no_markup() -> None:
    rows = [("[bold]", score(name="nq[1]"))]
    for table in (score_table(rows), metric_table(rows)):
        text = "\n".join(printed(table))
        assert "[bold]" in text
        assert "nq[1]" in text
    assert "nq[1] (4" in printed(before_after(score(), score(name="nq[1]")))[0]


def test_measures_that_a_set_lacks_stay_empty() -> None:
    rows = [("rag", score()), ("a" * 30, score(metrics={"f1": 1.0}))]
    _, head, em, f1, hops = printed(metric_table(rows))
    assert "dev" in head
    assert (em.split(), f1.split(), hops.split()) == (
        ["em", "0.250"],
        ["f1", "1.000"],
        ["hops", "2.000"],
    )
