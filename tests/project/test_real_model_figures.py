"""Gains on the page of real models' runs follow from the rows of their seeds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, variance
from typing import NamedTuple

import pytest

from turngym.envs.utils.statistics import student_mean

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "real-models-runs.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
ROUNDED = 0.051
SEED = re.compile(r"(GRPO|REINFORCE\+\+), seed \d(?: \(.*\))?")
GAIN = re.compile(r"\*\*gain of (\S+), three seeds\*\*|mean of the seeds, less imitation")
ANEW = "the same, tasks drawn anew as well"
AGAIN = {("2,136", "REINFORCE++"): ("54.7", "72.0")}
"""What an imitation scored again, by its episodes and the arm whose gain is over that."""


class Gain(NamedTuple):
    """An arm's gain over its imitation as it is written, and the shares that it is made of."""

    name: str
    start: float
    ends: list[float]
    tasks: int
    written: str
    anew: str


def tables() -> Iterator[tuple[list[str], list[list[str]]]]:
    """Heads and rows of the page's tables."""
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        head, _, *rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        yield head, rows


def share(cell: str, tasks: int) -> float:
    """The share of solved tasks that a cell begins with, unrounded."""
    percent = float(cell.split()[0])
    solved = round(percent * tasks / 100)
    assert abs(100 * solved / tasks - percent) <= ROUNDED, f"{percent} is no share of {tasks}"
    return solved / tasks


def gains() -> Iterator[Gain]:
    """All gains over three seeds that stand in tables, sampled and greedily."""
    for head, rows in tables():
        found = re.match(r"\d+", head[0])
        tasks = int(found[0]) if found else 300
        for at, row in enumerate(rows):
            if (named := GAIN.fullmatch(row[0])) is None:
                continue
            arm = named[1] or "GRPO"
            *_, start = (r for r in rows if r[0].startswith("after imitation"))
            again = [v for (episodes, a), v in AGAIN.items() if episodes in start[0] and a == arm]
            seeds = [r for r in rows if (seed := SEED.fullmatch(r[0])) and seed[1] == arm]
            below = rows[at + 1] if rows[at + 1 :] and rows[at + 1][0].startswith(ANEW) else None
            for number, decoding in enumerate(("sampled", "greedy")):
                column = head.index(decoding)
                before = again[0][number] if again else start[column]
                yield Gain(
                    f"{start[0]}: {arm}, {decoding}",
                    share(before, tasks),
                    [share(seed[column], tasks) for seed in seeds],
                    tasks,
                    row[column],
                    below[column] if below else "",
                )


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"[-+]?\d*\.?\d+", text)]


def test_gains_of_most_tables_are_found() -> None:
    found = list(gains())
    assert len(found) >= 22
    assert all(len(gain.ends) == 3 for gain in found)


@pytest.mark.parametrize("gain", list(gains()), ids=lambda gain: gain.name)
def test_a_gain_is_the_mean_over_its_seeds_with_student_s_interval(gain: Gain) -> None:
    over = student_mean([100 * (end - gain.start) for end in gain.ends])
    assert numbers(gain.written) == pytest.approx([over.mean, over.low95, over.high95], abs=ROUNDED)


@pytest.mark.parametrize(
    "gain", [gain for gain in gains() if gain.anew], ids=lambda gain: gain.name
)
def test_new_tasks_add_their_variance_to_that_of_the_seeds(gain: Gain) -> None:
    """Half of the tables left out the variance over seeds."""
    end = fmean(gain.ends)
    tasks = sum(p * (1 - p) for p in (gain.start, end)) / gain.tasks
    half = 1.96 * math.sqrt(tasks + variance(gain.ends) / len(gain.ends))
    expected = [100 * (end - gain.start - half), 100 * (end - gain.start + half)]
    assert numbers(gain.anew) == pytest.approx(expected, abs=ROUNDED)


def test_the_measured_figures_repeat_the_intervals_over_new_tasks() -> None:
    """In the order in which their words have it: sampled, greedily."""
    bounds = r"(-?[\d.]+) to (-?[\d.]+)"
    prose = rf"drawn anew as well[^(]*\({bounds}\)? and \(?{bounds}\)"
    cells = [gain.anew for gain in gains() if gain.anew]
    written = {(*numbers(s), *numbers(g)) for s, g in zip(cells[::2], cells[1::2], strict=True)}
    written |= {tuple(map(float, said)) for said in re.findall(prose, PAGE)}
    repeated = {tuple(map(float, said)) for said in re.findall(prose, RESULTS)}
    assert len(repeated) >= 6
    assert repeated - written == set()


def test_tokens_of_the_runs_on_one_gpu_are_those_of_their_data() -> None:
    """They said 9.4 million, 12,700 a second."""
    first, second = (
        json.loads((ROOT / "docs" / "assets" / name).read_text(encoding="utf-8"))["training"]
        for name in ("smollm2-h200.json", "smollm2-h200-2.json")
    )
    made = sum(sum(run["tokens"]) for run in first.values())
    assert f"{made / 1e6:.2f} million sampled tokens in some seventeen minutes" in PAGE
    made = sum(run["tokens"][-1] for name, run in second.items() if name.startswith("1/"))
    said = f"made {made / 1e6:.1f} million sampled tokens in 740 seconds"
    assert said in PAGE
    assert f"{said}, {round(made / 740, -2):,.0f} a second" in RESULTS


def test_a_link_to_commands_names_their_section() -> None:
    """Four led to the page that the commands had moved away from."""
    links = re.findall(r"\[([^]]*ommands[^]]*)\]\(\.\./docs/(real-models[^)]*)\)", RESULTS)
    assert len(links) >= 6
    assert [link for link in links if "#" not in link[1]] == []
