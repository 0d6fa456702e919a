"""Licence texts: whoever makes a model of another one's weights hands them on with it."""

from __future__ import annotations

import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

_NAMES = ("LICEN[CS]E*", "NOTICE*", "COPYING*", "*TERMS*", "*USE_POLICY*")
"""Of licences, terms of use and notices, in capitals, without their ending."""
_ENDINGS = ("", ".txt", ".md", ".html", ".rst")
_MOST_BYTES = 1 << 20


def is_licence(path: Path) -> bool:
    """Return whether a file of a model folder is a licence, terms of use or a notice."""
    named = any(fnmatchcase(path.stem.upper(), name) for name in _NAMES)
    text = path.suffix.lower() in _ENDINGS
    return named and text and path.is_file() and path.stat().st_size <= _MOST_BYTES


def keep_licences(source: str | Path, folder: Path) -> None:
    """Copy the licence texts of a model folder into one that is made from it.

    Args:
        source: The folder; a name on a hub, or one that is gone, has none to copy.
        folder: What is made; files that it has stay what they are.
    """
    if not str(source) or not Path(source).is_dir():
        return
    for path in sorted(Path(source).iterdir()):
        if is_licence(path) and not (folder / path.name).exists():
            shutil.copyfile(path, folder / path.name)


def keep_licences_of(model: Any, folder: Path) -> None:
    """Copy the licence texts of what a model was loaded from, as :func:`keep_licences`."""
    keep_licences(getattr(model.config, "name_or_path", "") or "", folder)
