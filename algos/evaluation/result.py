"""The result file of a run: what the leaderboard and the tables read, checked against a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...envs.core.errors import DataError
from ...envs.utils.statistics import Estimate
from ..runs.metrics import evaluated_sets
from ..runs.run_dir import read_json, write_json

GREEDY = "greedy_"
"""Before the metric keys of greedy decoding: ``eval/NAME/greedy_success_frac``."""


class Score(BaseModel):
    """Episodes of one evaluation set that were decoded in one way.

    Attributes:
        n: Scored episodes.
        errors: Episodes that a broken environment took; excluded from averages.
        agent_errors: Those in which the agent failed (its model's server did not answer); likewise.
        context_full: Scored episodes that ended, unsolved, because the model's context was full.
        success: Share of solved episodes.
        return_: Mean return; ``return`` in files.
        tokens: Sampled tokens per episode, mean.
        metrics: Means of the environment's measures.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    n: int = Field(ge=0)
    errors: int = Field(ge=0)
    agent_errors: int = Field(default=0, ge=0)
    context_full: int = Field(default=0, ge=0)
    success: Estimate
    return_: Estimate = Field(alias="return")
    tokens: float = Field(default=0.0, ge=0)
    metrics: dict[str, float]


class SetScore(Score):
    """One evaluation set, scored once, or once sampled and once greedily.

    Attributes:
        name: Name of the set.
        env_id: Id of its environment.
        split: Split of its tasks; empty for a mean over several.
        temperature: Temperature of the sampling that the inherited fields tell of; None for an
            agent without one, and in files from before both scores were kept.
        greedy: The same tasks decoded greedily; at temperature 0 the same episodes. None where
            they were not played.
    """

    name: str
    env_id: str
    split: str
    temperature: float | None = Field(default=None, ge=0)
    greedy: Score | None = None


class Gain(NamedTuple):
    """What training changed on one evaluation set, as differences of shares of solved episodes.

    Attributes:
        sampled: Gain of the sampled score.
        greedy: Gain of the greedy score.
    """

    sampled: float
    greedy: float

    @property
    def sharpening(self) -> float:
        """The part of the sampled gain that greedy decoding would have given without training.

        The sampled gain less the greedy gain. It is what a surer model gains without another
        strategy; below 0 where the strategy improved more than the model became sure of it.
        """
        return self.sampled - self.greedy


def gain_of(before: SetScore, after: SetScore) -> Gain | None:
    """Return what training changed, None where a score lacks its greedy part or has no episode."""
    old, new = before.greedy, after.greedy
    if old is None or new is None or not (before.n and after.n and old.n and new.n):
        return None
    return Gain(after.success.mean - before.success.mean, new.success.mean - old.success.mean)


class RunResult(BaseModel):
    """``result.json``.

    ``optimizer_steps`` are those of all ``steps`` together; None in older files.
    ``imitated_tokens`` are the tokens of the expert's actions that the starting model imitated
    before; absent where there was no warm start. ``engine_apart_nats`` is how far the engine's
    log-probabilities of sampled tokens were from the learner's: the mean over steps of
    ``update/logprob_diff_mean_nats``; absent where no step measured it. ``context_full_frac`` and
    ``cut_actions_frac`` are the means over steps of ``rollout/overflow_frac``, the share of paths
    that ended because their context was full, and of ``rollout/cut_actions_frac``, the share of
    actions that ran into the length limit; absent where none did.
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
    imitated_tokens: int | None = Field(default=None, ge=0)
    env_turns: int = Field(ge=0)
    seconds: float = Field(ge=0)
    engine_apart_nats: float | None = Field(default=None, ge=0)
    context_full_frac: float | None = Field(default=None, gt=0, le=1)
    cut_actions_frac: float | None = Field(default=None, gt=0, le=1)
    before: list[SetScore]
    after: list[SetScore]

    def write(self, path: Path | str) -> None:
        """Write it as JSON."""
        optional = ("imitated_tokens", "engine_apart_nats", "context_full_frac", "cut_actions_frac")
        absent = {name for name in optional if getattr(self, name) is None}
        write_json(Path(path), self.model_dump(by_alias=True, exclude=absent))

    @classmethod
    def read(cls, path: Path | str) -> RunResult:
        """Read and check a result file.

        Raises:
            DataError: Missing, cut, or not of this schema.
        """
        try:
            return cls.model_validate(read_json(Path(path)))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise DataError(f"{path}: {where}: {first['msg']}.") from error


def rows_of(score: SetScore) -> dict[str, float]:
    """Return metrics of an evaluation set by declared key, those of greedy decoding included."""
    row = _rows(score, "")
    if score.greedy is not None:
        row |= _rows(score.greedy, GREEDY)
    return {f"eval/{score.name}/{key}": value for key, value in row.items()}


def _rows(score: Score, prefix: str) -> dict[str, float]:
    row = {
        "n": float(score.n),
        "errors": float(score.errors),
        "context_full": float(score.context_full),
        "success_frac": score.success.mean,
        "success_low95": score.success.low95,
        "success_high95": score.success.high95,
        "return_mean": score.return_.mean,
        "return_low95": score.return_.low95,
        "return_high95": score.return_.high95,
        "tokens_mean": score.tokens,
        **{f"metric_{name}_mean": value for name, value in score.metrics.items()},
    }
    return {prefix + key: value for key, value in row.items()}


def scores_at(
    rows: Sequence[Mapping[str, Any]],
    step: int,
    where: Mapping[str, tuple[str, str]],
    temperature: float | None = None,
) -> list[SetScore]:
    """Return the evaluation of a training step, read back from the run's metrics.

    A set is followed by its data sets and their mean, where it has several.

    Args:
        rows: Lines of ``metrics.jsonl``.
        step: The step.
        where: Environment id and split of every evaluation set, by its name.
        temperature: Temperature of the evaluations' sampling, None if unknown.
    """
    found = [row for row in rows if row["step"] == step and any(k.startswith("eval/") for k in row)]
    if not found:
        return []
    row = found[-1]
    names = evaluated_sets(row)
    scores: list[SetScore] = []
    for whole, (env_id, split) in where.items():
        for name in names:
            if name == whole or (name not in where and name.startswith(f"{whole}, ")):
                at = f"eval/{name}/"
                cold = at + GREEDY
                score = SetScore(
                    name=name,
                    env_id=env_id,
                    split=split,
                    temperature=temperature,
                    greedy=Score(**_numbers(row, cold)) if cold + "n" in row else None,
                    **_numbers(row, at),
                )
                scores.append(score)
    return scores


def _numbers(row: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return the fields of a :class:`Score` from the keys that begin with ``at``."""
    metrics = {
        key[len(at) :].removeprefix("metric_").removesuffix("_mean"): float(value)
        for key, value in row.items()
        if key.startswith(at + "metric_")
    }

    def part(what: str, mean: str) -> Estimate:
        low, high = (float(row[f"{at}{what}_{end}95"]) for end in ("low", "high"))
        return Estimate(mean=float(row[f"{at}{what}_{mean}"]), low95=low, high95=high)

    return {
        "n": int(row[at + "n"]),
        "errors": int(row[at + "errors"]),
        "agent_errors": 0,  # a model in training has none
        "context_full": int(row.get(at + "context_full", 0)),
        "success": part("success", "frac"),
        "return": part("return", "mean"),
        "tokens": float(row.get(at + "tokens_mean", 0.0)),
        "metrics": metrics,
    }
