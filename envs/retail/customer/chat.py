"""One question to an OpenAI-compatible endpoint: patient, bounded in time, remembered on disk."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import BadValueError, EnvFault
from ...utils.disk_cache import cache_text
from ...utils.http import HttpClient, HttpError, bearer_headers, check_url, parse_json

MAX_CHARS = 100_000
"""Most characters of a message; a model that is asked for a few hundred tokens writes fewer."""
_gates: dict[tuple[str, int], threading.BoundedSemaphore] = {}
_gates_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class ChatEndpoint:
    """Where a model answers.

    Attributes:
        url: Base address, as ``http://localhost:8000/v1``.
        key_variable: Environment variable with the key; an unset one means none.
        timeout_s: Seconds that one try may take in all.
        attempts: Tries per question.
        wait_s: Seconds before the second try; each further wait is twice as long.
        at_once: Questions at a time, over all threads of the process.
        cache: Folder where answers are kept; None for none.

    Raises:
        BadValueError: A value out of range.
    """

    url: str
    key_variable: str = "OPENAI_API_KEY"
    timeout_s: float = 60.0
    attempts: int = 4
    wait_s: float = 0.5
    at_once: int = 16
    cache: str | None = None

    def __post_init__(self) -> None:
        check_url(self.url, "ChatEndpoint: url")
        if not self.at_once > 0:
            raise BadValueError(f"ChatEndpoint: at_once is {self.at_once}; expected above 0.")
        _ = self._http

    def ask(self, body: dict[str, Any]) -> str:
        """Return the text of the answer.

        Raises:
            EnvFault: No usable answer after all attempts, or a request that is refused.
        """
        if self.cache is None:
            return self._ask(body)
        key = hashlib.sha256(json.dumps([self.url, body], sort_keys=True).encode()).hexdigest()
        return cache_text(Path(self.cache) / key[:2] / f"{key}.txt", lambda: self._ask(body))

    @property
    def _http(self) -> HttpClient:
        return HttpClient(
            owner="ChatEndpoint",
            timeout_s=self.timeout_s,
            attempts=self.attempts,
            wait_s=self.wait_s,
            retried_statuses=(408, 409, 425, 429),
            proxies=False,
        )

    def _ask(self, body: dict[str, Any]) -> str:
        with _gates_lock:
            gate = _gates.setdefault(
                (self.url, self.at_once), threading.BoundedSemaphore(self.at_once)
            )
        url, headers = f"{self.url.rstrip('/')}/chat/completions", bearer_headers(self.key_variable)
        try:
            with gate:
                return self._http.send(url, body, headers=headers, read=_read_content)
        except HttpError as error:
            raise EnvFault(f"the customer's model: {error}") from None


def _read_content(body: bytes) -> str:
    text = parse_json(body)["choices"][0]["message"]["content"]
    if not isinstance(text, str) or not text.strip():
        raise ValueError("choices[0].message.content is no text; expected the model's words")
    if len(text) > MAX_CHARS:
        raise ValueError(f"a message of {len(text):,} characters; expected at most {MAX_CHARS:,}")
    return text.encode("utf-8", "replace").decode()  # lone surrogates fit into no file
