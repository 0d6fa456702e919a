"""The engine that has servers sample: requests go where there is room, weights to all of them.

A request says its seed, so it is answered with the same tokens by whichever server takes it, and
however often it had to be asked for. One whose context a server has in its cache goes there while
there is room, else to whoever is idle.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ....envs.core.errors import BadValueError, EngineFault, EpisodeError, TurngymError
from ....envs.utils.http import start_in_thread, wait_in_thread
from ..base import Completion, EngineSource, EngineStats, Request, check_request
from ..hand_over.forms import DTYPES, Form, checkpoint_weights, digest_of, tied_names
from ..hand_over.group import exact_device
from ..hand_over.learner_processes import LearnerProcesses
from ..vllm.weights import plain_weights
from .sender import GroupSender, why_no_group
from .server import AbandonedCallError, Answer, EngineServer, LostCallError, StaleServerError
from .settings import HttpSettings
from .weights import WeightsFile, WeightsSpool, read_weights, tokenizer_digest, write_weights
from .wire import MAX_REQUESTS, WeightsId

MAX_HANDED = 4
"""Times that a server is given the same weights before somebody else must be using it."""
GROUP_TRIES = 2
"""Times that weights are sent through a group, formed anew, before that counts as impossible."""

_NOWHERE = (None, None)


@dataclass(slots=True, eq=False)
class _Job:
    """A request, where its answer goes, and how often a server's engine failed at it."""

    request: Request
    answer: asyncio.Future[Completion]
    owner: EngineServer | None
    handle: int | None
    tries: int = 0


