"""Routes of sealed seasons: what is open, starting, stepping, finishing."""

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
from .web import Fault, Gate, form_of

_SMALL, _LARGE = 64 * 1024, 2 * 2**20
Name = Annotated[str, Field(min_length=1, max_length=80)]


class StartForm(Form):
    """Which episode to begin; see :meth:`SealedPlay.start`."""

    env: Name
    request: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    task: int | None = None
    trial: int | None = None


class StepForm(Form):
    """One action."""

    turn: int = Field(ge=1)
    action: str


class FinishForm(Form):
    """The end of a pass: ``episodes`` that are not played count as 0 if ``give_up`` says so."""

    give_up: bool = False


@dataclass(frozen=True)
class _Parts:
    """What the routes use."""

    settings: ServerSettings
    gate: Gate
    seasons: Seasons
    play: SealedPlay
    worker: Worker

    def found(self, name: str) -> PlayedSeason:
        """An open season.

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
    """The routes of sealed seasons."""
    routes = APIRouter()
    parts = _Parts(settings, gate, seasons, play, worker)
    _add_public(routes, parts)
    _add_play(routes, parts)
    _add_pass(routes, parts)
    return routes


def _add_public(routes: APIRouter, parts: _Parts) -> None:
    """What everybody may read."""
    renderer, root = Renderer(uploads=True), parts.settings.seasons

    @routes.get("/season", response_class=HTMLResponse)
    def season_page(request: Request) -> str:
        parts.gate.visitor(request)
        listed = [(read_season(root, name), is_revealed(root, name)) for name in season_names(root)]
        listed.sort(key=lambda pair: (pair[1], pair[0].opened, pair[0].name))
        return renderer.text("season.html", depth=0, here="season", seasons=listed)

    @routes.get("/seasons/{name}/{file}")
    def revealed_file(request: Request, name: str, file: str) -> FileResponse:
        parts.gate.visitor(request)
        if name in season_names(root) and is_revealed(root, name):
            public = read_season(root, name)
            if file in (SECRET, f"{public.base}.json", f"{public.suite_id}.json"):
                return FileResponse(root / name / REVEALED / file, media_type="application/json")
        raise Fault(404, "unknown", "there is no such file, or its season is not over.")

    @routes.get("/api/seasons/{name}")
    def season(request: Request, name: str) -> dict[str, Any]:
        parts.gate.visitor(request)
        return parts.found(name).described()


def _add_play(routes: APIRouter, parts: _Parts) -> None:
    """Starting and stepping episodes."""

    @routes.post("/api/seasons/{name}/episodes")
    async def start(request: Request, name: str) -> dict[str, Any]:
        account = await run_in_threadpool(parts.gate.account, request, True)
        form = await form_of(StartForm, request, _SMALL)

        def work() -> dict[str, Any]:
            try:
                return parts.play.start(account, parts.found(name), form.env, form.model_dump())
            except UnknownNameError as error:
                raise Fault(404, "environment", str(error)) from error

        return await run_in_threadpool(work)

    @routes.post("/api/episodes/{session}/steps")
    async def step(request: Request, session: str) -> dict[str, Any]:
        account = await run_in_threadpool(parts.gate.account, request, True)
        form = await form_of(StepForm, request, _LARGE)
        return await run_in_threadpool(parts.play.step, account, session, form.turn, form.action)


def _add_pass(routes: APIRouter, parts: _Parts) -> None:
    """Describing and finishing a pass."""

    @routes.put("/api/seasons/{name}/entry")
    async def entry(request: Request, name: str) -> dict[str, Any]:
        account = await run_in_threadpool(parts.gate.account, request)
        fields = await form_of(EntryFields, request, _SMALL)
        await run_in_threadpool(
            lambda: describe(parts.settings, parts.found(name), account, fields)
        )
        return {"described": fields.name}

    @routes.post("/api/seasons/{name}/finish")
    async def end(request: Request, name: str) -> JSONResponse:
        account = await run_in_threadpool(parts.gate.account, request)
        form = await form_of(FinishForm, request, _SMALL)

        def work() -> dict[str, Any]:
            one = parts.found(name)
            left = parts.play.left(account, one)
            if left and not form.give_up:
                raise Fault(
                    409,
                    "left",
                    f"{left} episodes are not played; play them, or give them up: each counts as "
                    "0.",
                )
            return finish(parts.settings, one, account)

        told = await run_in_threadpool(work)
        parts.worker.nudge()
        return JSONResponse(told | {"status": f"submissions/{told['id']}"}, 202)
