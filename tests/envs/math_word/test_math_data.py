"""A user's own problems: DeepScaleR's form, errors with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from turngym.envs import check_text_env
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.math_word.env import MathWord

ROWS = [
    {"problem": "What is 1 + 1?", "answer": "2", "solution": "Add them: 2."},
    {"problem": "Half of one?", "answer": "\\frac{1}{2}", "solution": None},
    {"question": "A dozen dozens?", "answer": 144, "id": "dozen"},
]


def written(folder: Path, rows: Any, name: str = "rows.json") -> Path:
    path = folder / name
    lines = name.endswith(".jsonl")
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows), "utf-8")
    return path


def world(**settings: Any) -> MathWord:
    env = gym.make("MathWord-v0", **settings).unwrapped
    assert isinstance(env, MathWord)
    return env


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_rows_are_played(tmp_path: Path, name: str) -> None:
    env = world(data=str(written(tmp_path, ROWS, name)))
    assert env.source.sizes() == {"train": 3}
    observation, _ = env.reset(seed=1, options={"task": "rows/1"})
    assert observation == "Problem: Half of one?\n"
    assert env.instructions
    assert env.step("<answer> 0.5 </answer>")[1] == 1.0
    env.reset(options={"task": "dozen"})
    assert env.step("<answer> 12 </answer>")[1] == 0.0
    assert env.source.task("train", 0).payload.solution == "Add them: 2."


def test_files_by_split_keep_every_law(tmp_path: Path) -> None:
    rows = [{"problem": f"What is {i} + 1000?", "answer": str(i + 1000)} for i in range(8)]
    data = {s: str(written(tmp_path, rows[a:b], f"{s}.json")) for s, a, b in
            (("train", 0, 4), ("dev", 4, 6), ("test", 6, 8))}  # fmt: skip
    assert world(data=data).source.sizes() == {"train": 4, "dev": 2, "test": 2}
    report = check_text_env("MathWord-v0", tasks_checked=6, data=data)
    assert set(report.skipped) == {"legal actions are valid", "the answer is hidden"}


def test_latex_is_refused_left_out_or_graded(tmp_path: Path) -> None:
    path = written(tmp_path, [*ROWS, {"problem": "Side?", "answer": "2\\sqrt{2}"}])
    with pytest.raises(DataError, match=r"row 3: the answer .*grader='math-verify'.*turngym\[math"):
        world(data=path)
    source = world(data=path, skip_unreadable=True).source
    assert source.sizes() == {"train": 3}
    assert getattr(source, "left_out", 0) == 1
    pytest.importorskip("math_verify", reason="the extra turngym[math] is not installed")
    env = world(data=path, grader="math-verify")
    env.reset(options={"task": 3})
    assert env.step("<answer> \\sqrt{8} </answer>")[1] == 1.0


@pytest.mark.parametrize("answer", ["x+1", "2x-y", "12i", "3n", "2 pi"])
def test_an_expression_is_no_number(tmp_path: Path, answer: str) -> None:
    path = written(tmp_path, [{"problem": "How many?", "answer": answer}])
    with pytest.raises(DataError, match="grader='math-verify'"):
        world(data=path)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"problem": "x"}, "a dict; expected a list of objects"),
        (["x"], "row 0: a str; expected a JSON object"),
        ([{"answer": "1"}], "row 0: no problem; expected a column problem or question.*answer"),
        ([{"problem": 3, "answer": "1"}], "row 0: problem is 3; expected text"),
        ([{"problem": " ", "answer": "1"}], "row 0: problem is empty"),
        ([{"problem": "x"}], "row 0: no answer. Columns: problem"),
        ([{"problem": "x", "answer": ["1"]}], "row 0: answer is .*expected text"),
        ([{"problem": "x", "answer": True}], "row 0: answer is True"),
        ([{"problem": "x", "answer": "1", "solution": 4}], "row 0: solution is 4"),
        ([{"problem": "x", "answer": "none"}], "row 0: the answer 'none' is no number"),
        ([{"problem": "x", "answer": "1", "id": "a"}] * 2, "row 1: id 'a' was used before"),
        ([], "holds no problem that can be graded"),
    ],
)
def test_bad_files_say_where(tmp_path: Path, rows: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        world(data=written(tmp_path, rows))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("[{", "utf-8")
    with pytest.raises(DataError, match=r"broken\.json:1: not JSON"):
        world(data=broken)
    with pytest.raises(DataError, match="cannot be read"):
        world(data=tmp_path / "absent.json")
    with pytest.raises(UnknownNameError, match=r"unknown file ending '\.txt'"):
        world(data=tmp_path / "rows.txt")
    with pytest.raises(UnknownNameError, match="unknown split 'dve'"):
        world(data={"dve": "x.json"})
    with pytest.raises(BadValueError, match="data of dev is 3"):
        world(data={"dev": 3})
    with pytest.raises(BadValueError, match="data is 3"):
        world(data=3)
    path = written(tmp_path, ROWS)
    with pytest.raises(BadValueError, match="size, steps shape generated problems"):
        world(data=path, size="micro", steps=2)