class HttpEngine:
    """Samples on servers; see the module.

    Where several processes share the learner, each asks the servers for its own requests, and the
    first one hands over the weights that all of them gather.

    Args:
        settings: Where the servers are.
        tokenizer: Must be that of the servers.
        learner: The model whose weights they are to follow; None to sample from what they have.
        max_context: Maximum tokens of context and action together; None for the servers' limit.
        dtype: Number format that they must sample in; ``"auto"`` for any.
        device: Where the learner's weights will be; None is where they are.

    Raises:
        BadValueError: No servers, or such that do not fit together.
        EngineFault: They do not take the weights.
    """

    def __init__(
        self,
        settings: HttpSettings,
        tokenizer: Any,
        learner: Any = None,
        *,
        max_context: int | None = None,
        dtype: str = "auto",
        device: str | None = None,
    ) -> None:
        if not settings.urls:
            raise BadValueError(
                "engine: 'http' needs the addresses of servers; give http.urls (--http.urls "
                "http://HOST:8300 …), and start each with `turngym engine serve`."
            )
        self._settings = settings
        self._servers = [EngineServer(url, settings) for url in settings.urls]
        for server in self._servers:
            server.look()
        facts = self._agreed(tokenizer, dtype)
        longest = min(server.facts.max_context for server in self._servers)
        if max_context is not None and not 1 < max_context <= longest:
            raise BadValueError(
                f"engine: max_context is {max_context}; expected 2 to {longest}, the servers' "
                "limit."
            )
        self.max_context, self.vocabulary = max_context or longest, facts.vocabulary
        open_at = [server.facts.max_open for server in self._servers]
        self.max_open = None if None in open_at else sum(n for n in open_at if n is not None)
        self._dtype = DTYPES[facts.dtype]
        self._ranks = LearnerProcesses.joined()
        self._folder = _weights_folder(settings, self._servers)
        self._spool = WeightsSpool()
        self._run = secrets.token_hex(4)  # names files, nothing else
        self._file: WeightsFile | None = None
        self._sweep = weakref.finalize(self, int)
        self._weights = WeightsId(0, "")
        self._forms: tuple[Form, ...] = ()
        self._sender: GroupSender | None = None
        self._counts = EngineStats()
        self._waiting: list[_Job] = []
        self._handles: dict[int, tuple[EngineServer, int]] = {}
        self._names = itertools.count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due, self._open = False, 0
        self._timer: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        if learner is None:
            self._weights = self._held()
        else:
            own = next(learner.parameters()).device if device is None else torch.device(device)
            self._sender = self._chosen_sender(exact_device(own))
            self.sync(learner, 0)

    @property
    def form(self) -> tuple[str, Any]:
        """Return which engine samples on the servers, and in which number format."""
        return self._servers[0].facts.engine, self._dtype

    @property
    def version(self) -> int:
        """Number of weight updates so far."""
        return self._weights.version

    @property
    def stats(self) -> EngineStats:
        """What was counted so far."""
        return self._counts

    @property
    def shares_weights(self) -> bool:
        """False: the servers have copies."""
        return False

    # ------------------------------------------------------------------ weights

    def sync(self, model: Any, version: int | None = None) -> None:
        """Hand the learner's present weights to all servers, in the format that they sample in.

        Raises:
            EpisodeError: Requests are being sampled.
            EngineFault: A server refuses the weights, or none is there.
        """
        if self._open:
            raise EpisodeError(
                f"engine: sync while {self._open} requests are being sampled; await them first."
            )
        version = self.version + 1 if version is None else version
        if not self._sent(model, version):
            self._give_files(model, version)
        self._handles.clear()
        for server in self._servers:
            server.handed, server.released = 1, []
            if not self._ranks.first:
                server.forgive()

    def _chosen_sender(self, device: torch.device) -> GroupSender | None:
        """Return what sends weights through a group; None where they go as files.

        Raises:
            BadValueError: A group was asked for, and is not possible.
        """
        by = self._settings.weights_by
        if by == "files" or self._folder is not None:
            return None
        if why := why_no_group(self._servers):
            if by == "group":
                raise BadValueError(f"engine http: http.weights_by is 'group', but {why}.")
            return None
        return GroupSender(self._servers, self._settings, device)

    def _sent(self, model: Any, version: int) -> bool:
        """Send weights through a group; return whether they came that way.

        Raises:
            EngineFault: They did not, and are to go no other way.
        """
        sender = self._sender
        if sender is None:
            return False
        if not self._forms:
            tied = tied_names(model)
            named = ((name, t) for name, t in plain_weights(model) if name not in tied)
            self._forms = tuple(Form.of(name, t, self._dtype) for name, t in named)
        problem = ""
        for _ in range(GROUP_TRIES):
            weights, problem = self._ranks.agreed(lambda: self._offer(sender, version))
            if not problem:
                try:
                    said = sender.send(self._read(model), self._forms)
                except BaseException:
                    sender.leave()  # nobody waits for what will not come
                    raise
                problem = self._ranks.agreed(lambda said=said: sender.end(said))
            if not problem:
                self._weights, self._file = weights, None
                return True
        if self._settings.weights_by == "group":
            raise EngineFault(f"engine http: the weights did not reach the servers. {problem}")
        warnings.warn(
            f"engine http: weights go to the servers as files from here on (http.weights_by). "
            f"{problem}",
            stacklevel=2,
        )
        self._sender = None
        return False

    def _offer(self, sender: GroupSender, version: int) -> tuple[WeightsId, str]:
        weights = WeightsId(version, digest_of(self._forms, version, self._run))
        return weights, sender.begin(weights, self._forms)

    def _read(self, model: Any) -> Iterator[tuple[str, Any]]:
        return checkpoint_weights(plain_weights(model), tied_names(model), self._dtype)

    def _give_files(self, model: Any, version: int) -> None:
        """Give the servers a file with the weights, or its bytes."""
        weights = read_weights(model, self._dtype, keep=self._ranks.first)

        def hand_over() -> tuple[WeightsId, WeightsFile]:
            file = self._written(weights, version)
            found = WeightsId(version, file.digest)
            self._hand_to_all(found, file)
            return found, file

        found, file = self._ranks.agreed(hand_over)
        self._forget(file)
        self._weights, self._file = found, file

    def _written(self, weights: dict[str, Any], version: int) -> WeightsFile:
        folder = self._spool.path if self._folder is None else self._folder
        return write_weights(weights, folder / f"weights-{self._run}-{version:08d}.safetensors")

    def _forget(self, newest: WeightsFile) -> None:
        """Delete the file of the version before; the newest goes with the engine."""
        old = self._file
        if self._ranks.first:
            if old is not None and old.path != newest.path:
                old.path.unlink(missing_ok=True)
            self._sweep.detach()
            self._sweep = weakref.finalize(self, newest.path.unlink, missing_ok=True)

    def _hand_to_all(self, weights: WeightsId, file: WeightsFile) -> None:
        """Give all servers the weights at the same time; those that are away get them later.

        Raises:
            EngineFault: One refuses, or all are away.
        """

        def one(server: EngineServer) -> None:
            server.forgive()
            try:
                server.hand_over(weights, file, self._folder)
            except LostCallError as fault:
                server.failed(str(fault))

        calls = [start_in_thread(partial(one, server)) for server in self._servers]
        wait(calls)  # whoever interrupts waits for none of them
        for call in calls:
            call.result()
        if all(server.failures for server in self._servers):
            raise EngineFault(
                "engine http: no server took the weights. "
                + " ".join(server.problem for server in self._servers)
            )

    def rest(self) -> None:
        """With ``sleep``, let the servers give their memory back until they are asked again."""
        if self._settings.sleep and self._ranks.first:
            for server in self._servers:
                try:
                    server.tell("/sleep")
                except LostCallError as fault:
                    server.failed(str(fault))

    # ------------------------------------------------------------------ sampling

    async def generate(self, request: Request) -> Completion:
        """Sample one action, see :class:`~turngym.agents.engines.base.Engine`.

        Raises:
            BadValueError: The context is empty, holds unknown ids or leaves no room for a token.
            EngineFault: All servers are lost.
        """
        ids, limit = check_request(request, self.vocabulary, self.max_context)
        if limit != request.sampling.max_tokens:
            request = replace(request, sampling=replace(request.sampling, max_tokens=limit))
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # another rollout: nothing of the last one is waited for
            self._loop, self._waiting, self._due, self._open = loop, [], False, 0
            self._timer = None
            self._calls.clear()
            for server in self._servers:
                server.running, server.taking = 0, False
        owner, handle = self._handles.get(-1 if request.cache is None else request.cache, _NOWHERE)
        job = _Job(request, loop.create_future(), owner, handle)
        self._waiting.append(job)
        self._open += 1
        self._plan()
        try:
            done = await job.answer
        except BaseException:
            if job in self._waiting:  # given up; one that was answered waits no more
                self._waiting.remove(job)
            raise
        finally:
            self._open -= 1
        self._count(EngineStats(prompt_tokens=len(ids), sampled_tokens=len(done.ids)))
        return done

    def release(self, cache: int | None) -> None:
        """Forget a cache handle; its server is told with the next call."""
        found = None if cache is None else self._handles.pop(cache, None)
        if found is not None:
            server, handle = found
            server.released.append(handle)

    def _plan(self) -> None:
        """Share out what waits once whoever is ready has asked."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._share_out)

    def _share_out(self) -> None:
        """Give waiting requests, in their order, to servers with room."""
        self._due = False
        if all(server.lost for server in self._servers):
            self._give_up()
            return
        given: dict[EngineServer, list[_Job]] = {}
        left: list[_Job] = []
        now = time.monotonic()
        room = {server: server.room(now) for server in self._servers}
        for place, job in enumerate(self._waiting):
            if max(room.values()) <= 0:  # for nobody else either, and thousands may wait
                left += self._waiting[place:]
                break
            server = job.owner if job.owner is not None and room[job.owner] > 0 else None
            server = server or max(self._servers, key=lambda s: room[s])
            if room[server] <= 0 or len(given.get(server, ())) == MAX_REQUESTS:
                left.append(job)
                continue
            room[server] -= 1
            given.setdefault(server, []).append(job)
        self._waiting = left
        for server, jobs in given.items():
            server.running += len(jobs)
            task = asyncio.ensure_future(self._call(server, jobs))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)
        if left:
            self._look_again(now)

    def _look_again(self, now: float) -> None:
        """Share out once the first server is back that was away; busy ones call when they answer.

        Args:
            now: When their room was looked at; one that is back since then is not left out.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        away = [s.away_until for s in self._servers if not s.lost and s.away_until > now]
        if away:
            wait = max(0.01, min(away) - now)
            self._timer = asyncio.get_running_loop().call_later(wait, self._plan)

    def _give_up(self) -> None:
        problems = " ".join(server.problem for server in self._servers)
        jobs, self._waiting = self._waiting, []
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(
                    EngineFault(
                        f"engine http: all {len(self._servers)} servers are lost. {problems} The "
                        "same call resumes once they are back."
                    )
                )

    async def _call(self, server: EngineServer, jobs: list[_Job]) -> None:
        """Have a server answer; what it does not answer waits again, for another."""
        loop, begun = asyncio.get_running_loop(), time.monotonic()
        left = dict(enumerate(jobs))

        def take(at: int, answer: Completion | TurngymError, counted: EngineStats) -> None:
            if loop is self._loop:
                server.running -= 1
                self._count(EngineStats(cached_tokens=counted.cached_tokens))
                self._settle(left.pop(at), server, answer, begun)
                self._plan()

        def heard(at: int, answer: Completion | TurngymError, counted: EngineStats) -> None:
            loop.call_soon_threadsafe(take, at, answer, counted)

        try:
            await self._ask(server, jobs, heard, begun)
        except Exception as fault:  # noqa: BLE001 - nobody else tells those who wait
            for job in left.values():
                if not job.answer.done():
                    job.answer.set_exception(fault)
        finally:
            if loop is self._loop:
                server.running -= len(left)
                self._waiting[:0] = [job for job in left.values() if not job.answer.done()]
        self._plan()

    async def _ask(
        self,
        server: EngineServer,
        jobs: list[_Job],
        heard: Answer,
        begun: float,
    ) -> None:
        """Make the call, and note how it went.

        Raises:
            EngineFault: Nobody can be asked again: the server lets nobody in.
        """
        weights = self._weights
        asked = [(job.request, job.handle if job.owner is server else None) for job in jobs]

        def gone() -> bool:
            return all(job.answer.cancelled() for job in jobs)

        try:
            await wait_in_thread(lambda: server.generate(weights, asked, heard, gone))
        except StaleServerError as fault:
            await self._hand_again(server, fault, begun)
        except LostCallError as fault:
            server.failed(str(fault), begun)
        except AbandonedCallError:
            pass
        else:
            server.forgive()

    def _settle(
        self, job: _Job, server: EngineServer, answer: Completion | TurngymError, begun: float
    ) -> None:
        """Give a request's answer to who waits for it; one that failed there waits again."""
        if job.answer.done():  # given up
            return
        if isinstance(answer, Completion):
            if answer.cache is not None:
                name = next(self._names)
                self._handles[name] = server, answer.cache
                answer = replace(answer, cache=name)
            job.answer.set_result(answer)
            return
        job.tries += 1
        if isinstance(answer, EngineFault) and job.tries < self._settings.attempts:
            server.failed(f"{server.url}: {answer}", begun)
            self._waiting.append(job)
        else:
            job.answer.set_exception(answer)

    async def _hand_again(
        self, server: EngineServer, fault: StaleServerError, begun: float
    ) -> None:
        """Give a server that was started anew the weights, where this process has them."""
        if server.taking:  # as another call has found before
            return
        file = self._file
        if file is None or not file.path.exists():
            why = "They are handed over by another process."
            if self._sender is not None:
                why = (
                    "Was it started anew? Then they come with the next update. Or does another run "
                    "use it? A server serves one run."
                )
            server.failed(f"{fault} {why}", begun)
            return
        if server.handed >= MAX_HANDED:
            server.failures = self._settings.attempts
            server.problem = (
                f"{server.url} was given the same weights {server.handed} times and keeps having "
                "others. Does another run use it? A server serves one run."
            )
            return
        weights, newest = self._weights, file
        server.taking = True
        try:
            await wait_in_thread(lambda: server.hand_over(weights, newest, self._folder))
        except EngineFault as refusal:
            server.failed(str(refusal))
        finally:
            server.taking = False

    def _count(self, more: EngineStats) -> None:
        have = self._counts
        self._counts = EngineStats(
            prompt_tokens=have.prompt_tokens + more.prompt_tokens,
            cached_tokens=have.cached_tokens + more.cached_tokens,
            sampled_tokens=have.sampled_tokens + more.sampled_tokens,
        )

    # ------------------------------------------------------------------ fitting together

    def _agreed(self, tokenizer: Any, dtype: str) -> Any:
        """Return the facts that the servers share.

        Raises:
            BadValueError: They do not share them, or not with this process.
        """
        first = self._servers[0]
        for server in self._servers:
            for name in ("vocabulary", "dtype", "tokenizer"):
                here, there = getattr(first.facts, name), getattr(server.facts, name)
                if here != there:
                    raise BadValueError(
                        f"engine http: {name} is {here!r} at {first.url} and {there!r} at "
                        f"{server.url}; start all servers with the same model and format."
                    )
            if self._settings.sleep and not server.facts.can_sleep:
                raise BadValueError(
                    f"engine http: http.sleep is on, but {server.url} cannot give memory back; "
                    "start it with --sleep (--vllm.sleep), or leave http.sleep off."
                )
        facts = first.facts
        if facts.dtype not in DTYPES or dtype not in ("auto", facts.dtype):
            raise BadValueError(
                f"engine http: the servers sample in {facts.dtype}; engine_dtype is {dtype!r}. "
                "Start them with --engine-dtype of the same name."
            )
        if facts.tokenizer != tokenizer_digest(tokenizer):
            raise BadValueError(
                f"engine http: {first.url} has another tokenizer; serve the model that is used "
                "here."
            )
        return facts

    def _held(self) -> WeightsId:
        """Return the weights that all servers have.

        Raises:
            BadValueError: They have different ones, or none.
        """
        held = {server.url: server.facts.weights for server in self._servers}
        (found, *others) = set(held.values())
        if others or found is None:
            raise BadValueError(f"engine http: the servers have different weights: {held}.")
        return found


def _weights_folder(settings: HttpSettings, servers: list[EngineServer]) -> Path | None:
    """Return the folder through which weights go; None where they are uploaded.

    Raises:
        BadValueError: It is no folder, or a server reads none.
    """
    if settings.weights_folder is None:
        return None
    folder = Path(settings.weights_folder).expanduser().resolve()
    if not folder.is_dir():
        raise BadValueError(f"http.weights_folder: {folder} is not a folder.")
    for server in servers:
        if not server.facts.folder:
            raise BadValueError(
                f"http.weights_folder is given, but {server.url} was started without "
                "--weights-folder."
            )
    return folder


def build(source: EngineSource) -> HttpEngine:
    """Build the engine; see :class:`HttpEngine`."""
    return HttpEngine(
        source.own,
        source.tokenizer,
        source.learner,
        max_context=source.max_context,
        dtype=source.dtype,
        device=source.device if source.elsewhere else None,
    )
