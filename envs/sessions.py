"""What a world offers beside the plain episode: sessions out of turn, details of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .episode import NO_TERMS, Episode, Info, Opening, SessionSwitch
from .errors import UnknownNameError

if TYPE_CHECKING:
    from .api import Policy

S = TypeVar("S")


class SessionDoor(Generic[S]):
    """What most worlds leave empty in :class:`~turngym.envs.api.TextEnv`.

    Sessions, and what a world reports of its own.
    """

    @property
    def name(self) -> str:
        """The world's name for messages."""
        return type(self).__name__

    sessions: bool = False
    """True when actions may ask for sessions: contexts of their own within the episode."""
    open_ended: bool = False
    """True when no return is the top of every task, so that success is a matter of degree."""

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

    def baselines(self) -> Mapping[str, Callable[[int], Policy]]:
        """Scripted policies of this world that read no hidden state: from a seed, by name."""
        return {}

    def details(self, episode: Episode[S]) -> Mapping[str, Any]:  # noqa: ARG002
        """Keys that this world adds to :class:`Info`; the same ones after every step."""
        return NO_TERMS

    def account(self, episode: Episode[S]) -> Mapping[str, Any]:  # noqa: ARG002
        """What the last action did, as JSON data for people who look at the episode later.

        No agent is shown it, so it may tell what the world keeps secret.
        """
        return NO_TERMS

    def _info(self, episode: Episode[S], *reported: Any) -> Info:
        info = episode.info(*reported) if reported else episode.info({}, {})
        info.update(cast("Info", self.details(episode)))
        return info

    def _ready(self, action: str) -> Episode[S]:
        raise NotImplementedError
