"""PaSa's session PPO with a linear policy: seconds on one core, and the paper's ablations show.

The policy decides section by section, from what the text shows, whether to open it; the critic is
linear too. What it learns depends on the return (PaSa, equation 3) and on which sessions it is
trained on, not on a language model, so a mistake in either shows at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...algos.credit import SessionCredit
from ...algos.credit.gae import whitened
from ...envs.core.errors import BadValueError
from ...envs.paper_crawler.crawl.grammar import MARKERS, STOPS
from ...envs.paper_crawler.env import PaperCrawler
from ...envs.paper_crawler.index_env import choice_features

Floats = npt.NDArray[np.float64]
_OPEN_ALL = 64
"""Sections that a session may open: more than any paper has."""


@dataclass(frozen=True, kw_only=True)
class LinearSettings:
    """How the linear crawler is trained.

    Attributes:
        steps: Updates.
        frozen_steps: First updates, in which only the critic learns.
        requests: Requests per update.
        drawn: Sessions per request and layer.
        lr: Step size of the policy.
        critic_lr: Step size of the critic.
        kl_coef: PaSa's beta.
        gamma1: Weight of the values of the sessions that were asked for.
        score_clip: Bounds of an action's score, None for none.
        full: Draw the sessions from whole crawls, whose queue says what is new; else only drawn
            sessions are played, and the queue holds what they found.
        epochs: Passes over each batch.
        clip: Of the probability ratio.
    """

    steps: int = 120
    frozen_steps: int = 10
    requests: int = 16
    drawn: int = 2
    lr: float = 0.5
    critic_lr: float = 0.05
    kl_coef: float = 0.02
    gamma1: float = 0.1
    score_clip: tuple[float, float] | None = None
    full: bool = False
    epochs: int = 2
    clip: float = 0.2

    def __post_init__(self) -> None:
        for name in ("steps", "requests", "drawn", "epochs"):
            if getattr(self, name) < 1:
                raise BadValueError(
                    f"LinearSettings.{name} is {getattr(self, name)}; expected 1 or more."
                )


class Decided(NamedTuple):
    """One session: a decision per section, and what came of it.

    Attributes:
        features: Of each decision ``[n, k]``.
        states: What the critic sees before each decision ``[n, m]``.
        opened: Decisions ``[n]``.
        logp: Their log-probabilities when they were taken ``[n]``.
        rewards: Of each decision ``[n]``; 0 for a section that stays closed.
        spawned: States of the sessions that each decision asked for, ``[j, m]`` each.
        depth: Of the session's paper.
    """

    features: Floats
    states: Floats
    opened: Floats
    logp: Floats
    rewards: Floats
    spawned: list[Floats]
    depth: int


class LinearCrawler:
    """Opens each section with probability ``sigmoid(w . features)``; searches as scripted.

    Args:
        seed: Of its decisions.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.weights: Floats = np.zeros(len(section_features("", "-", 0.0, 0)))
        self.critic: Floats = np.zeros(_STATE)

    def crawl(self, env: PaperCrawler, seed: int, options: Mapping[str, Any]) -> list[Decided]:
        """Play an episode; the sessions of papers, in their order."""
        env.reset(seed=seed, options=dict(options))
        request = env.episode.task.payload
        queries = env.parts.names.queries(request)
        text = "".join(f"{MARKERS['search']} {query}\n" for query in queries)
        info = env.step(text + STOPS["search"])[4]
        decided = []
        while info["status"] == "running":
            made, info = self._session(env)
            decided.append(made)
        return decided

    def probabilities(self, features: Floats) -> Floats:
        """Probability of opening each of ``[n, k]`` sections."""
        return 1.0 / (1.0 + np.exp(-np.clip(features @ self.weights, -30.0, 30.0)))

    def _session(self, env: PaperCrawler) -> tuple[Decided, Mapping[str, Any]]:
        crawl, request = env.episode.state, env.episode.task.payload.text
        here = crawl.queue[crawl.here]
        names = env.valid_args()
        features = np.array([section_features(request, n, here.score, here.depth) for n in names])
        chance = self.probabilities(features)
        opened = self.rng.random(len(names)) < chance
        text = "".join(
            f"{MARKERS['expand']} {n}\n" for n, o in zip(names, opened, strict=True) if o
        )
        info: dict[str, Any] = dict(env.step(text + STOPS["expand"])[4])
        acts = iter(info["crawl"]["actions"])
        rewards, spawned = np.zeros(len(names)), []
        for place, taken in enumerate(opened):
            found: list[Floats] = []
            if taken:
                act = next(acts)
                rewards[place] = act["reward"]
                for spawn in act["spawned"]:
                    if spawn["expandable"]:
                        own = list(getattr(env.library.find(spawn["paper_id"]), "sections", ()))
                        found.append(_states(request, own, spawn["relevance"], spawn["depth"])[0])
            spawned.append(np.array(found).reshape(len(found), _STATE))
        return Decided(
            features=features,
            states=_states(request, names, here.score, here.depth),
            opened=opened.astype(float),
            logp=np.log(np.where(opened, chance, 1.0 - chance)),
            rewards=rewards,
            spawned=spawned,
            depth=here.depth,
        ), info


