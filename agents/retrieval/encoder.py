"""Texts to unit vectors, by any sentence-transformers folder on the disk."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...envs.core.errors import DataError, MissingExtraError
from ...envs.tools.retrieval.index.manifest import corpus_digest

_PREFIXES = {"query": "query: ", "passage": "passage: "}
_E5 = re.compile(r"(^|[-_])e5([-_]|$)", re.IGNORECASE)
_SNAPSHOTS = "snapshots"
"""Folder of a hub's cache in ``models--ORGANISATION--NAME``; those in it are called as commits."""
_WEIGHTS = ("*.safetensors", "*.bin")


class Encoder:
    """A sentence encoder with L2-normalised output.

    A folder without ``modules.json`` (a plain transformers model) is read with mean pooling over
    the attention mask, as E5 models want it.

    Args:
        path: The model's folder.
        query_prefix: Put before queries; None means ``"query: "`` for E5 models (as Search-R1
            does), else nothing: see :func:`is_e5`.
        passage_prefix: Put before passages; None likewise with ``"passage: "``.
        max_length: Tokens that are looked at; longer texts are cut.
        batch_size: Texts per pass.
        device: As in torch; None takes a GPU if there is one.

    Raises:
        MissingExtraError: Without sentence-transformers.
        DataError: The folder is no model.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        max_length: int = 256,
        batch_size: int = 64,
        device: str | None = None,
    ) -> None:
        self.path = Path(path).resolve()
        if not (self.path / "config.json").exists():
            raise DataError(
                f"{path}: not a model folder (no config.json); expected one that sentence-"
                "transformers or transformers saved."
            )
        try:
            from sentence_transformers import SentenceTransformer
            from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
        except ImportError as fault:
            what = "A dense index"
            raise MissingExtraError(what, "sentence-transformers", "dense", fault) from fault
        try:
            if (self.path / "modules.json").exists():
                self._model: Any = SentenceTransformer(
                    str(self.path), device=device, local_files_only=True
                )
            else:
                body: Any = Transformer(str(self.path))
                mean = Pooling(body.get_embedding_dimension(), pooling_mode="mean")
                self._model = SentenceTransformer(modules=[body, mean], device=device)
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"{path}: cannot be loaded as an encoder ({error}).") from None
        self._model.max_seq_length = max_length
        self.batch_size = batch_size
        e5 = is_e5(self.path)
        self.prefixes = {
            "query": query_prefix,
            "passage": passage_prefix,
        }
        for role, standard in _PREFIXES.items():
            if self.prefixes[role] is None:
                self.prefixes[role] = standard if e5 else ""
        self.dim = len(self.encode(["dimension"], "query")[0])

    def encode(self, texts: Sequence[str], role: Literal["query", "passage"]) -> np.ndarray:
        """Unit vectors ``[texts, dim]`` in float32."""
        prefix = self.prefixes[role]
        vectors = self._model.encode(
            [f"{prefix}{text}" for text in texts],
            batch_size=self.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)


def is_e5(folder: Path) -> bool:
    """Return whether a model folder is E5's: ``e5`` is a part of its own of the model's name.

    The name is the folder's, or the hub's where the folder is in the cache of its library; and what
    ``config.json`` says that the model was loaded from, which a copy under another name keeps.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = {}
    origin = config.get("_name_or_path") if isinstance(config, dict) else None
    return any(_E5.search(_model_name(Path(path))) for path in (folder, origin or ""))


def _model_name(path: Path) -> str:
    """Return the last part of a model's name by its folder, or by its name on a hub."""
    own = path.parent.parent if path.parent.name == _SNAPSHOTS else path
    return own.name.rpartition("--")[2]


def encoder_digest(path: str | Path) -> str:
    """Digest of a model folder: its configuration whole, its weights by samples.

    Raises:
        DataError: The folder has no configuration or no weights.
    """
    folder = Path(path)
    digest = hashlib.blake2b(digest_size=16)
    files = sorted({f for pattern in _WEIGHTS for f in folder.glob(pattern)})
    if not files or not (folder / "config.json").exists():
        raise DataError(
            f"{folder}: not an encoder; expected a folder with config.json and weights."
        )
    digest.update((folder / "config.json").read_bytes())
    for file in files:
        digest.update(file.name.encode() + corpus_digest(file).encode())
    return digest.hexdigest()
