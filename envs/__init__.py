"""Text environments for language agents; importing this registers them with gymnasium.

Most names load their modules when first used, so that the import stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .registry import World, all_ids, find_world, register_world

if TYPE_CHECKING:
    from .api import TextEnv
    from .conformance import ConformanceError, Report, check_text_env
    from .episode import Call, Episode, Info, Outcome, Policy, SessionSwitch
    from .errors import EnvFault, TurngymError
    from .forking import fork
    from .record import RecordEpisodes, Transcript, read_transcripts
    from .replaying import ReplayReport, replay
    from .spaces import Utf8Text
    from .tasks import Task, TaskSource
    from .vector import TextVectorEnv

_HOMES = {
    "api": ("TextEnv",),
    "conformance": ("ConformanceError", "Report", "check_text_env"),
    "episode": ("Call", "Episode", "Info", "Outcome", "Policy", "SessionSwitch"),
    "errors": ("EnvFault", "TurngymError"),
    "forking": ("fork",),
    "record": ("RecordEpisodes", "Transcript", "read_transcripts"),
    "replaying": ("ReplayReport", "replay"),
    "spaces": ("Utf8Text",),
    "tasks": ("Task", "TaskSource"),
    "vector": ("TextVectorEnv",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Call",
    "ConformanceError",
    "EnvFault",
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
    "World",
    "all_ids",
    "check_text_env",
    "find_world",
    "fork",
    "read_transcripts",
    "register_world",
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
