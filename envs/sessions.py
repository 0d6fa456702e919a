"""Sessions: contexts of their own within an episode, entered in or out of turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from .episode import Episode, Info, Opening, SessionSwitch
from .errors import UnknownNameError
from .extras import Extras

S = TypeVar("S")


class SessionDoor(Extras[S]):
    """The sessions of a world; most have none."""

    sessions: bool = False
    """True when actions may ask for sessions: contexts of their own within the episode."""

    def asked(self) -> Sequence[Opening]:
        """Sessions that the last action asked for and that can still be opened."""
        return ()

    def waiting(self) -> Sequence[Opening]:
        """All sessions that can be opened now, in the order of the world's own schedule."""
        return ()

    def session_key(self) -> str:
        """Key of the present session, empty for the first one."""
        return ""

    def enter(self, episode: Episode[S], key: str) -> tuple[str, SessionSwitch]:
        """Make the waiting session ``key`` the present one: its first observation, its number.

        The session that the world's own schedule had opened goes back to those that wait when
        nobody has acted in it yet.
        """
        raise NotImplementedError(f"{self.name} has no sessions to enter.")

    def open_session(self, key: str) -> tuple[str, Info]:
        """Go to a waiting session out of turn: training on a sample of an episode's sessions.

        Raises:
            UnknownNameError: No session of that key is waiting.
            EpisodeError: The episode is over.
        """
        episode = self._ready("")
        if key not in (known := [opening.key for opening in self.waiting()]):
            raise UnknownNameError("session", key, known, self.name)
        episode.observation, switch = self.enter(episode, key)
        episode.session, episode.parent_session = switch
        return episode.observation, self._info(episode)

    def _ready(self, action: str) -> Episode[S]:
        raise NotImplementedError
