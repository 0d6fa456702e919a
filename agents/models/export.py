"""Checkpoints with adapters as ordinary model folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from ...envs.core.errors import BadValueError
from .built_folder import whole_or_nothing
from .licences import keep_licences, keep_licences_of
from .loading import load_model, load_tokenizer
from .lora import merged
from .progress_bars import without_progress_bars


def export_merged(folder: Path | str, out: Path | str, device: str = "cpu") -> Path:
    """Write a checkpoint with adapters as an ordinary model folder.

    Args:
        folder: A checkpoint whose ``adapter_config.json`` names its base model.
        out: New folder; its model and tokenizer load by path.
        device: Where to merge.

    Raises:
        BadValueError: No checkpoint with adapters, or ``out`` holds something.
    """
    folder, out = Path(folder), Path(out)
    if not (folder / "adapter_config.json").is_file():
        raise BadValueError(
            f"{folder}: holds no adapter_config.json, so there is nothing to merge; a checkpoint "
            "without adapters is a model folder already."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadValueError(f"{out}: exists and is not an empty folder; choose a new one.")
    model = merged(load_model(folder, dtype="float32", device=device))
    model = model.to(_saved_dtype(folder))
    with whole_or_nothing(out) as draft:
        with without_progress_bars():
            model.save_pretrained(draft)
        load_tokenizer(folder, pad="eos").save_pretrained(draft)
        keep_licences(folder, draft)
        keep_licences_of(model, draft)
    return out


def _saved_dtype(folder: Path) -> Any:
    """Return the number format that the run's own weights had."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return getattr(torch, config.get("dtype") or "float32")
