"""`turngym eval` with several agents, and against an evaluation that was made before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.model_server import completion, serving
from helpers.prompting_help import write_world
from scipy.stats import binomtest

from turngym.benchmarks.cli import eval as eval_command
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.cli.tables import short_names

CRAWLER = ("--env", "PaperCrawler-v0", "--size", "micro", "--n", "12")
MICRO = ("--size", "micro", "--n", "8", "--hops", "1")


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints, the lines of its notes joined."""
    assert main(words) == 0
    return capsys.readouterr().out


def joined(text: str) -> str:
    return " ".join(text.split())


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == REFUSED
    printed = capsys.readouterr()
    assert "success" not in printed.out  # nothing was played
    return joined(printed.err)


def outcomes(file: Path) -> dict[str, dict[str, tuple[bool, float]]]:
    """Success and return by agent and task."""
    return {
        row["agent"]: {e["task"]: (e["success"], e["return"]) for e in row["episodes"]}
        for row in json.loads(file.read_text(encoding="utf-8"))
        if "episodes" in row
    }


@pytest.fixture
def earlier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = tmp_path / "earlier.json"
    said(["eval", "--agent", "expert", *MICRO, "--out", str(file)], capsys)
    return file


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is full")
def test_scores_are_shown_where_the_disk_is_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--agent", "expert", *MICRO, "--out", "/dev/full"]) == REFUSED
    printed = capsys.readouterr()
    assert "expert" in printed.out
    assert "the disk is full" in printed.err


def test_later_agents_are_compared_with_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores.json"
    agents = ("search-only", "heuristic", "expand-all")
    text = said(["eval", "--agent", *agents, *CRAWLER, "--out", str(out)], capsys)
    found = outcomes(out)
    assert tuple(found) == agents
    first = found["search-only"]
    lines = text.splitlines()
    for agent in agents[1:]:
        assert found[agent].keys() == first.keys()
        gained = sum(found[agent][task][0] and not first[task][0] for task in first)
        lost = sum(first[task][0] and not found[agent][task][0] for task in first)
        place = next(
            i
            for i, x in enumerate(lines)
            if x.startswith(f"{agent} ") and "less" not in x and "search-only" in x
        )
        row = lines[place].split()
        assert row[1:6] == ["search-only", "dev", "12", str(gained), str(lost)]
        assert row[6:8] == ["success", f"{100 * (gained - lost) / 12:+.1f}"]
        assert row[-1] == f"{binomtest(gained, gained + lost).pvalue:.2g}"
        gap = sum(found[agent][task][1] - first[task][1] for task in first) / 12
        assert lines[place + 1].split()[:2] == ["return", f"{gap:+.3f}"]
    assert "decide nothing about algorithms" in joined(text)
    assert "not corrected for the number of comparisons" in joined(text)


def test_a_single_agent_has_no_differences(capsys: pytest.CaptureFixture[str]) -> None:
    assert "less" not in said(["eval", "--agent", "expert", *MICRO], capsys)


def test_an_agent_is_compared_with_an_earlier_file(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "--agent", "expert", "null", *MICRO, "--against", str(earlier)]
    text = said(words, capsys)
    lines = [line.split() for line in text.splitlines() if "points" in line]
    names = [" ".join(line[: line.index("dev")]) for line in lines]
    assert names == ["null expert", "expert expert (earlier)", "null expert (earlier)"]
    same, other = lines[1], lines[2]
    assert same[same.index("dev") + 1 :] == [
        *("8", "0", "0", "success", "0.0", "(-36.9", "to", "+36.9)", "points", "1"),
    ]
    assert other[other.index("dev") + 1 :] == [
        *("8", "0", "8", "success", "-100.0", "(-100.0", "to", "-26.1)", "points", "0.0078"),
    ]
    assert f"Earlier: {earlier}." in text.replace("\n", "")


def test_every_set_of_files_is_compared_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write_world(tmp_path)
    where = ["--corpus", made["corpus"], "--n", "5", "--env.prompt", "none", "--eval-data"]
    one, two = (f"{name}={made['data']}" for name in ("one", "two"))
    out = str(tmp_path / "scores.json")
    text = said(["eval", "--agent", "expert", "null", *where, one, two, "--out", out], capsys)
    rows = [line.split()[:4] for line in text.splitlines() if "points" in line]
    assert rows == [["null", "expert", "one", "5"], ["null", "expert", "two", "5"]]
    kept = {(r["agent"], r["name"]): r for r in json.loads(Path(out).read_text())}
    assert len(kept) == 6
    for (_, name), row in kept.items():
        assert ("episodes" in row) == ("settings" in row) == (name != "mean of sets")
    text = said(["eval", "--agent", "null", *where, two, "--against", out], capsys)
    rows = [line.split() for line in text.splitlines() if "points" in line]
    assert [row[1:5] for row in rows] == [[a, "(earlier)", "two", "5"] for a in ("expert", "null")]
    three = f"three={made['data']}"
    why = refused(["eval", "--agent", "null", *where, three, "--against", out], capsys)
    assert "scores one, two; expected three, which is scored now" in why