class Score(NamedTuple):
    """Means over requests of whole crawls."""

    recall: float
    actions: float
    returned: float


def linear_world(**settings: Any) -> PaperCrawler:
    """Return the environment of these experiments: whole sessions, any number of sections each."""
    chosen = {"granularity": "session", "max_expand": _OPEN_ALL, **settings}
    return PaperCrawler(**chosen)


def train_linear(env: PaperCrawler, settings: LinearSettings, seed: int = 0) -> LinearCrawler:
    """Train on the environment's train split.

    Args:
        env: Made by :func:`linear_world`. For ``full=False`` its schedule must be ``"sampled"``
            with ``per_layer=drawn``, so that only drawn sessions are played; for ``full=True``
            another schedule.
        settings: Numbers and choices of the training.
        seed: Seed of everything.

    Raises:
        BadValueError: The schedule does not fit the settings.
    """
    if (env.rules.schedule == "sampled") == settings.full:
        raise BadValueError(
            f"train_linear: full={settings.full} with schedule {env.rules.schedule!r}; expected "
            "schedule='sampled' exactly where full is False."
        )
    crawler = LinearCrawler(seed)
    credit = SessionCredit(
        gamma1=settings.gamma1, kl_coef=settings.kl_coef, score_clip=settings.score_clip
    )
    episodes = np.random.default_rng([seed, 1])
    for step in range(settings.steps):
        batch: list[Decided] = []
        for _ in range(settings.requests):
            played = crawler.crawl(env, int(episodes.integers(2**31)), {"split": "train"})
            batch += _drawn(played, settings, episodes) if settings.full else played
        _update(crawler, batch, credit, settings, learn=step >= settings.frozen_steps)
    return crawler


def score_linear(crawler: LinearCrawler, env: PaperCrawler, n: int, split: str = "dev") -> Score:
    """Return the means over whole crawls of the first ``n`` requests of a split."""
    rows = []
    for task in range(n):
        crawler.crawl(env, task, {"split": split, "task": task})
        metrics = env.metrics(env.episode)
        total = env.episode.total_reward
        rows.append((metrics["crawler_recall"], metrics["all_actions"], total))
    recall, actions, returned = np.mean(rows, axis=0).tolist()
    return Score(recall, actions, returned)


def section_features(request: str, heading: str, score: float, depth: int) -> list[float]:
    """What the policy sees of one section: its text's features, and the paper's score and depth."""
    _, match, *chapters = choice_features(request, heading, search=False)
    return [1.0, match, *chapters, score, float(depth), score * match]


_STATE = 6


def _states(request: str, names: Sequence[str], score: float, depth: int) -> Floats:
    """What the critic sees before each section is decided ``[n, 6]``; one row at least."""
    matches = [choice_features(request, name, search=False)[1] for name in names]
    rows = [
        [1.0, score, float(depth), len(names[at:]) / 8, sum(matches[at:]), score * len(names[at:])]
        for at in range(max(1, len(names)))
    ]
    return np.array(rows)


def _drawn(
    played: Sequence[Decided], settings: LinearSettings, rng: np.random.Generator
) -> list[Decided]:
    """Some sessions of a whole crawl, as many of each layer as a sampled one plays."""
    kept = []
    for depth in sorted({made.depth for made in played}):
        layer = [made for made in played if made.depth == depth]
        order = rng.permutation(len(layer))[: settings.drawn]
        kept += [layer[int(i)] for i in order]
    return kept


def _update(
    crawler: LinearCrawler,
    batch: Sequence[Decided],
    credit: SessionCredit,
    settings: LinearSettings,
    learn: bool,
) -> None:
    advantages, targets = [], []
    for made in batch:
        values = made.states @ crawler.critic
        later = np.array([float((s @ crawler.critic).sum()) for s in made.spawned])
        scores = made.rewards + settings.gamma1 * later
        if settings.score_clip is not None:
            scores = np.where(made.opened > 0, np.clip(scores, *settings.score_clip), scores)
        kl = made.logp - np.log(0.5)
        ends = np.ones(len(scores), dtype=bool)
        advantage = credit.estimate(scores, kl, values, ends)
        advantages.append(advantage)
        targets.append(advantage + values)
    features = np.concatenate([made.features for made in batch])
    states = np.concatenate([made.states for made in batch])
    opened = np.concatenate([made.opened for made in batch])
    old = np.concatenate([made.logp for made in batch])
    advantage, target = np.concatenate(whitened(advantages)), np.concatenate(targets)
    for _ in range(settings.epochs):
        error = target - states @ crawler.critic
        crawler.critic = crawler.critic + settings.critic_lr * states.T @ error / len(error)
        if learn:
            chance = crawler.probabilities(features)
            logp = np.log(np.where(opened > 0, chance, 1.0 - chance))
            ratio = np.exp(logp - old)
            low, high = 1.0 - settings.clip, 1.0 + settings.clip
            inside = np.where(advantage > 0, ratio < high, ratio > low)
            pull = inside * ratio * advantage * (opened - chance)
            crawler.weights = crawler.weights + settings.lr * features.T @ pull / len(pull)
