"""Routes of uploads: the page, the archive, and the state of its verification."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse

from ..site.rendering import Renderer
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
            await run_in_threadpool(check_quota, settings, account)
            name = new_id()
            path = await _receive(request, settings, name)
            await run_in_threadpool(_queue, settings, name, account, path)
        except QuotaError as error:
            raise Fault(429, "quota", str(error)) from error
        worker.nudge()
        answer = {"id": name, "state": "queued", "status": f"submissions/{name}"}
        return JSONResponse(answer, 202)

    return routes


def _find(settings: ServerSettings, name: str) -> tuple[Submission, int]:
    one = find(settings, name)
    if one is None:
        raise Fault(404, "unknown", "there is no such submission.")
    return one, place_in_queue(settings, one) if one.state == "queued" else 0


async def _receive(request: Request, settings: ServerSettings, name: str) -> Path:
    """Stream the body to disk, up to the limit.

    Raises:
        Fault: It is too large, empty, or not an archive.
    """
    max_bytes = settings.read.archive_bytes
    too_large = Fault(413, "size", f"the archive has more than {max_bytes:,} bytes.")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and len(announced) < 20 and int(announced) > max_bytes:
        raise too_large
    descriptor, fresh = tempfile.mkstemp(dir=settings.uploads, prefix="coming-")
    size, start = 0, b""
    try:
        with os.fdopen(descriptor, "wb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > max_bytes:
                    raise too_large
                start = start or chunk[:4]
                file.write(chunk)
        if not start.startswith(b"PK"):
            raise Fault(415, "archive", "the upload is not a zip; pack the entry's folder as one.")
        path = settings.uploads / f"{name}.zip"
        os.replace(fresh, path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
    return path


def _queue(settings: ServerSettings, name: str, account: str, path: Path) -> None:
    try:
        add_upload(settings, name, account, path)
    except QuotaError:
        path.unlink(missing_ok=True)
        raise
