"""Step sealed episodes: one pass per task and trial, stored action by action."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...envs.core.episode import Info
from ...envs.core.errors import UnknownNameError
from ..entries_io.play import storable
from ..schema.suite import Cell, Slot
from .seasons import PlayedSeason, Seasons
from .settings import ServerSettings
from .step_workers import StepWorkers, WorkerDied
from .store import open_database
from .submissions import new_id
from .web import Fault

log = logging.getLogger(__name__)
Ask = Callable[[dict[str, Any]], dict[str, Any]]
EXPIRED = "no step came in time"
_HIDDEN = {"reward_terms": {}, "metrics": {}, "verdict": None}
_ENDED = "ended"
"""Status of a finished episode where rewards are hidden: neither solved nor failed."""
_RUNNING_S = 2.0


class SealedPlay:
    """Starts and steps episodes of the open seasons.

    A running episode is in the memory of its account's process; after a restart, after any error,
    or when too many others are running, it is replayed from its actions. Steps are idempotent: a
    repeated request is executed once.

    Args:
        settings: Settings of the server.
        seasons: Seasons of the server.
        workers: The accounts' processes.
    """

    def __init__(self, settings: ServerSettings, seasons: Seasons, workers: StepWorkers) -> None:
        self._settings = settings
        self._seasons = seasons
        self._workers = workers

    def start(
        self, account: str, season: PlayedSeason, env: str, wanted: dict[str, Any]
    ) -> dict[str, Any]:
        """Start the requested episode, or the next unplayed one.

        Args:
            account: The player's account.
            season: The season.
            env: Environment id, or key of a cell.
            wanted: ``task`` and ``trial`` (None: the next), and ``request``, the client's id of the
                request: a repeated one gets the same episode as it stands, until it is over.

        Raises:
            Fault: The episode was played already, too many episodes are open, or the id of the
                request was one for another environment, or of an episode that is over.
            UnknownNameError: There is no such environment in the season.
        """
        cell = season.cell_for(env)
        with open_database(self._settings.database) as base:
            row = base.execute(
                "SELECT * FROM sealed_episodes WHERE account = ? AND season = ? AND request = ?",
                (account, season.public.name, wanted["request"]),
            ).fetchone()
            if row is None:
                row = self._begin(base, account, season, cell, wanted)
        if row["env"] != cell.key:
            raise Fault(
                422,
                "request",
                f"request {wanted['request']} started an episode of {row['env']}; give a request "
                f"for {cell.key} an id of its own.",
            )
        with self._asking(row) as ask:
            with open_database(self._settings.database) as base:
                row = _read_episode(base, account, row["id"])  # a step may have ended it just now
            self._check_running(season, row)
            begun = ask(self._load_request(row))
        return {
            "session": row["id"],
            "env": cell.key,
            "task": row["task"],
            "trial": row["trial"],
            "observation": begun["observation"],
            "info": self._filter_info(season, row, begun["info"]),
            "left": self.left(account, season),
        }

    def _begin(
        self,
        base: sqlite3.Connection,
        account: str,
        season: PlayedSeason,
        cell: Cell,
        wanted: dict[str, Any],
    ) -> sqlite3.Row:
        name = season.public.name
        mine = base.execute(
            "SELECT env, task, trial, status FROM sealed_episodes WHERE account = ? AND season = ?",
            (account, name),
        ).fetchall()
        done = base.execute(
            "SELECT submission FROM sealed_entries WHERE account = ? AND season = ?",
            (account, name),
        ).fetchone()
        if done is not None and done["submission"]:
            raise Fault(409, "played", f"season {name}: this account has finished its pass.")
        running = sum(row["status"] == "running" for row in mine)
        if running >= self._settings.open_episodes:
            raise Fault(
                429, "open", f"{running} episodes are open; finish some before starting others."
            )
        taken = {
            Slot(row["env"], row["task"], row["trial"]): row["status"] == "running" for row in mine
        }
        slot = _slot(cell, taken, wanted["task"], wanted["trial"])
        session = new_id()
        base.execute(
            "INSERT INTO sealed_episodes "
            "(id, season, account, env, task, trial, request, status, touched) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 'running', ?)",
            (session, name, account, *slot, wanted["request"], time.time()),
        )
        return base.execute("SELECT * FROM sealed_episodes WHERE id = ?", (session,)).fetchone()

    def step(self, account: str, session: str, turn: int, action: str) -> dict[str, Any]:
        """Execute one action.

        Args:
            account: The player's account.
            session: Id of the episode.
            turn: Number of the action, from 1.
            action: Text of the action.

        Raises:
            Fault: The account has no such episode, it is over or expired, or the turn is wrong.
        """
        row, answer = self._look_up(account, session, turn, action)
        if answer is not None:
            return answer
        try:
            season = self._seasons.find(row["season"])
        except UnknownNameError as error:
            message = f"the season {row['season']} is over, and its episodes with it."
            raise Fault(409, "over", message) from error
        self._check_running(season, row)
        self._check_action(season, action)
        with self._asking(row) as ask:
            # the same request may have come before, and been at work until now
            row, answer = self._look_up(account, session, turn, action)
            return self._execute(season, row, ask, turn, action) if answer is None else answer

    def _look_up(
        self, account: str, session: str, turn: int, action: str
    ) -> tuple[sqlite3.Row, dict[str, Any] | None]:
        """Return an episode, and the stored answer to an action; None where it was not taken.

        Raises:
            Fault: The account has no such episode.
        """
        with open_database(self._settings.database) as base:
            row = _read_episode(base, account, session)
            stored = base.execute(
                "SELECT action, answer FROM sealed_steps WHERE episode = ? AND turn = ?",
                (session, turn),
            ).fetchone()
        if stored is None or stored["action"] != action:
            return row, None
        return row, json.loads(stored["answer"])

    def _check_running(self, season: PlayedSeason, row: sqlite3.Row) -> None:
        if row["status"] == "running" and self._is_expired(season, row["touched"]):
            self.expire()
            raise Fault(409, "expired", f"the episode is over: {EXPIRED}; it counts as 0.")
        if row["status"] != "running":
            why = f": {row['why']}" if row["why"] else ""
            status = row["status"]
            if status in ("solved", "failed", "truncated") and (
                not season.public.terms.show_rewards
            ):
                status = _ENDED
            raise Fault(409, "over", f"the episode is over ({status}{why}).")

    def _check_action(self, season: PlayedSeason, action: str) -> None:
        if len(action) > season.suite.max_action_chars:
            raise Fault(
                422,
                "action",
                f"the action has {len(action):,} characters; at most "
                f"{season.suite.max_action_chars:,} are allowed.",
            )
        if storable(action) != action:
            raise Fault(422, "action", "the action contains a lone surrogate; write valid UTF-8.")

    def _execute(
        self, season: PlayedSeason, row: sqlite3.Row, ask: Ask, turn: int, action: str
    ) -> dict[str, Any]:
        request = {"do": "step", "session": row["id"], "turn": turn, "action": action}
        taken = ask(request)
        if "absent" in taken:
            ask(self._load_request(row))
            taken = ask(request)
        if "due" in taken:
            raise Fault(409, "turn", f"got turn {turn}; expected turn {taken['due']}.")
        shown = season.public.terms.show_rewards
        status, why = str(taken["info"]["status"]), ""
        over = status not in ("running", "env_error")
        answer = {
            # what an environment says at the end tells who is right, and nobody acts on it
            "observation": "" if over and not shown else taken["observation"],
            "reward": taken["reward"] if shown else 0.0,
            "terminated": taken["terminated"],
            "truncated": taken["truncated"],
            "info": self._filter_info(season, row, taken["info"]),
        }
        if status == "env_error":
            why = taken["observation"]
        with open_database(self._settings.database) as base:
            if (
                status != "env_error"
            ):  # the action that broke the environment is not part of the entry
                base.execute(
                    "INSERT INTO sealed_steps VALUES (?, ?, ?, ?, ?)",
                    (row["id"], turn, action, taken["chain"], json.dumps(answer)),
                )
            base.execute(
                "UPDATE sealed_episodes SET status = ?, why = ?, touched = ? WHERE id = ?",
                (status, why, time.time(), row["id"]),
            )
        if status != "running":
            ask({"do": "forget", "session": row["id"]})
        return answer

    @contextlib.contextmanager
    def _asking(self, row: sqlite3.Row) -> Iterator[Ask]:
        """Reserve the process of an episode's account, for a function that asks it.

        After any exception the process forgets the episode, which may be ahead of what is stored;
        the next step replays it.

        Raises:
            Fault: The process took too long, or died, or broke.
        """
        try:
            with self._workers.of(row["account"]) as ask:

                def checked(request: dict[str, Any]) -> dict[str, Any]:
                    answer = ask(request)
                    if "broken" in answer:
                        log.error("episode %s: %s", row["id"], answer["broken"])
                        raise Fault(503, "broken", "the step failed; send it again.", 1.0)
                    return answer

                try:
                    yield checked
                except (Fault, WorkerDied):
                    raise
                except Exception:
                    ask({"do": "forget", "session": row["id"]})
                    raise
        except WorkerDied as error:
            message = f"the step was not taken: {error}; send it again, or another one."
            raise Fault(503, "step", message, 1.0) from error

    def _load_request(self, row: sqlite3.Row) -> dict[str, Any]:
        """Return what a process needs to have an episode in memory."""
        with open_database(self._settings.database) as base:
            steps = base.execute(
                "SELECT action FROM sealed_steps WHERE episode = ? ORDER BY turn", (row["id"],)
            ).fetchall()
        return {
            "do": "load",
            "session": row["id"],
            "season": row["season"],
            "slot": (row["env"], row["task"], row["trial"]),
            "actions": [step["action"] for step in steps],
        }

    def _filter_info(self, season: PlayedSeason, row: sqlite3.Row, info: Any) -> dict[str, Any]:
        """Return the keys of :class:`Info`, without what reveals the task or hidden rewards.

        An environment's own keys stay on the server: they can hold rewards and answers.
        """
        hidden: dict[str, Any] = {} if season.public.terms.show_rewards else dict(_HIDDEN)
        if hidden and info["status"] not in ("running", "env_error"):
            hidden["status"] = _ENDED
        split = season.cells[row["env"]].split
        public = {key: info[key] for key in Info.__annotations__}
        return public | hidden | {"task_id": f"sealed/{row['task']}", "split": split}

    def left(self, account: str, season: PlayedSeason) -> int:
        """Return the number of episodes of the season that the account has not started."""
        with open_database(self._settings.database) as base:
            begun = base.execute(
                "SELECT count(*) FROM sealed_episodes WHERE account = ? AND season = ?",
                (account, season.public.name),
            ).fetchone()[0]
        return season.total - begun

    def running(self, account: str, season: PlayedSeason) -> int:
        """Return the number of the account's episodes of the season that are not over."""
        with open_database(self._settings.database) as base:
            touched = base.execute(
                "SELECT touched FROM sealed_episodes "
                "WHERE account = ? AND season = ? AND status = 'running'",
                (account, season.public.name),
            ).fetchall()
        return sum(not self._is_expired(season, row["touched"]) for row in touched)

    def _is_expired(self, season: PlayedSeason, touched: float) -> bool:
        return time.time() - touched > season.public.terms.session_s

    def expire(self) -> int:
        """End the episodes whose step timeout has passed.

        Returns:
            Number of expired episodes.
        """
        count = 0
        for name in self._seasons.open_names():
            season = self._seasons.find(name)
            before = time.time() - season.public.terms.session_s
            with open_database(self._settings.database) as base:
                count += base.execute(
                    "UPDATE sealed_episodes SET status = 'expired', why = ? "
                    "WHERE season = ? AND status = 'running' AND touched < ?",
                    (EXPIRED, name, before),
                ).rowcount
        return count


