"""TRL: ``GRPOTrainer(environment_factory=EnvironmentFactory("SearchQA-v0"), ...)``.

The object that TRL gets is a facade: TRL takes every public function of its class but ``reset``
and ``get_reward`` for a tool, so a gymnasium environment itself would offer ``step`` and ``close``
to the model. Nothing of TRL is imported here. Tested with trl 1.16.0 and transformers 5.23.0.

Limits: TRL has no sign for the end of an episode, so a call after it is answered by an error; an
episode that the model leaves open scores what it has earned so far. A broken environment (a
retrieval server that is down) leaves the episode without a score: TRL gives it no weight. An
exception in an environment's own code, which TRL tells to the model as well, comes up with the
reward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Union, cast

from ..core.errors import BadValueError, EnvFault, EpisodeError
from .conversation import Settings, settings_to_json, task_rows
from .openai_tools import ToolConversation
from .tool_view import ActionTool

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


def make_tool_method(tool: ActionTool, run: Callable[[Any, str], Any]) -> Callable[..., Any]:
    """Make a method with the tool's name, typed parameters and a Google docstring.

    It takes any named arguments, so that a wrong call is an action as well: the environment says
    what was wrong with it, and it costs a turn.

    Args:
        tool: The tool.
        run: Gets the object that the method belongs to and the action.
    """

    def method(self: Any, **arguments: Any) -> Any:
        return run(self, tool.write(arguments))

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    required = tool.parameters.get("required", ())
    lines = []
    # Python wants the parameters without a default first.
    properties = tool.parameters.get("properties", {})
    for name in sorted(properties, key=lambda name: name not in required):
        schema = properties[name]
        default = inspect.Parameter.empty if name in required else schema.get("default")
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=to_python_type(schema),
            )
        )
        lines.append(f"    {name}: {schema.get('description') or f'The {name}.'}")
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = "\n".join([tool.description, "", *(["Args:", *lines] if lines else [])])
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)
    method.__annotations__ = {p.name: p.annotation for p in parameters[1:]} | {"return": str}
    return method


def to_python_type(schema: Mapping[str, Any]) -> Any:
    """Return the Python type of a JSON Schema."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "const" in schema:
        return Literal[schema["const"]]
    if "anyOf" in schema:
        return Union[tuple(to_python_type(option) for option in schema["anyOf"])]  # noqa: UP007
    kind = schema.get("type", "")
    if isinstance(kind, (list, tuple)):
        return Union[tuple(to_python_type({**schema, "type": one}) for one in kind)]  # noqa: UP007
    if kind == "array":
        return list[to_python_type(schema["items"])] if "items" in schema else list
    return _TYPES.get(kind, dict)


WHERE = "the TRL adapter"
_RESERVED = ("reset", "get_reward")


@dataclass(frozen=True)
class EnvironmentFactory:
    """Makes the environments of a TRL trainer; pickles.

    Args:
        env_id: Registered id.
        settings: Settings of the environment.
        own_reward: Whether environments have ``get_reward``, which gives the return. Without it
            the rewards come from ``reward_funcs`` alone (see :func:`term_reward`).

    Raises:
        BadValueError: An environment that opens sessions, or a tool with a name that TRL reserves.
    """

    env_id: str
    settings: Settings = field(default_factory=dict)
    own_reward: bool = True

    def __call__(self) -> Any:
        """Make a new environment."""
        kind = _make_facade(self.env_id, settings_to_json(self.settings, WHERE), self.own_reward)
        return kind(self)


class _Facade:
    """The object that TRL gets; a subclass per environment adds a method per tool."""

    def __init__(self, factory: EnvironmentFactory) -> None:
        self._factory = factory
        self._game = ToolConversation(factory.env_id, factory.settings, where=WHERE)
        self._fault: Exception | None = None

    def reset(self, **row: Any) -> str:
        """Start the episode of a row; the text goes to the end of the last message."""
        prompt = self._game.start(row)
        self._fault = None
        return prompt

    def _act(self, action: str) -> str:
        try:
            return self._game.talk.act(action).text
        except EpisodeError:
            raise
        except Exception as fault:  # TRL tells it to the model and goes on
            self._fault = self._fault or fault
            raise

    def _score(self, term: str | None) -> float | None:
        """Return the episode's return or one term; None, which TRL ignores, after a fault.

        A programming error in the environment comes up here: it is no score either.
        """
        if isinstance(self._fault, EnvFault):
            return None
        if self._fault is not None:
            raise self._fault
        talk = self._game.talk
        return talk.total if term is None else talk.terms.get(term, 0.0)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._factory, ()


class _Scored(_Facade):
    def get_reward(self) -> float | None:
        """Return the return of the episode so far."""
        return self._score(None)


@lru_cache(maxsize=64)
def _make_facade(env_id: str, settings: str, own_reward: bool) -> type[_Facade]:
    """Return the class for an environment: TRL reads tools and reward from the class."""
    game = ToolConversation(env_id, settings, where=WHERE)
    methods = {
        name: make_tool_method(tool, _Facade._act) for name, tool in game.action_tools.items()
    }
    if clash := next((name for name in methods if name in _RESERVED or name[0] == "_"), None):
        raise BadValueError(f"{WHERE}: {env_id} has a tool {clash!r}, a name that TRL reserves.")
    name = env_id.rpartition(":")[2].replace("-", "_").replace("/", "_")
    made = type(name, (_Scored if own_reward else _Facade,), methods)
    return cast("type[_Facade]", made)


def trl_rows(
    env_id: str, count: int | None = None, *, prompt: str = "", **options: Any
) -> list[dict[str, Any]]:
    """Return rows for ``datasets.Dataset.from_list``: tasks with a first user message.

    Args:
        env_id: Registered id.
        count: How many; None for the whole split.
        prompt: Stands before the environment's rules and its first observation.
        **options: ``split``, ``seed`` and ``settings`` of
            :func:`~turngym.envs.adapters.conversation.task_rows`.
    """
    message = {"role": "user", "content": prompt}
    rows = task_rows(env_id, count, where=WHERE, **options)
    return [{"prompt": [dict(message)], **row} for row in rows]


def term_reward(term: str) -> Callable[..., list[float | None]]:
    """Make a reward function of one named reward term, for ``reward_funcs``."""

    def reward(environments: Sequence[Any], **given: Any) -> list[float | None]:  # noqa: ARG001
        return [environment._score(term) for environment in environments]

    reward.__name__ = f"{term}_term"
    return reward


def episode_info(environment: Any) -> Mapping[str, Any]:
    """Return the latest info (status, metrics) of an environment that this adapter made."""
    return environment._game.talk.info
