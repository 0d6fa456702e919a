"""Who pays whom: what the crawler earns by the selector, and what the selector earns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from ...core.errors import BadValueError, UnknownNameError
from ...core.settings import check_number
from ..crawl.rules import Label
from ..papers import Judged, Request, Selector, check_probabilities
from .decisions import Decision

RewardSelector = Literal["frozen", "ema", "live"]
Judge = Selector | Callable[[Sequence[Judged]], Sequence[float]]
_WHERE = "PaperCrawler for two agents"


@dataclass(frozen=True)
class Weights:
    """What the selector earns per decision, by the labels and never by its own opinion.

    Attributes:
        true_relevant: It says True to a relevant paper.
        true_irrelevant: It says True to another one.
        false_relevant: It says False to a relevant paper.
        false_irrelevant: It says False to another one.

    Raises:
        BadValueError: A weight that is not a finite number.
    """

    true_relevant: float = 1.0
    true_irrelevant: float = -0.5
    false_relevant: float = -1.0
    false_irrelevant: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_number(f"selector_rewards[{name!r}]", value, _WHERE)

    def reward(self, accepted: bool, relevant: bool) -> float:
        """Of one decision."""
        if accepted:
            return self.true_relevant if relevant else self.true_irrelevant
        return self.false_relevant if relevant else self.false_irrelevant


def make_weights(given: Mapping[str, float] | None) -> Weights:
    """The default weights with those that are given in their place.

    Raises:
        UnknownNameError: A weight that there is not.
        BadValueError: A value that is not a finite number.
    """
    known = [field.name for field in fields(Weights)]
    for name in given or {}:
        if name not in known:
            raise UnknownNameError("selector reward", name, known, _WHERE)
    return Weights(**(given or {}))


def is_relevant(request: Request, paper_id: str) -> bool:
    """The truth by which a selector is rewarded: all relevant papers where known, else answers."""
    return paper_id in (request.oracle or request.answers)


class CheckedSelector:
    """A caller's selector or callable as a selector whose answers are checked.

    Args:
        judge: The selector or callable.
    """

    identity = "payer"
    blocking = False

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def probabilities(self, judged: Sequence[Judged]) -> list[float]:
        """What the judge gives.

        Raises:
            EnvFault: Not one number per paper, or not from 0 to 1.
        """
        ask: Any = getattr(self._judge, "probabilities", self._judge)
        return check_probabilities(ask(judged), len(judged), f"{_WHERE}: slow_selector")


@dataclass(frozen=True)
class Guard:
    """Whose judgement pays the crawler beside the labels.

    Attributes:
        payer: The selector that pays; None when the selector agent's own decisions do, or when
            only labels count.
        live: Whether the selector agent's decisions pay.
    """

    payer: Selector | None
    live: bool

    def pays(self, settled: bool, decision: Decision) -> bool:
        """Whether a paper pays, given what the label and the payer say."""
        return settled or (self.live and decision.accepted)


def make_guard(mode: RewardSelector, own: Selector, slow: Judge | None, label: Label) -> Guard:
    """The guard against collusion that the settings describe.

    Args:
        mode: ``"frozen"``, ``"ema"`` or ``"live"``.
        own: The environment's own selector.
        slow: The copy that follows the selector agent.
        label: What is relevant.

    Raises:
        UnknownNameError: An unknown mode.
        BadValueError: A mode without what it needs, or a setting that would do nothing.
    """
    if mode not in get_args(RewardSelector):
        raise UnknownNameError("reward_selector", mode, get_args(RewardSelector), _WHERE)
    if slow is not None and mode != "ema":
        raise BadValueError(
            f"{_WHERE}: slow_selector was given, but reward_selector={mode!r} does not ask it; "
            "set reward_selector='ema', or leave slow_selector out."
        )
    if slow is not None and not callable(getattr(slow, "probabilities", slow)):
        raise BadValueError(
            f"{_WHERE}: slow_selector is {slow!r:.100}; expected a callable from a list of "
            "(request, paper) to probabilities, or a Selector."
        )
    if slow is None and mode == "ema":
        raise BadValueError(
            f"{_WHERE}: reward_selector='ema' pays by a copy that slowly follows the selector "
            "agent, and only its trainer can keep that copy: give it as slow_selector (a callable "
            "from a list of (request, paper) to probabilities, or a Selector)."
        )
    if label != "annotated_or_selector":
        if mode != "frozen":
            raise BadValueError(
                f"{_WHERE}: reward_selector={mode!r} says whose judgement pays, but with "
                f"label={label!r} labels alone pay; leave it out, or set "
                "label='annotated_or_selector'."
            )
        return Guard(None, False)
    if slow is not None:
        return Guard(CheckedSelector(slow), False)
    return Guard(own if mode == "frozen" else None, mode == "live")
