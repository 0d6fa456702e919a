"""The base of every JSON record: frozen, strict, and refused with the place that is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ...envs.core.errors import BadValueError, DataError

F = TypeVar("F", bound="Form")


class Form(BaseModel):
    """A frozen record: unknown fields, lossy conversions and NaN are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and check a file.

        Raises:
            DataError: Missing, cut, or not of this form.
        """
        try:
            return parse_form(cls, path.read_bytes(), str(path))
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file.") from None

    def write(self, path: Path) -> None:
        """Write it as JSON; a reader sees the old file or the whole new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with part.open("w", encoding="utf-8") as file:
            data = self.model_dump(mode="json", by_alias=True)
            json.dump(data, file, indent=2, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


def parse_form(kind: type[F], text: str | bytes, where: str) -> F:
    """Parse JSON text as a form.

    Args:
        kind: Which form.
        text: The JSON.
        where: File, and line where there is one, for errors.

    Raises:
        DataError: Not JSON, or a field is missing, unknown or of the wrong value; names the first.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        field, message, _ = _first(error, kind)
        raise DataError(f"{where}: {field}: {message}.") from error


def make_form(kind: type[F], where: str, **fields: Any) -> F:
    """Make a form from values of our own user.

    Raises:
        BadValueError: A field is missing, unknown or of the wrong value; names the first.
    """
    try:
        return kind(**fields)
    except ValidationError as error:
        field, message, got = _first(error, kind)
        raise BadValueError(f"{where}: {field}: {message} (got {got!r}).") from error


def _first(error: ValidationError, kind: type[BaseModel]) -> tuple[str, str, Any]:
    """Return field, message and input of the first thing that is wrong."""
    first = error.errors(include_url=False)[0]
    hint = "; it was cut or damaged" if first["type"] == "json_invalid" else ""
    where = ".".join(map(str, first["loc"])) or kind.__name__
    return where, first["msg"] + hint, first["input"]
