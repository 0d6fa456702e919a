"""Routes of uploads: the page, the archive, and the state of its verification."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse

from ..site.rendering import Renderer
from .publishing import COMING
from .settings import ServerSettings
from .submissions import (
    QuotaError,
    Submission,
    add_upload,
    check_quota,
    find,
    new_id,
    place_in_queue,
)
from .verifier import Worker
from .web import Fault, Gate


def upload_routes(settings: ServerSettings, gate: Gate, worker: Worker) -> APIRouter:
    """Make the routes of uploads."""
    routes, renderer = APIRouter(), Renderer(uploads=True)
    coming = Coming(settings)

    @routes.get("/submit", response_class=HTMLResponse)
    def submit_page(request: Request) -> str:
        gate.limit_visitor(request)
        return renderer.text("submit.html", depth=0, here="submit", limits=settings.read)

    @routes.get("/submissions/{name}", response_class=HTMLResponse)
    def status_page(request: Request, name: str) -> str:
        gate.limit_visitor(request)
        one, before = _find(settings, name)
        return renderer.text("status.html", depth=1, here="submit", one=one, before=before)

    @routes.get("/api/submissions/{name}")
    def status(request: Request, name: str) -> dict[str, Any]:
        gate.limit_visitor(request)
        one, before = _find(settings, name)
        return one.public() | {"before": before}

    @routes.post("/api/submissions")
    async def upload(request: Request) -> JSONResponse:
        account = await run_in_threadpool(gate.authenticate, request)
        try:
            name = new_id()
            with await run_in_threadpool(coming.place, account):
                path = await _receive(request, settings, name)
                await run_in_threadpool(_queue, settings, name, account, path)
        except QuotaError as error:
            raise Fault(429, "quota", str(error)) from error
        worker.nudge()
        answer = {"id": name, "state": "queued", "status": f"submissions/{name}"}
        return JSONResponse(answer, 202)

    return routes


class Coming:
    """Counts the uploads under way, which take places of their accounts' quotas.

    Args:
        settings: Settings of the server.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._count: dict[str, int] = {}
        self._lock = threading.Lock()

    def place(self, account: str) -> contextlib.AbstractContextManager[None]:
        """Take a place, for as long as the returned context lasts.

        Raises:
            QuotaError: The account has no place left today, or in the queue.
        """
        with self._lock:
            under_way = self._count.get(account, 0)
            check_quota(self._settings, account, under_way)
            self._count[account] = under_way + 1
        return self._held(account)

    @contextlib.contextmanager
    def _held(self, account: str) -> Iterator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._count[account] -= 1
                if not self._count[account]:
                    del self._count[account]


def _find(settings: ServerSettings, name: str) -> tuple[Submission, int]:
    one = find(settings, name)
    if one is None:
        raise Fault(404, "unknown", "there is no such submission.")
    return one, place_in_queue(settings, one) if one.state == "queued" else 0


async def _receive(request: Request, settings: ServerSettings, name: str) -> Path:
    """Stream the body to disk, up to the limit.

    Raises:
        Fault: It is too large, empty, not an archive, or comes too slowly.
    """
    max_bytes = settings.read.archive_bytes
    too_large = Fault(413, "size", f"the archive has more than {max_bytes:,} bytes.")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and len(announced) < 20 and int(announced) > max_bytes:
        raise too_large
    descriptor, fresh = tempfile.mkstemp(dir=settings.uploads, prefix=COMING)
    size, start = 0, b""
    try:
        with os.fdopen(descriptor, "wb") as file:
            async with asyncio.timeout(settings.upload_s):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > max_bytes:
                        raise too_large
                    start += chunk[: 4 - len(start)]
                    file.write(chunk)
        if not start.startswith(b"PK"):
            raise Fault(415, "archive", "the upload is not a zip; pack the entry's folder as one.")
        path = settings.uploads / f"{name}.zip"
        os.replace(fresh, path)
    except TimeoutError as error:
        Path(fresh).unlink(missing_ok=True)
        message = f"the upload took more than {settings.upload_s:g} seconds."
        raise Fault(408, "slow", message) from error
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
    return path


def _queue(settings: ServerSettings, name: str, account: str, path: Path) -> None:
    try:
        add_upload(settings, name, account, path)
    except BaseException:  # nobody would look for it again
        path.unlink(missing_ok=True)
        raise
