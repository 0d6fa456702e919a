"""A retrieval server that speaks Search-R1's ``/retrieve``, for its clients and for our own."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, StrictBool, StrictInt, StrictStr

from ...envs.core.errors import BadValueError, MissingExtraError
from ...envs.core.settings import check_integer
from ...envs.tools.retrieval.base import Hit, Retriever
from .batching import Batcher, Found
from .door import Door

if TYPE_CHECKING:
    from fastapi import FastAPI

_MOST_SHOWN = 80
_NEEDED = (
    'expected {"queries": [text, ...], "topk": number or null, "return_scores": true or false}'
)


class Ask(BaseModel):
    """The body of a request.

    Attributes:
        queries: What to search for.
        topk: Passages per query; the server's default when null or 0.
        return_scores: Answer with scores; plain passages without.
    """

    queries: list[StrictStr]
    topk: StrictInt | None = None
    return_scores: StrictBool = False


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """What requests may ask for and hold.

    Attributes:
        topk: Maximum number of passages per query.
        queries: Maximum number of queries of a request.
        query_chars: Maximum length of a query.
        passages: Maximum of queries times passages per query.
        body_bytes: Maximum size of a request's body.
        held_bytes: Maximum size of all bodies that are read or answered at one time.

    Raises:
        BadValueError: A limit below 1.
    """

    topk: int = 1000
    queries: int = 8192
    query_chars: int = 100_000  # an environment's longest action, if nothing else is set
    passages: int = 100_000
    body_bytes: int = 32 * 2**20
    held_bytes: int = 256 * 2**20

    def __post_init__(self) -> None:
        for one in fields(self):
            check_integer(one.name, getattr(self, one.name), "retrieval server", min=1)


def make_app(
    retriever: Retriever,
    *,
    default_k: int = 3,
    limits: RequestLimits | None = None,
    token: str = "",
    max_wait_ms: float = 2,
    max_batch: int = 512,
) -> FastAPI:
    """Return the server's application: ``POST /retrieve`` and ``GET /health``.

    A passage is answered as ``{"id", "contents"}``, the title in the first line of its contents;
    a retriever with a method ``row(hit)`` answers the object of its corpus instead. ``/health``
    names the index when the retriever has an ``identity`` (text that changes with the passages
    and with how they are searched), so that clients can remember answers.

    Args:
        retriever: Finds passages; called by one thread.
        default_k: Passages per query when a request leaves ``topk`` out.
        limits: What requests may ask for and hold; :class:`RequestLimits` by default.
        token: What ``Authorization: Bearer …`` of every search must hold; empty for none.
        max_wait_ms: Milliseconds that a request may wait for others to be searched together.
        max_batch: Maximum number of queries per call of the retriever.

    Raises:
        MissingExtraError: fastapi is not installed.
        BadValueError: A value out of range.
    """
    try:
        from fastapi import FastAPI, Response
        from fastapi.exceptions import RequestValidationError
    except ImportError:
        raise MissingExtraError("The retrieval server", "fastapi", "web") from None
    limits = limits or RequestLimits()
    desk = _Desk(
        retriever,
        Batcher(retriever, max_wait_ms=max_wait_ms, max_batch=max_batch),
        default_k=default_k,
        limits=limits,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:  # noqa: ARG001 - what FastAPI calls
        yield
        desk.batcher.close()

    def answer(status: int, content: Any) -> Any:
        reply = content if isinstance(content, bytes) else _json(content)
        return Response(reply, status, media_type="application/json")

    async def refused(request: Any, error: Any) -> Any:  # noqa: ARG001 - what FastAPI calls
        return answer(422, {"detail": _describe_errors(error.errors())})

    app = FastAPI(title="turngym retrieval server", lifespan=lifespan)
    app.add_exception_handler(RequestValidationError, refused)
    app.add_middleware(
        Door,
        max_body_bytes=limits.body_bytes,
        max_held_bytes=limits.held_bytes,
        token=token,
    )

    @app.post("/retrieve", response_model=None)
    async def retrieve(ask: Ask) -> Any:
        """Passages for every query, best first."""
        return answer(*await desk.found(ask))

    @app.get("/health", response_model=None)
    async def health() -> Any:
        """Return how the server is."""
        return answer(200, desk.health())

    return app


class _Desk:
    """What the routes do: status and JSON for a request."""

    def __init__(
        self,
        retriever: Retriever,
        batcher: Batcher,
        *,
        default_k: int,
        limits: RequestLimits,
    ) -> None:
        if not 1 <= default_k <= limits.topk:
            raise BadValueError(
                f"retrieval server: default_k is {default_k}; expected 1 to max_topk, "
                f"{limits.topk}."
            )
        self.batcher = batcher
        self._retriever = retriever
        self._default_k = default_k
        self._limits = limits
        self._started = time.monotonic()

    async def found(self, ask: Ask) -> tuple[int, Any]:
        """Passages as bytes, or why there are none."""
        if why := _too_much(ask, self._limits, self._default_k):
            return 422, {"detail": why}
        # without lone surrogates, which JSON can smuggle in and UTF-8 cannot hold
        queries = [query.encode("utf-8", "replace").decode() for query in ask.queries]
        try:
            found = await self.batcher.find(queries, ask.topk or self._default_k)
            return 200, _json({"result": _results(found, self._retriever, ask.return_scores)})
        except BadValueError as fault:
            return 422, {"detail": str(fault)}
        except Exception as fault:  # noqa: BLE001 - one request's fault is told to who asked
            return 500, {"detail": f"the retriever failed: {type(fault).__name__}: {fault}"}

    def health(self) -> dict[str, Any]:
        """Counts, and which index it is."""
        reply: dict[str, Any] = {"status": "ok"}
        if isinstance(self._retriever, Sized):
            reply["passages"] = len(self._retriever)
        if isinstance(identity := getattr(self._retriever, "identity", None), str):
            reply["index"] = identity
        reply |= {"queries_served": self.batcher.queries, "batches": self.batcher.batches}
        reply["uptime_s"] = round(time.monotonic() - self._started, 3)
        return reply


def _results(found: Found, retriever: Retriever, scores: bool) -> list[list[Any]]:
    row = getattr(retriever, "row", _row)
    if not scores:
        return [[row(hit) for hit in hits] for hits in found]
    return [[{"document": row(hit), "score": float(hit.score)} for hit in hits] for hits in found]


def _row(hit: Hit) -> dict[str, str]:
    return {"id": hit.id, "contents": f"{hit.title}\n{hit.text}"}


def _json(content: Any) -> bytes:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _too_much(ask: Ask, limits: RequestLimits, default_k: int) -> str:
    """Why a request is refused, empty when it is not."""
    if ask.topk is not None and not 0 <= ask.topk <= limits.topk:
        return f"topk is {ask.topk}; expected 1 to {limits.topk}, or null or 0 for the default."
    if len(ask.queries) > limits.queries:
        return f"queries holds {len(ask.queries)} queries; expected at most {limits.queries}."
    if (wanted := len(ask.queries) * (ask.topk or default_k)) > limits.passages:
        return (
            f"{len(ask.queries)} queries times {ask.topk or default_k} passages are {wanted:,}; "
            f"expected at most {limits.passages:,}. Ask in several requests."
        )
    longest = max(map(len, ask.queries), default=0)
    if longest > limits.query_chars:
        return f"a query has {longest:,} characters; expected at most {limits.query_chars:,}."
    return ""


def _describe_errors(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the first of pydantic's errors in words."""
    first = errors[0]
    place = first["loc"][1:]
    if first["type"] == "json_invalid":
        why = first.get("ctx", {}).get("error", first["msg"])
        return f"the body is not JSON ({why}); {_NEEDED}."
    where = "".join(f"[{p}]" if isinstance(p, int) else str(p) for p in place) or "the body"
    if first["type"] == "missing":
        return f"{where} is missing; {_NEEDED}."
    came = repr(first.get("input"))
    shown = came if len(came) <= _MOST_SHOWN else came[:_MOST_SHOWN] + "…"
    return f"{where} is {shown}; {_NEEDED}."
