"""How a selector asks its model; kept in its folder beside the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.paper_crawler.prompts import PROMPTS
from ..models.settings_file import SettingsFile

PROBABILITIES = ("vocabulary", "renormalised")
TAIL = 64
"""Tokens at a prompt's end that are never cut: the question stands there."""


@dataclass(frozen=True, kw_only=True)
class SelectorSettings:
    """How papers are shown, and how a verdict becomes a probability.

    Attributes:
        prompt: Style of the question, a name of
            :data:`~turngym.envs.paper_crawler.prompts.PROMPTS`.
        chat: Ask through the tokenizer's chat template; the released selector is asked without.
        blank: Whether the verdict's token begins with a blank, see
            :func:`~turngym.agents.paper_selector.decision.decision_of`.
        probability: ``"vocabulary"``: softmax over the whole vocabulary, entry of True (PaSa's
            released rule). ``"renormalised"``: softmax over True and False alone.
        threshold: Probability above which a paper is selected. Environments select above 0.5, so
            another threshold shifts all log-odds until it lies there; the order stays.
        max_tokens: Longest prompt. Of a longer one, what stands before its last 64 tokens is cut:
            the end of the abstract, and the end of a request that leaves the paper's title no room.
    """

    prompt: str = "rules"
    chat: bool = False
    blank: bool | None = None
    probability: Literal["vocabulary", "renormalised"] = "vocabulary"
    threshold: float = 0.5
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        if self.prompt not in PROMPTS:
            raise UnknownNameError("prompt", self.prompt, PROMPTS, "selector")
        if self.probability not in PROBABILITIES:
            raise UnknownNameError("probability", self.probability, PROBABILITIES, "selector")
        if not 0 < self.threshold < 1:
            raise BadValueError(
                f"selector: threshold is {self.threshold}; expected a value between 0 and 1."
            )
        if self.max_tokens <= TAIL:
            raise BadValueError(
                f"selector: max_tokens is {self.max_tokens}; expected more than {TAIL}."
            )


SELECTOR_FILE = SettingsFile(
    "selector.json", "settings", SelectorSettings, "selector", "turngym selector"
)
"""How a selector asks, and how it was trained."""
