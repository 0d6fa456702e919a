"""What a warm start's settings do not say: the imitated tokens, and what is in files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ....agents.models.loading import load_tokenizer
from ....agents.models.lora import ADAPTER_SETTINGS
from ....agents.rendering.factory import Style, keep_style, make_renderer
from ....agents.warm_start.demonstrations import Exchange, render
from ....envs.core.digest import digest_of
from ....envs.core.env import TextEnv
from ...rollouts import SpokenDemonstrations

_READ_UP_TO = 2**28
"""Bytes up to which a file is read; a larger one is known by its size and date."""
_ORIGIN = ("_name_or_path", "transformers_version")
"""Fields of a model's configuration that say where it came from, and change nothing."""


class ImitatedContent(NamedTuple):
    """What some demonstrations are to a model.

    Attributes:
        digest: Of their token ids, of the model's configuration, and of the files that the
            environment's settings name.
        longest_action: Tokens of the longest action: the end token too, where one ends it.
    """

    digest: str
    longest_action: int


def look_at_content(
    model: str,
    style: Style,
    env: TextEnv[Any, Any],
    settings: Mapping[str, Any],
    talks: Sequence[Sequence[tuple[str, str]]],
) -> ImitatedContent:
    """Return what some demonstrations are in a model's tokens, and the digest of files.

    Two models of equal weights may have other tokenizers, chat templates or configurations, and
    files keep their names when their lines change.

    Args:
        model: Folder or hub name of the model.
        style: How text becomes tokens.
        env: The environment.
        settings: Its settings.
        talks: Observations and actions of some dialogues, as the expert has them; they are put
            into the model's words here.

    Raises:
        BadValueError: No tokenizer, or a chat template that cannot be used.
    """
    tokenizer = load_tokenizer(model)
    keep_style(tokenizer, style)
    renderer = make_renderer(tokenizer, tools=env.tools)
    stop = tuple(env.stop)
    speak = SpokenDemonstrations().speak
    spoken = [[Exchange(seen, speak(act, env, renderer)) for seen, act in talk] for talk in talks]
    written = [render(talk, env.instructions, stop, renderer).ids for talk in spoken]
    files = [found for file in sorted(set(_files(settings))) if (found := _digest(file))]
    longest = max(len(renderer.write_ended(act, stop)) for talk in spoken for _, act in talk)
    return ImitatedContent(digest_of((written, _configuration(Path(model)), files)), longest)


def _configuration(folder: Path) -> list[Any]:
    """Return what the weights of a model folder compute, its adapters' scale too."""
    found = []
    for name in ("config.json", ADAPTER_SETTINGS):
        try:
            settings = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):  # loading the model will say what is wrong with it
            settings = None
        found.append(_without_origin(settings))
    return found


def _without_origin(settings: Any) -> Any:
    if not isinstance(settings, Mapping):
        return settings
    return {k: _without_origin(v) for k, v in settings.items() if k not in _ORIGIN}


def _files(value: Any) -> Iterator[Path]:
    """Yield the files that settings name, those in named folders too."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _files(one)
    elif isinstance(value, (str, Path)) and _is_path(str(value)):
        path = os.path.expanduser(value)  # like isdir, it takes any text
        yield from (Path(path).rglob("*") if os.path.isdir(path) else [Path(path)])


def _is_path(text: str) -> bool:
    """Return whether a text looks like a path: a word such as "full" may be a folder by chance."""
    return bool(Path(text).name) and (os.sep in text or bool(Path(text).suffix))


def _digest(file: Path) -> str:
    try:
        about = file.stat()
        if not file.is_file():
            return ""
        if about.st_size > _READ_UP_TO:
            return f"{about.st_size} {about.st_mtime_ns}"
        with file.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest()
    except (OSError, ValueError):  # no file after all: an address, a text with a slash
        return ""
