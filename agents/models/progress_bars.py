"""Bars that transformers draws of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Keep transformers from drawing bars of its own into a run's lines; restored at the end."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
