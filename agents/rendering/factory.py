"""Text to ids and back: which renderer a tokenizer gets.

A dialogue's ids only ever grow at the end. What was sampled stays as it was sampled; observations
are tokenised on their own and appended, nothing is decoded and tokenised again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...envs.core.errors import UnknownNameError
from .chat.renderer import ChatRenderer, Observations, end_of_message
from .chat.template import Role
from .plain import PlainRenderer, Renderer

Style = Literal["auto", "plain", "chat", "inline"]
STYLES = ("auto", "plain", "chat", "inline")
_KEPT = "turngym_render"
"""Where a tokenizer's settings say which style its model was trained with."""


def make_renderer(
    tokenizer: Any,
    style: Style = "auto",
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    observations: Observations = "messages",
    system: bool = False,
    role: Role | Literal["auto"] = "auto",
) -> Renderer:
    """Return the renderer for a tokenizer.

    Args:
        tokenizer: Any transformers tokenizer.
        style: ``"plain"`` for base models, ``"chat"`` for the chat template, ``"inline"`` for the
            template with ``observations="inline"``; ``"auto"`` takes what the model was trained
            with here (:func:`keep_style`), else the template where there is one.
        tools: JSON Schemas of the environment's tools (chat templates only).
        observations: See :class:`ChatRenderer`.
        system: See :class:`ChatRenderer`.
        role: See :class:`ChatRenderer`.

    Raises:
        UnknownNameError: No such style.
        BadValueError: The chat template cannot be used; the message says why.
    """
    if style not in STYLES:
        raise UnknownNameError("render style", style, STYLES)
    if style == "auto":
        style = getattr(tokenizer, "init_kwargs", {}).get(_KEPT, "auto")
    if style == "inline":
        style, observations = "chat", "inline"
    if style == "plain" or (style == "auto" and not getattr(tokenizer, "chat_template", None)):
        return PlainRenderer(tokenizer)
    return ChatRenderer(tokenizer, observations=observations, tools=tools, system=system, role=role)


def keep_style(tokenizer: Any, style: Style) -> None:
    """Note a style in the tokenizer, so that whoever loads it from a checkpoint uses it too.

    Raises:
        UnknownNameError: No such style.
    """
    if style not in STYLES:
        raise UnknownNameError("render style", style, STYLES)
    if style != "auto":
        tokenizer.init_kwargs[_KEPT] = style


__all__ = [
    "ChatRenderer",
    "Observations",
    "PlainRenderer",
    "Renderer",
    "Style",
    "end_of_message",
    "keep_style",
    "make_renderer",
]
