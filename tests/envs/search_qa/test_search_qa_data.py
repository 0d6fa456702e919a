import json
import pickle
from pathlib import Path

import pytest

from turngym.envs.core.errors import DataError, UnknownNameError
from turngym.envs.search_qa.data import load_corpus_index, load_questions
from turngym.envs.search_qa.env import SearchQA

PASSAGES = [
    {"id": "0", "contents": '"Ada Brook"\nAda Brook was born in Lum Tor.\nShe paints.'},
    {"id": "1", "contents": '"Red Lamp"\nRed Lamp is a novel by Ada Brook.'},
]
ROWS = [
    {"id": "q1", "question": "where was ada brook born", "golden_answers": ["Lum Tor", "Lumtor"]},
    {"id": "q2", "question": "Who wrote Red Lamp?", "golden_answers": "Ada Brook"},
]


def write(path: Path, rows: list) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    return write(tmp_path / "corpus.jsonl", PASSAGES)


def test_an_episode_over_files(tmp_path: Path, corpus: Path) -> None:
    env = SearchQA(data=write(tmp_path / "q.jsonl", ROWS), corpus=str(corpus))
    assert env.source.sizes() == {"train": 2}
    observation, info = env.reset(seed=0, options={"task": "q1"})
    assert observation == "Question: where was ada brook born?\n"
    observation, *_ = env.step("<search> Ada Brook born </search>")
    assert observation == (
        '\n\n<information>Doc 1(Title: "Ada Brook") Ada Brook was born in Lum Tor.\nShe paints.\n'
        'Doc 2(Title: "Red Lamp") Red Lamp is a novel by Ada Brook.</information>\n\n'
    )
    *_, info = env.step("<answer> lumtor! </answer>")
    assert info["status"] == "solved"
    assert info["metrics"]["recall"] == 1.0
    assert "hops" not in info["metrics"]
    with pytest.raises(UnknownNameError, match="train"):
        env.reset(options={"split": "test"})
    twin = pickle.loads(pickle.dumps(env))
    assert twin.digest() == env.digest()
    assert twin.retriever is env.retriever


def test_passages_may_have_a_title_of_their_own(tmp_path: Path, corpus: Path) -> None:
    split = [
        {"id": row["id"], "title": row["contents"].split("\n")[0], "text": text}
        for row in PASSAGES
        if (text := row["contents"].split("\n", 1)[1])
    ]
    apart = load_corpus_index(write(tmp_path / "apart.jsonl", split))
    whole = load_corpus_index(corpus)
    assert apart.search(["ada brook"], 2) == whole.search(["ada brook"], 2)
    assert apart.corpus == whole.corpus


def test_an_index_on_the_disk_in_place_of_passages(tmp_path: Path, corpus: Path) -> None:
    from turngym.envs.tools.retrieval.index.build import build_index

    build_index(corpus, tmp_path / "index")
    questions = write(tmp_path / "q.jsonl", ROWS)
    seen = []
    for where in (corpus, tmp_path / "index", [tmp_path / "index", tmp_path / "index"]):
        env = SearchQA(data=questions, corpus=where)
        env.reset(seed=0, options={"task": "q1"})
        seen.append(env.step("<search> Ada Brook born </search>")[0])
        twin = pickle.loads(pickle.dumps(env))
        assert twin.digest() == env.digest()
        assert twin.retriever == env.retriever
    assert seen == seen[:1] * 3
    assert "Lum Tor" in seen[0]
    with pytest.raises(
        DataError, match=r"corpus\.jsonl: is a file; expected the folder of an index"
    ):
        SearchQA(data=questions, corpus=[corpus])
    with pytest.raises(DataError, match="not an index"):
        SearchQA(data=questions, corpus=tmp_path)


