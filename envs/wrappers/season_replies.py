"""What the server of a sealed season answers; anything else is no reply."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..utils.http import parse_json


def _check_text(text: str) -> str:
    text.encode("utf-8")  # a UnicodeEncodeError is a ValueError
    return text


_Text = Annotated[str, AfterValidator(_check_text)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]
_Positive = Annotated[int, Field(ge=1)]


class Reply(BaseModel):
    """A JSON object; further fields are left as they are."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _Info(Reply):
    task_id: str
    split: str
    dataset: str
    turn: _Count
    status: Literal["running", "solved", "failed", "truncated", "env_error", "ended"]
    valid_action: bool
    reward_terms: dict[str, _Finite]
    metrics: dict[str, _Finite]
    session: int
    parent_session: int | None
    verdict: Literal[-1, 0, 1] | None


class _Cell(Reply):
    env_id: str
    key: str
    split: str
    settings: dict[str, Any]
    tasks: _Positive
    trials: _Positive
    max_turns: _Positive
    max_chars: _Positive
    instructions: _Text
    stop: list[str]
    tools: list[dict[str, Any]]


class SeasonReply(Reply):
    """A season and its environments."""

    name: str
    cells: list[_Cell]


class StartReply(Reply):
    """A begun episode."""

    session: Annotated[str, Field(min_length=1, max_length=200)]
    observation: _Text
    info: _Info


class StepReply(Reply):
    """A step that was taken."""

    observation: _Text
    reward: _Finite
    terminated: bool
    truncated: bool
    info: _Info


def read_reply(body: bytes, form: type[Reply]) -> dict[str, Any]:
    """Return the JSON object in a body, checked against ``form``.

    Raises:
        ValueError: It is none.
    """
    data = parse_json(body)
    form.model_validate(data)
    return data
