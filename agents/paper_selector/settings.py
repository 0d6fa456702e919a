"""How a selector asks its model; kept in its folder beside the weights."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.paper_crawler.prompts import PROMPTS

MANIFEST = "selector.json"
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
            the end of the abstract.
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


def write_manifest(
    folder: Path, settings: SelectorSettings, training: Mapping[str, Any] | None = None
) -> None:
    """Write how a selector asks, and how it was trained."""
    kept = {"settings": dataclasses.asdict(settings), "training": dict(training or {})}
    (folder / MANIFEST).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def read_settings(folder: Path) -> SelectorSettings:
    """How the selector of a folder asks; the defaults for a folder that does not say.

    Raises:
        DataError: The file is there, but holds no settings.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return SelectorSettings()
    try:
        return SelectorSettings(**json.loads(path.read_text(encoding="utf-8"))["settings"])
    except (ValueError, KeyError, TypeError) as fault:
        raise DataError(
            f"{path}: not a selector's settings ({fault}); expected what training writes. Train "
            "it again, or remove the file for the defaults."
        ) from fault
