"""Models by name or GGUF file: fetched, checked and dequantised once into the cache."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....envs.core.digest import digest_of
from ....envs.core.errors import BadValueError, UnknownNameError
from ....envs.utils.disk_cache import cache_dir, make_folder
from ..built_folder import build_once, checksum, is_intact, read_manifest
from .catalogue import CATALOGUE, PackagedModel
from .convert import convert_gguf
from .download import fetch_gguf
from .gguf_header import check_gguf_package, read_header

VERSION = 1
"""Part of every folder's name: raise it when the conversion would write another model."""
MANIFEST = "model.json"
SUFFIX = ".gguf"
_LICENCES = "licences.json"
_DOWNLOAD_SHARE = 0.5
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class CachedModel:
    """A converted model in the cache.

    Attributes:
        folder: Its folder.
        about: Its manifest.
    """

    folder: Path
    about: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def is_registry_model(name: str | Path) -> bool:
    """Tell whether a name is one of the catalogue's, or that of a GGUF file."""
    return str(name) in CATALOGUE or str(name).lower().endswith(SUFFIX)


def models_dir() -> Path:
    """Return the folder of the cache that holds the models."""
    return cache_dir() / "models"


def name_of_folder(folder: str | Path) -> str | None:
    """Return the catalogue's name of a model by its folder in a cache, here or elsewhere."""
    last = Path(folder).name
    return next((name for name, model in CATALOGUE.items() if _folder_of(model).name == last), None)


def model_folder(
    name: str | Path,
    on_progress: Callable[[float, str], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Path:
    """Return the model folder of a name or GGUF file, fetched and converted on first use.

    Args:
        name: A name of :data:`~.catalogue.CATALOGUE`, or a ``*.gguf`` file.
        on_progress: Called with the share that is done and what is being done; never for a model
            that is there.
        on_note: Called with a line on the model and its licence when it is fetched; None logs it as
            a warning, which Python shows where nobody configured logging.

    Raises:
        BadValueError: No such file, a licence that was not accepted, no network, or a model that
            cannot be converted.
        DataError: A file is damaged, cut off, or another one than was expected.
        MissingExtraError: gguf or transformers is not installed.
    """
    show, note = on_progress or (lambda *_: None), on_note or LOG.warning
    model = CATALOGUE.get(str(name))
    if model is None:
        return _from_file(Path(name).expanduser(), show)
    folder = _folder_of(model)
    if is_intact(folder, MANIFEST):
        return folder
    check_gguf_package()
    _check_licence(model)

    def build(draft: Path) -> Mapping[str, Any]:
        note(describe_licence(model))
        total = model.download_bytes

        def on_bytes(there: int) -> None:
            show(_DOWNLOAD_SHARE * min(1.0, there / total), f"{there / 1e6:.0f} MB")

        path = fetch_gguf(model, draft.parent, draft, models_dir() / "wheels", on_bytes)
        made = convert_gguf(
            path,
            read_header(path),
            draft,
            lambda share, text: show(_DOWNLOAD_SHARE + (1 - _DOWNLOAD_SHARE) * share, text),
        )
        return {
            "version": VERSION,
            "model": model.name,
            "licence": model.licence,
            "terms": model.terms,
            "packages": {wheel.package: wheel.version for wheel in model.wheels},
            "gguf_sha256": model.gguf_sha256,
            **made,
        }

    return build_once(folder, MANIFEST, build, model.name)


def find_cached(model: PackagedModel) -> CachedModel | None:
    """Return a model of the catalogue where it is in the cache and whole, else None."""
    folder = _folder_of(model)
    if not is_intact(folder, MANIFEST):
        return None
    return CachedModel(folder, read_manifest(folder, MANIFEST))


def converted_files() -> Iterator[CachedModel]:
    """Yield the converted GGUF files of the cache that no name of the catalogue stands for."""
    for manifest in sorted(models_dir().glob(f"*/{MANIFEST}")):
        about = read_manifest(manifest.parent, MANIFEST)
        if about.get("model") not in CATALOGUE:
            yield CachedModel(manifest.parent, about)


def describe_licence(model: PackagedModel) -> str:
    """Return the line that is shown when a model is fetched."""
    return f"{model.title} ({model.maker}); licence of the weights: {model.licence}, {model.terms}"


def accept_licence(word: str) -> None:
    """Remember that the terms of a licence are accepted, for this cache.

    Raises:
        UnknownNameError: No model asks for this licence.
    """
    known = sorted({model.asks for model in CATALOGUE.values() if model.asks})
    if word not in known:
        raise UnknownNameError("licence to accept", word, known)
    accepted = sorted({*accepted_licences(), word})
    path = models_dir() / _LICENCES
    make_folder(path.parent)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(accepted) + "\n", encoding="utf-8")
    os.replace(draft, path)


def accepted_licences() -> list[str]:
    """Return the licences whose terms were accepted."""
    try:
        found = json.loads((models_dir() / _LICENCES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [str(word) for word in found] if isinstance(found, list) else []


def _check_licence(model: PackagedModel) -> None:
    if model.asks and model.asks not in accepted_licences():
        raise BadValueError(
            f"{model.name}: {model.title} may be used under the {model.licence} "
            f"({model.terms}). Read them; if you accept them, give "
            f"--accept-licence {model.asks} once (in Python: "
            f"{accept_licence.__module__}.accept_licence({model.asks!r}))."
        )


def _folder_of(model: PackagedModel) -> Path:
    key = digest_of((VERSION, model.gguf_sha256))
    return models_dir() / f"{model.name}-{key[:12]}"


def _from_file(path: Path, show: Callable[[float, str], None]) -> Path:
    if not path.is_file():
        raise BadValueError(
            f"{path}: no such file; expected a GGUF file, or one of: {', '.join(CATALOGUE)}."
        )
    header = read_header(path)
    sha256 = checksum(path)
    folder = models_dir() / f"{path.stem}-{digest_of((VERSION, sha256))[:12]}"

    def build(draft: Path) -> Mapping[str, Any]:
        made = convert_gguf(path, header, draft, show)
        about = {"version": VERSION, "model": path.name, "source": str(path.resolve())}
        name, licence = (header.metadata.get(f"general.{key}", "") for key in ("name", "license"))
        return {**about, "title": name, "licence": licence, "gguf_sha256": sha256, **made}

    return build_once(folder, MANIFEST, build, path.name)
