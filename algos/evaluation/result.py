"""The result file of a run: what the leaderboard and the tables read, checked against a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...envs.core.errors import DataError
from ...envs.utils.statistics import Estimate
from ..runs.run_dir import read_json, write_json


class SetScore(BaseModel):
    """One evaluation set, scored once.

    ``n`` counts scored episodes; ``errors`` those that a broken environment took, and
    ``agent_errors`` those in which the agent failed (its model's server did not answer); neither
    is in a mean. ``context_full`` counts scored episodes that ended, unsolved, because the model's
    context was full.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    env_id: str
    split: str
    n: int = Field(ge=0)
    errors: int = Field(ge=0)
    agent_errors: int = Field(default=0, ge=0)
    context_full: int = Field(default=0, ge=0)
    success: Estimate
    return_: Estimate = Field(alias="return")
    metrics: dict[str, float]


class RunResult(BaseModel):
    """``result.json``.

    ``optimizer_steps`` are those of all ``steps`` together; None in older files.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    recipe: str
    env_id: str
    seed: int
    config_digest: str
    model_digest: str
    steps: int = Field(ge=0)
    optimizer_steps: int | None = Field(default=None, ge=0)
    sampled_tokens: int = Field(ge=0)
    env_turns: int = Field(ge=0)
    seconds: float = Field(ge=0)
    before: list[SetScore]
    after: list[SetScore]

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        write_json(path, self.model_dump(by_alias=True))

    @classmethod
    def read(cls, path: Path) -> RunResult:
        """Read and check a result file.

        Raises:
            DataError: Missing, cut, or not of this schema.
        """
        try:
            return cls.model_validate(read_json(path))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise DataError(f"{path}: {where}: {first['msg']}.") from error


def scores_at(
    rows: Sequence[Mapping[str, Any]], step: int, where: Mapping[str, tuple[str, str]]
) -> list[SetScore]:
    """Return the evaluation of a training step, read back from the run's metrics.

    A set is followed by its data sets and their mean, where it has several.

    Args:
        rows: Lines of ``metrics.jsonl``.
        step: The step.
        where: Environment id and split of every evaluation set, by its name.
    """
    found = [row for row in rows if row["step"] == step and any(k.startswith("eval/") for k in row)]
    if not found:
        return []
    row = found[-1]
    names = dict.fromkeys(key.split("/")[1] for key in row if key.startswith("eval/"))
    return [
        _score(row, name, *place)
        for whole, place in where.items()
        for name in names
        if name == whole or (name not in where and name.startswith(f"{whole}, "))
    ]


def _score(row: Mapping[str, Any], name: str, env_id: str, split: str) -> SetScore:
    at = f"eval/{name}/"
    metrics = {
        key[len(at) :].removeprefix("metric_").removesuffix("_mean"): float(value)
        for key, value in row.items()
        if key.startswith(at + "metric_")
    }

    def part(what: str, mean: str) -> Estimate:
        low, high = (float(row[f"{at}{what}_{end}95"]) for end in ("low", "high"))
        return Estimate(mean=float(row[f"{at}{what}_{mean}"]), low95=low, high95=high)

    return SetScore(
        name=name,
        env_id=env_id,
        split=split,
        n=int(row[at + "n"]),
        errors=int(row[at + "errors"]),
        agent_errors=0,  # a model in training has none
        context_full=int(row.get(at + "context_full", 0)),
        success=part("success", "frac"),
        metrics=metrics,
        **{"return": part("return", "mean")},
    )
