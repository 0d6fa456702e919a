"""One question to an OpenAI-compatible endpoint: patient, bounded in time, remembered on disk."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...errors import BadValueError, EnvFault

_AGAIN = (408, 409, 429)
_BLOCK = 1 << 16
_MOST_BYTES = 1 << 24
_LONGEST_WAIT_S = 30.0
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
        split = urlsplit(self.url)
        if split.scheme not in ("http", "https") or not split.hostname:
            raise BadValueError(
                f"ChatEndpoint: url is {self.url!r}; expected an address such as "
                "'http://localhost:8000/v1'."
            )
        for name in ("timeout_s", "attempts", "at_once"):
            if not getattr(self, name) > 0:
                raise BadValueError(f"ChatEndpoint: {name} is {getattr(self, name)}; expected > 0.")

    def ask(self, body: dict[str, Any]) -> str:
        """The text of the answer.

        Raises:
            EnvFault: No usable answer after all attempts, or a request that is refused.
        """
        kept = None if self.cache is None else self._place(body)
        if kept is not None and kept.is_file():
            return kept.read_text(encoding="utf-8")
        text = self._patiently(body)
        if kept is not None:
            _keep(kept, text)
        return text

    def _place(self, body: dict[str, Any]) -> Path:
        key = hashlib.sha256(json.dumps([self.url, body], sort_keys=True).encode()).hexdigest()
        return Path(self.cache or "") / key[:2] / f"{key}.txt"

    def _patiently(self, body: dict[str, Any]) -> str:
        fault = ""
        for tried in range(self.attempts):
            if tried:
                time.sleep(min(self.wait_s * 2 ** (tried - 1), _LONGEST_WAIT_S))
            try:
                with self._gate():
                    status, said = self._exchanged(json.dumps(body).encode())
            except TimeoutError:
                fault = f"no answer within {self.timeout_s:g} seconds"
                continue
            except (OSError, http.client.HTTPException) as broken:
                fault = str(broken) or type(broken).__name__
                continue
            if status == http.client.OK:
                if (text := _content(said)) is not None:
                    return text
                fault = f"an answer without choices[0].message.content: {said[:200]!r}"
                continue
            fault = f"status {status}: {said[:200]!r}"
            if status < 500 and status not in _AGAIN:
                raise EnvFault(f"the customer's model at {self.url} refused: {fault}")
        raise EnvFault(
            f"the customer's model at {self.url} gave no answer after {self.attempts} attempts: "
            f"{fault}"
        )

    def _gate(self) -> threading.BoundedSemaphore:
        with _gates_lock:
            key = (self.url, self.at_once)
            return _gates.setdefault(key, threading.BoundedSemaphore(self.at_once))

    def _exchanged(self, body: bytes) -> tuple[int, bytes]:
        deadline = time.monotonic() + self.timeout_s
        split = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
        )
        link = kind(split.hostname or "", split.port, timeout=self.timeout_s)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key := os.environ.get(self.key_variable):
            headers["Authorization"] = f"Bearer {key}"
        try:
            link.request("POST", f"{split.path.rstrip('/')}/chat/completions", body, headers)
            wire: Any = link.sock
            wire.settimeout(_left(deadline))
            response = link.getresponse()
            said = bytearray()
            while block := response.read1(_BLOCK):
                said += block
                if len(said) > _MOST_BYTES:
                    raise OSError("the answer is larger than 16 MiB")
                wire.settimeout(_left(deadline))
            return response.status, bytes(said)
        finally:
            link.close()


def _left(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def _content(said: bytes) -> str | None:
    try:
        text = json.loads(said)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    return text if isinstance(text, str) and text.strip() else None


def _keep(path: Path, text: str) -> None:
    """Write the file whole; a folder that cannot be written loses the memory only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(scratch, path)
    except OSError:
        return
