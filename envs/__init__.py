"""Text environments for language agents; importing this registers them with gymnasium.

Most names load their modules when first used, so that the import stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import registry as _rows
from .core.registration import EnvironmentSpec, all_ids, find_environment, register_environment

_REGISTERS = _rows  # importing it registers the environments

if TYPE_CHECKING:
    from .core.env import TextEnv
    from .core.episode import Call, Episode, Info, Outcome, Policy, SessionSwitch
    from .core.errors import EnvFault, TurngymError
    from .core.fork import fork
    from .core.spaces import Utf8Text
    from .core.tasks import Task, TaskSource
    from .testing.check import ConformanceError, Report, check_text_env
    from .wrappers.record import RecordEpisodes, Transcript, read_transcripts
    from .wrappers.replay import ReplayReport, replay
    from .wrappers.vector import TextVectorEnv

_HOMES = {
    "core.env": ("TextEnv",),
    "testing.check": ("ConformanceError", "Report", "check_text_env"),
    "core.episode": ("Call", "Episode", "Info", "Outcome", "Policy", "SessionSwitch"),
    "core.errors": ("EnvFault", "TurngymError"),
    "core.fork": ("fork",),
    "wrappers.record": ("RecordEpisodes", "Transcript", "read_transcripts"),
    "wrappers.replay": ("ReplayReport", "replay"),
    "core.spaces": ("Utf8Text",),
    "core.tasks": ("Task", "TaskSource"),
    "wrappers.vector": ("TextVectorEnv",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Call",
    "ConformanceError",
    "EnvFault",
    "EnvironmentSpec",
    "Episode",
    "Info",
    "Outcome",
    "Policy",
    "RecordEpisodes",
    "ReplayReport",
    "Report",
    "SessionSwitch",
    "Task",
    "TaskSource",
    "TextEnv",
    "TextVectorEnv",
    "Transcript",
    "TurngymError",
    "Utf8Text",
    "all_ids",
    "check_text_env",
    "find_environment",
    "fork",
    "read_transcripts",
    "register_environment",
    "replay",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
