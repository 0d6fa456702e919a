"""The process that steps the sealed episodes of one account: loads, steps and forgets them.

It reads one JSON request at a time and answers each with one JSON message. :mod:`.step_workers`
starts it, one per account, so that an action that takes long delays nobody else.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ...envs.wrappers.record import RecordEpisodes
from ..entries_io.play import start_slot
from ..schema.suite import Slot
from ..verification.process_limits import bound_memory, die_with_parent
from .seasons import PlayedSeason

log = logging.getLogger(__name__)
_NICE = 5
MIB = 2**20


def serve_steps(
    connection: Connection[Any, Any], root: str, live_envs: int, memory_mib: int
) -> None:
    """Answer requests until the server closes the connection.

    Args:
        connection: The server's end is the other one.
        root: The server's folder of seasons.
        live_envs: Maximum number of episodes in memory; the longest unused ones are forgotten.
        memory_mib: Address space, in mebibytes.
    """
    _set_limits(memory_mib)
    episodes = Episodes(Path(root), live_envs)
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            answer = episodes.handle(request)
        except MemoryError:
            return  # what is left of the process is of no use; the episode is replayed
        except Exception as error:
            log.exception("episode %s", request.get("session"))
            episodes.handle({"do": "forget", "session": request["session"]})
            answer = {"broken": f"{type(error).__name__}: {error}"[:500]}
        connection.send_bytes(json.dumps(answer).encode())


def _set_limits(memory_mib: int) -> None:
    """Bound the memory, step back behind the server, and die with it."""
    import resource  # Windows, where the server says that it cannot run, has none

    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    bound_memory(memory_mib * MIB)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Episodes:
    """The running episodes of one account.

    Args:
        root: The server's folder of seasons.
        live_envs: Maximum number of episodes in memory.
    """

    def __init__(self, root: Path, live_envs: int) -> None:
        self._root = root
        self._live_envs = live_envs
        self._seasons: dict[str, PlayedSeason] = {}
        self._live: OrderedDict[str, RecordEpisodes] = OrderedDict()
        self._answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "load": self._load,
            "step": self._step,
            "forget": self._forget,
        }

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request; its ``do`` is load, step or forget."""
        return self._answers[request["do"]](request)

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start an episode and repeat its actions, unless it is in memory."""
        name = request["session"]
        if name not in self._live:
            season = self._seasons.get(request["season"])
            if season is None:
                season = PlayedSeason(self._root, request["season"])
                self._seasons[request["season"]] = season
            slot = Slot(*request["slot"])
            cell = season.cells[slot.env]
            recorder = season.recorder(cell)
            start_sealed(recorder, season, slot)
            for action in request["actions"]:
                recorder.step(action)
            self._live[name] = recorder
            while len(self._live) > self._live_envs:
                self._live.popitem(last=False)
        self._live.move_to_end(name)
        inner = self._live[name].inner
        return {
            "observation": inner.episode.observation,
            "turn": inner.episode.turn,
            "info": dict(inner._info(inner.episode)),
        }

    def _step(self, request: dict[str, Any]) -> dict[str, Any]:
        """Execute an action in an episode that is in memory and stands at the turn before."""
        recorder = self._live.get(request["session"])
        if recorder is None:
            return {"absent": True}
        episode = recorder.inner.episode
        if request["turn"] != episode.turn + 1 or episode.status != "running":
            return {"due": episode.turn + 1}
        observation, reward, terminated, truncated, info = recorder.step(request["action"])
        self._live.move_to_end(request["session"])
        return {
            "observation": observation,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "info": dict(info),
            "chain": recorder.chain,
        }

    def _forget(self, request: dict[str, Any]) -> dict[str, Any]:
        self._live.pop(request["session"], None)
        return {}


def start_sealed(recorder: RecordEpisodes, season: PlayedSeason, slot: Slot) -> None:
    """Reset the environment to a slot whose task counts from 0."""
    cell = season.cells[slot.env]
    start_slot(recorder, season.suite, cell, slot._replace(task=cell.tasks[slot.task]))
