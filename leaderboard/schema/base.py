"""The base of every JSON form here: frozen, strict, and refused with the place that is wrong."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ...envs.errors import BadValueError, DataError

F = TypeVar("F", bound="Form")


class Form(BaseModel):
    """A frozen form: unknown fields, lossy conversions and NaN are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def filled(kind: type[F], text: str | bytes, where: str) -> F:
    """JSON text as a form.

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
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise DataError(f"{where}: {field}: {first['msg']}.") from error


def made(kind: type[F], where: str, **fields: Any) -> F:
    """A form from values of our own user.

    Raises:
        BadValueError: A field is missing, unknown or of the wrong value; names the first.
    """
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise BadValueError(
            f"{where}: {field}: {first['msg']} (got {first['input']!r})."
        ) from error
