"""What verification says: refused with the first difference, or the scores that came out."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ...envs.utils.statistics import Estimate
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
    "environment_broken",  # the world broke while replaying: not the entry's fault
]


class Refusal(Form):
    """Why an entry is not taken.

    Attributes:
        reason: Which rule.
        message: The rule's breach in words.
        episode: The episode, in words; empty where none is meant.
        turn: The turn of it, 0 for the start; None where none is meant.
        expected: What replaying gave, or what the suite says.
        got: What the entry says.
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
        task_id: The world's id of it.
        run: Place in the manifest's runs.
        trial: Which trial.
        status: How it ended: the world's word, or the error that stopped the agent.
        success: Whether the task was solved.
        score: The cell's measure, 0 to 1; 0 after an error.
        return_: Sum of the rewards; at most 0 after an error.
        turns: Actions taken.
        tool_calls: Actions that the world could read.
        metrics: The world's measures; empty after an error.
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
        """Whether an error stopped it."""
        return self.status in ("agent_error", "env_error", "context_full")


class EnvScores(Form):
    """One world of an entry. Errors count as 0 in every mean but those of ``metrics``.

    Attributes:
        env: Key of the cell.
        env_id: Registered id.
        metric: Which of the world's measures the score is.
        tasks: Number of tasks.
        trials: Trials per task and run.
        score: Mean over tasks, with a bootstrap interval over tasks.
        success: The same of solved or not.
        return_: The same of the sum of rewards.
        pass_at: pass@k for k = 1, 2, … up to the trials: at least one of k solved.
        pass_all: pass^k for k = 1, 2, …: all of k solved.
        turns: Mean actions per episode.
        tool_calls: Mean readable actions per episode.
        errors: Episodes that an error stopped.
        metrics: Means of the world's measures over the episodes without an error.
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
    """A whole entry: every world weighs the same.

    Attributes:
        score: Mean of the worlds' scores, with a bootstrap interval over the tasks of each.
        success: The same of solved or not.
        pass_at: Means over worlds of pass@k, for k that every world has trials for.
        pass_all: The same of pass^k.
        turns: Mean actions per episode, over worlds.
        tool_calls: Mean readable actions per episode, over worlds.
        errors: Episodes that an error stopped.
        episodes: Episodes in all.
        runs: The score of every training run.
        between_runs: Mean of the runs with Student's interval over runs; None for a single run.
        envs: The worlds.
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
        refusal: Why not; None when accepted.
        manifest: The entry's description; None where not even that could be read.
        entry_digest: Hash of the entry's files; empty where they could not be read.
        signed_by: Fingerprint of the key that signed it; empty when unsigned.
        scores: What replaying gave; None when refused.
        episodes: Every episode's result, by run in the suite's order; empty when refused.
        replayed: Episodes that were replayed before the verdict fell.
        seconds: Time that it took.
        verifier: Versions of turngym, gymnasium and numpy that replayed it.
    """

    accepted: bool
    refusal: Refusal | None = None
    manifest: Manifest | None = None
    entry_digest: str = ""
    signed_by: str = ""
    scores: Scores | None = None
    episodes: tuple[EpisodeResult, ...] = ()
    replayed: int = 0
    seconds: float = Field(default=0.0, ge=0)
    verifier: dict[str, str] = Field(default_factory=dict)


class Refused(Exception):
    """Carries a :class:`Refusal` up to where the verdict is made."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refused(reason: Reason, message: str, **details: Any) -> Refused:
    """The exception that refuses an entry; texts in ``details`` are cut to a readable length."""
    shown: dict[str, Any] = {k: v if k == "turn" else _short(v) for k, v in details.items()}
    return Refused(Refusal(reason=reason, message=_short(message, 600), **shown))


def refused_episode(reason: Reason, name: str, message: str, **details: Any) -> Refused:
    """Return the exception that refuses an entry for one of its episodes."""
    return refused(reason, f"{name}: {message}", episode=name, **details)


def _short(value: Any, limit: int = 300) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"
