"""Licence texts: whoever makes a model of another one's weights hands them on with it."""

from __future__ import annotations

import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

_NAMES = ("LICEN[CS]E*", "NOTICE*", "COPYING*", "*TERMS*", "*USE_POLICY*")
"""Of licences, terms of use and notices, in capitals, without their ending."""
_TEXTS = ("", ".txt", ".md", ".html", ".rst")
_LICENCES = (".mit", ".apache", ".bsd", ".gpl", ".lgpl", ".lesser", ".agpl", ".mpl")
_MOST_BYTES = 1 << 20


def is_licence_name(name: str) -> bool:
    """Return whether a file is called as licences, terms of use and notices are.

    Args:
        name: ``LICENSE-MIT``, ``LICENSE.Apache-2.0``, ``USE_POLICY.md``; folders in front do not
            matter.
    """
    path = Path(name)
    ending = path.suffix.lower()
    text = ending in (*_TEXTS, *_LICENCES) or ending[1:].isdigit()  # of a version
    return text and any(fnmatchcase(path.stem.upper(), named) for named in _NAMES)


def is_licence(path: Path) -> bool:
    """Return whether a file of a model folder is a licence, terms of use or a notice."""
    return is_licence_name(path.name) and path.is_file() and path.stat().st_size <= _MOST_BYTES


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
