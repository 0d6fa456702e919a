"""What a world reports and offers of its own: keys of ``info``, scripted players, its reward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .episode import NO_TERMS, Episode, Info

if TYPE_CHECKING:
    from .api import Policy

S = TypeVar("S")


class Extras(Generic[S]):
    """What :class:`~turngym.envs.api.TextEnv` leaves empty and some worlds fill."""

    open_ended: bool = False
    """True when no return is the top of every task, so that success is a matter of degree."""

    @property
    def name(self) -> str:
        """The world's name for messages."""
        return type(self).__name__

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
        if details := self.details(episode):
            info.update(cast("Info", details))
        return info
