"""Sealed steps run in one limited process per account; errors cost a replay, nothing else."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from helpers.server_helpers import Place

from turngym.leaderboard.server import new_token, sealed
from turngym.leaderboard.server.step_workers import StepWorkers, WorkerDied
from turngym.leaderboard.server.web import Fault


def play(client: TestClient, headers: dict[str, str], request: str = "0" * 32) -> str:
    body = {"env": "WebShop-v0", "request": request}
    answer = client.post("/api/seasons/current/episodes", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["session"]


def step(client: TestClient, place: Place, session: str, turn: int, action: str) -> Any:
    body = {"turn": turn, "action": action}
    path = f"/api/episodes/{session}/steps"
    return client.post(path, json=body, headers=place.headers)


@contextmanager
def workers(place: Place, **settings: Any) -> Iterator[StepWorkers]:
    made = StepWorkers(place.changed(**settings).settings)
    try:
        yield made
    finally:
        made.close()


def test_a_failed_write_costs_a_replay(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with TestClient(place.client().app, raise_server_exceptions=False) as client:
        session = play(client, place.headers)
        first = step(client, place, session, 1, "search[red]")
        assert first.status_code == 200

        good = sealed.open_database
        asked: list[dict[str, Any]] = []
        of = StepWorkers.of

        @contextmanager
        def failing(self: StepWorkers, account: str) -> Iterator[Any]:
            with of(self, account) as ask:

                def watched(request: dict[str, Any]) -> dict[str, Any]:
                    asked.append(request)
                    answer = ask(request)
                    if request["do"] == "step":  # what follows is the write
                        monkeypatch.setattr(sealed, "open_database", broken)
                    return answer

                yield watched

        @contextmanager
        def broken(database: Path) -> Iterator[sqlite3.Connection]:
            raise sqlite3.OperationalError("database or disk is full")
            yield

        with monkeypatch.context() as patch:
            patch.setattr(StepWorkers, "of", failing)
            assert step(client, place, session, 2, "search[blue]").status_code == 500
        monkeypatch.setattr(sealed, "open_database", good)
        assert [request["do"] for request in asked] == ["step", "forget"]
        again = step(client, place, session, 2, "search[green]")
        assert again.status_code == 200
        assert again.json()["info"]["turn"] == 2
        assert step(client, place, session, 3, "search[blue]").json()["info"]["turn"] == 3


def test_a_step_that_comes_again_while_it_is_taken_has_the_same_answer(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = StepWorkers.of
    with place.client() as client:
        session = play(client, place.headers)
        answers: list[Any] = []

        @contextmanager
        def late(self: StepWorkers, account: str) -> Iterator[Any]:
            monkeypatch.setattr(StepWorkers, "of", of)
            answers.append(step(client, place, session, 1, "search[red]"))  # was here before
            with of(self, account) as ask:
                yield ask

        monkeypatch.setattr(StepWorkers, "of", late)
        answers.append(step(client, place, session, 1, "search[red]"))
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].json() == answers[1].json()
        assert step(client, place, session, 2, "search[blue]").json()["info"]["turn"] == 2


def test_a_step_that_takes_too_long_ends_its_process_alone(place: Place) -> None:
    with workers(place, step_s=30) as made:
        with made.of("alice") as ask:
            assert ask({"do": "forget", "session": "x"}) == {}
        with made.of("bob") as ask:
            assert ask({"do": "forget", "session": "x"}) == {}
        mine, other = made._workers["alice"].process, made._workers["bob"].process
        os.kill(mine.pid, signal.SIGSTOP)  # as a step that never ends
        object.__setattr__(made._settings, "step_s", 0.2)
        with pytest.raises(WorkerDied, match=r"more than 0\.2 seconds"), made.of("alice") as ask:
            ask({"do": "forget", "session": "x"})
        assert not mine.is_alive()
        assert other.is_alive()
        object.__setattr__(made._settings, "step_s", 30.0)
        with made.of("alice") as ask:  # a new process
            assert ask({"do": "forget", "session": "x"}) == {}


def test_one_account_waits_for_itself_alone(place: Place) -> None:
    with workers(place, step_workers=2, account_queue=1) as made:
        with made.of("alice"):
            with pytest.raises(Fault, match="earlier steps of this account"), made.of("alice"):
                pass
            with made.of("bob") as ask:
                assert ask({"do": "forget", "session": "x"}) == {}
                with pytest.raises(Fault, match="all processes"), made.of("carol"):
                    pass
            with made.of("carol") as ask:  # in the place of bob
                assert ask({"do": "forget", "session": "x"}) == {}
        assert set(made._workers) == {"alice", "carol"}


def test_another_account_steps_while_one_is_stuck(place: Place) -> None:
    other = {"Authorization": f"Bearer {new_token(place.settings, 'bob')}"}
    with TestClient(place.client().app) as client:
        session = play(client, place.headers)
        mine = play(client, other, "1" * 32)
        workers = client.app.state.step_workers
        os.kill(workers._workers["alice"].process.pid, signal.SIGSTOP)
        thread = threading.Thread(target=step, args=(client, place, session, 1, "search[a]"))
        thread.start()
        time.sleep(0.1)
        path = f"/api/episodes/{mine}/steps"
        body = {"turn": 1, "action": "search[a]"}
        assert client.post(path, json=body, headers=other).status_code == 200
        assert thread.is_alive()
        os.kill(workers._workers["alice"].process.pid, signal.SIGCONT)
        thread.join()


def test_a_process_that_breaks_is_told_and_goes_on(place: Place) -> None:
    with workers(place) as made, made.of("alice") as ask:
        request = {"do": "load", "session": "x", "season": "none", "slot": ["a", 0, 0]}
        assert "UnknownNameError" in ask(request | {"actions": []})["broken"]
        assert ask({"do": "forget", "session": "x"}) == {}
