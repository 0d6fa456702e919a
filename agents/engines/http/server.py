"""One engine server as its client sees it: what it is asked, and how it is doing."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....envs.core.errors import BadValueError, EngineFault, TurngymError
from ....envs.utils.http import HttpClient, HttpError, bearer_headers, parse_json
from ..base import Completion, EngineStats, Request
from ..hand_over.forms import Form
from ..hand_over.group import Membership
from .settings import HttpSettings
from .weights import WeightsFile
from .wire import (
    Facts,
    WeightsId,
    decode_answer,
    decode_stats,
    encode_request,
    reply_bytes,
)

Answer = Callable[[int, Completion | TurngymError, EngineStats], None]
PIECE_BYTES = 32 * 2**20
"""Bytes of one piece of an upload."""
_REPLY_BYTES = 1 << 20
_HEALTH_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
_UNAUTHORIZED, _CONFLICT = 401, 409
_TO_BE_TRIED_AGAIN = (408, 425, 429)
_KEPT = ("engine", "vocabulary", "dtype", "tokenizer")
"""What a server must be again when it was started anew."""


class StaleServerError(EngineFault):
    """The server has other weights than those that a call was for."""


class AbandonedCallError(Exception):
    """Nobody waits for what a call still brings."""


class LostCallError(EngineFault):
    """A call without a usable answer: nobody there, too slow, or nonsense."""


@dataclass(slots=True, eq=False)
class EngineServer:
    """A server.

    Attributes:
        url: Its address.
        settings: How to speak to it.
        facts: What it says about itself.
        running: Requests that it was given and has not answered.
        failures: Calls in a row that failed.
        failed_at: Moment of the monotonic clock of the last of them.
        away_until: Moment of the monotonic clock before which it is not asked.
        problem: Why the last call failed.
        handed: Times that it was given the present weights.
        taking: Whether it is being given them again.
        released: Its cache handles that nobody needs any more.
    """

    url: str
    settings: HttpSettings
    facts: Facts = field(init=False)
    running: int = 0
    failures: int = 0
    failed_at: float = 0.0
    away_until: float = 0.0
    problem: str = ""
    handed: int = 0
    taking: bool = False
    released: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")

    @property
    def lost(self) -> bool:
        """Whether it failed so often that it counts as lost."""
        return self.failures >= self.settings.attempts

    def room(self, now: float) -> int:
        """Return how many requests it can take at a moment of the monotonic clock."""
        away = self.lost or self.taking or now < self.away_until
        return 0 if away else self.facts.max_batch - self.running

    def failed(self, problem: str, begun: float = math.inf) -> None:
        """Note a failure: the server is left alone for a while that doubles.

        Args:
            problem: What went wrong.
            begun: Moment of the monotonic clock at which the call began. One that was on its way
                when another one failed says nothing new: a server that ends breaks all at once.
        """
        if begun < self.failed_at:
            return
        pause = min(_FIRST_PAUSE_S * 2**self.failures, _LONGEST_PAUSE_S)
        self.failures += 1
        self.failed_at, self.problem = time.monotonic(), problem
        self.away_until = self.failed_at + pause

    def forgive(self) -> None:
        """Let it try again."""
        self.failures, self.away_until = 0, 0.0

    # ------------------------------------------------------------------ calls, in any thread

    def look(self) -> None:
        """Read its facts.

        Raises:
            BadValueError: It does not answer, or is no engine server.
        """
        try:
            self.facts = self._send(
                _client(_HEALTH_S, attempts=3), "GET", "/health", None, Facts.read
            )
        except EngineFault as fault:
            raise BadValueError(
                f"engine http: {fault} Expected a server of `turngym engine serve` at {self.url}."
            ) from None

    def hand_over(self, weights: WeightsId, file: WeightsFile, folder: Path | None) -> None:
        """Give it weights: as a file that it sees too, or in pieces.

        Raises:
            EngineFault: It refuses them, or is another server than at the beginning.
            LostCallError: It gave no usable answer.
        """
        self.handed += 1
        self._look_again()
        client = _client(self.settings.weights_timeout_s)
        body: dict[str, Any] = {"weights": weights.to_json()}
        path = "/weights/upload"
        if folder is None:
            self._upload(client, weights.digest, file)
        else:
            path = "/weights/file"
            body["file"] = file.path.relative_to(folder).as_posix()
        took = self._send(client, "POST", path, body, WeightsId.read)
        if took != weights:
            raise LostCallError(f"{self.url} says that it took {took}, not {weights}.")

    def present(self) -> bool:
        """Return whether it answers; its facts are read anew, and a failure is noted.

        It is asked twice: a connection that was kept open may end at the moment it is taken.
        """
        try:
            self._look_again()
        except EngineFault as fault:
            self.failed(str(fault))
            return False
        return True

    def _look_again(self) -> None:
        """Read its facts anew; it may have been started anew.

        Raises:
            EngineFault: It is another server than at the beginning.
            LostCallError: It gave no usable answer.
        """
        client, before = _client(_HEALTH_S, attempts=2), self.facts
        now = self._send(client, "GET", "/health", None, Facts.read)
        changed = [name for name in _KEPT if getattr(now, name) != getattr(before, name)]
        if now.max_context < before.max_context:
            changed.append("max_context")
        if changed:
            was, found = (getattr(facts, changed[0]) for facts in (before, now))
            raise EngineFault(
                f"engine http: {self.url} was started anew, and its {changed[0]} is {found!r}, no "
                f"longer {was!r}; start it with the model and the options that it had."
            )
        self.facts = now

    def join(self, place: Membership) -> None:
        """Have it join a group.

        Raises:
            EngineFault: It cannot, or the others were not there in time.
        """
        client = _client(place.join_s + _HEALTH_S)
        self._send(client, "POST", "/weights/group/join", {"place": place.to_json()})

    def offer(self, weights: WeightsId, group: str, forms: Sequence[Form]) -> None:
        """Tell it what will be sent through a group.

        Raises:
            EngineFault: It refuses.
            LostCallError: It is not in the group, or gave no usable answer.
        """
        client = _client(self.settings.weights_timeout_s)
        body = {"weights": weights.to_json(), "group": group, "forms": list(forms)}
        self._send(client, "POST", "/weights/group/offer", body, WeightsId.read)

    def take_sent(self, weights: WeightsId) -> None:
        """Have it receive what it was offered; returns when it samples from it.

        Raises:
            EngineFault: It could not.
        """
        client = _client(self.settings.weights_timeout_s)
        body = {"weights": weights.to_json()}
        took = self._send(client, "POST", "/weights/group/take", body, WeightsId.read)
        if took != weights:
            raise LostCallError(f"{self.url} says that it took {took}, not {weights}.")

    def _upload(self, client: HttpClient, digest: str, file: WeightsFile) -> None:
        """Send a file in pieces."""
        with file.path.open("rb") as source:
            at = 0
            while at < file.size:
                source.seek(at)
                piece = source.read(PIECE_BYTES)
                path = f"/weights/upload?digest={digest}&at={at}"
                here = self._send(client, "PUT", path, piece, lambda found: found["bytes"])
                if here != at + len(piece):  # somebody else uploads, or it began anew
                    raise LostCallError(
                        f"{self.url} has {here!r} bytes of an upload of {at + len(piece)}."
                    )
                at += len(piece)

    def generate(
        self,
        weights: WeightsId,
        requests: Sequence[tuple[Request, int | None]],
        answer: Answer,
        gone: Callable[[], bool],
    ) -> None:
        """Have requests answered; ``answer`` is called for each in this thread.

        Args:
            weights: For these alone.
            requests: Each with the server's own cache handle or None.
            answer: Takes the place of a request, its answer, and what the server counted since.
            gone: Whether nobody waits any more.

        Raises:
            StaleServerError: Other weights are there.
            LostCallError: The call broke; what was answered before counts.
            AbandonedCallError: Nobody waits any more; the server gives up too.
            EngineFault: The server does not let this client in.
        """
        released, self.released = self.released, []
        body = {
            "weights": weights.to_json(),
            "requests": [encode_request(request, cache) for request, cache in requests],
            "release": released,
        }
        plain = [request for request, _ in requests]
        reader = AnswerReader(weights, plain, self.facts.vocabulary, answer)
        limit_s = self.settings.timeout_s
        client = _client(limit_s, reply_bytes(plain) + 2 * int(limit_s) + 64)

        def feed(block: bytes) -> None:
            if gone():
                raise AbandonedCallError
            reader.feed(block)

        self._send(client, "POST", "/generate", body, feed=feed)
        if not reader.ended:
            raise LostCallError(f"{self.url} ended its answer before the last request was done.")

    def tell(self, path: str) -> None:
        """Post to a path without a body.

        Raises:
            EngineFault: It refuses.
            LostCallError: It gave no usable answer.
        """
        self._send(_client(_HEALTH_S), "POST", path, {})

    def _send(
        self,
        client: HttpClient,
        method: str,
        path: str,
        body: Any,
        read: Callable[[Any], Any] = dict,
        feed: Callable[[bytes], None] | None = None,
    ) -> Any:
        """Make a call; ``read`` takes what is wanted from the JSON of a reply that is not fed."""
        try:
            return client.send(
                self.url + path,
                body,
                method=method,
                headers=bearer_headers(self.settings.token_variable),
                read=bytes if feed is not None else lambda reply: read(parse_json(reply)),
                feed=feed,
            )
        except HttpError as fault:
            raise self._explain(fault) from None

    def _explain(self, fault: HttpError) -> EngineFault:
        status = fault.reply.status
        if status == _UNAUTHORIZED:
            return EngineFault(
                f"engine http: {self.url} wants the server's token; set the environment variable "
                f"{self.settings.token_variable or 'that http.token_variable names'}."
            )
        if status == _CONFLICT and _has_weights(fault.reply.body):
            return StaleServerError(f"{self.url} has other weights.")
        if fault.refused and status not in (_CONFLICT, *_TO_BE_TRIED_AGAIN):
            return EngineFault(f"engine http: {self.url} refuses: {fault.reply.problem}")
        return LostCallError(f"{self.url}: {fault.reply.problem.rstrip('.')}.")


class AnswerReader:
    """Reads the lines of an answer as they come, and believes none of them unchecked.

    Args:
        weights: That the answer must be for.
        requests: That were asked.
        vocabulary: Number of token ids.
        answer: Takes the place of a request, its answer, and what the server counted since.

    Attributes:
        ended: Whether the last line has come.
    """

    def __init__(
        self,
        weights: WeightsId,
        requests: Sequence[Request],
        vocabulary: int,
        answer: Answer,
    ) -> None:
        self._weights, self._requests = weights, requests
        self._vocabulary, self._answer = vocabulary, answer
        self._rest = b""
        self._begun = False
        self._done: set[int] = set()
        self.ended = False

    def feed(self, block: bytes) -> None:
        """Read what has come.

        Raises:
            ValueError: It is no answer.
        """
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            if line:
                self._read(parse_json(line))

    def _read(self, found: Any) -> None:
        if not isinstance(found, Mapping) or self.ended:
            raise ValueError("a line that is no object, or one behind the end")
        if not self._begun:
            if WeightsId.read(found.get("weights")) != self._weights:
                raise ValueError("an answer under other weights")
            self._begun = True
        elif "failed" in found:
            raise ValueError(f"the server gave up: {str(found['failed'])[:300]}")
        elif "end" in found:
            if len(self._done) != len(self._requests):
                raise ValueError(f"{len(self._done)} of {len(self._requests)} answers")
            self.ended = True
        else:
            self._take(found)

    def _take(self, found: Mapping[str, Any]) -> None:
        at = found.get("at")
        if type(at) is not int or not 0 <= at < len(self._requests) or at in self._done:
            raise ValueError(f"an answer to request {str(at)[:40]!r}, or a second one")
        answer = decode_answer(found, self._requests[at], self._vocabulary)
        stats = decode_stats(found.get("stats"))
        self._done.add(at)
        self._answer(at, answer, stats)


def _client(timeout_s: float, most: int = _REPLY_BYTES, attempts: int = 1) -> HttpClient:
    return HttpClient(owner="engine http", timeout_s=timeout_s, attempts=attempts, max_bytes=most)


def _has_weights(body: bytes) -> bool:
    try:
        return "weights" in json.loads(body)
    except (ValueError, RecursionError, TypeError):
        return False
