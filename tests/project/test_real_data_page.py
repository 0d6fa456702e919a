"""The commands of docs/real-data.md, on small files of the names that it uses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from turngym.algos.evaluation.result import RunResult
from turngym.benchmarks.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "real-data.md").read_text(encoding="utf-8")
PLACES = ("Aral", "Brno", "Cork")


def commands(name: str) -> list[list[str]]:
    """Words after `turngym` of the page's commands of one name."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    found = [shlex.split(line)[1:] for line in lines]
    return [words for words in found if words[0] == name]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that the page names, in an empty folder."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    flash = [
        {"id": f"train_{i}", "question": f"river of {p}", "golden_answers": [f"R{i}"]}
        for i, p in enumerate(PLACES)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in flash)
    for name in ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"):
        Path(name).mkdir()
        for split in ("train", "dev", "test"):
            Path(name, f"{split}.jsonl").write_text(lines)
        Path(f"{name}.jsonl").write_text(lines)
        parquet.write_table(pyarrow.Table.from_pylist(flash), f"{name}.parquet")
    Path("bamboogle.csv").write_text("question,answer\nwhere,here|there\n")
    merged = [{**row, "data_source": name} for name in ("nq", "popqa") for row in flash]
    for name in ("train", "test"):
        parquet.write_table(pyarrow.Table.from_pylist(merged), f"{name}.parquet")
    passages = [
        {"id": str(i), "contents": f'"{p}"\n{p} lies by the river R{i}. '}
        for i, p in enumerate(PLACES)
    ]
    Path("passages.jsonl").write_text("".join(json.dumps(p) + "\n" for p in passages))


def small(words: list[str], model: Path, *more: str) -> list[str]:
    """The command over the small file, with the small model."""
    text = shlex.join(words).replace("path/to/model", str(model)).replace("--max-tokens 500", "")
    text = text.replace("--env.retriever http://127.0.0.1:8000", "--corpus passages.jsonl")
    limits = ("--max-tokens", "4", "--env.prompt", "none", "--env.max_turns", "2")
    return [*shlex.split(text), *limits, "--device", "cpu", *more]


def test_the_evaluations(tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seven, _, merged = commands("eval")
    assert main(small(seven, tiny_model)) == 0
    names = [score["name"] for score in json.loads(Path("scores.json").read_text())]
    assert (len(names), names[-1]) == (8, "mean of sets")
    assert main(small(merged, tiny_model)) == 0
    said = capsys.readouterr().out
    for name in ("EM", "F1", "all, nq", "all, popqa", "all, mean of sets"):
        assert name in said


def test_the_training_runs(tiny_model: Path) -> None:
    one, mixed = commands("train")
    few = ("--recipe.n", "2", "--recipe.groups_per_step", "2", "--recipe.minibatches", "1")
    for number, words in enumerate((one, mixed)):
        more = (*few, "--steps", "1", "--run-dir", f"run{number}")
        assert main(small(words, tiny_model, *more)) == 0
    names = [[s.name for s in RunResult.read(Path(f"run{i}/result.json")).after] for i in range(2)]
    assert names[0] == ["nq", "hotpotqa"]
    assert set(names[1]) == {"dev", "dev, nq", "dev, hotpotqa", "dev, mean of sets"}


def test_the_python(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    space: dict[str, Any] = {}
    exec(code, space)
    assert space["info"]["dataset"] in ("nq", "hotpotqa")
    assert capsys.readouterr().out.split()[1].startswith(("nq/train_", "hotpotqa/train_"))


def test_the_epoch_that_the_page_names() -> None:
    from turngym.envs.core.interleave import Mixture

    text = PAGE.replace("\n", " ")
    ((nq, hotpotqa, said),) = re.findall(
        r"With ([\d,]+) questions of NQ +and ([\d,]+) of .*? that is ([\d,]+) tasks", text
    )
    nq, hotpotqa, said = (int(number.replace(",", "")) for number in (nq, hotpotqa, said))
    assert len(Mixture([nq, hotpotqa], [1, 3])) == said
