"""The facts of an index: one ``index.json``, written when everything else is complete."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ....core.errors import DataError
from .files import save_json

FILE = "index.json"
FORMAT = 1
_SAMPLES, _SAMPLE_BYTES = 64, 1 << 16


class Manifest(BaseModel):
    """Facts of a finished index.

    Attributes:
        format: Version of the layout on disk.
        kind: ``bm25``, ``flat``, ``hnsw`` or ``ivfpq``.
        passages: Number of passages.
        corpus: Path of the passage file, which stays where it is: the index holds no texts.
        corpus_bytes: Its size.
        corpus_digest: Of its size and 64 samples spread over it, see :func:`corpus_digest`.
        settings: What the kind was built with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    kind: str
    passages: int
    corpus: str
    corpus_bytes: int
    corpus_digest: str
    settings: dict[str, Any]

    @property
    def identity(self) -> str:
        """Text that changes with the passages and with how they are searched."""
        settings = json.dumps(self.settings, sort_keys=True).encode()
        how = hashlib.blake2b(settings, digest_size=8).hexdigest()
        return f"{self.kind}-{how}-{self.corpus_digest}"

    def save(self, folder: Path) -> None:
        """Write it; from now on the folder is an index."""
        save_json(folder / FILE, self.model_dump())


def read_manifest(folder: str | Path) -> Manifest:
    """Return the facts of the index in ``folder``.

    Raises:
        DataError: There is none, its building was not finished, or it is of another version.
    """
    folder = Path(folder).expanduser()
    path = folder / FILE
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        if (folder / "build.json").exists():
            raise DataError(
                f"{folder}: this index is not finished; run the same `turngym index build` again "
                "to resume it."
            ) from None
        raise DataError(
            f"{folder}: not an index (no {FILE}); make one with: turngym index build --corpus "
            f"FILE.jsonl --out {folder}"
        ) from None
    except NotADirectoryError:
        raise DataError(
            f"{folder}: is a file; expected the folder of an index. Make one of a file of passages "
            f"with: turngym index build --corpus {folder} --out FOLDER"
        ) from None
    except (OSError, ValidationError) as error:
        raise DataError(f"{path}: cannot be read ({error}); build the index again.") from None
    if manifest.format != FORMAT:
        raise DataError(
            f"{path}: has format {manifest.format}, this version reads {FORMAT}; build it again."
        )
    return manifest


def corpus_digest(path: Path) -> str:
    """Return a digest of a file's size and of 64 samples of 64 KiB, both ends included.

    A whole read of a large corpus would take minutes each time an index is opened.

    Raises:
        DataError: The file cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        size = path.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        last = max(size - _SAMPLE_BYTES, 0)
        with path.open("rb") as file:
            for place in sorted({last * i // (_SAMPLES - 1) for i in range(_SAMPLES)}):
                file.seek(place)
                digest.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise DataError(f"{path}: the corpus cannot be read ({error.strerror}).") from None
    return digest.hexdigest()
