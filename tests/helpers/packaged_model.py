"""A model of the catalogue in the cache, without fetching one."""

from __future__ import annotations

import shutil
from pathlib import Path

from turngym.agents.models.built_folder import seal
from turngym.agents.models.registry.catalogue import CATALOGUE
from turngym.agents.models.registry.fetch import MANIFEST, _folder_of

NAME = "smollm2-135m"


def packaged(model: Path) -> Path:
    """Put the files of a model where the cache keeps the catalogue's, and return the folder."""
    folder = _folder_of(CATALOGUE[NAME])
    if not folder.exists():
        shutil.copytree(model, folder)
        seal(folder, MANIFEST, {"model": NAME})
    return folder
