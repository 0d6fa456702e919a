"""The routes of an engine server.

``GET /health``            what samples here, and which weights it has
``GET /metrics``           counts, in Prometheus' text form
``POST /generate``         a batch of requests for named weights; answers as JSON lines
``POST /weights/file``     load weights from a file in the folder of weights
``PUT /weights/upload``    a piece of weights; ``POST /weights/upload`` loads what has come
``POST /weights/group/…``   join a group that weights are sent through, be offered some, take them
``POST /sleep, /wake``     give the card's memory back, take it again
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse

from ....envs.core.errors import EpisodeError
from ...retrieval.door import Door
from ..hand_over.forms import Form
from ..hand_over.group import Membership
from .host import EngineHost
from .wire import MAX_REQUESTS, WeightsId, decode_request, encode_answer, json_line

BODY_BYTES = 64 * 2**20
"""Most bytes of one request; uploads come in pieces of fewer."""
HELD_BYTES = 8 * BODY_BYTES
HEARTBEAT_S = 1.0
"""Seconds after which an empty line says that a call is still being answered."""
_CONFLICT, _UNPROCESSABLE = 409, 422


def make_app(host: EngineHost, *, token: str = "") -> FastAPI:
    """Return the server's application.

    Args:
        host: The engine; closed with the server.
        token: What ``Authorization: Bearer …`` of every request but ``/health`` must hold; empty
            for none.
    """
    app = FastAPI(title="turngym engine server", openapi_url=None)
    app.add_middleware(Door, max_body_bytes=BODY_BYTES, max_held_bytes=HELD_BYTES, token=token)
    routes = _Routes(host)
    for method, path, route in (
        ("GET", "/health", routes.health),
        ("GET", "/metrics", routes.metrics),
        ("POST", "/generate", routes.generate),
        ("POST", "/weights/file", routes.take_file),
        ("PUT", "/weights/upload", routes.receive),
        ("POST", "/weights/upload", routes.take_upload),
        ("POST", "/weights/group/join", routes.join),
        ("POST", "/weights/group/offer", routes.offer),
        ("POST", "/weights/group/take", routes.take_sent),
        ("POST", "/sleep", routes.sleep),
        ("POST", "/wake", routes.wake),
    ):
        app.add_api_route(path, route, methods=[method], response_model=None)
    return app


class _Routes:
    """What the routes do."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host

    async def health(self) -> Any:
        """Return what samples here."""
        return {"status": "ok", **self._host.facts().to_json()}

    async def metrics(self) -> Any:
        """Return counts, as Prometheus reads them."""
        held = self._host.weights
        counts = self._host.metrics() | {"weights_version": -1 if held is None else held.version}
        text = "".join(f"turngym_engine_{name} {value}\n" for name, value in counts.items())
        return Response(text, media_type="text/plain; version=0.0.4")

    async def generate(self, request: Request) -> Any:
        """Sample a batch."""
        try:
            wanted, requests, released = _read_call(await request.body())
        except ValueError as fault:
            return JSONResponse({"detail": f"{fault}."}, _UNPROCESSABLE)
        self._host.release(released)
        if self._host.weights != wanted:
            return _stale(self._host)
        answers = _answers(self._host, wanted, requests)
        return StreamingResponse(answers, media_type="application/x-ndjson")

    async def take_file(self, request: Request) -> Any:
        """Load weights from a file."""
        body = await request.body()

        def work() -> Any:
            found = _object(body)
            name = found.get("file")
            if not isinstance(name, str) or not name or "\0" in name:
                raise ValueError("no name of a file")
            wanted = WeightsId.read(found.get("weights"))
            self._host.take_file(wanted, name)
            return wanted.to_json()

        return await _guarded(work)

    async def receive(self, request: Request, digest: str, at: int) -> Any:
        """Take a piece of weights."""
        piece = await request.body()

        def work() -> Any:
            if at < 0 or not digest.startswith("sha256:") or len(digest) > 100:
                raise ValueError("no digest, or a place below 0")
            return {"bytes": self._host.receive(digest, at, piece)}

        return await _guarded(work)

    async def take_upload(self, request: Request) -> Any:
        """Load what was uploaded."""
        body = await request.body()

        def work() -> Any:
            wanted = WeightsId.read(_object(body).get("weights"))
            self._host.take_upload(wanted)
            return wanted.to_json()

        return await _guarded(work)

    async def join(self, request: Request) -> Any:
        """Join a group that weights are sent through."""
        body = await request.body()

        def work() -> Any:
            place = Membership.read(_object(body).get("place"))
            self._host.join(place)
            return {"group": place.name}

        return await _guarded(work)

    async def offer(self, request: Request) -> Any:
        """Get ready for weights."""
        body = await request.body()

        def work() -> Any:
            found = _object(body)
            group, forms = found.get("group"), found.get("forms")
            if not isinstance(group, str) or not isinstance(forms, list):
                raise ValueError("no group, or no list of forms")
            wanted = WeightsId.read(found.get("weights"))
            self._host.offer(wanted, group, [Form.read(form) for form in forms])
            return wanted.to_json()

        return await _guarded(work)

    async def take_sent(self, request: Request) -> Any:
        """Receive the weights that were offered."""
        body = await request.body()

        def work() -> Any:
            wanted = WeightsId.read(_object(body).get("weights"))
            self._host.take_sent(wanted)
            return wanted.to_json()

        return await _guarded(work)

    async def sleep(self) -> Any:
        """Give memory back."""
        return await _guarded(lambda: self._host.sleep() or {"asleep": True})

    async def wake(self) -> Any:
        """Take memory again."""
        return await _guarded(lambda: self._host.wake() or {"asleep": False})