@pytest.mark.parametrize("name", ["corpus.jsonl", "index"])
def test_passages_and_indexes_may_be_named_from_home(
    name: str, tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turngym.envs.tools.retrieval.index.build import build_index

    build_index(corpus, tmp_path / "index")
    write(tmp_path / "q.jsonl", ROWS)
    monkeypatch.setenv("HOME", str(tmp_path))
    env = SearchQA(data="~/q.jsonl", corpus=f"~/{name}")
    assert [hit.id for hit in env.retriever.search(["lamp"], 1)[0]] == ["1"]


def test_splits_and_the_expert(tmp_path: Path, corpus: Path) -> None:
    files = {
        "test": write(tmp_path / "t.jsonl", ROWS[:1]),
        "train": write(tmp_path / "q.jsonl", ROWS),
    }
    env = SearchQA(data=files, corpus=corpus)
    assert dict(env.source.sizes()) == {"train": 2, "test": 1}
    expert = env.expert()
    for split, task in (("train", 0), ("train", 1), ("test", 0)):
        observation, info = env.reset(seed=0, options={"split": split, "task": task})
        while info["status"] == "running":
            observation, *_, info = env.step(expert(env, observation, info))
        assert info["status"] == "solved"
        assert info["metrics"]["searches"] == 1.0
    with pytest.raises(UnknownNameError, match="'test'"):
        SearchQA(data={"tset": files["test"]}, corpus=corpus)


@pytest.mark.parametrize(
    "truth", ["Lum Tor", ["Lum Tor"], {"target": ["Lum Tor"]}, {"target": "Lum Tor"}]
)
@pytest.mark.parametrize("where", ["question", "extra_info", "prompt"])
def test_the_parquet_format(tmp_path: Path, truth: object, where: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    row = {"data_source": "nq", "reward_model": {"style": "rule", "ground_truth": truth}}
    row["prompt"] = [{"role": "user", "content": "Answer. Question: where was ada born?\n"}]
    row["extra_info"] = {"index": 0, "split": "train"}
    if where == "question":
        row["question"] = "where was ada born"
    if where == "extra_info":
        row["extra_info"]["question"] = "where was ada born"
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    ((task_id, question),) = load_questions({"dev": path})["dev"]
    assert task_id == "nq/0"
    assert question.text == "where was ada born?"
    assert question.answers == ("Lum Tor",)


GOOD = ROWS[0]


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([GOOD, "{not json"], r"q\.jsonl:2: not JSON"),
        ([GOOD, "[1]"], r"q\.jsonl:2: a list"),
        ([GOOD, "null"], r"q\.jsonl:2: a NoneType"),
        ([{"id": "a", "golden_answers": ["x"]}], r"q\.jsonl:1: no question.*Columns: id"),
        ([GOOD | {"question": "  "}], "question is empty"),
        ([GOOD | {"question": 3}], "question is 3"),
        ([GOOD, GOOD], r"q\.jsonl:2: id 'q1' was used before, at .*:1"),
        ([{"id": "a", "question": "b"}], "no answers; expected golden_answers"),
        ([GOOD | {"golden_answers": []}], "no answers; expected at least one"),
        ([GOOD | {"golden_answers": [""]}], "no answers; expected at least one"),
        ([GOOD | {"golden_answers": [{"x": 1}]}], "is not text"),
        ([GOOD | {"id": True}], "id is True"),
        ([], "holds no question"),
    ],
)
def test_bad_questions(tmp_path: Path, rows: list, match: str) -> None:
    with pytest.raises(DataError, match=match):
        load_questions(write(tmp_path / "q.jsonl", rows))


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([PASSAGES[0], "oops"], r"c\.jsonl:2: not JSON"),
        ([{"id": "0", "body": "x"}], r"c\.jsonl:1: no text; expected contents.*id, body"),
        ([{"id": "0", "title": 3, "text": "x"}], "title is 3"),
        ([{"contents": "x"}], "id is None"),
        ([PASSAGES[0], PASSAGES[0]], r"c\.jsonl:2: id '0' was used before"),
        ([{"id": "0", "contents": ""}], "the passage is empty"),
        ([], "holds no passage"),
        ([{"id": "0", "contents": "...\n!"}], r"c\.jsonl: no passage holds a word"),
    ],
)
def test_bad_passages(tmp_path: Path, rows: list, match: str) -> None:
    with pytest.raises(DataError, match=match):
        load_corpus_index(write(tmp_path / "c.jsonl", rows))


def test_odd_files(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: cannot be read \(No such file"):
        load_questions(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="cannot be read"):
        load_corpus_index(tmp_path / "none.jsonl")
    with pytest.raises(UnknownNameError, match=r"'\.json'"):
        load_questions(tmp_path / "q.json1")
    (tmp_path / "latin.jsonl").write_bytes(b'{"question": "\xe9"}\n')
    with pytest.raises(DataError, match=r"latin\.jsonl:1: not UTF-8"):
        load_questions(tmp_path / "latin.jsonl")
    (tmp_path / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n")
    assert len(load_questions(tmp_path / "bom.jsonl")["train"]) == 1
    pytest.importorskip("pyarrow")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"bad\.parquet: cannot be read"):
        load_questions(tmp_path / "bad.parquet")


def test_lone_surrogates_stay_inside_the_space(tmp_path: Path) -> None:
    row = '{"id": "a", "question": "x \\ud800 y", "golden_answers": ["\\udfff z"]}'
    ((_, question),) = load_questions(write(tmp_path / "q.jsonl", [row]))["train"]
    assert question.text == "x ? y?"
    question.answers[0].encode()


def test_a_changed_corpus_is_noticed(tmp_path: Path, corpus: Path) -> None:
    env = SearchQA(data=write(tmp_path / "q.jsonl", ROWS), corpus=corpus)
    data = pickle.dumps(env)
    write(corpus, [*PASSAGES, {"id": "2", "contents": "t\nAda Brook again"}])
    assert len(load_corpus_index(corpus)) == 3
    with pytest.raises(DataError, match="changed"):
        pickle.loads(data)
