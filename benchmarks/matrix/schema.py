"""Files of the matrix: frozen data, checked when it is made and when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from ...algos.run_dir import read_json, write_json
from ...envs.errors import DataError


class Frozen(BaseModel):
    """Data that is checked when it is made and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def write(self, path: Path) -> None:
        """Write it as JSON; a reader sees the old file or the whole new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, self.model_dump(mode="json", by_alias=True))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and check a file.

        Raises:
            DataError: Missing, cut, or not of this schema.
        """
        try:
            return cls.model_validate(read_json(path))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise DataError(f"{path}: {where}: {first['msg']}.") from error