def test_tasks_without_a_score_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write_world(tmp_path)
    where = ["--data", made["data"], "--corpus", made["corpus"], "--split", "train", "--n", "5"]
    where += ["--env.prompt", "none", "--out", str(tmp_path / "scores.json")]

    def one_down(request: dict[str, Any]) -> Any:
        return 400 if "Doha?" in str(request) else completion("no", chat="messages" in request)

    with serving(one_down) as server:
        words = ["--endpoint", server.url, "--model-name", "m"]
        text = said(["eval", "--agent", "expert", "rag", *words, *where], capsys)
    row = next(line.split() for line in text.splitlines() if "points" in line)
    assert row[:8] == ["rag", "expert", "train,", "greedy", "4", "1", "0", "4"]
    assert "no score" in text
    rag = json.loads((tmp_path / "scores.json").read_text())[1]
    lost = [e for e in rag["episodes"] if e["success"] is None]
    assert [(e["task"], e["status"], e["return"]) for e in lost] == [("Doha", "agent_error", None)]
    assert rag["max_tokens"] == 512


def test_models_are_compared_where_they_decode_alike(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "hot.json"
    few = ["--size", "micro", "--hops", "1", "--n", "2", "--device", "cpu"]
    words = ["eval", "--agent", str(tiny_model), *few]
    said([*words, "--max-tokens", "4", "--out", str(out)], capsys)
    (row, *_) = json.loads(out.read_text())
    assert (row["max_tokens"], row["seed"], row["temperature"]) == (4, 0, 1.0)
    assert len(row["episodes"]) == len(row["greedy"]["episodes"]) == 2

    text = said([*words, "--max-tokens", "4", "--against", str(out)], capsys)
    assert [label in text for label in ("dev, sampled (T 1)", "dev, greedy")] == [True, True]
    assert "Left out" not in text
    cooler = ["--max-tokens", "4", "--temperature", "0.5", "--against", str(out)]
    text = said([*words, *cooler], capsys)
    differences = text[text.index("less") :]
    assert "dev, greedy" in differences
    assert "sampled (T" not in differences
    assert "temperatures of the sampled scores differ (0.5 here and 1 there)" in joined(text)
    why = refused([*words, "--max-tokens", "5", "--against", str(out)], capsys)
    assert "nothing in it can be compared with" in why
    assert "max tokens differ (5 here and 4 there); give --max-tokens 4" in why


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--n", "7"), "other tasks: 7 tasks here and 8 there; give --n 8"),
        (("--seed", "1"), "seed 0 there and 1 here; give --seed 0"),
        (("--split", "test"), "scores dev; expected test, which is scored now"),
        (("--hops", "2"), "settings differ: hops is 1 there and 2 here"),
        (("--env.top_k", "2"), "settings differ: top_k is not given there and 2 here"),
        (("--agent", "null", "null"), "null is named twice"),
        (("--env", "PaperCrawler-v0"), "is of SearchQA-v0; expected an evaluation of PaperCrawler"),
    ],
)
def test_another_evaluation_is_refused(
    earlier: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    asked = ["eval", "--agent", "null", *MICRO, "--against", str(earlier), *words]
    if "--agent" in words:
        asked = ["eval", *MICRO, *words]
    if "--env" in words:
        asked = [word for word in asked if word not in ("--hops", "1")]
    assert why in refused(asked, capsys)


def test_a_default_that_is_written_is_the_same(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was refused: "top_k is not given there and 3 here"."""
    words = ["eval", "--agent", "null", *MICRO, "--env.top_k", "3", "--env.prompt", "null"]
    assert "(earlier)" in said([*words, "--against", str(earlier)], capsys)


def test_files_are_compared_by_what_stands_in_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A corpus that had changed was not seen, and the same files by other paths were refused."""
    monkeypatch.chdir(tmp_path)
    made = write_world(tmp_path)
    earlier = str(tmp_path / "scores.json")
    rest = ["--n", "5", "--env.prompt", "none", "--split", "train"]

    def words(data: str, corpus: str) -> list[str]:
        return ["eval", "--agent", "null", "--data", data, "--corpus", corpus, *rest]

    said([*words(made["data"], made["corpus"]), "--out", earlier], capsys)
    (row, *_) = json.loads(Path(earlier).read_text())
    assert sorted(row["files"]) == ["corpus", "data"]
    for folder in ("copy", "other"):
        (tmp_path / folder).mkdir()
        for file in (made["data"], made["corpus"]):
            shutil.copy(file, tmp_path / folder)
    names = {kind: Path(made[kind]).name for kind in ("data", "corpus")}
    same = words(f"copy/{names['data']}", f"./copy/../copy/{names['corpus']}")
    assert "(earlier)" in said([*same, "--against", earlier], capsys)
    changed = tmp_path / "other" / names["corpus"]
    changed.write_text(changed.read_text() + json.dumps({"id": "new", "contents": "A\nB"}) + "\n")
    why = refused([*words(made["data"], str(changed)), "--against", earlier], capsys)
    assert "here, and what stands in it is not the same" in why
    shutil.copy(changed, made["corpus"])
    why = refused([*words(made["data"], made["corpus"]), "--against", earlier], capsys)
    assert "settings differ: corpus is " in why
    assert "and what stands in it is not the same" in why

    del row["files"]  # as in files from before
    Path(earlier).write_text(json.dumps([row]))
    by_link = words(names["data"], names["corpus"])
    assert "(earlier)" in said([*by_link, "--against", earlier], capsys)
    why = refused([*words(names["data"], str(changed)), "--against", earlier], capsys)
    assert f"corpus is '{made['corpus']}' there and '{changed}' here" in why


def test_a_contradiction_with_the_earlier_file_is_told(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scripted agent that does otherwise than it did: the environment is not what it was."""
    words = ["eval", "--agent", "expert", "null", *MICRO, "--against", str(earlier)]
    assert "Contradiction" not in said(words, capsys)
    rows = json.loads(earlier.read_text())
    rows[0]["episodes"][3] |= {"status": "failed", "success": False, "return": 0.0}
    rows[0]["success"]["mean"] = 7 / 8
    earlier.write_text(json.dumps(rows))
    text = joined(said(words, capsys))
    assert "Contradiction: expert on dev has other outcomes than it had there, of 1 of 8" in text
    assert text.count("Contradiction") == 1


def test_names_that_end_alike_are_told_apart() -> None:
    """Both were "…checkpoints/step-000010"."""
    one, two = (f"/home/me/runs/{run}/checkpoints/step-000010" for run in ("one", "two"))
    assert short_names([one, two, one, "expert"]) == {
        one: "…uns/one/checkpoints/step-000010",
        two: "…uns/two/checkpoints/step-000010",
        "expert": "expert",
    }
    assert short_names([one])[one] == "…checkpoints/step-000010"


def test_other_contents_under_the_same_ids_are_refused(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads(earlier.read_text())
    rows[0]["tasks_digest"] = "0" * 32
    earlier.write_text(json.dumps(rows))
    words = ["eval", "--agent", "null", *MICRO, "--against", str(earlier)]
    why = refused(words, capsys)
    assert "expert on dev: other tasks: their ids are the same, and their contents are not" in why
    rows[0]["episodes"][2]["task"] = "dev/99"
    earlier.write_text(json.dumps(rows))
    assert "other tasks: task 3 is dev/2 here and dev/99 there" in refused(words, capsys)


def test_a_file_from_before_has_nothing_to_pair(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = ("settings", "seed", "max_tokens", "tasks_digest", "episodes")
    rows = [
        {name: x for name, x in row.items() if name not in new}
        for row in json.loads(earlier.read_text())
    ]
    earlier.write_text(json.dumps(rows))
    why = refused(["eval", "--agent", "null", *MICRO, "--against", str(earlier)], capsys)
    assert "has means without episodes" in why
    assert "evaluate these agents again with --out" in why


def test_what_is_no_evaluation_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "--agent", "null", *MICRO, "--against"]
    assert "cannot be read" in refused([*words, str(tmp_path / "none.json")], capsys)
    file = tmp_path / "other.json"
    file.write_text('{"format": 1}')
    assert "expected a list of scores" in refused([*words, str(file)], capsys)


def test_what_does_not_go_with_it_is_refused(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = earlier.read_bytes()
    words = ["eval", "--agent", "null", *MICRO, "--against", str(earlier)]
    assert "would be overwritten" in refused([*words, "--out", str(earlier)], capsys)
    assert earlier.read_bytes() == before
    words = ["eval", "--agent", "expert", "--env", "ScienceWorld-v0", "--per-task"]
    why = refused([*words, "--against", str(earlier)], capsys)
    assert "does not go with --per-task" in why


def test_what_cannot_be_compared_is_refused_before_a_model_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The starter took minutes first."""

    def make(*_: object) -> Path:
        raise AssertionError("the starter was made")

    monkeypatch.setattr(eval_command, "starter", make)
    file = tmp_path / "earlier.json"
    said(["eval", "--agent", "null", *MICRO, "--out", str(file)], capsys)
    rows = json.loads(file.read_text(encoding="utf-8"))
    rows[0] |= {"max_tokens": 63, "temperature": 1.0}
    file.write_text(json.dumps(rows), encoding="utf-8")
    words = ["eval", "--agent", "starter", *MICRO, "--against", str(file)]
    assert "give --max-tokens 63" in refused(words, capsys)


def test_settings_in_another_order_are_the_same(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads(earlier.read_text(encoding="utf-8"))
    for row in rows:
        row["settings"] = dict(reversed(row["settings"].items()))
    earlier.write_text(json.dumps(rows), encoding="utf-8")
    assert "(earlier)" in said(
        ["eval", "--agent", "null", *MICRO, "--against", str(earlier)], capsys
    )
