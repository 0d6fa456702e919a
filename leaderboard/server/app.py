"""The server's FastAPI application: site, uploads, sealed seasons."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from ..site.rendering import Folder
from .publishing import prepare
from .sealed import SealedPlay
from .sealed_routes import sealed_routes
from .seasons import Seasons
from .settings import ServerSettings
from .step_workers import StepWorkers
from .uploads import upload_routes
from .verifier import Worker
from .web import Fault, Gate, add_headers

_WAIT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="3">'
    "<title>turngym leaderboard</title><p>The pages are being written.</p></html>"
)


def make_app(settings: ServerSettings, background: bool = True) -> FastAPI:
    """Make the application.

    Args:
        settings: Folders, limits and quotas.
        background: Whether the verifying thread runs.
    """
    prepare(settings)
    Folder(settings.site).assets()  # the server's own pages need them before the site is written
    gate, seasons = Gate(settings), Seasons(settings.seasons)
    workers = StepWorkers(settings)
    play = SealedPlay(settings, seasons, workers)
    worker = Worker(settings, play.expire)

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        if background:
            worker.start()
        try:
            yield
        finally:
            workers.close()
            if background:
                worker.stop()

    app = FastAPI(
        title="turngym leaderboard", lifespan=life, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.worker, app.state.step_workers = worker, workers
    app.middleware("http")(add_headers)
    _add_faults(app)
    app.include_router(upload_routes(settings, gate, worker))
    app.include_router(sealed_routes(settings, gate, seasons, play, worker))

    @app.get("/")
    def start() -> Response:
        page = settings.site / "index.html"
        if page.is_file():
            return HTMLResponse(page.read_text(encoding="utf-8"))
        return HTMLResponse(_WAIT, 503, {"Retry-After": "3"})

    app.mount("/", StaticFiles(directory=settings.site, html=True))
    return app


def _add_faults(app: FastAPI) -> None:
    @app.exception_handler(Fault)
    def handle_fault(_: Request, fault: Fault) -> JSONResponse:
        return fault.response()

    @app.exception_handler(RequestValidationError)
    def handle_invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return Fault(422, "format", str(error.errors()[0]["msg"])).response()

    @app.exception_handler(HTTPException)
    def handle_http(_: Request, error: HTTPException) -> JSONResponse:
        return Fault(error.status_code, "http", str(error.detail)).response()
