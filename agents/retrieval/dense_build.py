"""Building dense indexes: embeddings block by block on the disk, then faiss over them.

Memory per million passages of a 768-dimensional encoder: ``flat`` next to nothing (its 1.5 GB of
float16 stay on the disk), ``ivfpq`` about 0.1 GB and the training sample, ``hnsw`` about 3.5 GB, as
its graph and its vectors must lie in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...envs.core.errors import (
    BadValueError,
    DataError,
    MissingExtraError,
    UnknownNameError,
    check_package,
)
from ...envs.tools.retrieval.index.build import BuildPlan
from ...envs.tools.retrieval.index.files import save_json
from ...envs.tools.retrieval.index.passages import OFFSETS
from ...envs.utils.file_rows import get_contents, parse_row
from ...envs.utils.system import reserve_space
from .encoder import Encoder, encoder_digest

EMBEDDINGS, FAISS = "embeddings.npy", "vectors.faiss"
_STEP = 2048
_ADD = 65_536
_POINTS = 39  # faiss wants so many training vectors per centroid
_COMMON: dict[str, Any] = {
    "encoder": None,
    "query_prefix": None,
    "passage_prefix": None,
    "max_length": 256,
    "batch_size": 64,
}
_OWN: dict[str, dict[str, Any]] = {
    "flat": {},
    "hnsw": {"neighbours": 32, "ef_construction": 200, "ef_search": 64},
    "ivfpq": {"lists": None, "bytes_per_vector": 64, "probes": 32, "training": 262_144},
}


def checked_settings(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a kind, with the given ones put in.

    Args:
        kind: ``flat``, ``hnsw`` or ``ivfpq``.
        given: ``encoder`` (a folder, required), ``query_prefix``, ``passage_prefix``,
            ``max_length`` (tokens), ``batch_size``; for ``hnsw`` ``neighbours`` (M),
            ``ef_construction``, ``ef_search``; for ``ivfpq`` ``lists`` (None: four times the root
            of the number of passages), ``bytes_per_vector``, ``probes``, ``training`` (vectors that
            the quantisers are trained on).

    Raises:
        UnknownNameError: A setting that the kind does not have.
        BadValueError: No encoder, or a number below 1.
        DataError: The encoder's folder holds none.
        MissingExtraError: Without faiss or sentence-transformers.
    """
    known = {**_COMMON, **_OWN[kind]}
    for name, value in given.items():
        if name not in known:
            raise UnknownNameError("setting", name, known, f"index of kind {kind}")
        number = isinstance(known[name], int) or name == "lists"
        if number and value is not None and (isinstance(value, bool) or int(value) < 1):
            raise BadValueError(f"index: {name} is {value!r}; expected an integer from 1.")
    if not given.get("encoder"):
        raise BadValueError(
            f"index of kind {kind}: needs an encoder; expected the folder of a sentence-"
            "transformers model."
        )
    check_package("A dense index", "faiss", "dense", "faiss-cpu")  # not behind all passages
    check_package("A dense index", "sentence_transformers", "dense", "sentence-transformers")
    folder = str(Path(given["encoder"]).resolve())
    return {**known, **given, "encoder": folder, "encoder_digest": encoder_digest(folder)}


def make_encoder(settings: Mapping[str, Any]) -> Encoder:
    """Return the encoder that an index was, or is to be, built with."""
    return Encoder(settings["encoder"], **{k: settings[k] for k in _COMMON if k != "encoder"})


