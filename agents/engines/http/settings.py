"""Settings of the engine that asks servers, readable without torch or an HTTP client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ....envs.core.errors import BadValueError
from ....envs.core.settings import check_choices, check_integers
from ....envs.utils.http import check_url

TOKEN_VARIABLE = "TURNGYM_ENGINE_TOKEN"


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """Where the engine servers of `turngym engine serve` are, and how weights get there.

    Attributes:
        urls: Their addresses, as http://HOST:8300; each takes requests as it has room.
        weights_by: How weights get to the servers. group: learner and servers join a group of
            torch.distributed (NCCL between cards, else gloo), through which each weight goes
            straight into the engines. files: through the weights folder, or as uploads. auto: files
            where a folder is given, else a group where all servers can join one and reach this
            machine.
        weights_folder: Folder that this machine and all servers see, where weights are handed over
            as files; left out: they are uploaded in pieces.
        token_variable: Environment variable with the servers' token; where it is not set none is
            sent.
        timeout_s: Seconds that one attempt to have requests answered may take; the requests of an
            attempt that took longer are played elsewhere.
        weights_timeout_s: Seconds that a server may take to load new weights.
        attempts: Failures in a row after which a server counts as lost; a run whose servers are
            all lost stops, saved.
        sleep: Between rollouts, let the servers give their cards' memory back, for servers on the
            learner's cards.
    """

    urls: tuple[str, ...] = ()
    weights_by: Literal["auto", "group", "files"] = "auto"
    weights_folder: str | None = None
    token_variable: str = TOKEN_VARIABLE
    timeout_s: float = 600.0
    weights_timeout_s: float = 600.0
    attempts: int = 5
    sleep: bool = False

    def __post_init__(self) -> None:
        check_choices(self)
        check_integers(self)
        for url in self.urls:
            check_url(url, "HttpSettings.urls")
        if len({url.rstrip("/") for url in self.urls}) != len(self.urls):
            raise BadValueError(f"HttpSettings.urls names a server twice: {list(self.urls)}.")
        if self.weights_by == "group" and self.weights_folder is not None:
            raise BadValueError(
                "HttpSettings.weights_by is 'group', but weights_folder is given, which is for "
                "files; leave one of them out."
            )
        for name, least in (("timeout_s", 0.001), ("weights_timeout_s", 0.001), ("attempts", 1)):
            if not getattr(self, name) >= least:
                raise BadValueError(
                    f"HttpSettings.{name} is {getattr(self, name)}; expected at least {least}."
                )
