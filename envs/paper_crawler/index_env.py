"""PaperCrawlerIndex-v0: the crawl with numbered choices, for policies without language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ..core.errors import BadValueError
from ..core.settings import check_integer
from .crawl.grammar import MARKERS, STOPS
from .env import PaperCrawler

STOP = 0
CHOICE_FEATURES = ("search", "match", "chapter 1", "chapter 2", "chapter 3", "chapter 4", "other")
STATE_FEATURES = ("expand", "score", "depth", "taken", "choices")
_CHAPTERS = 4


class Choices(TypedDict):
    """What is shown of a state.

    Attributes:
        choices: Of each choice ``[n_max, 7]``: see :data:`CHOICE_FEATURES`; zeros where there is
            none. ``match`` is the share of the heading's (or query's) words that stand in the
            request; a chapter is the heading's leading number.
        state: ``[5]``: see :data:`STATE_FEATURES`: whether it is a paper's session, the selector's
            score of that paper, its depth as a share of the layers, the share of the session's
            actions that were taken, and of ``n_max`` that are choices.
        mask: Which actions make sense ``[n_max + 1]``; the first one stops.
    """

    choices: npt.NDArray[np.float32]
    state: npt.NDArray[np.float32]
    mask: npt.NDArray[np.int8]


class PaperCrawlerIndex(gym.Env[Choices, int]):
    """Choose a scripted query or a section by number (see :class:`PaperCrawler` for the game).

    Action 0 ends the session; action i takes the i-th choice: the i-th scripted query in the search
    session, the i-th section of the paper in its own. A number without a choice is answered like an
    unknown section: it brings nothing and costs.

    ``info`` is the inner environment's.

    Args:
        n_max: Choices that a state can have; further sections cannot be chosen.
        **settings: Of :class:`PaperCrawler`, ``granularity`` left out.

    Raises:
        BadValueError: ``n_max`` below 1, or a granularity.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012 - gymnasium's own form

    def __init__(self, *, n_max: int = 16, **settings: Any) -> None:
        check_integer("n_max", n_max, "PaperCrawlerIndex", min=1)
        if "granularity" in settings:
            raise BadValueError(
                "PaperCrawlerIndex: granularity was given; its actions are single ones, leave it "
                "out."
            )
        self.inner = PaperCrawler(**settings)
        self.n_max = n_max
        self.render_mode = self.inner.render_mode
        self.action_space = spaces.Discrete(n_max + 1)  # pyright: ignore[reportAttributeAccessIssue]
        self.observation_space = spaces.Dict(  # pyright: ignore[reportAttributeAccessIssue]
            {
                "choices": spaces.Box(0.0, 1.0, (n_max, len(CHOICE_FEATURES)), np.float32),
                "state": spaces.Box(0.0, 1.0, (len(STATE_FEATURES),), np.float32),
                "mask": spaces.Box(0, 1, (n_max + 1,), np.int8),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Choices, dict[str, Any]]:
        """Start a crawl; see :meth:`PaperCrawler.reset`."""
        super().reset(seed=seed)
        _, info = self.inner.reset(seed=seed, options=options)
        return self.observe(), dict(info)

    def step(self, action: int) -> tuple[Choices, float, bool, bool, dict[str, Any]]:
        """Take one choice, or stop.

        Raises:
            BadValueError: The action is not in the action space.
            EpisodeError: There is no running episode.
        """
        if not self.action_space.contains(action):
            raise BadValueError(
                f"PaperCrawlerIndex: action is {action!r}; expected 0 to {self.n_max}."
            )
        _, reward, terminated, truncated, info = self.inner.step(self.text(int(action)))
        return self.observe(), reward, terminated, truncated, dict(info)

    def render(self) -> str | None:
        """The inner environment's transcript."""
        return self.inner.render()

    def text(self, action: int) -> str:
        """What the inner environment is told."""
        kind, args = self.inner.episode.state.kind, self.args()
        if action == STOP:
            return STOPS[kind]
        known = action <= len(args)
        return f"{MARKERS[kind]} {args[action - 1] if known else '-'}"

    def args(self) -> list[str]:
        """Arguments that can be chosen, those that were taken included."""
        inner = self.inner
        crawl = inner.episode.state
        if inner.episode.status != "running":
            return []
        if not crawl.here:
            return inner.parts.names.queries(inner.episode.task.payload)[: self.n_max]
        paper = inner.library.find(crawl.here)
        return list(paper.sections)[: self.n_max] if paper else []

    def observe(self) -> Choices:
        """The present state as arrays."""
        inner, crawl, args = self.inner, self.inner.episode.state, self.args()
        request = inner.episode.task.payload.text
        choices = np.zeros((self.n_max, len(CHOICE_FEATURES)), dtype=np.float32)
        mask = np.zeros(self.n_max + 1, dtype=np.int8)
        mask[STOP] = 1
        for number, arg in enumerate(args):
            choices[number] = choice_features(request, arg, search=not crawl.here)
            mask[number + 1] = arg not in crawl.args_taken
        score = crawl.queue[crawl.here].score if crawl.here else 0.0
        state = [
            float(bool(crawl.here)),
            score,
            max(crawl.depth, 0) / max(1, inner.rules.layers),
            len(crawl.args_taken) / inner.rules.cap(crawl.kind),
            len(args) / self.n_max,
        ]
        return {"choices": choices, "state": np.asarray(state, dtype=np.float32), "mask": mask}


def choice_features(request: str, arg: str, *, search: bool) -> Sequence[float]:
    """Features of one choice, in the order of :data:`CHOICE_FEATURES`."""
    asked = set(_words(request))
    own = [word for word in _words(arg) if not word.isdigit()]
    match = sum(word in asked for word in own) / max(1, len(own))
    chapters = [0.0] * (_CHAPTERS + 1)
    if not search:
        lead = arg.strip()[:1]
        number = int(lead) if lead.isascii() and lead.isdigit() else 0
        chapters[number - 1 if 1 <= number <= _CHAPTERS else _CHAPTERS] = 1.0
    return [float(search), match, *chapters]


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()
