"""PaperCrawler for two agents: a crawler that looks for papers, a selector that judges them.

Both versions are PettingZoo's (extra ``marl``), which is imported when one of them is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .decisions import write_decision, write_decisions
from .shared_crawl import AGENTS, CRAWLER, SELECTOR

if TYPE_CHECKING:
    from .aec import PaperCrawlAEC
    from .parallel import PaperCrawlParallel

__all__ = [
    "AGENTS",
    "CRAWLER",
    "SELECTOR",
    "aec_env",
    "parallel_env",
    "write_decision",
    "write_decisions",
]


def aec_env(**settings: Any) -> PaperCrawlAEC:
    """Return the version in turns.

    Its settings are those of :class:`~turngym.envs.paper_crawler.marl.base.TwoAgentCrawl`.

    Raises:
        MissingExtraError: PettingZoo is not installed.
        UnknownNameError: An unknown setting or value.
        BadValueError: A value out of range, or settings that exclude each other.
    """
    from .aec import PaperCrawlAEC

    return PaperCrawlAEC(**settings)


def parallel_env(**settings: Any) -> PaperCrawlParallel:
    """Return the version at once; settings as those of :func:`aec_env`, without ``batch``.

    Raises:
        MissingExtraError: PettingZoo is not installed.
        UnknownNameError: An unknown setting or value.
        BadValueError: A value out of range, or settings that exclude each other.
    """
    from .parallel import PaperCrawlParallel

    return PaperCrawlParallel(**settings)
