"""Judges: they give every turn a verdict, by rules or by asking a language model.

A judge is a :class:`~turngym.algos.core.protocols.Shaper`: it sets the verdicts of turns (+1
right, 0
small or repaired, -1 major), at most one -1 along a path. Rewards are made of them by
:class:`~turngym.algos.rewards.shaping.VerdictRewards`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ...agents.engines.openai_client import Endpoint, EndpointError
from ...envs.core.errors import BadValueError, TurngymError
from ...envs.utils.disk_cache import cache_dir, cache_text
from ..core.forest import Forest, Turn
from ..core.protocols import Shaper
from .shaping import Place, action_ends, replaced

LOG = logging.getLogger(__name__)
INSTRUCTIONS = (
    "You judge the turns of an agent that works on a task with tools. Give each numbered agent "
    "turn one score: 1 when the thought and the action were right; 0 when there was a small "
    "problem that was repaired later, or the turn only follows from an earlier major mistake; -1 "
    "when it went wrong in a major way (false information, a wrong step that cannot be undone). "
    'Score at most one turn with -1. Answer with JSON alone: {"verdicts": [one number per agent '
    "turn, in order]}."
)


UNREADABLE, SILENT = "judge_unreadable", "judge_silent"


class JudgeError(TurngymError, RuntimeError):
    """The judge's server cannot be used."""


@dataclass(frozen=True, kw_only=True)
class RuleJudge(Shaper):
    """The environment's own verdicts, of which only the first -1 of a path is kept.

    What comes after a major mistake may follow from it, so a later -1 counts 0 (TARL, arXiv
    2509.14480, section 3). An environment without verdicts gives 0 everywhere.
    """

    judges: ClassVar[bool] = True

    def __call__(self, forest: Forest) -> Forest:
        """Set the verdicts of later mistakes of each path to 0."""
        return first_mistakes(forest)