def _read_episode(base: sqlite3.Connection, account: str, session: str) -> sqlite3.Row:
    """Return an episode.

    Raises:
        Fault: The account has no such episode.
    """
    row = base.execute(
        "SELECT * FROM sealed_episodes WHERE id = ? AND account = ?", (session, account)
    ).fetchone()
    if row is None:
        raise Fault(404, "unknown", "this account has no such episode.")
    return row


def _slot(cell: Cell, taken: Mapping[Slot, bool], task: int | None, trial: int | None) -> Slot:
    """Return the requested slot; with None the first free one, trial by trial.

    A task comes again when every task of the cell is over once more, so that nobody learns from one
    trial how to play the next before all are played.

    Args:
        cell: The environment.
        taken: The slots that were started, with whether they are running.
        task: Place of the task.
        trial: Which trial.

    Raises:
        Fault: The slot does not exist, was played, or earlier trials are not over.
    """
    if task is not None and not 0 <= task < len(cell.tasks):
        last = len(cell.tasks) - 1
        raise Fault(422, "task", f"{cell.key}: there is no task {task}; expected 0 to {last}.")
    if trial is not None and not 0 <= trial < cell.trials:
        raise Fault(422, "task", f"{cell.key}: there is no trial {trial}; there are {cell.trials}.")
    tasks = range(len(cell.tasks)) if task is None else (task,)
    trials = range(cell.trials) if trial is None else (trial,)
    for slot in (Slot(cell.key, index, turn) for turn in trials for index in tasks):
        if slot not in taken:
            _check_earlier(cell, taken, slot.trial)
            return slot
    raise Fault(
        409, "played", f"{cell.key}: played already; a season gives one pass per task and trial."
    )


def _check_earlier(cell: Cell, taken: Mapping[Slot, bool], trial: int) -> None:
    """Check that all earlier trials of a cell's tasks are over.

    Raises:
        Fault: Some are not started, or run.
    """
    earlier = [Slot(cell.key, i, t) for t in range(trial) for i in range(len(cell.tasks))]
    missing = sum(slot not in taken for slot in earlier)
    running = sum(taken.get(slot, False) for slot in earlier)
    message = f"{cell.key}: trial {trial} begins when the trials before it are over"
    if missing:
        raise Fault(409, "trials", f"{message}; {missing} are not started.")
    if running:
        raise Fault(429, "trials", f"{message}; {running} are running.", _RUNNING_S)
