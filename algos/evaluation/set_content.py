"""What a set is scored on: its environment's settings, their defaults, its tasks and its files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...envs.core.digest import digest_of
from ...envs.core.registration import default_settings
from .evaluate import EvalSet

_WHOLE = 2**28
"""Bytes up to which a file is hashed as a whole; of a larger one its size and its two ends are."""
_END = 2**20
_OF_TASKS = ("data",)
"""Settings whose files hold tasks, which are compared one by one."""
_NOT_GIVEN = object()


@dataclass(frozen=True, kw_only=True)
class SetContent:
    """What a set is scored on, as far as it is known.

    Attributes:
        settings: Settings that its environment was made with, as JSON keeps them.
        tasks_digest: Hash of its tasks' ids and contents; None where they have no stable form.
        files: Hash of the contents of the files that a setting names, by setting.
        defaults: Values of the settings that are not given.
    """

    settings: Mapping[str, Any]
    tasks_digest: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


def content_of(what: EvalSet, *, deep: bool = True) -> SetContent:
    """Return what a set is scored on.

    Args:
        what: The set.
        deep: Look at its tasks and files too, which takes time for large ones.
    """
    env = what.base_env
    settings = _as_json(env.spec.kwargs if env.spec is not None else {})
    if not deep:
        return SetContent(settings=settings)
    return SetContent(
        settings=settings,
        tasks_digest=what.tasks_digest(),
        files=file_digests(settings),
        defaults=_as_json(default_settings(env.name)),
    )


def file_digests(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of the contents of the files that settings name, by setting."""
    read = {name: _with_contents(value) for name, value in settings.items()}
    return {name: digest_of(one) for name, one in read.items() if one != settings[name]}


def say_other_settings(
    there: Mapping[str, Any],
    here: Mapping[str, Any],
    defaults: Mapping[str, Any],
    files: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> str:
    """Return in words what settings there have otherwise than those here; empty if nothing.

    A setting that is not given is its default, and a path is the place that it leads to. Where the
    contents of files are known on both sides, they are compared and their paths are not.

    Args:
        there: The settings there.
        here: The settings here.
        defaults: Values of those that are not given.
        files: Hashes of the contents of files by setting, there and here.
    """
    said = []
    for name in sorted({*there, *here}):
        given = [side.get(name, _NOT_GIVEN) for side in (there, here)]
        known = [side[name] for side in files if name in side]
        meant = [_place(defaults.get(name, x) if x is _NOT_GIVEN else x) for x in given]
        texts = ["not given" if x is _NOT_GIVEN else repr(x) for x in given]
        if len(known) == 2 and name not in _OF_TASKS:
            if known[0] != known[1]:
                place = (
                    texts[1] if meant[0] == meant[1] else f"{texts[0]} there and {texts[1]} here"
                )
                said.append(f"{name} is {place}, and what stands in it is not the same")
        elif meant[0] != meant[1] and not (len(known) == 2 and known[0] == known[1]):
            said.append(f"{name} is {texts[0]} there and {texts[1]} here")
    return ", ".join(said)


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(settings), default=str))


def _place(value: Any) -> Any:
    """Return a setting with every path in it as an absolute one, without links."""
    if isinstance(value, Mapping):
        return {name: _place(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_place(one) for one in value]
    return str(Path(value).expanduser().resolve()) if _is_path(value) else value


def _with_contents(value: Any) -> Any:
    """Return a setting with hashes of what stands in its files in place of their paths."""
    if isinstance(value, Mapping):
        return {name: _with_contents(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_contents(one) for one in value]
    if not _is_path(value):
        return value
    path = Path(value).expanduser()
    try:
        if path.is_dir():
            inside = sorted(one for one in path.rglob("*") if one.is_file())
            return digest_of([(str(one.relative_to(path)), _file_digest(one)) for one in inside])
        return _file_digest(path) if path.is_file() else value
    except (OSError, ValueError):  # no file after all, or one that nobody may read
        return value


def _is_path(value: Any) -> bool:
    """Return whether a setting looks like a path: a word such as "full" is none."""
    if not isinstance(value, str) or "://" in value or "\n" in value:
        return False
    return bool(Path(value).name) and (os.sep in value or bool(Path(value).suffix))


def _file_digest(file: Path) -> str:
    size = file.stat().st_size
    with file.open("rb") as data:
        if size <= _WHOLE:
            return hashlib.file_digest(data, "sha256").hexdigest()
        ends = data.read(_END)
        data.seek(-_END, os.SEEK_END)
        return digest_of((size, ends, data.read(_END)))
