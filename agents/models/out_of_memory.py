"""Running out of memory: an error that names the setting to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...envs.core.errors import BadValueError, TurngymError

_OF_THE_CPU = ("can't allocate memory", "DefaultCPUAllocator", "not enough memory")


class MemoryFullError(MemoryError, TurngymError):
    """The device has no memory left; the message names the setting that needs less.

    Args:
        message: What happened and what to change.
        what: What happened alone, for those whose setting has another name.
    """

    def __init__(self, message: str, what: str = "") -> None:
        super().__init__(message)
        self.what = str(what or message)


class NoRoomError(BadValueError):
    """What was asked for will not fit into the device's memory; nothing was begun.

    Args:
        what: What does not fit into what, for the message.
        advice: What to change, sentences.
    """

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what} {advice}".rstrip())
        self.what = str(what)


@contextmanager
def explain_out_of_memory(doing: str, hint: str) -> Iterator[None]:
    """Within, running out of memory raises :class:`MemoryFullError`.

    Args:
        doing: What is done, for the message ("training on a micro batch").
        hint: What to change, a sentence.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as fault:
        full = memory_full(fault, doing, hint)
        if full is None:
            raise
        raise full from fault


def memory_full(fault: BaseException, doing: str, hint: str) -> MemoryFullError | None:
    """The error that names what to change when ``fault`` says that memory ran out, else None."""
    import torch

    if isinstance(fault, TurngymError) or not _is_memory(fault, torch.OutOfMemoryError):
        return None
    first = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]
    return MemoryFullError(
        f"out of memory while {doing}: {hint} Nothing that was saved is lost: a run resumes "
        f"from its last checkpoint with the changed setting. ({first})",
        f"out of memory while {doing} ({first}).",
    )


def _is_memory(fault: BaseException, on_device: type[BaseException]) -> bool:
    if isinstance(fault, (on_device, MemoryError)):
        return True
    return any(words in str(fault) for words in _OF_THE_CPU)
