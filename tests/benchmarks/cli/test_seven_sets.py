"""Search-R1's seven data sets, from files in their formats, through the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from turngym.agents.scripted import _SCRIPTED
from turngym.algos.evaluation.result import RunResult
from turngym.benchmarks.cli.main import REFUSED, main

SETS = ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
TITLES = ("Alba Reed", "Brin Cole", "Cora Dunn", "Dale Eves", "Esme Ford", "Finn Gray", "Gwen Hale")
SIZES = (2, 3, 4, 5, 6, 7, 8)


class Titles:
    """Searches for the question and answers with the title of the first passage."""

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:
        if found := re.search(r'Doc 1\(Title: "(.*?)"\)', observation):
            return f"<answer> {found[1]} </answer>"
        question = observation.partition("Question:")[2].strip().rstrip("?")
        return f"<search> {question} </search>"


@pytest.fixture(autouse=True)
def titles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(_SCRIPTED, "titles", lambda seed: Titles())  # type: ignore[arg-type]
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))


def question(number: int, place: int) -> tuple[str, list[str]]:
    """Question and answers of a row of set ``number``: what the title agent says is

    right in its first row (EM 1, F1 1), half right in its second (the answer is the first name
    alone: EM 0, precision 1/2, recall 1, F1 2/3), and wrong in all others.
    """
    title = TITLES[number]
    answers = {0: ["nobody", title.upper()], 1: [title.split()[0]]}.get(place, ["Zed"])
    return f"What did {title} paint in room {place}?", answers


def expected(number: int) -> tuple[float, float]:
    return 1 / SIZES[number], (1 + 2 / 3) / SIZES[number]


def search_r1_row(name: str, place: int, text: str, answers: list[str]) -> dict[str, Any]:
    prompt = (
        f"Answer the given question. For example, <answer> Beijing </answer>. Question: {text}\n"
    )
    return {
        "id": f"test_{place}",
        "question": text,
        "golden_answers": answers,
        "data_source": name,
        "prompt": [{"role": "user", "content": prompt}],
        "ability": "fact-reasoning",
        "reward_model": {"style": "rule", "ground_truth": {"target": answers}},
        "extra_info": {"split": "test", "index": place},
    }


def write_sets(folder: Path) -> dict[str, Path]:
    """Three of parquet, two of JSON lines (one a folder), one of CSV, one of JSON."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kinds = ("parquet", "parquet", "csv", "parquet", "jsonl", "folder", "json")
    files = {}
    for number, (name, kind) in enumerate(zip(SETS, kinds, strict=True)):
        rows = [question(number, place) for place in range(SIZES[number])]
        flash = [
            {"id": f"test_{i}", "question": q, "golden_answers": a} for i, (q, a) in enumerate(rows)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in flash)
        path = folder / (name if kind == "folder" else f"{name}.{kind}")
        if kind == "parquet":
            table = [search_r1_row(name, i, *row) for i, row in enumerate(rows)]
            parquet.write_table(pyarrow.Table.from_pylist(table), path)
        elif kind == "csv":
            path.write_text("question,answers\n" + "".join(f"{q},{'|'.join(a)}\n" for q, a in rows))
        elif kind == "folder":
            path.mkdir()
            (path / "train.jsonl").write_text(lines.splitlines()[-1])
            (path / "test.jsonl").write_text(lines)
        else:
            path.write_text(lines if kind == "jsonl" else json.dumps(flash))
        files[name] = path
    return files


def write_corpus(path: Path) -> Path:
    """wiki-18's form: an id, and the title in quotes before the text."""
    passages = [
        {"id": str(i), "contents": f'"{t}"\n{t} painted in a room by the sea. {t} was a painter.'}
        for i, t in enumerate(TITLES)
    ]
    path.write_text("".join(json.dumps(p) + "\n" for p in passages))
    return path


def test_seven_sets_and_their_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, out = write_sets(tmp_path), tmp_path / "scores.json"
    words = [
        *("eval", "--agent", "titles", "null", "--out", str(out)),
        *("--corpus", str(write_corpus(tmp_path / "wiki.jsonl"))),
        *("--eval-data", *(f"{name}={file}" for name, file in files.items())),
    ]
    assert main(words) == 0
    found = {(s["agent"], s["name"]): s for s in json.loads(out.read_text())}
    assert list(found) == [(a, n) for a in ("titles", "null") for n in (*SETS, "mean of sets")]
    for number, name in enumerate(SETS):
        score = found["titles", name]
        em, f1 = expected(number)
        assert score["n"] == SIZES[number]
        assert score["metrics"]["em"] == score["success"]["mean"] == pytest.approx(em)
        assert score["metrics"]["f1"] == pytest.approx(f1)
        assert found["null", name]["metrics"]["em"] == 0.0
    assert found["titles", "musique"]["split"] == "test"
    mean = found["titles", "mean of sets"]
    # (1/2 + 1/3 + 1/4 + 1/5 + 1/6 + 1/7 + 1/8) / 7, not 7 of 35.
    assert mean["metrics"]["em"] == pytest.approx(0.245408, abs=1e-6)
    assert mean["metrics"]["f1"] == pytest.approx(0.409014, abs=1e-6)
    assert mean["n"] == 35
    assert mean["success"]["low95"] < 0.2454 < mean["success"]["high95"]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = {line[1]: line for line in lines if line[:1] == ["titles"]}
    assert shown["nq"][:6] == ["titles", "nq", "2", "0", "0.500", "0.833"]
    assert shown["bamboogle"][:6] == ["titles", "bamboogle", "8", "0", "0.125", "0.208"]
    assert shown["mean"][:8] == ["titles", "mean", "of", "sets", "35", "0", "0.245", "0.409"]


