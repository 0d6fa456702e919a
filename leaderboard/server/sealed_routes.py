"""Routes of sealed seasons: listing, starting, stepping and finishing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from pydantic import Field

from ...envs.core.errors import UnknownNameError
from ..schema.base import Form
from ..site.rendering import Renderer
from ..suites.sealed import REVEALED, SECRET, is_revealed, read_season, season_names
from .sealed import SealedPlay
from .sealed_entry import EntryFields, describe, finish
from .seasons import PlayedSeason, Seasons
from .settings import ServerSettings
from .verifier import Worker
from .web import Fault, Gate, parse_body

_SMALL, _LARGE = 64 * 1024, 2 * 2**20
Name = Annotated[str, Field(min_length=1, max_length=80)]


class StartForm(Form):
    """The episode to start; see :meth:`SealedPlay.start`."""

    env: Name
    request: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    task: int | None = None
    trial: int | None = None


class StepForm(Form):
    """One action; ``turn`` is bounded so that the database can hold it."""

    turn: int = Field(ge=1, le=10**6)
    action: str


class FinishForm(Form):
    """The end of a pass; with ``give_up`` unplayed and running episodes count as 0."""

    give_up: bool = False


@dataclass(frozen=True)
class _Parts:
    """The objects that the routes use."""

    settings: ServerSettings
    gate: Gate
    seasons: Seasons
    play: SealedPlay
    worker: Worker

    def season(self, name: str) -> PlayedSeason:
        """Return an open season.

        Raises:
            Fault: There is none.
        """
        try:
            return self.seasons.find(name)
        except UnknownNameError as error:
            raise Fault(404, "season", str(error)) from error


def sealed_routes(
    settings: ServerSettings, gate: Gate, seasons: Seasons, play: SealedPlay, worker: Worker
) -> APIRouter:
    """Make the routes of sealed seasons."""
    routes = APIRouter()
    parts = _Parts(settings, gate, seasons, play, worker)
    _add_public(routes, parts)
    _add_play(routes, parts)
    _add_pass(routes, parts)
    return routes


def _add_public(routes: APIRouter, parts: _Parts) -> None:
    """Add the public routes."""
    renderer, root = Renderer(uploads=True), parts.settings.seasons

    @routes.get("/season", response_class=HTMLResponse)
    def season_page(request: Request) -> str:
        parts.gate.limit_visitor(request)
        listed = [(read_season(root, name), is_revealed(root, name)) for name in season_names(root)]
        listed.sort(key=lambda pair: (pair[1], pair[0].opened, pair[0].name))
        return renderer.text("season.html", depth=0, here="season", seasons=listed)

    @routes.get("/seasons/{name}/{file}")
    def revealed_file(request: Request, name: str, file: str) -> FileResponse:
        parts.gate.limit_visitor(request)
        if name in season_names(root) and is_revealed(root, name):
            public = read_season(root, name)
            if file in (SECRET, f"{public.base}.json", f"{public.suite_id}.json"):
                return FileResponse(root / name / REVEALED / file, media_type="application/json")
        raise Fault(404, "unknown", "there is no such file, or its season is still open.")

    @routes.get("/api/seasons/{name}")
    def season(request: Request, name: str) -> dict[str, Any]:
        parts.gate.limit_visitor(request)
        return parts.season(name).describe()


def _add_play(routes: APIRouter, parts: _Parts) -> None:
    """Add the routes that start and step episodes."""

    @routes.post("/api/seasons/{name}/episodes")
    async def start(request: Request, name: str) -> dict[str, Any]:
        account = await run_in_threadpool(parts.gate.authenticate, request, True)
        form = await parse_body(StartForm, request, _SMALL)

        def work() -> dict[str, Any]:
            try:
                return parts.play.start(account, parts.season(name), form.env, form.model_dump())
            except UnknownNameError as error:
                raise Fault(404, "environment", str(error)) from error

        return await run_in_threadpool(work)

    @routes.post("/api/episodes/{session}/steps")
    async def step(request: Request, session: str) -> dict[str, Any]:
        account = await run_in_threadpool(parts.gate.authenticate, request, True)
        form = await parse_body(StepForm, request, _LARGE)
        return await run_in_threadpool(parts.play.step, account, session, form.turn, form.action)


def _add_pass(routes: APIRouter, parts: _Parts) -> None:
    """Add the routes that describe and finish a pass."""

    @routes.put("/api/seasons/{name}/entry")
    async def entry(request: Request, name: str) -> dict[str, Any]:
        account = await run_in_threadpool(parts.gate.authenticate, request)
        fields = await parse_body(EntryFields, request, _SMALL)
        await run_in_threadpool(
            lambda: describe(parts.settings, parts.season(name), account, fields)
        )
        return {"described": fields.name}

    @routes.post("/api/seasons/{name}/finish")
    async def end(request: Request, name: str) -> JSONResponse:
        account = await run_in_threadpool(parts.gate.authenticate, request)
        form = await parse_body(FinishForm, request, _SMALL)

        def work() -> dict[str, Any]:
            one = parts.season(name)
            left, running = parts.play.left(account, one), parts.play.running(account, one)
            if (left or running) and not form.give_up:
                raise Fault(
                    409,
                    "left",
                    f"{left} episodes are unplayed, {running} are running; play them to their end, "
                    "or give them up: finish(give_up=True), the field give_up of the request (each "
                    "counts as 0).",
                )
            return finish(parts.settings, one, account)

        answer = await run_in_threadpool(work)
        parts.worker.nudge()
        return JSONResponse(answer | {"status": f"submissions/{answer['id']}"}, 202)
