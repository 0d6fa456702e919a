"""Copies of one environment in worker processes: a message each way per step and process.

Each process is a fresh interpreter and not a fork: a fork would carry the threads of torch, numba
and BLAS over in whatever state they are, and the main module of a script needs no guard this way.
It has a session of its own, so Ctrl-C reaches this process alone; it ends when its socket closes,
so no process is left over, however this one ends. Messages are pickles of plain lists of texts and
numbers, from processes that this one started.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from multiprocessing.connection import Connection
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn

from ..core.env import TextEnv
from ..core.errors import BadValueError, EnvFault, EpisodeError
from ..core.plugins import load_inherited
from ..utils.system import count_cores, require_posix
from .vector_copies import Batch, Copies, ResetOrder, join_batches

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {__name__} import serve_copies; serve_copies(int(sys.argv[2]))"
)
_CLOSE_S = 10.0
"""Seconds that a process has to close its copies before it is terminated."""
_BROKEN_S = 0.5
"""The same where a message was interrupted, so that the process may be busy for long."""
_TERMINATE_S = 2.0
"""Seconds that a terminated process has before it is killed."""
_LOOK_S = 0.1
"""Seconds between two looks whether the parent is gone."""
_EXIT_S = 5.0
"""Seconds that a process whose socket has closed has until it is gone."""
_LOST = (EOFError, OSError)
"""What a socket raises whose other end is gone, also in the middle of a message."""
_SHARED = ("parent_session", "verdict")
"""Columns of small numbers of a class of their own, whose pickles are expensive one by one."""


class Failure(NamedTuple):
    """An error in a worker process, in parts that its class is not needed to read.

    Attributes:
        module: Module of its class.
        name: Qualified name of its class.
        args: What it was made of; the message alone where these cannot be pickled.
        state: Its attributes that can be pickled.
        text: Its message.
        trace: The traceback in the process.
    """

    module: str
    name: str
    args: tuple[Any, ...]
    state: dict[str, Any]
    text: str
    trace: str


class _Worker(NamedTuple):
    """A process, and its copies from ``start`` up to ``end``."""

    process: subprocess.Popen[bytes]
    connection: Connection
    start: int
    end: int

    def __str__(self) -> str:
        last = self.end - 1
        which = f"copy {last}" if self.start == last else f"copies {self.start} to {last}"
        return f"the process of {which}"


class ProcessCopies:
    """Copies of one environment, spread over processes; see :class:`Copies` for its methods.

    Every process has its share of the copies, in their order; the first ones have one more where
    the number does not divide. An error of the environment is raised here, of its own class, with
    a note that says which copies it comes from; the processes go on. A process that dies and an
    interrupt in the middle of a message end all processes.

    Args:
        env: The environment; each process gets it by ``cloudpickle``, without its episode.
        count: Number of copies.
        processes: Number of processes, at most ``count``.

    Raises:
        BadValueError: The environment cannot be sent to another process.
        EnvFault: A process could not be started, or died at once.
    """

    def __init__(self, env: TextEnv[Any, Any], count: int, processes: int) -> None:
        sent = _pickle_env(env)
        self._workers: list[_Worker] = []
        self._end = weakref.finalize(self, _end_workers, self._workers, os.getpid())
        self._ended_by = ""
        bounds = [-(-count * i // processes) for i in range(processes + 1)]
        try:
            for start, end in pairwise(bounds):
                self._workers.append(_launch(start, end, processes))
            for worker in self._workers:
                self._send(worker, sent)
                self._send(worker, pickle.dumps(worker.end - worker.start))
            failures = [self._receive(worker) for worker in self._workers]
        except BaseException:
            self._stop("it could not be started", _BROKEN_S)
            raise
        for failure in failures:
            if failure is not None:
                self._stop("it could not be started", _BROKEN_S)
                raise BadValueError(
                    "TextVectorEnv: the environment cannot be made again in another process: "
                    f"{failure.name}: {failure.text}. Its classes and functions must come from "
                    "modules that can be imported there; or leave processes out."
                ) from _restore_error(failure)

    def reset(self, order: ResetOrder) -> Batch:
        """Start an episode in the copies of the order's mask.

        Raises:
            BadValueError: Tasks or options that cannot be pickled.
            EpisodeError: The processes were ended.
            EnvFault: A process died.
        """
        orders = [order.cut(worker.start, worker.end) for worker in self._workers]
        return join_batches([Batch.unpack(b) for b in self._exchange("reset", orders)])

    def step(self, actions: Sequence[str]) -> Batch:
        """Take one action in every copy; copies whose episode ended start the next one instead.

        Raises:
            EpisodeError: The processes were ended.
            EnvFault: A process died.
        """
        shares = [actions[worker.start : worker.end] for worker in self._workers]
        return join_batches([Batch.unpack(b) for b in self._exchange("step", shares)])

    def render(self) -> list[Any]:
        """Return the transcript of every copy (render mode ``"ansi"``), else None for each.

        Raises:
            EpisodeError: The processes were ended.
            EnvFault: A process died.
        """
        replies = self._exchange("render", [None] * len(self._workers))
        return [transcript for reply in replies for transcript in reply]

    def call(self, name: str, args: Sequence[Any], settings: Mapping[str, Any]) -> list[Any]:
        """Return what the method of that name gives in every copy, or the attribute's value.

        Raises:
            BadValueError: Arguments or results that cannot be pickled.
            EpisodeError: The processes were ended.
            EnvFault: A process died.
        """
        replies = self._exchange("call", [(name, args, settings)] * len(self._workers))
        return [result for reply in replies for result in reply]

    def set_attr(self, name: str, values: Sequence[Any]) -> None:
        """Set an attribute of every copy to its own value.

        Raises:
            BadValueError: Values that cannot be pickled.
            EpisodeError: The processes were ended.
            EnvFault: A process died.
        """
        shares = [(name, values[worker.start : worker.end]) for worker in self._workers]
        self._exchange("set_attr", shares)

    def check_open(self) -> None:
        """Refuse processes that were ended.

        Raises:
            EpisodeError: They were.
        """
        if self._ended_by:
            raise EpisodeError(f"TextVectorEnv: {self._ended_by}; make a new one.")

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled or copied.

        Raises:
            BadValueError: Always; the copies are in processes that nobody else can have.
        """
        raise BadValueError(
            "TextVectorEnv: a vector environment whose copies are in other processes cannot be "
            "pickled or copied. Make one where it is needed: gym.make_vec(id, num_envs=..., "
            "processes=...); or leave processes out."
        )

    def close(self) -> None:
        """Close every copy and end the processes; may be called again."""
        self._stop("it was closed", _CLOSE_S)

    def _exchange(self, method: str, requests: Sequence[Any]) -> list[Any]:
        """Send every process a request, then return their replies, or raise the first error."""
        self.check_open()
        try:
            messages = [pickle.dumps((method, request), protocol=5) for request in requests]
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise BadValueError(
                f"TextVectorEnv: what {method} was given cannot be sent to another process: {error}"
            ) from error
        try:
            for worker, message in zip(self._workers, messages, strict=True):
                self._send(worker, message)
            replies = [self._receive(worker) for worker in self._workers]
        except BaseException:  # an interrupt too: replies that nobody read may be under way
            self._stop(f"a {method} was interrupted, which ended its processes", _BROKEN_S)
            raise
        for worker, reply in zip(self._workers, replies, strict=True):
            if isinstance(reply, Failure):
                error = _restore_error(reply)
                error.add_note(f"Raised in {worker}:\n{reply.trace}")
                raise error
        return replies

    def _send(self, worker: _Worker, message: bytes) -> None:
        try:
            worker.connection.send_bytes(message)
        except _LOST:
            self._mourn(worker)

    def _receive(self, worker: _Worker) -> Any:
        try:
            return pickle.loads(worker.connection.recv_bytes())
        except _LOST:
            self._mourn(worker)

    def _mourn(self, worker: _Worker) -> NoReturn:
        """Raise what the end of a process means."""
        try:
            how = _describe_exit(worker.process.wait(_EXIT_S))
        except subprocess.TimeoutExpired:
            how = "closed its socket"
        self._stop(f"{worker} {how}", _BROKEN_S)
        raise EnvFault(
            f"TextVectorEnv: {worker} {how}, so all copies were ended; its own messages, if any, "
            "are on the standard error output. Make a new vector environment."
        ) from None

    def _stop(self, reason: str, patience_s: float) -> None:
        """End the processes, for the first reason that was given."""
        self._ended_by = self._ended_by or reason
        if self._end.detach() is not None:
            _end_workers(self._workers, os.getpid(), patience_s)


