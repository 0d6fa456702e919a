"""Tables of scores: what stands in them, and when."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from turngym.algos.evaluation.result import Score, SetScore
from turngym.algos.runs.console import PlainConsole
from turngym.benchmarks.cli.tables import (
    before_after,
    escape,
    gain_line,
    metric_table,
    plain_table,
    say,
    score_table,
)
from turngym.envs.utils.statistics import Estimate


def score(success: float = 0.5, /, **more: Any) -> SetScore:
    part = Estimate(mean=success, low95=success, high95=success)
    return SetScore(
        **{"name": "dev", "env_id": "E-v0", "split": "dev", "n": 4, "errors": 0}
        | {"success": part, "return": part, "metrics": {"em": 0.25, "hops": 2.0}}
        | more
    )


def both(sampled: float, greedy: float, temperature: float = 1.0, **more: Any) -> SetScore:
    numbers = score(greedy, **more).model_dump(by_alias=True, include=set(Score.model_fields))
    cold = Score.model_validate(numbers)
    return score(sampled, temperature=temperature, greedy=cold, **more)


def printed(table: Any) -> list[str]:
    text = StringIO()
    Console(file=text, width=140).print(table)
    return text.getvalue().splitlines()


def shown(table: Any) -> list[str]:
    """What the program's own console prints."""
    text = StringIO()
    PlainConsole(file=text, width=140).print(table)
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


def test_values_that_are_all_alike_have_no_interval() -> None:
    _, row = printed(score_table([("rag", score(0.5))]))
    assert "50.0%" in row
    assert "0.500 (all alike)" in row
    wide = Estimate(mean=0.5, low95=0.1, high95=0.9)
    _, row = printed(score_table([("rag", score(**{"success": wide, "return": wide}))]))
    assert "50.0% (10.0–90.0)" in row
    assert "0.500 (0.100–0.900)" in row


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


def test_greedy_scores_stand_below_sampled_ones() -> None:
    old, new = both(0.35, 0.85), both(0.855, 0.94, metrics={"em": 0.5, "hops": 2.0})
    lines = printed(before_after(old, new))
    sampled, greedy = lines[1:3]
    assert sampled.startswith("success, sampled (T 1)")
    assert greedy.startswith("success, greedy")
    assert "+50.5 pts" in sampled
    assert "+9.0 pts" in greedy
    assert [line.split("  ")[0] for line in lines[3:]] == [
        *("return, sampled (T 1)", "return, greedy"),
        *("em, sampled (T 1)", "em, greedy"),
    ]
    assert gain_line(old, new) == (
        "dev: the sampled gain of +50.5 points (50.5 to 50.5) less the greedy gain of +9.0 points "
        "(9.0 to 9.0) leaves +41.5 of sharpening; 95 % over tasks, of this one run"
    )
    head, one, two = printed(score_table([("run", old)]))
    assert "set, decoding" in head
    assert "dev, sampled (T 1)" in one
    assert "35.0%" in one
    assert "dev, greedy" in two
    assert "85.0%" in two
    heads = printed(metric_table([("run", old)]))
    assert any("sampled (T 1)  greedy" in line for line in heads)
    assert heads[-1].split() == ["hops", "2.000", "2.000"]


def test_at_temperature_0_there_is_one_row() -> None:
    old, new = both(0.4, 0.4, 0.0), both(0.5, 0.5, 0.0)
    lines = printed(before_after(old, new))
    assert [line.split("  ")[0] for line in lines[1:]] == ["success, greedy", "return, greedy"]
    one = "dev: a gain of +10.0 points (10.0 to 10.0); 95 % over tasks, of this one run"
    assert gain_line(old, new) == one
    assert len(printed(score_table([("run", new)]))) == 2
    assert gain_line(score(), score(0.7)).startswith("dev: a gain of +20.0 points")  # one way only
    assert gain_line(score(), score(n=0)) == ""


def test_a_narrow_terminal_cuts_no_names() -> None:
    table = plain_table("id", "sizes", "splits", "turn limit", right=["return"])
    table.add_row("ScienceWorld-v0", "full, micro", "train, dev, test", "100 (micro 40)", "1.5e+06")
    printed = StringIO()
    Console(width=40, file=printed).print(table)
    lines = printed.getvalue().splitlines()
    assert "…" not in "".join(lines)
    assert "".join(line[:6].strip() for line in lines).endswith("ScienceWorld-v0")


NAME = "[bold]m[/] [red] :key:"
"""What rich would read as styles and as an emoji."""


def test_names_of_measures_and_sets_are_shown_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = (both(0.5, 0.5, name=NAME, metrics={NAME: value}) for value in (1.0, 2.0))
    changed = "\n".join(shown(before_after(old, new)))
    assert f"{NAME} (4 questions)" in changed
    assert f"{NAME}, sampled" in changed
    assert sum(NAME in line for line in shown(metric_table([(NAME, new)]))) >= 2
    say(gain_line(old, new))
    say(f"[bold]{escape(NAME)}[/]", markup=True)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{NAME}: the sampled gain")
    assert second == NAME
