"""The result of verification: the scores, or a refusal with the first difference."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ...envs.utils.statistics import Estimate
from ...envs.utils.untrusted_text import plain
from .base import Form
from .entry import Manifest

Reason = Literal[
    "archive",  # the upload itself: a member, a size, a path, a kind of file
    "format",  # a file that is not of the entry's form
    "score_field",  # a field that states a result
    "signature",
    "unknown_suite",
    "suite_version",
    "suite_digest",
    "board_rules",  # too few runs, over the budget
    "reserved",  # a name that belongs to the reference rows
    "copy",  # the actions of an entry that was accepted before
    "unknown_environment",
    "environment_digest",
    "unknown_task",
    "task_digest",
    "unknown_run",
    "seed",
    "duplicate_episode",
    "missing_episode",
    "chain_length",
    "observation",
    "action_after_end",
    "unfinished",
    "error_after_end",
    "action_too_long",
    "cpu_limit",
    "wall_limit",
    "memory_limit",
    "crashed",  # the verifying process died
    "environment_broken",  # it failed in the replay, or cannot be made: not the entry's fault
]


class Refusal(Form):
    """Reason for rejecting an entry.

    Attributes:
        reason: Which rule.
        message: Description of the violation.
        episode: The episode, in words; empty if none is concerned.
        turn: Turn of the episode, 0 for the start; None if none is concerned.
        expected: Value from the replay or from the suite.
        got: Value in the entry.
    """

    reason: Reason
    message: str
    episode: str = ""
    turn: int | None = None
    expected: str = ""
    got: str = ""


class EpisodeResult(Form):
    """One replayed episode.

    Attributes:
        env: Key of the cell.
        task: Index of the task.
        task_id: The environment's id of the task.
        run: Place in the manifest's runs.
        trial: Which trial.
        status: Final status of the environment, or the error that stopped the agent.
        success: Whether the task was solved.
        score: Value of the cell's metric, 0 to 1; 0 after an error.
        return_: Sum of the rewards; at most 0 after an error.
        turns: Actions taken.
        tool_calls: Number of valid actions.
        metrics: The environment's metrics; empty after an error.
    """

    env: str
    task: int
    task_id: str
    run: int
    trial: int
    status: str
    success: bool
    score: float
    return_: float
    turns: int
    tool_calls: int
    metrics: dict[str, float]

    @property
    def failed(self) -> bool:
        """Whether the episode ended with an error."""
        return self.status in ("agent_error", "env_error", "context_full")


class EnvScores(Form):
    """Scores on one environment. Errors count as 0 in every mean except those of ``metrics``.

    Attributes:
        env: Key of the cell.
        env_id: Registered id.
        metric: Metric of the environment that is the score.
        tasks: Number of tasks.
        trials: Trials per task and run.
        score: Mean over tasks with a 95 % interval over tasks: exact where each task has 0 or 1,
            else by resampling.
        success: Success rate, likewise.
        return_: Mean return, likewise.
        pass_at: pass@k for k = 1, 2, … up to the trials: at least one of k solved.
        pass_all: pass^k for k = 1, 2, …: all of k solved.
        turns: Mean actions per episode.
        tool_calls: Mean valid actions per episode.
        errors: Episodes that ended with an error.
        metrics: Means of the environment's metrics over the episodes without an error.
    """

    env: str
    env_id: str
    metric: str
    tasks: int
    trials: int
    score: Estimate
    success: Estimate
    return_: Estimate
    pass_at: tuple[float, ...]
    pass_all: tuple[float, ...]
    turns: float
    tool_calls: float
    errors: int
    metrics: dict[str, float]


class Scores(Form):
    """Scores of a whole entry: all environments have the same weight.

    Attributes:
        score: Mean of the environments' scores, with an interval over the tasks of each.
        success: Success rate, likewise.
        pass_at: Means over environments of pass@k, for k that every environment has trials for.
        pass_all: The same of pass^k.
        turns: Mean actions per episode, over environments.
        tool_calls: Mean valid actions per episode, over environments.
        errors: Episodes that ended with an error.
        episodes: Episodes in all.
        runs: The score of every training run.
        between_runs: Mean of the runs with Student's interval over runs; None for a single run.
        envs: The environments.
    """

    score: Estimate
    success: Estimate
    pass_at: tuple[float, ...]
    pass_all: tuple[float, ...]
    turns: float
    tool_calls: float
    errors: int
    episodes: int
    runs: tuple[float, ...]
    between_runs: Estimate | None
    envs: tuple[EnvScores, ...]


class Verdict(Form):
    """The outcome of verifying one entry.

    Attributes:
        accepted: Whether every episode replayed.
        refusal: Reason for the refusal; None when accepted.
        manifest: The entry's description; None if it could not be read.
        entry_digest: Hash of the entry's files; empty if they could not be read.
        signed_by: Fingerprint of the key that signed it; empty when unsigned.
        scores: Recomputed scores; None when refused.
        episodes: Every episode's result, by run in the suite's order; empty when refused.
        run_actions: Hash of all actions of each run: equal for copies; empty when refused.
        replayed: Episodes that were replayed before the verdict.
        seconds: Duration of the verification.
        verifier: Versions of turngym, gymnasium and numpy that replayed it.
    """

    accepted: bool
    refusal: Refusal | None = None
    manifest: Manifest | None = None
    entry_digest: str = ""
    signed_by: str = ""
    scores: Scores | None = None
    episodes: tuple[EpisodeResult, ...] = ()
    run_actions: tuple[str, ...] = ()
    replayed: int = 0
    seconds: float = Field(default=0.0, ge=0)
    verifier: dict[str, str] = Field(default_factory=dict)


class Refused(Exception):
    """Exception that carries a :class:`Refusal` to the code that makes the verdict."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refused(reason: Reason, message: str, **details: Any) -> Refused:
    """Return the exception that refuses an entry; it quotes without control characters.

    Long texts in ``details`` are truncated.
    """
    shown: dict[str, Any] = {k: v if k == "turn" else _short(v) for k, v in details.items()}
    return Refused(Refusal(reason=reason, message=_short(message, 600), **shown))


def refused_episode(reason: Reason, name: str, message: str, **details: Any) -> Refused:
    """Return the exception that refuses an entry for one of its episodes."""
    return refused(reason, f"{name}: {message}", episode=name, **details)


def _short(value: Any, limit: int = 300) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return plain(text if len(text) <= limit else text[: limit - 1] + "…")
