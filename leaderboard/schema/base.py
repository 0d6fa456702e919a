"""The base class of every JSON record: frozen and strict; errors name the wrong field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ...envs.core.errors import BadValueError, DataError
from ...envs.utils.disk_errors import whole_file

_HINTS = {
    "json_invalid": "; it was cut or damaged",
    "extra_forbidden": ": a misspelt field, or one of a newer turngym",
}
F = TypeVar("F", bound="Form")
OnProgress = Callable[[int, int], None]
"""Called with the number of finished items and of all."""
OnItem = Callable[[str, int, int], None]
"""Called before each item with its name, its place and the number of all."""


class Form(BaseModel):
    """A frozen record: unknown fields, lossy conversions and NaN are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and check a file.

        Raises:
            DataError: The file is missing, cut off, or does not match the schema.
        """
        try:
            return parse_form(cls, path.read_bytes(), str(path))
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file.") from None

    def write(self, path: Path, *, alone: bool = True) -> None:
        """Write the record as JSON; readers see either the old file or the complete new one.

        Args:
            path: The file.
            alone: Whether no other process writes it meanwhile.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.model_dump(mode="json", by_alias=True)
        with whole_file(path, sync=True, alone=alone) as file:
            json.dump(data, file, indent=2, ensure_ascii=False)
            file.write("\n")


def parse_form(kind: type[F], text: str | bytes, where: str) -> F:
    """Parse JSON text as a record.

    Args:
        kind: Class of the record.
        text: The JSON.
        where: File, and line where there is one, for errors.

    Raises:
        DataError: The text is not JSON, or a field is missing, unknown or invalid.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        field, message, _ = _first(error, kind)
        raise DataError(f"{where}: {field}: {message}.") from error


def make_form(kind: type[F], where: str, **fields: Any) -> F:
    """Make a record from values that the local user gave.

    Raises:
        BadValueError: A field is missing, unknown or invalid; names the first.
    """
    try:
        return kind(**fields)
    except ValidationError as error:
        field, message, got = _first(error, kind)
        raise BadValueError(f"{where}: {field}: {message} (got {got!r}).") from error


def _first(error: ValidationError, kind: type[BaseModel]) -> tuple[str, str, Any]:
    """Return the field, message and input of the first validation error."""
    first = error.errors(include_url=False)[0]
    hint = _HINTS.get(first["type"], "")
    where = ".".join(map(str, first["loc"])) or kind.__name__
    return where, first["msg"] + hint, first["input"]