@dataclass(frozen=True, kw_only=True)
class LlmJudge(Shaper):
    """A language model behind an OpenAI-compatible ``/chat/completions`` as the judge.

    It is shown the rules, the dialogue turn by turn (the first observation holds the environment's
    instructions), and how the episode ended. Replies are cached on disk by the question's digest,
    so a repeated run is judged alike without asking. A reply that is not one verdict per turn with
    at most one -1 leaves the path's verdicts at 0 (the outcome alone counts); it is reported, and
    counted as ``judge_unreadable`` among the metrics of the path's last turn. So is a question that
    stays without a reply, as ``judge_silent``, as long as they are few.

    A turn that several paths share keeps the verdict of the first of them; after that only the
    first -1 of a path stays, as with :class:`RuleJudge`.

    Attributes:
        url: Base address of the server, as ``http://localhost:8000/v1``.
        model: Name of its model.
        tokenizer: Folder or name of the policy's tokenizer: observations are shown as text.
        rules: The agent's instructions.
        key_variable: Environment variable that holds the server's key; not set means none.
        timeout: Seconds for one reply.
        attempts: Tries per question, with growing pauses between them.
        workers: Questions at a time.
        tolerated: Questions of one batch that may stay without a reply, after all attempts; one
            more ends the run with the reason (it can be resumed).
        cache: Folder of the replies; None for turngym's own cache.
    """

    url: str
    model: str
    tokenizer: str
    rules: str = ""
    key_variable: str = "OPENAI_API_KEY"
    timeout: float = 60.0
    attempts: int = 3
    workers: int = 8
    tolerated: int = 0
    cache: str | None = None

    judges: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self._endpoint
        if not self.workers > 0:
            raise BadValueError(f"LlmJudge.workers is {self.workers}; expected above 0.")
        if self.tolerated < 0:
            raise BadValueError(f"LlmJudge.tolerated is {self.tolerated}; expected 0 or more.")

    def __call__(self, forest: Forest) -> Forest:
        """Ask about every path.

        Raises:
            JudgeError: The server did not answer, whatever was tried.
        """
        tokenizer = _tokenizer(self.tokenizer)
        questions = [self._question(forest.turns(path), tokenizer) for path in forest]
        replies = self._replies(questions)
        new: dict[Place, Turn] = {}
        bad = dict.fromkeys((SILENT, UNREADABLE), 0)
        for path, question in zip(forest, questions, strict=True):
            ends = action_ends(forest, path)
            reply = replies[question]
            found = None if reply is None else read_verdicts(reply, len(ends))
            for (at, turn), verdict in zip(ends, found or [0] * len(ends), strict=True):
                new.setdefault((path.group, path.tree, at), replace(turn, verdict=verdict))
            if found is None:
                fault = SILENT if reply is None else UNREADABLE
                bad[fault] += 1
                last = path.group, path.tree, path.turns[-1]
                new[last] = replace(new[last], metrics=(*new[last].metrics, (fault, 1.0)))
        if any(bad.values()):
            LOG.warning(
                "LlmJudge: %d of %d replies hold no verdicts and %d never came; there the outcome "
                "counts alone",
                bad[UNREADABLE],
                len(questions),
                bad[SILENT],
            )
        return first_mistakes(replaced(forest, new))

    def _replies(self, questions: Sequence[str]) -> dict[str, str | None]:
        """Return the reply to each distinct question; None where none came."""
        missing: list[JudgeError] = []

        def reply(question: str) -> str | None:
            if len(missing) > self.tolerated:
                return None  # lost anyway: do not wait for all the others to fail as well
            try:
                return self._reply(question)
            except JudgeError as error:
                missing.append(error)
                return None

        distinct = list(dict.fromkeys(questions))
        with ThreadPoolExecutor(self.workers) as pool:
            replies = dict(zip(distinct, pool.map(reply, distinct), strict=True))
        if len(missing) > self.tolerated:
            raise missing[0]
        return replies

    def _question(self, turns: Sequence[Turn], tokenizer: Any) -> str:
        lines = [f"Rules for the agent:\n{self.rules}"] if self.rules else []
        number = 0
        for turn in turns:
            if len(turn.obs_ids):
                lines.append(f"Shown to the agent:\n{tokenizer.decode(turn.obs_ids.tolist())}")
            if not turn.partial or turn is turns[-1]:
                number += 1
                lines.append(f"Agent turn {number}:\n{turn.action}")
        end, outcome = turns[-1].status, sum(turn.reward for turn in turns)
        lines.append(
            f"The episode ended as: {end}, with a return of {outcome:g}. There are {number} agent "
            "turns."
        )
        return "\n\n".join(lines)

    def _reply(self, question: str) -> str:
        messages = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": question},
        ]
        body = {"model": self.model, "messages": messages, "temperature": 0.0}
        digest = hashlib.sha256(json.dumps([self.url, body]).encode()).hexdigest()
        folder = Path(self.cache) if self.cache else cache_dir() / "judge"
        return cache_text(folder / f"{digest}.txt", lambda: self._ask(body))

    @property
    def _endpoint(self) -> Endpoint:
        return Endpoint(
            url=self.url,
            key_variable=self.key_variable,
            timeout=self.timeout,
            attempts=self.attempts,
        )

    def _ask(self, body: dict[str, Any]) -> str:
        try:
            return self._endpoint.ask("chat/completions", body, _content)
        except EndpointError as error:
            raise JudgeError(f"LlmJudge: {error} Fix the server, or use RuleJudge.") from error


def _content(reply: Any) -> str:
    return str(reply["choices"][0]["message"]["content"])


def first_mistakes(forest: Forest) -> Forest:
    """Return the forest with every -1 after the first one of its path set to 0."""
    new: dict[Place, Turn] = {}
    for path in forest:
        turns = forest.turns(path)
        bad = [i for i, turn in enumerate(turns) if turn.verdict == -1]
        for i in bad[1:]:
            new[path.group, path.tree, path.turns[i]] = replace(turns[i], verdict=0)
    return replaced(forest, new)


@lru_cache(maxsize=2)
def _tokenizer(name_or_path: str) -> Any:
    from ...agents.models.loading import load_tokenizer

    return load_tokenizer(name_or_path, pad="eos")


def read_verdicts(reply: str, n: int) -> list[int] | None:
    """Return the ``n`` verdicts in a judge's reply; None where it does not hold exactly that."""
    start, stop = reply.find("{"), reply.rfind("}")
    try:
        found = json.loads(reply[start : stop + 1])["verdicts"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(found, list) or len(found) != n:
        return None
    if any(isinstance(v, bool) or v not in (-1, 0, 1) for v in found) or found.count(-1) > 1:
        return None
    return [int(v) for v in found]
