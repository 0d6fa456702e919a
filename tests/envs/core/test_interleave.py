"""Several data sets in one split: their shares, their order, their ids, their folders."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.rollouts.task_order import step_starts
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.core.interleave import Mixture
from turngym.envs.core.tasks import find_task, get_split_blocks
from turngym.envs.search_qa.data import load_questions
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.questions import Question
from turngym.envs.search_qa.source import GivenQuestions, QuestionSets

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=7)


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[list[int], list[float] | None]:
    sizes = draw(SIZES)
    weight = st.floats(0.05, 20.0)
    weights = draw(st.none() | st.lists(weight, min_size=len(sizes), max_size=len(sizes)))
    return sizes, weights


# ---------------------------------------------------------------- the law of a mixture


@settings(max_examples=200, deadline=None)
@given(mixtures())
def test_shares_hold_in_every_prefix(case: tuple[list[int], list[float] | None]) -> None:
    sizes, weights = case
    mixture = Mixture(sizes, weights)
    shares = np.asarray(sizes if weights is None else weights, dtype=float)
    shares /= shares.sum()
    which = np.array([mixture.place(i)[0] for i in range(len(mixture))])
    counts = np.stack([np.cumsum(which == i) for i in range(len(sizes))])
    wanted = shares[:, None] * np.arange(1, len(mixture) + 1)
    assert np.abs(counts - wanted).max() <= max(len(sizes) / 2, 0.5) + 1e-6
    if weights is None:
        assert counts[:, -1].tolist() == sizes


@settings(max_examples=100, deadline=None)
@given(mixtures())
def test_a_set_repeats_nothing_before_it_is_through(
    case: tuple[list[int], list[float] | None],
) -> None:
    sizes, weights = case
    mixture = Mixture(sizes, weights)
    places = [mixture.place(i) for i in range(len(mixture))]
    assert len(set(places)) == len(places)
    for which, size in enumerate(sizes):
        rows = [row for w, row, _ in places if w == which]
        walks = [walk for w, _, walk in places if w == which]
        assert walks == [i // size for i in range(len(walks))]
        assert rows[:size] == list(range(size))  # its own order first
        for walk in range(mixture.walks(which)):
            part = rows[walk * size : (walk + 1) * size]
            assert len(set(part)) == len(part) == min(size, len(rows) - walk * size)
    # The split ends as soon as every row has come: without its last task one is missing.
    assert {(w, r) for w, r, _ in places} == {(w, r) for w, n in enumerate(sizes) for r in range(n)}
    if weights is not None and len(sizes) > 1:
        shares = np.asarray(weights) / sum(weights)
        assert len(mixture) <= (np.asarray(sizes) / shares).max() + len(sizes)


@settings(max_examples=50, deadline=None)
@given(mixtures())
def test_a_mixture_is_the_same_every_time(case: tuple[list[int], list[float] | None]) -> None:
    one, two = Mixture(*case), Mixture(*case)
    places = [one.place(i) for i in range(len(one))]
    assert places == [two.place(i) for i in reversed(range(len(two)))][::-1]
    assert [one.index(*place) for place in places] == list(range(len(one)))
    assert one.index(0, 0, 10_000) is None
    again = pickle.loads(pickle.dumps(one))
    assert [again.place(i) for i in range(len(one))] == places


def test_a_second_walk_has_another_order() -> None:
    mixture = Mixture([20, 400], [1, 1])
    rows = [row for w, row, _ in map(mixture.place, range(len(mixture))) if w == 0]
    first, second, third = rows[:20], rows[20:40], rows[40:60]
    assert sorted(first) == sorted(second) == sorted(third)
    assert first != second != third


def test_an_order_by_hand() -> None:
    mixture = Mixture([2, 2], [1, 3])
    # Due times: 0.5/0.25 = 2, 6 of the first; 0.67, 2, 3.33, 4.67, 6 of the second.
    assert [mixture.place(i)[0] for i in range(len(mixture))] == [1, 0, 1, 1, 1, 0, 1]
    whole = Mixture([1, 3])
    assert [whole.place(i)[:2] for i in range(4)] == [(1, 0), (0, 0), (1, 1), (1, 2)]


def test_endless_weights_are_refused() -> None:
    with pytest.raises(BadValueError, match="at most 50,000,000"):
        Mixture([100_000, 5], [1e-9, 1])


# ---------------------------------------------------------------- training


@settings(max_examples=50, deadline=None)
@given(mixtures(), st.integers(0, 5))
def test_training_keeps_the_pattern_and_shuffles_within_walks(
    case: tuple[list[int], list[float] | None], seed: int
) -> None:
    mixture = Mixture(*case)
    size = len(mixture)
    starts = step_starts(seed, 1, 2 * size, "train", mixture.blocks())
    for turn in (starts[:size], starts[size:]):
        assert sorted(s.task for s in turn) == list(range(size))
        for i, start in enumerate(turn):
            which, _, walk = mixture.place(start.task)
            assert (which, walk) == (mixture.place(i)[0], mixture.place(i)[2])
    assert len({s.uid for s in starts}) == len({s.seed for s in starts}) == 2 * size
    assert starts[: size // 2] == step_starts(seed, 1, size // 2, "train", mixture.blocks())


# ---------------------------------------------------------------- files


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows(name: str, count: int, split: str = "train") -> list[dict[str, Any]]:
    """Rows as FlashRAG has them: every data set begins with train_0."""
    return [
        {"id": f"{split}_{i}", "question": f"{name} {i}", "golden_answers": [f"{name[0]}{i}"]}
        for i in range(count)
    ]


def test_equal_ids_and_rows_of_two_sets_stay_apart(tmp_path: Path) -> None:
    files = {name: write(tmp_path / f"{name}.jsonl", rows(name, 3)) for name in ("nq", "hotpotqa")}
    source = GivenQuestions(load_questions({"train": files}))
    assert source.sizes() == {"train": 6}
    tasks = [source.task("train", i) for i in range(6)]
    ids = [task.id for task in tasks]
    assert sorted(ids) == sorted(f"{n}/train_{i}" for n in files for i in range(3))
    assert ids[:2] == ["nq/train_0", "hotpotqa/train_0"]
    assert [t.dataset for t in tasks] == ["nq", "hotpotqa"] * 3
    assert len({task.digest for task in tasks}) == 6
    for i, task_id in enumerate(ids):
        assert source.index_of("train", task_id) == i
    starts = step_starts(0, 1, 12, "train", get_split_blocks(source, "train"))
    by_uid = {s.uid: source.task("train", s.task).id for s in starts}
    assert len(by_uid) == 12
    assert sorted(by_uid.values()) == sorted(ids * 2)


def test_what_comes_again_has_an_id_of_its_own(tmp_path: Path) -> None:
    files = {name: write(tmp_path / f"{name}.jsonl", rows(name, 3)) for name in ("nq", "hotpotqa")}
    source = GivenQuestions(load_questions({"train": files}, {"nq": 1, "hotpotqa": 3}))
    size = source.sizes()["train"]
    assert size == 11  # 3 of nq, due at 2, 6 and 10, and 8 of hotpotqa by then
    ids = [source.task("train", i).id for i in range(size)]
    assert len(set(ids)) == size
    assert sum(x.startswith("hotpotqa/") for x in ids) == 8
    assert [source.index_of("train", x) for x in ids] == list(range(size))
    again = find_task(source, "train", "hotpotqa/train_1#2", "here")
    assert again.payload == find_task(source, None, "hotpotqa/train_1", "here").payload
    for strange in ("hotpotqa/train_1#1", "hotpotqa/train_1#02", "hotpotqa/train_1#9", "nq/x#2"):
        assert source.index_of("train", strange) is None


def test_ids_that_look_like_repetitions_are_refused() -> None:
    def of(*ids: str) -> list[tuple[str, Question]]:
        return [(x, Question(text="q?", answers=("a",))) for x in ids]

    sets = {"a": of("x", "x#2"), "b": of(*map(str, range(9)))}
    assert len(QuestionSets(sets)) == 11
    with pytest.raises(DataError, match="'x#2' is also what 'x' is called"):
        QuestionSets(sets, [1, 1])


def test_one_file_keeps_its_order_and_its_ids(tmp_path: Path) -> None:
    source = GivenQuestions(load_questions(write(tmp_path / "q.jsonl", rows("nq", 4))))
    assert [source.task("train", i).id for i in range(4)] == [f"train_{i}" for i in range(4)]
    assert source.task("train", 0).dataset == "q"
    assert get_split_blocks(source, "train") is None


def test_a_folder_is_read_by_splits(tmp_path: Path) -> None:
    for name in ("nq", "musique"):
        for split in ("train", "dev", "test"):
            write(tmp_path / name / f"{split}.jsonl", rows(name, 2, split))
    found = load_questions(tmp_path / "nq")
    assert {split: [x for x, _ in found[split]] for split in found} == {
        split: [f"{split}_0", f"{split}_1"] for split in ("train", "dev", "test")
    }
    assert found["dev"].names == ("nq",)
    both = load_questions({"test": [tmp_path / "nq", str(tmp_path / "musique")]})["test"]
    assert both.names == ("nq", "musique")
    assert [x for x, _ in both] == [
        *("nq/test_0", "musique/test_0", "nq/test_1", "musique/test_1"),
    ]


def test_a_merged_parquet_file_names_its_sets(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = [
        {
            "id": f"train_{i}",
            "data_source": name,
            "prompt": [{"role": "user", "content": f"Answer it. Question: {name} {i}?\n"}],
            "ability": "fact-reasoning",
            "reward_model": {"style": "rule", "ground_truth": {"target": [str(i), f"no {i}"]}},
            "extra_info": {"split": "train", "index": i},
            "metadata": {"long": "x" * 99},
        }
        for name in ("nq", "hotpotqa", "open/qa")
        for i in range(2000)
    ]
    path = tmp_path / "train.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(table), path, row_group_size=700)
    sets = load_questions(path, {"nq": 1, "hotpotqa": 2, "open_qa": 1})["train"]
    assert sets.names == ("nq", "hotpotqa", "open_qa")
    assert len(sets) == pytest.approx(8000, abs=3)
    assert sets.index_of("open_qa/train_7") is not None
    row_id, question = sets[0]
    assert (row_id, question.text) == ("hotpotqa/train_0", "hotpotqa 0?")
    assert question.answers == ("0", "no 0")
    # A name that the user gives is that of the whole file, whose ids then clash.
    with pytest.raises(DataError, match=r"row 2000: id 'mine/train_0' was used before, .*row 0"):
        load_questions({"train": {"mine": path}})


@pytest.mark.parametrize(
    ("weights", "error", "words"),
    [
        ({"nq": 1}, BadValueError, "none for hotpotqa"),
        ({"nq": 1, "hotpotqa": 0}, BadValueError, "weight of hotpotqa is 0; .*left out of data"),
        ({"nq": 1, "hotpotqa": "3"}, BadValueError, "is '3'; expected a number"),
        ({"nq": 1, "hotpotqa": float("nan")}, BadValueError, "above 0"),
        ({"nq": 1, "hotpot": 3}, UnknownNameError, "'hotpotqa'"),
        ([1, 3], BadValueError, "expected a number per data set"),
    ],
)
def test_bad_weights(tmp_path: Path, weights: Any, error: type[Exception], words: str) -> None:
    files = {name: write(tmp_path / f"{name}.jsonl", rows(name, 3)) for name in ("nq", "hotpotqa")}
    with pytest.raises(error, match=words):
        load_questions({"train": files}, weights)


def test_bad_mixtures(tmp_path: Path) -> None:
    file = write(tmp_path / "q.jsonl", rows("nq", 3))
    for data, words in (
        ({"train": {}}, "expected a file, a folder"),
        ({"train": 3}, "train is 3"),
        ({"train": [3]}, "train has 3"),
        ({"train": {"a/b": file}}, "'a/b'; expected a word"),
        ({"train": [file, file]}, "two files of train are called 'q'"),
    ):
        with pytest.raises(BadValueError, match=words):
            load_questions(data)  # type: ignore[arg-type]
    with pytest.raises(BadValueError, match="mixes the train split, and data has none"):
        load_questions({"test": file}, {"q": 1})
    with pytest.raises(BadValueError, match="no data was given"):
        SearchQA(weights={"nq": 1})
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match=r"holds no train\.jsonl, dev\.jsonl, test\.jsonl"):
        load_questions(empty)
    write(empty / "dev.jsonl", rows("nq", 1))
    with pytest.raises(DataError, match=r"holds no test\.jsonl"):
        load_questions({"test": empty})
    write(empty / "dev.json", rows("nq", 1))
    with pytest.raises(DataError, match=r"dev\.jsonl and dev\.json; expected one"):
        load_questions(empty)


def test_the_setting_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    files = {name: write(tmp_path / f"{name}.jsonl", rows(name, 3)) for name in ("nq", "hotpotqa")}
    corpus = write(tmp_path / "corpus.jsonl", [{"id": "0", "contents": '"N"\nnq 0 is n0.'}])
    env = SearchQA(
        data={"train": files, "dev": files}, weights={"nq": 1, "hotpotqa": 3}, corpus=corpus
    )
    assert env.source.sizes() == {"train": 11, "dev": 6}  # weights are for training
    _, info = env.reset(seed=0, options={"task": "hotpotqa/train_0#2"})
    assert (info["dataset"], info["task_id"]) == ("hotpotqa", "hotpotqa/train_0#2")
    twin = pickle.loads(pickle.dumps(env))
    assert twin.digest() == env.digest()
