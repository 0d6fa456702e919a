"""Prompting baselines: agents that search and answer with any language model, without training."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...envs.core.errors import UnknownNameError
from .cot import Cot
from .direct import Direct
from .engine_model import EngineModel
from .episode import DIALECTS, Agent, Dialect, Limits, PromptedEpisode, Usage
from .ircot import Ircot
from .openai_model import OpenAIModel
from .rag import Rag
from .react import React
from .search_o1 import SearchO1
from .text_model import Completed, Message, Prompt, TextModel

PROMPTING: Mapping[str, Callable[..., Agent]] = {
    "direct": Direct,
    "cot": Cot,
    "rag": Rag,
    "ircot": Ircot,
    "search-o1": SearchO1,
    "react": React,
}
"""The agents by name."""


def prompting(name: str, dialect: Dialect = "chat") -> Agent:
    """Return a prompting agent by name.

    Raises:
        UnknownNameError: No such agent, or no such dialect.
    """
    if name not in PROMPTING:
        raise UnknownNameError("prompting agent", name, PROMPTING)
    if dialect not in DIALECTS:
        raise UnknownNameError("dialect", dialect, DIALECTS, name)
    return PROMPTING[name](dialect=dialect)


__all__ = [
    "PROMPTING",
    "Agent",
    "Completed",
    "Cot",
    "Dialect",
    "Direct",
    "EngineModel",
    "Ircot",
    "Limits",
    "Message",
    "OpenAIModel",
    "Prompt",
    "PromptedEpisode",
    "Rag",
    "React",
    "SearchO1",
    "TextModel",
    "Usage",
    "prompting",
]
