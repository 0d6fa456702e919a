"""Rows of the file of `turngym eval --out`: scores of agents, and what became of every task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...envs.core.errors import DataError
from ...envs.utils.disk_errors import disk_errors, write_whole
from .evaluate import UNSCORED, Evaluation
from .result import SetScore
from .set_content import SetContent

SOLVED = "solved"
_OPTIONAL = (
    "model",
    "dialect",
    "settings",
    "tasks_digest",
    "files",
    "episodes",
    "greedy_episodes",
)
"""Fields that a row does not have in files where they are None."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """How an agent is scored: what all its rows say, and what makes two agents comparable.

    Attributes:
        agent: Name of the agent.
        seed: Seed of episodes and sampling; None in older files.
        temperature: Of the sampled score; None for an agent without one.
        max_tokens: Maximum tokens of an action or a reply; None for agents that write none, and in
            older files.
        model: The model that a prompting agent or a planner asks; None for other agents.
        dialect: The form of its prompts; None likewise.
    """

    agent: str
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    model: str | None = None
    dialect: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields of :class:`ScoreRow`, whose score has the temperature."""
        return {name: x for name, x in asdict(self).items() if name != "temperature"}


class TaskOutcome(BaseModel):
    """What became of a task.

    Attributes:
        task: The environment's id of it.
        status: How the episode ended; ``env_error`` and ``agent_error`` are in no average.
        success: Whether it was solved; None after one of these errors.
        return_: Sum of the rewards; None likewise. ``return`` in files.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    task: str
    status: str
    success: bool | None
    return_: float | None = Field(alias="return")

    @model_validator(mode="after")
    def _check(self) -> TaskOutcome:
        """Refuse an outcome whose parts contradict each other."""
        want = None if self.status in UNSCORED else self.status == SOLVED
        if self.success != want or (self.return_ is None) != (want is None):
            raise ValueError(
                f"task {self.task} with status {self.status}: success is {self.success} and return "
                f"{self.return_}; expected success {want} with "
                f"{'no return' if want is None else 'a return'}"
            )
        return self


class ScoreRow(BaseModel):
    """The score of an agent on a set.

    In files the fields of ``score`` stand beside the others, and ``greedy_episodes`` are the
    ``episodes`` of ``greedy``.

    Attributes:
        agent: Name of the agent.
        model: The model that a prompting agent or a planner asks; None for other agents.
        dialect: The form of its prompts; None likewise.
        settings: Settings of the environment; None for a mean over several.
        seed: Seed of episodes and sampling; None in older files.
        max_tokens: Maximum tokens of an action or a reply; None for agents that write none, and in
            older files.
        tasks_digest: Hash of the tasks' ids and contents; None where there are no episodes.
        files: Hash of the contents of the files that a setting names, by setting; None in older
            files.
        score: The means.
        episodes: The tasks in their order, one episode each. None in older files, and for parts of
            a set and means over several, whose episodes stand with the whole sets.
        greedy_episodes: The same tasks decoded greedily; at temperature 0 the same episodes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str
    model: str | None = None
    dialect: str | None = None
    settings: Mapping[str, Any] | None = None
    seed: int | None = None
    max_tokens: int | None = None
    tasks_digest: str | None = None
    files: Mapping[str, str] | None = None
    score: SetScore
    episodes: tuple[TaskOutcome, ...] | None = None
    greedy_episodes: tuple[TaskOutcome, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> ScoreRow:
        """Refuse episodes that do not fit the means beside them."""
        for how, score, episodes in (
            ("", self.score, self.episodes),
            ("greedy.", self.score.greedy, self.greedy_episodes),
        ):
            if episodes is None:
                continue
            if score is None or self.episodes is None:
                raise ValueError(f"{how}episodes: stand without the score that they are of")
            if [e.task for e in episodes] != [e.task for e in self.episodes]:
                raise ValueError(f"{how}episodes: are not of the tasks of the sampled ones")
            scored = [e for e in episodes if e.success is not None]
            solved = sum(bool(e.success) for e in scored)
            if len(scored) != score.n or abs(solved - score.success.mean * score.n) > 1e-6:
                raise ValueError(
                    f"{how}episodes: {solved} of {len(scored)} are solved; the means beside them "
                    f"say {score.success.mean:.3f} of {score.n}"
                )
        return self

    @property
    def played(self) -> Played:
        """How the agent was scored."""
        return Played(
            agent=self.agent,
            seed=self.seed,
            temperature=self.score.temperature,
            max_tokens=self.max_tokens,
            model=self.model,
            dialect=self.dialect,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the row as it stands in a file."""
        absent = {name for name in _OPTIONAL if getattr(self, name) is None}
        row = self.model_dump(mode="json", by_alias=True, exclude=absent)
        score, episodes = row.pop("score"), row.pop("episodes", None)
        greedy = row.pop("greedy_episodes", None)
        if greedy is not None:
            score["greedy"]["episodes"] = greedy
        return {**row, **score, **({} if episodes is None else {"episodes": episodes})}

    @classmethod
    def from_json(cls, row: Any, where: str) -> ScoreRow:
        """Read a row of a file.

        Args:
            row: What :meth:`to_json` wrote, now or in an earlier version.
            where: The file and the number of the row, for errors.

        Raises:
            DataError: It is no such row.
        """
        if not isinstance(row, dict):
            raise DataError(
                f"{where}: is a {type(row).__name__}; expected an object with the scores of an "
                "agent, as `turngym eval --out` writes it."
            )
        mine = {name for name in cls.model_fields if name not in ("score", "greedy_episodes")}
        own = {name: value for name, value in row.items() if name in mine}
        score = {name: value for name, value in row.items() if name not in mine}
        greedy = score.get("greedy")
        if isinstance(greedy, dict) and "episodes" in greedy:
            score["greedy"] = {name: v for name, v in greedy.items() if name != "episodes"}
            own["greedy_episodes"] = greedy["episodes"]
        try:
            # as JSON, where lists are read as the tuples that they were
            return cls.model_validate_json(json.dumps({**own, "score": score}))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            at = ".".join(str(part) for part in first["loc"])
            raise DataError(
                f"{where}: {at + ': ' if at else ''}{first['msg']}; expected a row as "
                "`turngym eval --out` writes it."
            ) from error


def read_score_rows(path: Path) -> list[ScoreRow]:
    """Read a file of `turngym eval --out`, also one from before it had episodes.

    Raises:
        DataError: No such file, not JSON, or not rows of scores.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: is no JSON ({error}); expected a file that `turngym eval --out` wrote."
        ) from error
    if not isinstance(rows, list) or not rows:
        raise DataError(
            f"{path}: expected a list of scores, as `turngym eval --out` writes it, got "
            f"{'an empty one' if rows == [] else 'a ' + type(rows).__name__}."
        )
    return [ScoreRow.from_json(row, f"{path}, row {i}") for i, row in enumerate(rows, start=1)]


def write_score_rows(path: Path, rows: Sequence[ScoreRow], *, join: bool = False) -> None:
    """Write a file that :func:`read_score_rows` reads; an old one stays until it is whole.

    Args:
        path: The file.
        rows: What stands in it.
        join: Keep an old file's rows of other agents on the same tasks, behind these.

    Raises:
        DataError: It cannot be written.
    """
    if join and path.is_file():
        again, tasks = ({(r.agent, r.model) for r in rows}, {r.tasks_digest for r in rows})
        with suppress(DataError):  # something else, which is replaced
            others = [r for r in read_score_rows(path) if (r.agent, r.model) not in again]
            rows = [*rows, *(r for r in others if r.tasks_digest in tasks)]
    text = json.dumps([row.to_json() for row in rows], indent=2) + "\n"
    with disk_errors(path):
        write_whole(path, text)


def outcomes_of(evaluation: Evaluation) -> tuple[TaskOutcome, ...]:
    """Return what became of every task of an evaluation, in one way of decoding."""
    return tuple(
        TaskOutcome.model_validate(
            {
                "task": e.task_id,
                "status": e.status,
                "success": None if e.status in UNSCORED else e.status == SOLVED,
                "return": None if e.status in UNSCORED else float(e.return_),
            }
        )
        for e in evaluation.episodes
    )


def score_rows(played: Played, evaluation: Evaluation, content: SetContent) -> list[ScoreRow]:
    """Return the row of a set with its episodes, then those of its parts without.

    Args:
        played: How the agent was scored.
        evaluation: The set.
        content: What it was scored on.
    """
    whole, *parts = evaluation.scores()
    about = {**played.fields(), "settings": content.settings}
    greedy = None if evaluation.greedy is None else outcomes_of(evaluation.greedy)
    first = ScoreRow(
        **about,
        tasks_digest=content.tasks_digest,
        files=content.files or None,
        score=whole,
        episodes=outcomes_of(evaluation),
        greedy_episodes=greedy,
    )
    return [first, *(ScoreRow(**about, score=part) for part in parts)]
