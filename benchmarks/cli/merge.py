"""`turngym merge`: a model with adapters as an ordinary model folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from .model_options import model_path
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Command:
    """Write a model that was trained with adapters as an ordinary model folder.

    Attributes:
        model: Run directory, or a checkpoint with adapters.
        out: New folder.
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    out: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]


def run(command: Command) -> None:
    """Write the merged model."""
    from ...agents.models.export import export_merged

    out = export_merged(model_path(command.model, (), "model"), command.out)
    say(f"merged model in {out}")
