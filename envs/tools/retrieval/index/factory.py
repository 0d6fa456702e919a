"""Open a retriever over the index in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ....core.errors import BadValueError, DataError
from ..base import Retriever
from .hybrid import Hybrid
from .kinds import INDEX_KINDS, load_entry
from .manifest import Manifest, read_manifest


def open_index(folder: str | Path, corpus: str | Path | None = None) -> Retriever:
    """Open the retriever over a finished index.

    Args:
        folder: Made by :func:`turngym.envs.tools.retrieval.index.build.build_index`.
        corpus: Where the passage file is now, if it was moved.

    Raises:
        DataError: Not an index, an unfinished one, or one of another corpus.
        MissingExtraError: A dense index without its packages.
    """
    path = Path(folder).expanduser().resolve()
    manifest = read_manifest(path)
    moved = None if corpus is None else Path(corpus).resolve()
    return _open_cached(
        path, manifest.model_dump_json(), _stamp(Path(moved or manifest.corpus)), moved
    )


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file does; None for a missing file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=8)
def _open_cached(
    folder: Path,
    described: str,
    stamp: tuple[int, int] | None,  # noqa: ARG001 - part of the key
    corpus: Path | None,
) -> Retriever:
    """Return one retriever for all environments of a process: encoders are large."""
    manifest = Manifest.model_validate_json(described)
    if manifest.kind not in INDEX_KINDS:
        raise DataError(f"{folder}: is of the unknown kind {manifest.kind!r}.")
    return load_entry(INDEX_KINDS[manifest.kind].open)(folder, manifest, corpus)


def open_indexes(folders: Sequence[str | Path]) -> Retriever:
    """Open one index, or several over one corpus as a hybrid.

    Raises:
        BadValueError: No folder.
        DataError: As :func:`open_index`, or indexes of different corpora.
    """
    if not folders:
        raise BadValueError("open_indexes: no folder was given; expected at least one.")
    digests = {read_manifest(folder).corpus_digest for folder in folders}
    if len(digests) > 1:
        raise DataError(
            f"{', '.join(map(str, folders))}: are indexes of different corpora; a hybrid needs one."
        )
    opened = [open_index(folder) for folder in folders]
    return opened[0] if len(opened) == 1 else Hybrid(tuple(opened))
