"""From a folder to a selector."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from ..loading import load_model, load_tokenizer
from .model import LanguageModelSelector
from .settings import SelectorSettings, read_settings


def open_selector(
    folder: str | Path,
    settings: SelectorSettings | None = None,
    *,
    batch: int = 32,
    device: str = "auto",
    dtype: str = "auto",
) -> LanguageModelSelector:
    """The selector of a folder.

    Environments of one process that open the same folder share one model and its scores.

    Args:
        folder: Made by training, or any causal language model (a hub name too).
        settings: How it is asked; those of the folder when left out.
        batch: Most papers per forward pass.
        device: ``"auto"`` takes the first CUDA device where there is one.
        dtype: Of the weights; ``"auto"`` is bfloat16 where the device computes in it.

    Raises:
        BadValueError: No model, or one whose tokenizer does not know the verdicts.
        DataError: The folder's settings cannot be read.
        MissingExtraError: torch or transformers is not installed.
    """
    path = Path(folder).expanduser()
    where = str(path.resolve()) if path.is_dir() else str(folder)
    wanted = settings or read_settings(Path(where))
    return _opened(where, wanted, _stamp(Path(where)), batch, (device, dtype))


def _stamp(folder: Path) -> tuple[Any, ...]:
    """Changes when a file of the folder does."""
    if not folder.is_dir():
        return ()
    files = sorted(folder.iterdir())
    return tuple((f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files)


@lru_cache(maxsize=4)
def _opened(
    where: str,
    settings: SelectorSettings,
    stamp: tuple[Any, ...],  # noqa: ARG001 - part of the key
    batch: int,
    place: tuple[str, str],
) -> LanguageModelSelector:
    model = load_model(where, device=place[0], dtype=place[1])
    tokenizer = load_tokenizer(where, pad="eos")
    return LanguageModelSelector(model, tokenizer, settings, batch)
