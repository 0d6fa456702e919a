"""What a retrieval server lets in: bounds on bodies, and a token."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
_OPEN = ("/health",)


class _Refused(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Door:
    """An ASGI application around another: reads bodies within bounds, and asks for a token.

    Args:
        app: The application inside.
        max_body_bytes: Maximum size of one body.
        max_held_bytes: Maximum size of all bodies that are read or answered at one time, which
            bounds the server's memory under load.
        token: What ``Authorization: Bearer …`` must hold, but for ``/health``; empty for none.
    """

    def __init__(self, app: App, *, max_body_bytes: int, max_held_bytes: int, token: str) -> None:
        self._app = app
        self._max_body = max_body_bytes
        self._max_held = max_held_bytes
        self._token = token.encode()
        self._held = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one connection's request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            try:
                self._check(scope)
                await self._read(receive, body)
            except _Refused as refusal:
                await _answer(send, refusal.status, str(refusal))
                return
            sent = False

            async def replay() -> Message:
                nonlocal sent
                if sent:
                    return await receive()
                sent = True
                return {"type": "http.request", "body": bytes(body), "more_body": False}

            await self._app(scope, replay, send)
        finally:
            self._held -= len(body)

    def _check(self, scope: Message) -> None:
        headers = dict(scope["headers"])
        if self._token and scope["path"] not in _OPEN:
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                raise _Refused(
                    401, "the token is missing or wrong; send 'Authorization: Bearer …'."
                )
        announced = headers.get(b"content-length", b"")
        if announced.isdigit() and (len(announced) > 18 or int(announced) > self._max_body):
            raise self._too_large()

    async def _read(self, receive: Receive, body: bytearray) -> None:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Refused(400, "the request was cut off.")
            chunk = message.get("body", b"")
            if len(body) + len(chunk) > self._max_body:
                raise self._too_large()
            if self._held + len(chunk) > self._max_held:
                raise _Refused(503, "the server holds as many requests as it may; try again.")
            body += chunk
            self._held += len(chunk)
            if not message.get("more_body", False):
                return

    def _too_large(self) -> _Refused:
        return _Refused(413, f"the body has more than {self._max_body:,} bytes.")


async def _answer(send: Send, status: int, detail: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": detail}).encode()})