def build_dense(plan: BuildPlan, count: int) -> None:
    """Embed all passages and index the vectors in ``plan.out``.

    Raises:
        MissingExtraError: Without faiss or sentence-transformers.
        BadValueError: Settings that do not fit the encoder's dimension or so few passages.
        DataError: The encoder cannot be loaded.
    """
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("A dense index", "faiss-cpu", "dense") from None
    vectors = _embed(plan, count)
    if plan.kind == "flat":
        vectors.flush()
        os.replace(plan.out / "parts" / EMBEDDINGS, plan.out / EMBEDDINGS)
        return
    index: Any = _hnsw(vectors, plan) if plan.kind == "hnsw" else _ivfpq(vectors, plan)
    for start, block in _float_blocks(vectors):
        plan.progress("indexing", start, count)
        index.add(block)
    scratch = plan.out / f"{FAISS}.part"
    faiss.write_index(index, str(scratch))
    os.replace(scratch, plan.out / FAISS)
    plan.progress("indexing", count, count)


def _embed(plan: BuildPlan, count: int) -> np.memmap:
    """Return all vectors ``[count, dim]`` in float16; resumes after those that are there."""
    encoder = make_encoder(plan.settings)
    path, state = plan.out / "parts" / EMBEDDINGS, plan.out / "parts" / "embedded.json"
    done = 0
    if state.exists() and path.exists():
        done = json.loads(state.read_bytes())["done"]
        vectors = np.lib.format.open_memmap(path, mode="r+")
        if vectors.shape != (count, encoder.dim):
            raise DataError(
                f"{plan.out}: was begun with vectors of shape {vectors.shape}, the encoder now "
                f"gives {(count, encoder.dim)}; say --overwrite."
            )
    else:
        shape = (count, encoder.dim)
        vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
        with path.open("r+b") as file:  # a full disk is an error here, not a crash later
            reserve_space(file)
    offsets = np.load(plan.out / OFFSETS, mmap_mode="r")
    with plan.corpus.open("rb") as corpus:
        for start in range(done, count, _STEP):
            plan.progress("embedding", start, count)
            stop = min(start + _STEP, count)
            texts = []
            corpus.seek(int(offsets[start]))
            for number in range(start, stop):
                where = f"{plan.corpus}: passage {number}"
                row = parse_row(corpus.read(int(offsets[number + 1] - offsets[number])), where)
                title, text = get_contents(row, where)
                texts.append(f"{title}\n{text}")
            vectors[start:stop] = encoder.encode(texts, "passage")
            vectors.flush()
            save_json(state, {"done": stop})
    plan.progress("embedding", count, count)
    return vectors


def _float_blocks(vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(vectors), _ADD):
        yield start, np.asarray(vectors[start : start + _ADD], dtype=np.float32)


def _hnsw(vectors: np.ndarray, plan: BuildPlan) -> Any:
    import faiss

    index = faiss.IndexHNSWFlat(
        vectors.shape[1], int(plan.settings["neighbours"]), faiss.METRIC_INNER_PRODUCT
    )
    index.hnsw.efConstruction = int(plan.settings["ef_construction"])
    return index


def _ivfpq(vectors: np.ndarray, plan: BuildPlan) -> Any:
    import faiss

    count, dim = vectors.shape
    pieces = int(plan.settings["bytes_per_vector"])
    if dim % pieces:
        raise BadValueError(
            f"index of kind ivfpq: bytes_per_vector is {pieces}, which does not divide the "
            f"encoder's dimension of {dim}."
        )
    lists = plan.settings["lists"]
    lists = max(1, min(int(4 * count**0.5), count // _POINTS)) if lists is None else int(lists)
    bits = min(8, int(np.log2(max(count // _POINTS, 1))))
    if bits < 1 or count < lists:
        raise BadValueError(
            f"index of kind ivfpq: {count} passages are too few to train {lists} lists and codes "
            "on; take flat."
        )
    coarse = faiss.IndexFlatIP(dim)
    index = faiss.IndexIVFPQ(coarse, dim, lists, pieces, bits, faiss.METRIC_INNER_PRODUCT)
    sample = np.random.default_rng(0).permutation(count)[: int(plan.settings["training"])]
    plan.progress("training", 0, 1)
    index.train(np.asarray(vectors[np.sort(sample)], dtype=np.float32))
    return index