async def _guarded(work: Callable[[], Any]) -> Any:
    """Do slow work in a thread; what goes wrong is an answer, never a broken connection."""
    try:
        return JSONResponse(await run_in_threadpool(work))
    except EpisodeError as fault:
        return JSONResponse({"detail": str(fault)}, _CONFLICT)
    except ValueError as fault:  # of this project's errors too
        return JSONResponse({"detail": str(fault)[:2000]}, _UNPROCESSABLE)
    except Exception as fault:  # noqa: BLE001 - told to who asked
        why = f"{type(fault).__name__}: {fault}"
        return JSONResponse({"detail": why[:2000]}, 500)


async def _answers(host: EngineHost, wanted: WeightsId, requests: Any) -> AsyncIterator[bytes]:
    """Yield the lines of an answer: a head, one per request as it is done, and an end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Queue[tuple[int, Any] | None] = asyncio.Queue()

    def put(item: tuple[int, Any] | None) -> None:
        with suppress(RuntimeError):  # nobody listens any more
            loop.call_soon_threadsafe(done.put_nowait, item)

    work = host.generate(wanted, requests, lambda at, found: put((at, found)))
    work.add_done_callback(lambda _: put(None))
    try:
        yield json_line({"weights": wanted.to_json(), "count": len(requests)})
        while True:
            try:
                item = await asyncio.wait_for(done.get(), HEARTBEAT_S)
            except TimeoutError:
                yield b"\n"
                continue
            if item is None:
                break
            yield json_line(encode_answer(*item) | {"stats": host.newly_counted()})
        fault = None if work.cancelled() else work.exception()
        if fault is not None or work.cancelled():
            yield json_line({"failed": str(fault)[:2000]})
            return
        yield json_line({"end": len(requests)})
    finally:
        work.cancel()


def _stale(host: EngineHost) -> Any:
    held = host.weights
    found = None if held is None else held.to_json()
    return JSONResponse({"detail": "other weights are here", "weights": found}, _CONFLICT)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def _read_call(body: bytes) -> tuple[WeightsId, list[Any], list[int]]:
    """Return what a call asks for: weights, requests, and handles to forget.

    Raises:
        ValueError: It cannot be read.
    """
    found = _object(body)
    asked, released = found.get("requests"), found.get("release", [])
    if not isinstance(asked, list) or not 0 < len(asked) <= MAX_REQUESTS:
        raise ValueError(f"requests is no list of 1 to {MAX_REQUESTS}")
    if not isinstance(released, list) or not all(type(h) is int and h >= 0 for h in released):
        raise ValueError("release is no list of handles")
    return WeightsId.read(found.get("weights")), [decode_request(one) for one in asked], released
