"""The engine behind a server: a thread with an event loop of its own, and the weights it holds."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from ....envs.core.errors import BadValueError, DataError, EpisodeError
from ..base import Completion, Request, TrainingEngine, sample
from ..hand_over.forms import Form, check_fits
from ..hand_over.group import GroupError, Membership
from ..hand_over.receiver import OwnReceiver, Receiver
from .weights import WeightsSpool, file_digest, fingerprint, load_weights, tokenizer_digest
from .wire import Facts, WeightsId

T = TypeVar("T")
DRAIN_S = 60.0
"""How long new weights wait for requests that are still being sampled, in seconds."""


class StaleError(EpisodeError):
    """A request for other weights than those here."""


@dataclass(frozen=True, kw_only=True)
class Hosted:
    """What is served.

    Attributes:
        engine: Samples, in this process.
        shelf: A model in main memory through which weights reach the engine.
        tokenizer: Of the model.
        name: Of the engine.
        dtype: Number format of sampling.
        max_batch: Actions that are sampled at a time.
        can_sleep: Whether the engine gives its card's memory back when it is told to.
        device: Where this process takes weights that are sent to it.
        receiver: What takes them instead of this process; None where it does.
    """

    engine: TrainingEngine
    shelf: Any
    tokenizer: Any
    name: str
    dtype: str
    max_batch: int
    can_sleep: bool = False
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    receiver: Receiver | None = None


class EngineHost:
    """Samples in one thread; every call may come from any other.

    Args:
        hosted: What is served.
        weights_folder: Folder from which weights may be read; None refuses files.

    Raises:
        DataError: No such folder.
    """

    def __init__(self, hosted: Hosted, *, weights_folder: Path | None = None) -> None:
        self._folder = None if weights_folder is None else weights_folder.resolve()
        if self._folder is not None and not self._folder.is_dir():
            raise DataError(f"--weights-folder: {weights_folder} is not a folder.")
        self._hosted, self._engine, self._shelf = hosted, hosted.engine, hosted.shelf
        self._tokenizer = tokenizer_digest(hosted.tokenizer)
        self.weights: WeightsId | None = WeightsId(0, fingerprint(self._shelf))
        self._spool = WeightsSpool()
        self._most_bytes = sum(4 * t.numel() for t in self._shelf.state_dict().values()) + (1 << 24)
        self._taking, self._counting = threading.Lock(), threading.Lock()
        self._reported = self._engine.stats
        self._running = 0
        self._receiver = hosted.receiver or OwnReceiver(hosted.device, hosted.shelf)
        self._offered: tuple[WeightsId, tuple[Form, ...]] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def facts(self) -> Facts:
        """Return what clients need to know."""
        engine, hosted = self._engine, self._hosted
        return Facts(
            engine=hosted.name,
            vocabulary=engine.vocabulary,
            max_context=engine.max_context,
            max_batch=hosted.max_batch,
            max_open=getattr(engine, "max_open", None),
            dtype=hosted.dtype,
            tokenizer=self._tokenizer,
            weights=self.weights,
            can_sleep=hosted.can_sleep,
            folder=self._folder is not None,
            group=self._receiver.backend,
            cards=tuple(self._receiver.cards),
        )

    def metrics(self) -> dict[str, int]:
        """Return counts since the start, and how many requests are being sampled."""
        return asdict(self._engine.stats) | {"running": self._running}

    def newly_counted(self) -> dict[str, int]:
        """Return the tokens that were counted since the last call of this method."""
        with self._counting:
            before, self._reported = self._reported, self._engine.stats
            return asdict(self._reported - before)

    # ------------------------------------------------------------------ sampling

    def generate(
        self,
        wanted: WeightsId,
        requests: Sequence[Request],
        answer: Callable[[int, Completion | BaseException], None],
    ) -> Future[None]:
        """Sample, and call ``answer`` in the engine's thread for each request as it is done.

        Cancelling the future gives up what is not done.

        Raises:
            StaleError: Other weights are here; through the future.
        """
        return self._start(self._generate(wanted, requests, answer))

    async def _generate(
        self,
        wanted: WeightsId,
        requests: Sequence[Request],
        answer: Callable[[int, Completion | BaseException], None],
    ) -> None:
        if self.weights != wanted:
            raise StaleError(f"other weights are here: {self.weights}, not {wanted}.")

        async def one(at: int, request: Request) -> None:
            found: Completion | BaseException
            try:
                found = await sample(self._engine, request)
            except Exception as fault:  # noqa: BLE001 - told to who asked
                found = fault
            answer(at, found)

        self._running += len(requests)
        try:
            await asyncio.gather(*(one(at, request) for at, request in enumerate(requests)))
        finally:
            self._running -= len(requests)

    def release(self, handles: Sequence[int]) -> None:
        """Forget cache handles that a client will not use again."""
        self._loop.call_soon_threadsafe(lambda: [self._engine.release(h) for h in handles])

    # ------------------------------------------------------------------ weights

    def take_file(self, wanted: WeightsId, name: str) -> None:
        """Load weights from a file in the folder of weights.

        Raises:
            BadValueError: Files are not taken, the name leads elsewhere, or the weights are of
                another model.
            DataError: There is no such file, or it is not the one that was announced.
            EpisodeError: Requests are being sampled, and do not end.
        """
        if self._folder is None:
            raise BadValueError("this server reads no files; start it with --weights-folder.")
        try:
            path = (self._folder / name).resolve()
            there = path.is_file()
        except OSError as fault:
            raise DataError(f"{name[:200]!r}: {fault.strerror}.") from None
        if not path.is_relative_to(self._folder):
            raise BadValueError(f"{name[:200]!r} is not in the folder of weights.")
        if not there:
            raise DataError(f"{name[:200]!r}: no such file in the folder of weights.")
        self._take(wanted, path)

    def receive(self, digest: str, at: int, piece: bytes) -> int:
        """Add a piece of an upload at byte ``at``; return how many bytes are there now.

        A piece that came before is written again; one that leaves a hole is not taken.

        Raises:
            BadValueError: More bytes than weights of this model can have.
        """
        path = self._upload(digest)
        here = path.stat().st_size if path.exists() else 0
        if at > here:
            return here
        if at + len(piece) > self._most_bytes:
            raise BadValueError(
                f"more than {self._most_bytes:,} bytes; weights of the model here have fewer."
            )
        with path.open("r+b" if here else "wb") as file:
            file.seek(at)
            file.write(piece)
        return path.stat().st_size

    def take_upload(self, wanted: WeightsId) -> None:
        """Load weights that were uploaded; the upload is deleted, whatever it was.

        Raises:
            BadValueError: The weights are of another model.
            DataError: The upload is not there or not whole.
            EpisodeError: Requests are being sampled, and do not end.
        """
        path = self._upload(wanted.digest)
        if self.weights == wanted:
            path.unlink(missing_ok=True)
            return
        if not path.exists():
            raise DataError(f"no upload of {wanted.digest}.")
        try:
            self._take(wanted, path)
        finally:
            path.unlink(missing_ok=True)

    def _upload(self, digest: str) -> Path:
        """Return the file of an upload; another one that was begun is given up."""
        name = hashlib.sha256(digest.encode()).hexdigest()
        for other in self._spool.path.iterdir():
            if other.name != name:
                other.unlink(missing_ok=True)
        return self._spool.path / name

    def _take(self, wanted: WeightsId, path: Path) -> None:
        with self._taking:
            if self.weights == wanted:
                return
            if (found := file_digest(path)) != wanted.digest:
                raise DataError(
                    f"the file of version {wanted.version} has the digest {found}; expected "
                    f"{wanted.digest}. It was cut off or changed on the way."
                )
            load_weights(path, self._shelf)
            self._start(self._sync(wanted, self._shelf)).result()

    def join(self, place: Membership) -> None:
        """Join a group that weights are sent through; an older one is left.

        Raises:
            BadValueError: This server does not speak so.
            EpisodeError: The others were not there in time.
        """
        with self._taking:
            mine = self._receiver.backend
            if not mine or (place.backend == "nccl" and mine != "nccl"):
                raise BadValueError(f"this server cannot join a group over {place.backend}.")
            if place.rank + len(self._receiver.cards) > place.size:
                raise BadValueError(
                    f"this server has {len(self._receiver.cards)} members of a group, for which "
                    f"there is no room from rank {place.rank} of {place.size} on."
                )
            self._offered = None
            try:
                self._call(lambda: self._joined(place))
            except GroupError as fault:
                raise EpisodeError(str(fault)) from None

    def _joined(self, place: Membership) -> None:
        self._receiver.leave()
        self._receiver.join(place)

    def offer(self, wanted: WeightsId, group: str, forms: Sequence[Form]) -> None:
        """Get ready for weights: :meth:`take_sent` receives them.

        Raises:
            BadValueError: They are of another model.
            EpisodeError: This server is not in the group, or samples and does not end.
        """
        with self._taking:
            if not group or self._receiver.group != group:
                raise EpisodeError(f"this server is not in the group {group[:100]!r}.")
            came = {form.name: (form.shape, form.kind) for form in forms}
            if len(came) != len(forms):
                raise BadValueError("a weight is named twice.")
            check_fits(came, self._shelf, f"version {wanted.version}")
            self._start(self._drained()).result()
            self._offered = wanted, tuple(forms)

    def take_sent(self, wanted: WeightsId) -> None:
        """Receive the weights that were offered, one after the other, into the engine's own.

        Raises:
            EpisodeError: Nothing was offered, or the sender broke off: until other weights come
                nothing is sampled.
        """
        with self._taking:
            offered, self._offered = self._offered, None
            if not self._receiver.group or offered is None or offered[0] != wanted:
                raise EpisodeError("these weights were not offered.")
            try:
                self._start(self._receive(wanted, offered[1])).result()
            except Exception as fault:
                self._call(self._receiver.leave)  # so that the others notice
                raise EpisodeError(f"the weights did not arrive: {fault}") from fault

    async def _receive(self, wanted: WeightsId, forms: Sequence[Form]) -> None:
        model, settle = self._receiver.incoming(forms)
        await self._sync(wanted, model, settle)

    async def _sync(
        self, wanted: WeightsId, model: Any, settle: Callable[[], None] = lambda: None
    ) -> None:
        """Hand a model's weights to the engine once nothing is sampled any more."""
        await self._drained()
        self.weights = None  # until they are whole
        self._engine.sync(model, wanted.version)
        settle()
        self.weights = wanted

    async def _drained(self) -> None:
        """Wait until nothing is sampled.

        Raises:
            EpisodeError: That takes too long.
        """
        end = self._loop.time() + DRAIN_S
        while self._running:
            if self._loop.time() > end:
                raise EpisodeError(
                    f"{self._running} requests are still being sampled after {DRAIN_S:.0f} s; "
                    "await them before new weights."
                )
            await asyncio.sleep(0.005)

    # ------------------------------------------------------------------ sleeping

    def sleep(self) -> None:
        """Give the card's memory back until somebody asks again.

        Raises:
            BadValueError: The engine cannot.
        """
        if not self._hosted.can_sleep:
            raise BadValueError(
                "this server's engine cannot give memory back; start it with --sleep on a GPU."
            )
        self._call(self._engine.rest)

    def wake(self) -> None:
        """Take the memory back; a request does so too."""
        wake = getattr(self._engine, "wake", None)
        if wake is not None:
            self._call(wake)

    def close(self) -> None:
        """Give up what is being sampled and end the thread."""
        self._call(self._cancel)
        self._call(self._receiver.leave)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._spool.close()

    def _cancel(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            if task is not asyncio.current_task(self._loop):
                task.cancel()

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _call(self, work: Callable[[], T]) -> T:
        async def run() -> T:
            return work()

        return self._start(run()).result()
