"""Talks to a leaderboard's server: JSON over HTTP, repeated when the network fails."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from .errors import BadValueError, EnvFault, EpisodeError

TOKEN_VARIABLE = "TURNGYM_TOKEN"
_MOST_BYTES = 64 * 2**20
_PAUSES_S = (0.2, 1.0, 3.0)
_LONGEST_WAIT_S = 90.0


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes only where its owner sent it."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: D102 - as urllib's
        return None


class SeasonClient:
    """One account's way to a sealed season.

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
        self.server = _checked(server)
        self.season = season or "current"
        given = token if token is not None else os.environ.get(TOKEN_VARIABLE, "")
        if not given or not given.isascii() or not given.isprintable():
            raise BadValueError(
                "server: no token; expected token='tg_…' as the server's operator gave it, or the "
                f"variable {TOKEN_VARIABLE}."
            )
        if not timeout_s > 0:
            raise BadValueError(f"server: timeout_s is {timeout_s!r}; expected a number above 0.")
        self._token = given
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(NoRedirect())

    def __repr__(self) -> str:
        return f"SeasonClient({self.server!r}, season={self.season!r})"

    def describe_season(self) -> dict[str, Any]:
        """Worlds, rules and terms of the season."""
        return self._asked("GET", f"/api/seasons/{quote(self.season, safe='')}", None)

    def start(self, env: str, task: int | None, trial: int | None, request: str) -> dict[str, Any]:
        """Begin an episode; ``request`` is a fresh id, so that a repeated call begins no second."""
        body = {"env": env, "task": task, "trial": trial, "request": request}
        return self._asked("POST", f"/api/seasons/{quote(self.season, safe='')}/episodes", body)

    def step(self, session: str, turn: int, action: str) -> dict[str, Any]:
        """Take an action; repeated, it is taken once."""
        path = f"/api/episodes/{quote(session, safe='')}/steps"
        return self._asked("POST", path, {"turn": turn, "action": action})

    def describe_entry(self, **fields: Any) -> dict[str, Any]:
        """Say what the entry of this pass is: name, organisation, licence, description, card."""
        return self._asked("PUT", f"/api/seasons/{quote(self.season, safe='')}/entry", fields)

    def finish(self, give_up: bool = False) -> dict[str, Any]:
        """End the pass and submit it.

        Args:
            give_up: Count episodes that were not played as errors.

        Returns:
            ``id`` of the submission and ``status``, the path of its page.
        """
        path = f"/api/seasons/{quote(self.season, safe='')}/finish"
        return self._asked("POST", path, {"give_up": give_up})

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        """The answer; asks again when the network or the server fails, or asks for patience.

        Raises:
            BadValueError: The server refused the request.
            EpisodeError: The episode or the pass is over.
            EnvFault: The server cannot be reached, or broke.
        """
        fault = ""
        deadline = time.monotonic() + _LONGEST_WAIT_S
        for pause in (*_PAUSES_S, None):
            while True:
                status, said, retry_s = self._sent(method, path, body)
                if status != http.client.TOO_MANY_REQUESTS or retry_s is None:
                    break
                if time.monotonic() + retry_s > deadline:
                    raise EnvFault(f"{self.server}: {_message(said)}")
                time.sleep(retry_s)
            if 200 <= status < 300:
                return _object(said, self.server)
            fault = _message(said)
            if 0 < status < 500:
                raise _refusal(status, said, self.server)
            if pause is not None:
                time.sleep(pause)
        raise EnvFault(f"{self.server} gave no answer: {fault}")

    def _sent(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, bytes, float | None]:
        """Status (0 for no answer), body, and the seconds to wait where the server names them."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                return response.status, _read(response), None
        except urllib.error.HTTPError as error:
            with error:
                wait = error.headers.get("Retry-After", "")
                return error.code, _read(error), float(wait) if wait.isdigit() else None
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error).encode(), None


def _read(response: Any) -> bytes:
    said = response.read(_MOST_BYTES + 1)
    if len(said) > _MOST_BYTES:
        raise OSError(f"the reply is larger than {_MOST_BYTES:,} bytes")
    return said


def _checked(server: Any) -> str:
    fault = BadValueError(
        f"server is {server!r}; expected an address such as 'https://board.example.org', without "
        "user, query and fragment."
    )
    try:
        split = urlsplit(server)
        known = split.scheme in ("http", "https") and split.hostname and split.port != 0
    except (ValueError, TypeError, AttributeError):
        raise fault from None
    if not known or split.query or split.fragment or "@" in split.netloc or " " in server:
        raise fault
    return server.rstrip("/")


def _object(said: bytes, server: str) -> dict[str, Any]:
    try:
        data = json.loads(said)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise EnvFault(f"{server}: the reply is no JSON object: {said[:80]!r}.")
    return data


def _error(said: bytes) -> Mapping[str, Any]:
    try:
        error = json.loads(said)["error"]
        return error if isinstance(error, dict) else {}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


def _message(said: bytes) -> str:
    return str(_error(said).get("message") or said[:200].decode("utf-8", "replace"))


def _refusal(status: int, said: bytes, server: str) -> Exception:
    kind = EpisodeError if status == http.client.CONFLICT else BadValueError
    return kind(f"{server}: {_message(said)}")
