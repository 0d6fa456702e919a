"""The client of a leaderboard's server: JSON over HTTP, with retries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ..core.errors import BadValueError, EnvFault, EpisodeError
from ..utils.http import HttpClient, HttpError, check_url, parse_json
from .season_replies import Reply, SeasonReply, StartReply, StepReply, read_reply

TOKEN_VARIABLE = "TURNGYM_TOKEN"
_WAIT_S = 0.6
_BUSY_WAIT_S = 90.0
_MESSAGE_CHARS = 1000


class SeasonClient:
    """An account's client of a sealed season.

    Args:
        server: Address of the server, as ``https://board.example.org``.
        token: The account's token; the variable ``TURNGYM_TOKEN`` when None.
        season: Name of the season; the only open one when None.
        timeout_s: Seconds that an answer may take.

    Raises:
        BadValueError: No address, no token, or not a positive time.
    """

    def __init__(
        self,
        server: str,
        token: str | None = None,
        *,
        season: str | None = None,
        timeout_s: float = 120.0,
    ) -> None:
        self.server = check_url(server, "server").rstrip("/")
        self.season = season or "current"
        self._path = f"/api/seasons/{quote(self.season, safe='')}"
        given = token if token is not None else os.environ.get(TOKEN_VARIABLE, "")
        if not given or not given.isascii() or not given.isprintable():
            raise BadValueError(
                "server: no token; expected token='tg_…' as the server's operator gave it, or the "
                f"variable {TOKEN_VARIABLE}."
            )
        self._headers = {"Authorization": f"Bearer {given}"}
        self._client = HttpClient(
            owner="server",
            timeout_s=timeout_s,
            wait_s=_WAIT_S,
            retried_statuses=(),
            busy_wait_s=_BUSY_WAIT_S,
        )

    def __repr__(self) -> str:
        return f"SeasonClient({self.server!r}, season={self.season!r})"

    def describe_season(self) -> dict[str, Any]:
        """Return environments, rules and terms of the season."""
        return self._ask("GET", self._path, None, SeasonReply)

    def start(self, env: str, task: int | None, trial: int | None, request: str) -> dict[str, Any]:
        """Begin an episode; ``request`` is a fresh id, so that a repeated call begins no second."""
        body = {"env": env, "task": task, "trial": trial, "request": request}
        return self._ask("POST", f"{self._path}/episodes", body, StartReply)

    def step(self, session: str, turn: int, action: str) -> dict[str, Any]:
        """Take an action; repeated, it is taken once."""
        path = f"/api/episodes/{quote(session, safe='')}/steps"
        return self._ask("POST", path, {"turn": turn, "action": action}, StepReply)

    def describe_entry(self, **fields: Any) -> dict[str, Any]:
        """Say what the entry of this pass is: name, organisation, licence, description, card."""
        return self._ask("PUT", f"{self._path}/entry", fields)

    def finish(self, give_up: bool = False) -> dict[str, Any]:
        """End the pass and submit it.

        Args:
            give_up: Count episodes that were not played, or are running, as errors.

        Returns:
            ``id`` of the submission and ``status``, the path of its page.
        """
        return self._ask("POST", f"{self._path}/finish", {"give_up": give_up})

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, form: type[Reply] = Reply
    ) -> dict[str, Any]:
        """Return the server's JSON.

        Raises:
            BadValueError: The server refused the request.
            EpisodeError: The episode or the pass is over.
            EnvFault: The server cannot be reached, or broke, or asks for too much patience.
        """
        url, headers = self.server + path, self._headers
        try:
            return self._client.send(
                url, body, method=method, headers=headers, read=lambda said: read_reply(said, form)
            )
        except HttpError as error:
            if not error.refused:
                raise
            kind = EpisodeError if error.reply.status == HTTPStatus.CONFLICT else BadValueError
            kind = EnvFault if error.reply.after_s else kind
            raise kind(f"{self.server}: {_read_message(error)}") from None


def _read_message(error: HttpError) -> str:
    """Return what the server says about its refusal."""
    try:
        message = parse_json(error.reply.body)["error"]["message"]
        return str(message)[:_MESSAGE_CHARS]
    except (ValueError, KeyError, TypeError):
        return error.reply.problem
