"""MCP: an environment as tools of a server that speaks to one client at a time.

``turngym mcp SearchQA-v0`` serves over standard input and output, the form that agents' desktop
programs start; :func:`mcp_server` is the server itself, for any transport. The tool
``new_episode`` starts a task; the others are the environment's actions. Rewards, status and metrics
stand in the result's metadata, which clients keep from the model. An agent that is evaluated must
not choose its tasks: with ``fixed``, ``new_episode`` has no arguments and starts the rows given
there, in order, each once and to its end. Tested with mcp 2.0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.errors import BadValueError, EnvFault, EpisodeError, MissingExtraError, TurngymError
from ..core.tasks import get_split_size
from .conversation import Settings
from .openai_tools import ToolConversation

try:
    from mcp import (  # pyright: ignore[reportMissingImports]
        Client,  # noqa: F401 # pyright: ignore[reportUnusedImport] - the first version lacks it
        types,
    )
    from mcp.server.lowlevel import Server  # pyright: ignore[reportMissingImports]
    from mcp.server.stdio import stdio_server  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError("the MCP adapter", "mcp>=2", "mcp", error) from error

WHERE = "the MCP adapter"
START = "new_episode"
META = "turngym/episode"
"""Key of the result's metadata: reward, return, terms, status, done, metrics, task."""
_START_SCHEMA = {
    "type": "object",
    "properties": {
        "split": {"type": "string", "description": "Split of the task, such as 'test'."},
        "task": {"description": "Index or id of the task; drawn when left out."},
        "seed": {"type": "integer", "description": "Seed of the episode.", "minimum": 0},
    },
}
_CHOICES = ("split", "task", "seed")
_FIXED_SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


class McpEnvironment:
    """The server's handlers, over one conversation.

    Args:
        env_id: Registered id.
        settings: Settings of the environment.
        split: Split of tasks that are drawn.
        fixed: The episodes, as :func:`~turngym.envs.adapters.conversation.task_rows` makes them;
            left out: the client chooses.

    Raises:
        BadValueError: An environment that opens sessions, or with a tool called ``new_episode``; a
            split without tasks.
        UnknownNameError: A split that does not exist.
    """

    def __init__(
        self,
        env_id: str,
        settings: Settings = None,
        split: str | None = None,
        fixed: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        self.game = ToolConversation(env_id, settings, where=WHERE)
        if split is not None:
            get_split_size(self.game.talk.env.source, split, WHERE)
        self.split = split
        self._rows = None if fixed is None else iter(fixed)
        self._row: Mapping[str, Any] | None = None  # taken, but its start failed
        self._started = False
        if START in self.game.action_tools:
            raise BadValueError(f"{WHERE}: {env_id} has a tool {START!r} of its own.")

    async def list_tools(self, context: Any, params: Any) -> types.ListToolsResult:  # noqa: ARG002
        """Return the tools."""
        start = types.Tool(
            name=START,
            description="Start a task anew; gives its rules and the first observation.",
            input_schema=_START_SCHEMA if self._rows is None else _FIXED_SCHEMA,
        )
        actions = [
            types.Tool(
                name=tool.name, description=tool.description, input_schema=dict(tool.parameters)
            )
            for tool in self.game.action_tools.values()
        ]
        return types.ListToolsResult(tools=[start, *actions])

    async def call_tool(self, context: Any, params: Any) -> types.CallToolResult:  # noqa: ARG002
        """Call one; what was refused, and a broken environment, is an error result."""
        try:
            return self._call(params.name, params.arguments or {})
        except TurngymError as error:
            broken = isinstance(error, EnvFault)
            return _make_result(str(error), {"status": "env_error"} if broken else {}, failed=True)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        talk = self.game.talk
        if name == START:
            text = self._start(arguments)
            return _make_result(text, _make_report(talk, 0.0, done=False))
        reply = self.game.call(name, arguments)
        end = f"\nThe episode is over ({reply.info['status']})." if reply.done else ""
        return _make_result(reply.text + end, _make_report(talk, reply.reward, done=reply.done))

    def _start(self, arguments: Mapping[str, Any]) -> str:
        """Start the episode that the client chose, or the next of the fixed ones."""
        if self._rows is None:
            chosen = _check_arguments(arguments, _CHOICES)
            given = {name: value for name, value in chosen.items() if value is not None}
            return self.game.start({"split": self.split, **given})
        _check_arguments(arguments, ())
        if self._started and self.game.talk.info["status"] == "running":
            raise EpisodeError(f"{START}: the episode is not over; go on with it to its end.")
        if self._row is None:
            self._row = next(self._rows, None)
        if self._row is None:
            raise EpisodeError(f"{START}: all episodes have been played; there is no other one.")
        text = self.game.start(self._row)
        self._row, self._started = None, True
        return text


def mcp_server(
    env_id: str,
    settings: Settings = None,
    *,
    split: str | None = None,
    fixed: Iterable[Mapping[str, Any]] | None = None,
) -> Any:
    """Return an MCP server of an environment, to run over any transport; one episode at a time.

    The arguments are those of :class:`McpEnvironment`.
    """
    env = McpEnvironment(env_id, settings, split, fixed)
    return Server(
        f"turngym {env_id}",
        instructions=f"A task of {env_id}. Call {START} first, then the other tools.",
        on_list_tools=env.list_tools,
        on_call_tool=env.call_tool,
    )


async def serve_stdio(server: Any) -> None:
    """Serve one client over standard input and output until it leaves."""
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def _check_arguments(arguments: Mapping[str, Any], known: Sequence[str]) -> Mapping[str, Any]:
    if extra := sorted(set(arguments) - set(known)):
        expected = ", ".join(known) or "none: the tasks are fixed"
        raise BadValueError(f"{START}: unknown argument {extra[0]!r}; expected {expected}.")
    return arguments


def _make_report(talk: Any, reward: float, *, done: bool) -> dict[str, Any]:
    info = talk.info
    return {
        "reward": reward,
        "return": talk.total,
        "terms": dict(talk.terms),
        "done": done,
        "status": info["status"],
        "metrics": dict(info["metrics"]),
        "task": info["task_id"],
        "split": info["split"],
    }


def _make_result(
    text: str, report: Mapping[str, Any], *, failed: bool = False
) -> types.CallToolResult:
    content = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, is_error=failed, _meta={META: dict(report)})