def merged(tmp_path: Path, names: tuple[str, ...] = SETS) -> Path:
    """One parquet file of several sets, as Search-R1's test.parquet."""
    pyarrow = pytest.importorskip("pyarrow")
    rows = [
        search_r1_row(name, place, *question(number, place))
        for number, name in enumerate(names)
        for place in range(SIZES[number])
    ]
    path = tmp_path / "test.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_a_merged_file_is_reported_by_its_sets(tmp_path: Path) -> None:
    out, corpus = tmp_path / "scores.json", write_corpus(tmp_path / "wiki.jsonl")
    words = ["eval", "--agent", "titles", "--corpus", str(corpus), "--out", str(out)]
    assert main([*words, "--eval-data", f"all={merged(tmp_path)}"]) == 0
    found = {s["name"]: s for s in json.loads(out.read_text())}
    assert set(found) == {"all", *(f"all, {name}" for name in (*SETS, "mean of sets"))}
    assert found["all"]["metrics"]["em"] == pytest.approx(7 / 35)
    for number, name in enumerate(SETS):
        assert found[f"all, {name}"]["metrics"]["em"] == pytest.approx(expected(number)[0])
    assert found["all, mean of sets"]["metrics"]["em"] == pytest.approx(0.245408, abs=1e-6)
    # The first tasks are of all sets, in proportion, and not of the file's first set.
    assert main([*words, "--eval-data", f"all={merged(tmp_path)}", "--n", "14"]) == 0
    found = {s["name"]: s for s in json.loads(out.read_text())}
    assert [found[f"all, {name}"]["n"] for name in SETS] == [1, 1, 2, 2, 2, 3, 3]


def test_a_missing_file_of_a_set_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "wiki.jsonl")
    words = ["eval", "--agent", "titles", "--corpus", str(corpus), "--eval-data"]
    assert main([*words, f"nq={tmp_path / 'nq.parquet'}"]) == REFUSED
    assert "is not a file or a folder" in capsys.readouterr().err
    (tmp_path / "nq.csv").write_text("question,reply\nwho,Ada\n")
    assert main([*words, f"nq={tmp_path / 'nq.csv'}"]) == REFUSED
    assert "no column of answers" in capsys.readouterr().err


def test_training_on_a_mixture_reports_its_sets(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, run = write_corpus(tmp_path / "wiki.jsonl"), tmp_path / "run"
    files = write_sets(tmp_path)
    train = {name: str(files[name]) for name in ("nq", "hotpotqa")}
    words = [
        *("train", "--recipe", "grpo", "--model", str(tiny_model), "--run-dir", str(run)),
        *("--env.data", json.dumps({"train": train, "dev": train})),
        *("--env.weights", '{"nq": 1, "hotpotqa": 3}', "--corpus", str(corpus)),
        *("--env.prompt", "none", "--env.max_turns", "2", "--max-tokens", "6"),
        *("--recipe.n", "2", "--recipe.groups_per_step", "4", "--recipe.minibatches", "1"),
        *("--eval-n", "7", "--device", "cpu", "--steps", "1"),
    ]
    assert main(words) == 0
    names = ["dev", "dev, hotpotqa", "dev, nq", "dev, mean of sets"]  # as they first come
    result = RunResult.read(run / "result.json")
    assert [(s.name, s.n) for s in result.after] == list(zip(names, (7, 5, 2, 7), strict=True))
    assert all({"em", "f1"} <= s.metrics.keys() for s in result.after)
    assert "dev, hotpotqa (5 questions" in capsys.readouterr().out
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert all("eval/dev, nq/metric_em_mean" in row for row in rows if "eval/dev/n" in row)
    # With the same sets to evaluate on, the weights of training are no matter of theirs.
    words[words.index("--run-dir") + 1] = str(tmp_path / "other")
    assert main([*words, "--eval-data", f"popqa={files['popqa']}"]) == 0
    assert [s.name for s in RunResult.read(tmp_path / "other" / "result.json").after] == ["popqa"]
