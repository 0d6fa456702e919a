"""Evaluation: an agent on the first n tasks of a split, with all episodes.

The tasks and the seeds are fixed, so two agents (or one agent before and after training) meet the
same questions. Episodes that a broken environment or a failing agent ended are counted and shown,
excluded from averages.

A language model is scored twice in one evaluation: sampled at a temperature, and greedily. Training
that only makes a model surer of what it does already raises the sampled score alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from ...agents.scripted import run_episode, text_env
from ...envs.core.digest import digest_of
from ...envs.core.env import Policy, TextEnv
from ...envs.core.errors import BadValueError, EnvFault, UnknownNameError
from ...envs.core.fork import fork
from ...envs.core.reports import find_surrogate
from ...envs.core.tasks import get_split_size
from ...envs.utils.statistics import Estimate, estimate_scores, estimate_share
from ...envs.wrappers.record import RecordEpisodes
from ..core.checks import check_numbers, check_seed
from ..core.forest import Tree
from ..core.protocols import Start
from ..rollouts import seed_at
from ..rollouts.stats import response_metrics
from .decodings import Decodings
from .result import Score, SetScore, rows_of

if TYPE_CHECKING:
    from ..rollouts import EpisodeRunner

MEAN = "mean of sets"
"""Name of the mean over evaluation sets or data sets."""
EARLIER = "earlier-"
"""How folders of transcripts begin that are kept until there are new ones."""
AGENT_ERROR = "agent_error"
"""Status of an episode whose agent failed: its model's server did not answer."""
ENV_ERROR = "env_error"
"""Status of an episode that a broken environment ended."""
UNSCORED = (ENV_ERROR, AGENT_ERROR)
MAX_NAME = 200
"""Bytes of a set's name: 255 in a name of a file, less what stands around it."""
Tick = Callable[[int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class EvalSet:
    """The tasks of an evaluation.

    Attributes:
        name: Short name for tables and metric keys.
        env: The environment; every episode plays in a fork of it.
        split: Split of its tasks; empty for the last non-empty one of train, dev and test.
        n: The first ``n`` tasks; fewer where the split holds fewer.
        seed: Seeds episodes and sampling.
    """

    name: str
    env: gym.Env[Any, Any]
    split: str
    n: int
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.n < 1:
            raise BadValueError(
                f"evaluation set {self.name!r}: n is {self.n}; expected at least 1."
            )
        check_seed(self)
        if not self.name or "/" in self.name:
            raise BadValueError(
                f"evaluation set: the name is {self.name!r}; expected a word without '/'."
            )
        if why := _unfit_for_files(self.name):
            raise BadValueError(
                f"evaluation set: the name is {self.name!r:.100}: {why}; expected one that can be "
                "part of a file's name."
            )
        if not self.split:
            object.__setattr__(self, "split", last_split(self.base_env))
        get_split_size(self.base_env.source, self.split, self.base_env.name)

    @property
    def base_env(self) -> TextEnv[Any, Any]:
        """The environment without its wrappers."""
        return text_env(self.env)

    @property
    def tasks(self) -> range:
        """Indices of the tasks."""
        size = get_split_size(self.base_env.source, self.split, self.base_env.name)
        return range(self.n if size is None else min(self.n, size))

    def tasks_digest(self) -> str | None:
        """Return a hash of the tasks, their ids and contents, in their order.

        None where the content of a task has no stable form.
        """
        source = self.base_env.source
        try:
            return digest_of([source.task(self.split, index).digest for index in self.tasks])
        except BadValueError:
            return None

    def starts(self) -> list[Start]:
        """Return the starts of the episodes."""
        return [Start(self.split, i, seed_at(self.seed, i), f"{self.name}/{i}") for i in self.tasks]

    def evaluation(
        self, episodes: Sequence[EpisodeScore], temperature: float | None = None
    ) -> Evaluation:
        """Return the episodes of :meth:`starts`, in that order, with what is known of their tasks.

        An episode that broke before its task was known has only the place of it.

        Args:
            episodes: One per start.
            temperature: Of the sampling; None for an agent that has none.
        """
        source = self.base_env.source
        tasks = [source.task(self.split, index) for index in self.tasks]
        known = [
            replace(
                episode,
                task_id=task.id,
                dataset=task.dataset,
                breakdown=self.base_env.breakdown(task),
            )
            for task, episode in zip(tasks, episodes, strict=True)
        ]
        return Evaluation(
            name=self.name,
            env_id=self.base_env.name,
            split=self.split,
            episodes=known,
            temperature=temperature,
        )


def last_split(env: TextEnv[Any, Any]) -> str:
    """Return the last split that has tasks; data files with one split have them there."""
    return [name for name, size in env.source.sizes().items() if size != 0][-1]


@dataclass(frozen=True, kw_only=True)
class EpisodeScore:
    """The result of one episode.

    Attributes:
        task_id: The environment's id of the task.
        status: How it ended.
        return_: Sum of the rewards.
        tokens: Sampled tokens; 0 for scripted agents.
        metrics: The environment's measures and, of a model, the length and self-corrections of
            what it wrote (:func:`~turngym.algos.rollouts.stats.said`); empty after an error.
        tree: The turns, for token agents.
        why: What went wrong, where it is known, after an error or with a full context.
        dataset: The data set of the task; empty where there is none.
        breakdown: Metrics that tell how hard the task is, as its environment names them.
        context_full: The model's context had no room for a next action, which ended the episode as
            ``truncated``. It is scored like any other.
    """

    task_id: str
    status: str
    return_: float
    tokens: int
    metrics: Mapping[str, float]
    # asyncio writes out what its task returned, which took a second for some hundred trees
    tree: Tree | None = field(default=None, repr=False)
    why: str = ""
    dataset: str = ""
    breakdown: Sequence[str] = ()
    context_full: bool = False


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All episodes of one evaluation set.

    Attributes:
        name: Name of the set.
        env_id: Id of its environment.
        split: Split of its tasks.
        episodes: One per task, sampled at ``temperature``.
        temperature: Temperature of the sampling; None for an agent that has none.
        greedy: The same tasks decoded greedily; None where they were not.
        scored: The episodes that count: neither environment nor agent broke.
    """

    name: str
    env_id: str
    split: str
    episodes: Sequence[EpisodeScore]
    temperature: float | None = None
    greedy: Evaluation | None = None
    scored: Sequence[EpisodeScore] = field(init=False)

    def __post_init__(self) -> None:
        good = [e for e in self.episodes if e.status not in UNSCORED]
        object.__setattr__(self, "scored", good)

    @property
    def errors(self) -> int:
        """Episodes that ended with env_error."""
        return len(self.episodes) - len(self.scored) - self.agent_errors

    @property
    def agent_errors(self) -> int:
        """Episodes in which the agent failed."""
        return sum(e.status == AGENT_ERROR for e in self.episodes)

    @property
    def context_full(self) -> int:
        """Scored episodes that a full context truncated."""
        return sum(e.context_full for e in self.scored)

    @property
    def success(self) -> Estimate:
        """Share of solved episodes, with its exact interval over tasks."""
        return estimate_share([[float(e.status == "solved") for e in self.scored]])

    def summary_line(self, step: int) -> str:
        """Return one line about an evaluation after a training step."""
        if not self.scored:
            return f"step {step}: {self.name} has no score: all {self.errors} episodes broke"
        parts = [f"{_write_interval(self.success)} {self.decoding}".strip()]
        if self.greedy is not None and self.temperature:
            parts.append(f"{_write_interval(self.greedy.success)} greedy")
        return (
            f"step {step}: {self.name} success {', '.join(parts)}; n {len(self.scored)}, errors "
            f"{self.errors}"
        )

    @property
    def decoding(self) -> str:
        """How the actions were chosen, in words; empty for an agent without temperature."""
        return describe_decoding(self.temperature)

    def both(self) -> list[Evaluation]:
        """Return the sampled episodes and, where they are others, the greedy ones."""
        return [self, *([self.greedy] if self.greedy is not None and self.temperature else [])]

    def score(self) -> SetScore:
        """Return the scores for tables and result files."""
        return SetScore(
            name=self.name,
            env_id=self.env_id,
            split=self.split,
            temperature=self.temperature,
            greedy=None if self.greedy is None else Score(**self.greedy.numbers()),
            **self.numbers(),
        )

    def numbers(self) -> dict[str, Any]:
        """Return the fields of :class:`~turngym.algos.evaluation.result.Score`."""
        # Success and return have intervals of their own.
        names = sorted({name for e in self.scored for name in e.metrics} - {"success", "return"})
        return {
            "n": len(self.scored),
            "errors": self.errors,
            "agent_errors": self.agent_errors,
            "context_full": self.context_full,
            "success": self.success,
            "return": estimate_scores([[e.return_ for e in self.scored]]),
            "tokens": self.tokens,
            "metrics": {name: self.mean(name) for name in names},
        }

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the scored episodes that report it.

        Raises:
            UnknownNameError: None of them does.
        """
        values = [e.metrics[metric] for e in self.scored if metric in e.metrics]
        if not values:
            known = sorted({name for e in self.scored for name in e.metrics})
            raise UnknownNameError("metric", metric, known, f"evaluation set {self.name!r}")
        return sum(values) / len(values)

    @property
    def tokens(self) -> float:
        """Mean of the sampled tokens over the scored episodes; 0 where there is none."""
        return sum(e.tokens for e in self.scored) / max(1, len(self.scored))

    def parts(self) -> list[Evaluation]:
        """Return the episodes by data set, and by the metrics that tell how hard their task is."""
        found = self.sets()
        for key in dict.fromkeys(name for e in self.scored for name in e.breakdown):
            of_key = [e for e in self.scored if key in e.breakdown and key in e.metrics]
            values = sorted({e.metrics[key] for e in of_key})
            for value in values if len(values) > 1 else ():

                def has(e: EpisodeScore, key: str = key, value: float = value) -> bool:
                    known = e.status not in UNSCORED and key in e.breakdown
                    return known and e.metrics.get(key) == value

                found.append(self._part(f"{key} {value:g}", has))
        return found

    def _part(self, name: str, has: Callable[[EpisodeScore], bool]) -> Evaluation:
        """Return the episodes that ``has`` chooses, of the greedy ones too."""
        return replace(
            self,
            name=f"{self.name}, {name}",
            episodes=[e for e in self.episodes if has(e)],
            greedy=None if self.greedy is None else self.greedy._part(name, has),
        )

    def sets(self) -> list[Evaluation]:
        """Return the same episodes by data set, where there are several."""
        names = dict.fromkeys(e.dataset for e in self.episodes)
        return [
            self._part(name, lambda e, name=name: e.dataset == name)
            for name in (names if len(names) > 1 else ())
        ]

    def scores(self) -> list[SetScore]:
        """Return the whole, its parts, and the mean of its data sets where there are several."""
        sets = self.sets()
        mean = [mean_of_sets(sets, f"{self.name}, {MEAN}")] if sets else []
        return [self.score(), *(part.score() for part in self.parts()), *mean]

    def rows(self) -> dict[str, float]:
        """Return metrics by declared key: of all, of each of several data sets, of their mean."""
        sets = self.sets()
        row = self.row()
        for part in sets:
            row |= part.row()
        if sets:
            row |= rows_of(mean_of_sets(sets, f"{self.name}, {MEAN}"))
        return row

    def row(self) -> dict[str, float]:
        """Return metrics of this evaluation (declared keys)."""
        return rows_of(self.score())


def describe_decoding(temperature: float | None) -> str:
    """Return how actions are chosen at a temperature, in words; empty for None."""
    if temperature is None:
        return ""
    return "greedy" if temperature == 0 else f"sampled at temperature {temperature:g}"


def _write_interval(success: Estimate) -> str:
    return f"{success.mean:.1%} (95 % CI {success.low95:.1%} to {success.high95:.1%})"


def mean_of_sets(sets: Sequence[Evaluation], name: str = MEAN) -> SetScore:
    """Return the unweighted mean over evaluation sets, whatever their numbers of tasks.

    Sets without a scored episode are left out. The interval of the return resamples within each
    set; a measure that only some of the sets report is a mean over those.
    """
    greedy = [s.greedy for s in sets if s.greedy is not None]
    heats = {s.temperature for s in sets}
    return SetScore(
        name=name,
        env_id=sets[0].env_id,
        split=sets[0].split if len({s.split for s in sets}) == 1 else "",
        temperature=heats.pop() if len(heats) == 1 else None,
        greedy=Score(**_mean_numbers(greedy)) if len(greedy) == len(sets) else None,
        **_mean_numbers(sets),
    )


def _mean_numbers(sets: Sequence[Evaluation]) -> dict[str, Any]:
    """Return the fields of a score that is the mean of several sets."""
    scored = [s for s in sets if s.scored]
    scores = [Score(**s.numbers()) for s in scored]
    metrics = sorted({name for score in scores for name in score.metrics})
    means = {name: [s.metrics[name] for s in scores if name in s.metrics] for name in metrics}
    solved = [[float(e.status == "solved") for e in s.scored] for s in scored]
    return {
        "n": sum(score.n for score in scores),
        "errors": sum(s.errors for s in sets),
        "agent_errors": sum(s.agent_errors for s in sets),
        "context_full": sum(s.context_full for s in sets),
        "success": estimate_share(solved),
        "return": estimate_scores([[e.return_ for e in s.scored] for s in scored]),
        "tokens": sum(s.tokens for s in scored) / max(1, len(scored)),
        "metrics": {name: sum(values) / len(values) for name, values in means.items()},
    }


async def evaluate_model(
    runner: EpisodeRunner, what: EvalSet, tick: Tick = lambda _: None, *, greedy: bool = True
) -> Evaluation:
    """Play every task with a language model, sampled and greedily; all episodes run concurrently.

    At temperature 0 every task is played once, and both scores are those of the same episodes.

    Args:
        runner: Holds engine, renderer and sampling; its environment is replaced by the set's.
        what: The tasks.
        tick: Called with the number of finished tasks.
        greedy: Whether to play each task greedily too.
    """
    done = count(1)
    heat = runner.sampling.temperature
    rollout = Decodings(n=1 + (greedy and heat > 0))
    groups = await runner.groups(rollout, what.starts(), lambda: tick(next(done)))
    sampled, *cold = (
        what.evaluation(
            [_score_of(g.task_id, g.trees[i] if g.trees else None) for g in groups],
            0.0 if i else heat,
        )
        for i in range(rollout.n)
    )
    if not greedy:
        return sampled
    return pair_up(sampled, *cold, temperature=heat)


def pair_up(
    sampled: Evaluation, greedy: Evaluation | None = None, temperature: float = 0.0
) -> Evaluation:
    """Return one evaluation of both ways of decoding.

    Args:
        sampled: The episodes sampled at ``temperature``.
        greedy: The greedy episodes of the same tasks; None at temperature 0, where ``sampled``
            holds them.
        temperature: Temperature of the sampling.
    """
    cold = replace(sampled if greedy is None else greedy, temperature=0.0, greedy=None)
    return replace(sampled, temperature=temperature, greedy=cold)


async def evaluate_side_by_side(
    what: EvalSet,
    play: Callable[[Start, int], Awaitable[EpisodeScore]],
    concurrency: int,
    tick: Tick,
) -> Evaluation:
    """Play every task once, at most ``concurrency`` episodes at a time.

    Args:
        what: The tasks.
        play: Plays one episode from its start and its place in the set.
        concurrency: Maximum number of episodes at a time.
        tick: Called with the number of finished episodes.
    """
    slots = asyncio.Semaphore(concurrency)
    done = count(1)

    async def one(start: Start, place: int) -> EpisodeScore:
        async with slots:
            score = await play(start, place)
        tick(next(done))
        return score

    starts = enumerate(what.starts())
    return what.evaluation(await asyncio.gather(*(one(start, i) for i, start in starts)))


def _unfit_for_files(name: str) -> str:
    """Return why a set cannot name its files, or nothing."""
    if "\0" in name:
        return "it has a zero byte"
    if why := find_surrogate(name):
        return why
    size = len(name.encode())
    return f"it takes {size} bytes, more than {MAX_NAME}" if size > MAX_NAME else ""


def recorded(what: EvalSet, folder: Path | None) -> gym.Env[Any, Any]:
    """Return the set's environment, writing transcripts anew into ``folder`` if there is one.

    Those of an earlier evaluation go to ``earlier-1/``, ... until :func:`drop_earlier`.
    """
    if folder is None:
        return what.env
    lines = folder / f"{what.name}.jsonl"
    if old := [path for path in _transcripts(folder, what.name) if path.exists()]:
        number = next(n for n in count(1) if not (folder / f"{EARLIER}{n}").exists())
        for path in old:
            place = folder / f"{EARLIER}{number}" / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)
    return RecordEpisodes(fork(what.env), lines)


def drop_earlier(what: EvalSet, folder: Path | None) -> None:
    """Delete the set's transcripts of earlier evaluations, of which there are new ones now."""
    for old in () if folder is None else folder.glob(f"{EARLIER}[0-9]*"):
        for path in _transcripts(old, what.name):
            path.unlink(missing_ok=True)
        for place in (old / what.name, old):
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()


def _transcripts(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.jsonl", *(folder / name).glob("[0-9]*.jsonl")]


def evaluate_policy(
    what: EvalSet,
    policy_for: Callable[[int], Policy],
    tick: Tick = lambda _: None,
) -> Evaluation:
    """Play every task once with a scripted policy.

    Args:
        what: The tasks.
        policy_for: Makes the policy of one episode from its seed.
        tick: Called with the number of finished episodes.
    """
    env = fork(what.env)
    episodes = []
    for done, start in enumerate(what.starts(), start=1):
        options = {"split": start.split, "task": start.task}
        try:
            played = run_episode(env, policy_for(start.seed), start.seed, options)
        except EnvFault as fault:
            episodes.append(replace(_score_of(str(start.task), None), why=str(fault)))
        else:
            episodes.append(
                EpisodeScore(
                    task_id=played.task_id,
                    status=played.status,
                    return_=played.episode_return,
                    tokens=0,
                    metrics=played.metrics,
                )
            )
        tick(done)
    return what.evaluation(episodes)


def _score_of(task_id: str, tree: Tree | None) -> EpisodeScore:
    """Score a played tree; None is an environment that broke before the first turn."""
    if tree is None:
        return EpisodeScore(task_id=task_id, status="env_error", return_=0.0, tokens=0, metrics={})
    last = tree.turns[-1]
    return EpisodeScore(
        task_id=task_id,
        status=last.status,
        return_=sum(t.reward for t in tree.turns),
        tokens=sum(len(t.act_ids) for t in tree.turns),
        metrics=response_metrics(tree.turns) | dict(last.metrics) if last.metrics else {},
        tree=tree,
        context_full=last.overflow,
    )