def serve_copies(descriptor: int) -> None:
    """Serve a share of the copies until the socket closes; the main function of a process.

    The first messages are the pickled environment and how many copies to make of it, answered by
    None or by a :class:`Failure`; then come pairs of a method of :class:`Copies` and its argument,
    each answered by what it returned or raised. While no message waits, the episodes are begun that
    the next step will begin.
    """
    os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    connection = Connection(descriptor)
    _end_with_parent(descriptor)
    copies: Copies | None = None
    with suppress(*_LOST):  # then the parent is gone, or has closed the environment
        try:
            env, count = connection.recv_bytes(), pickle.loads(connection.recv_bytes())
            try:
                load_inherited()
                copies = Copies(pickle.loads(env), count)
            except Exception as error:  # noqa: BLE001 - whatever the environment raises
                connection.send_bytes(_dump(_pack_error(error)))
                return
            connection.send_bytes(_dump(None))
            while True:
                connection.send_bytes(_answer(copies, connection.recv_bytes()))
                copies.begin_ahead(lambda: bool(select.select([descriptor], [], [], 0)[0]))
        finally:
            if copies is not None:
                copies.close()


def _end_with_parent(descriptor: int) -> None:
    """Have a thread end this process when its parent is gone, also in the middle of a step."""
    parent, closed = os.getppid(), select.poll()
    closed.register(descriptor, 0)

    def watch() -> None:
        closed.poll()
        while os.getppid() == parent:  # it only closes the environment
            time.sleep(_LOOK_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _answer(copies: Copies, message: bytes) -> bytes:
    """Return the reply to one message, pickled."""
    try:
        method, request = pickle.loads(message)
        if method == "step":
            return _dump(_pack_batch(copies.step(request)))
        if method == "reset":
            return _dump(_pack_batch(copies.reset(request)))
        if method == "call":
            return _dump_results(request[0], copies.call(*request))
        if method == "set_attr":
            return _dump(copies.set_attr(*request))
        return _dump(copies.render())
    except Exception as error:  # noqa: BLE001 - whatever the environment raises
        return _dump(_pack_error(error))


def _pack_batch(batch: Batch) -> tuple[Any, ...]:
    """Return the batch packed; equal values of a column are one object, which is pickled once."""
    for key in _SHARED:
        seen: dict[Any, Any] = {}
        column = batch.infos.flat[key]
        column[:] = [seen.setdefault(value, value) for value in column]
    return batch.pack()


def _dump(reply: Any) -> bytes:
    return pickle.dumps(reply, protocol=5)


def _dump_results(name: str, results: list[Any]) -> bytes:
    try:
        return _dump(results)
    except Exception as error:
        raise BadValueError(
            f"TextVectorEnv: what {name!r} gave is a {type(results[0]).__name__} that cannot be "
            f"sent from the process of its copy: {error}. Call a method that returns less, or "
            "leave processes out."
        ) from error


def _launch(start: int, end: int, processes: int) -> _Worker:
    """Start a process; it waits for its first messages."""
    if not sys.executable:
        raise EnvFault("TextVectorEnv: sys.executable is empty; processes need an interpreter.")
    require_posix("TextVectorEnv with processes")
    ours, theirs = socket.socketpair()
    with theirs:
        paths = json.dumps([os.fspath(path) for path in sys.path])
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _START, paths, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={"OMP_NUM_THREADS": str(max(1, count_cores() // processes)), **os.environ},
                start_new_session=True,
            )
        except OSError as fault:
            ours.close()
            raise EnvFault(f"TextVectorEnv: {sys.executable} does not start: {fault}") from fault
    return _Worker(process, Connection(ours.detach()), start, end)


def _end_workers(workers: list[_Worker], owner: int, patience_s: float = _CLOSE_S) -> None:
    """Close the sockets, which ends the processes; terminate and kill those that stay."""
    if os.getpid() != owner:  # a fork of the process that they belong to
        return
    for worker in workers:
        worker.connection.close()
    for seconds, signal_process in (
        (patience_s, subprocess.Popen.terminate),
        (_TERMINATE_S, subprocess.Popen.kill),
    ):
        until = time.monotonic() + seconds
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
        for worker in workers:
            if worker.process.poll() is None:
                signal_process(worker.process)
    for worker in workers:
        worker.process.wait()
    workers.clear()


def _pickle_env(env: TextEnv[Any, Any]) -> bytes:
    """Return the environment without its episode, pickled.

    Raises:
        BadValueError: It cannot be pickled.
    """
    import cloudpickle  # gymnasium brings it along; it also takes classes of a script or notebook

    bare = env.fork()
    bare.forget()
    try:
        return cloudpickle.dumps(bare, protocol=5)
    except Exception as error:
        raise BadValueError(
            f"TextVectorEnv: {env.name} cannot be pickled, so its copies cannot live in other "
            f"processes: {type(error).__name__}: {error}. Leave processes out, or give it settings "
            "in place of objects (the address of a server in place of its client)."
        ) from error


def _pack_error(error: Exception) -> Failure:
    """Return the parts of an error that can be pickled."""
    state = {name: value for name, value in vars(error).items() if _can_pickle(value)}
    # the args of an OSError lack the names of its files
    args: Any = OSError.__reduce__(error)[1] if isinstance(error, OSError) else error.args
    if not _can_pickle(args):
        args = (str(error),)
    cls = type(error)
    trace = "".join(traceback.format_exception(error))
    return Failure(cls.__module__, cls.__qualname__, args, state, str(error), trace)


def _can_pickle(value: Any) -> bool:
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # noqa: BLE001 - whatever a reducer raises
        return False
    return True


def _restore_error(failure: Failure) -> Exception:
    """Return the error of a process, of its own class where this process has that class."""
    error: Any = None
    with suppress(Exception):  # its class is unknown here, or cannot be made like this
        cls = attrgetter(failure.name)(import_module(failure.module))
        # a class of one's own may make its message of other arguments than it passes on
        own = cls.__module__ != "builtins"
        error = cls.__new__(cls, *failure.args) if own else cls(*failure.args)
        vars(error).update(failure.state)
    if isinstance(error, Exception) and str(error) == failure.text:
        return error
    return RuntimeError(f"{failure.module}.{failure.name}: {failure.text}")


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit status {code}"
    name = signal.Signals(-code).name
    hint = " (as when memory runs out)" if -code == signal.SIGKILL else ""
    return f"was killed by {name}{hint}"
