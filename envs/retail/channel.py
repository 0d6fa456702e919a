"""How the customer's words reach the assistant: written, as spoken words, or as sound."""

from __future__ import annotations

from typing import Any, Protocol

from ..errors import BadValueError, UnknownNameError

CHANNELS = ("text", "spoken", "speech")


class Channel(Protocol):
    """Carries the customer's words."""

    @property
    def blocking(self) -> bool:
        """True when it waits for another program."""
        ...

    def heard(self, text: str, key: int, turn: int) -> str:
        """What the assistant reads of ``text``; the same for the same three."""
        ...


class Written:
    """The words as they are."""

    blocking = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Written:
        return self

    def heard(self, text: str, key: int, turn: int) -> str:  # noqa: ARG002 - nothing is changed
        """The text itself."""
        return text


_WRITTEN = Written()


def chosen_channel(channel: Any) -> Channel:
    """The channel of a setting.

    Raises:
        UnknownNameError: An unknown name.
        BadValueError: Something that is no channel.
    """
    if channel == "text":
        return _WRITTEN
    if isinstance(channel, str):
        from .speech import Speech, Spoken

        if channel == "spoken":
            return Spoken()
        if channel == "speech":
            return Speech()
        raise UnknownNameError("channel", channel, CHANNELS, "Retail")
    if not callable(getattr(channel, "heard", None)):
        raise BadValueError(
            f"Retail: channel is {channel!r}; expected one of {CHANNELS}, or an object with "
            "heard(text, key, turn)."
        )
    return channel
