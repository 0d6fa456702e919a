"""What the maintainers know about an entry, in a file beside its folder, never inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ...envs.core.errors import DataError
from .base import Form
from .entry import Line

_SUFFIX = ".record.json"
_TIME = r"^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00)?$"


class Rerun(Form):
    """A play of a submitted checkpoint on a maintainer's machine.

    Attributes:
        of: Id of the submitted entry.
        weights: Hash of the weights, one per run.
        equal: Episodes whose actions are those that were submitted.
        episodes: Episodes in all.
    """

    of: str
    weights: tuple[Line, ...] = Field(min_length=1)
    equal: int = Field(ge=0)
    episodes: int = Field(ge=1)


class Record(Form):
    """``NAME.record.json``, beside the entry's folder ``NAME``.

    An entry's own files are its author's; nothing in them says who sent it, when, or who played.

    Attributes:
        format: Version of this layout.
        account: Account that sent it; empty where no server took it.
        accepted: Time of acceptance, UTC; empty where nobody noted it.
        season: Sealed season that it was played in, on the server; empty for none.
        rerun: How a maintainer played it; None where nobody did.
    """

    format: Literal[1] = 1
    account: Annotated[str, Field(pattern=r"^[a-z0-9-]{0,30}$")] = ""
    accepted: Annotated[str, Field(pattern=_TIME)] = ""
    season: str = ""
    rerun: Rerun | None = None


def record_path(folder: Path) -> Path:
    """Return the path of the record of an entry's folder."""
    return folder.with_name(folder.name + _SUFFIX)


def read_record(folder: Path) -> Record:
    """Read the record of an entry's folder; an empty one where there is none.

    Raises:
        DataError: The file is damaged.
    """
    path = record_path(folder)
    if path.is_symlink():
        raise DataError(f"{path}: is a link; expected the record itself.")
    return Record.read(path) if path.exists() else Record()
