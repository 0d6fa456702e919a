"""The server's FastAPI application: site, uploads, sealed seasons."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from ..site.rendering import Folder, Renderer
from .publishing import prepare
from .sealed import SealedPlay
from .sealed_routes import sealed_routes
from .seasons import Seasons
from .settings import ServerSettings
from .step_workers import StepWorkers
from .uploads import upload_routes
from .verifier import Worker
from .web import Fault, Gate, add_headers, set_headers

_STARTING, _REFRESH_S = "starting", 3
_DEEPEST = 20
"""Most folders above an error's page that its links climb; an address may name thousands."""
_WRITTEN = ("/index.html", "/boards/", "/entries/", "/environments/")
"""Where the pages are that a new server has not written yet."""


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
    _add_faults(app, settings)
    app.include_router(upload_routes(settings, gate, worker))
    app.include_router(sealed_routes(settings, gate, seasons, play, worker))

    @app.get("/")
    def start() -> Response:
        page = settings.site / "index.html"
        if page.is_file():
            return HTMLResponse(page.read_text(encoding="utf-8"))
        raise _waiting()

    app.mount("/", StaticFiles(directory=settings.site, html=True))
    return app


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _waiting() -> Fault:
    return Fault(503, _STARTING, "The pages are being written.", _REFRESH_S)


def _add_faults(app: FastAPI, settings: ServerSettings) -> None:
    renderer = Renderer(uploads=True)

    def answer(request: Request, fault: Fault) -> Response:
        """Return the error as a page where one is asked for, which browsers do, else as JSON."""
        plain = fault.response()
        if not _wants_page(request):
            return plain
        starting = fault.kind == _STARTING
        text = renderer.text(
            "message.html",
            depth=min(_DEEPEST, request.url.path.count("/") - 1),
            here="",
            title="One moment" if starting else HTTPStatus(fault.status).phrase,
            message=fault.message[:1].upper() + fault.message[1:],
            refresh_s=_REFRESH_S if starting else 0,
        )
        kept = {k: v for k, v in plain.headers.items() if not k.startswith("content-")}
        return HTMLResponse(text, fault.status, kept | {"Vary": "Accept"})

    @app.exception_handler(Fault)
    def handle_fault(request: Request, fault: Fault) -> Response:
        return answer(request, fault)

    @app.exception_handler(RequestValidationError)
    def handle_invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(request, Fault(422, "format", str(error.errors()[0]["msg"])))

    @app.exception_handler(HTTPException)
    def handle_http(request: Request, error: HTTPException) -> Response:
        fault = Fault(error.status_code, "http", str(error.detail))
        if error.status_code == 404 and _wants_page(request):
            written = (settings.site / "index.html").is_file()
            comes = not written and request.url.path.startswith(_WRITTEN)
            fault = _waiting() if comes else Fault(404, "http", "there is no such page.")
        return answer(request, fault)

    @app.exception_handler(Exception)
    def handle_bug(request: Request, _: Exception) -> Response:  # the log has the traceback
        fault = Fault(500, "server", "the server failed; its operator finds the reason in the log.")
        return set_headers(answer(request, fault), request.url.path)
