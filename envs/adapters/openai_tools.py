"""An environment's tools in the form of OpenAI-compatible servers and chat templates.

Needs no other package. The client's loop: give ``tools`` and ``prompt`` to the model, hand each
call to ``call``, send its text back as the tool's message, stop when it is done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ..core.errors import UnknownNameError
from .conversation import Conversation, Reply, Settings, make_text_env
from .tool_view import NOTE, action_tools


def tool_schemas(env_id: str, settings: Settings = None) -> list[dict[str, Any]]:
    """Return an environment's actions as tool schemas in the OpenAI function form."""
    env = make_text_env(env_id, settings, where="tool schemas")
    return [tool.schema for tool in action_tools(env).values()]


class ToolConversation:
    """An environment that is played by function calls.

    Args:
        env_id: Registered id.
        settings: Settings of the environment.
        where: The adapter, for messages.
        record: File that episodes are appended to, for the viewer or a leaderboard; see
            :class:`~turngym.envs.adapters.conversation.Conversation`.

    Attributes:
        talk: The conversation: terms of the return, info.
        action_tools: What can be called, by name.

    Raises:
        BadValueError: See :class:`~turngym.envs.adapters.conversation.Conversation`.
    """

    def __init__(
        self,
        env_id: str,
        settings: Settings = None,
        *,
        where: str = "the tool loop",
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        self.talk = Conversation(env_id, settings, where=where, record=record)
        self.action_tools = action_tools(self.talk.env)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """What can be called, as schemas."""
        return [tool.schema for tool in self.action_tools.values()]

    def start(self, row: Mapping[str, Any]) -> str:
        """Start the episode that a row names; the complete first prompt, which names the tools."""
        prompt = self.talk.start(row)
        rules = self.talk.env.instructions
        return rules + NOTE + prompt[len(rules) :]

    def call(self, name: str, arguments: Mapping[str, Any] | str | None) -> Reply:
        """Take the action that a call is.

        Args:
            name: The tool.
            arguments: Its arguments, or their JSON text as OpenAI's clients hand it over; nothing
                or ``null``, as some servers write for a call without any, is none.

        Raises:
            UnknownNameError: There is no such tool; no turn is spent.
            EpisodeError: The episode is over.
            EnvFault: Something that the environment needs is broken.
        """
        if name not in self.action_tools:
            raise UnknownNameError("tool", name, self.action_tools, self.talk.env.name)
        tool, read = self.action_tools[name], arguments
        if isinstance(arguments, str):
            try:
                read = json.loads(arguments or "null")
            except (ValueError, RecursionError):  # no JSON, or none that Python reads
                read = arguments
        if read is None:
            read = {}
        if isinstance(read, Mapping):
            return self.talk.act(tool.write(read))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=repr)
        return self.talk.act(tool.enclose(text))
