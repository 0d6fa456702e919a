"""Judges: the world's rules, and a language model behind a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.forests import tree, turn
from helpers.http_servers import QuietServer

from turngym.algos.core.forest import Forest, Group
from turngym.algos.rewards.judges import JudgeError, LlmJudge, RuleJudge, read_verdicts
from turngym.algos.rollouts.stats import shaped_metrics
from turngym.algos.runs.metrics import checked
from turngym.envs.core.errors import BadValueError


class Server(QuietServer):
    """An OpenAI-compatible endpoint that says what ``replies`` holds, over and over."""

    def __init__(self, *replies: str | int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[str | None] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.server.asked.append(json.loads(self.rfile.read(size)) | {"path": self.path})
        self.server.headers.append(self.headers["Authorization"])
        reply = self.server.replies[(len(self.server.asked) - 1) % len(self.server.replies)]
        self.send_response(reply if isinstance(reply, int) else 200)
        self.end_headers()
        if not isinstance(reply, int):
            body = {"choices": [{"message": {"role": "assistant", "content": reply}}]}
            self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Any]:
    made: list[Server] = []

    def start(*replies: str | int) -> Server:
        made.append(Server(*replies))
        return made[-1]

    yield start
    for server in made:
        server.shutdown()
        server.server_close()


@pytest.fixture
def judge(tiny_model: Path, tmp_path: Path) -> Any:
    def make(url: str, **more: Any) -> LlmJudge:
        kept = str(tmp_path / "replies")
        return LlmJudge(url=url, model="m", tokenizer=str(tiny_model), cache=kept, **more)

    return make


def dialogue(*actions: str, status: str = "solved") -> Forest:
    ids = np.array([72, 73, 74], np.int64)
    line = [
        turn(
            0.0,
            parent=i - 1,
            action=action,
            obs_ids=ids,
            status=status if i == len(actions) - 1 else "running",
        )
        for i, action in enumerate(actions)
    ]
    return Forest.of([Group("g", "t", [tree(*line)])])


def verdicts(forest: Forest) -> list[int]:
    return [t.verdict for t in forest.turns(forest.paths[0])]


def test_only_the_first_major_mistake_of_a_path_counts() -> None:
    line = [turn(0.0, parent=i - 1, verdict=v) for i, v in enumerate((1, -1, -1, 1))]
    side = turn(0.0, parent=0, verdict=-1, status="failed")
    forest = Forest.of([Group("g", "t", [tree(*line, side)])])
    judged = RuleJudge()(forest)
    found = {p.turns: [t.verdict for t in judged.turns(p)] for p in judged}
    assert found == {(0, 1, 2, 3): [1, -1, 0, 1], (0, 4): [1, -1]}


def test_the_model_sees_rules_dialogue_and_end_and_its_verdicts_are_set(
    serve: Any, judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    server = serve('Here: {"verdicts": [1, -1]} done')
    forest = dialogue("look up", "cancel it", status="failed")
    judged = judge(server.url, rules="Ask before you cancel.")(forest)
    assert verdicts(judged) == [1, -1]
    assert verdicts(forest) == [0, 0]
    (asked,) = server.asked
    assert asked["path"] == "/v1/chat/completions"
    assert asked["model"] == "m"
    assert server.headers == ["Bearer secret"]
    said = asked["messages"][1]["content"]
    for word in ("Ask before you cancel.", "Agent turn 2:\ncancel it", "ended as: failed"):
        assert word in said


def test_a_repeated_question_is_not_asked_again(serve: Any, judge: Any) -> None:
    server = serve('{"verdicts": [1]}')
    for _ in range(2):
        assert verdicts(judge(server.url)(dialogue("a"))) == [1]
    assert len(server.asked) == 1


def test_an_unreadable_reply_leaves_the_outcome_alone_and_is_told(
    serve: Any, judge: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve('{"verdicts": [1]}')
    assert verdicts(judge(server.url)(dialogue("a", "b"))) == [0, 0]
    assert "1 of 1 replies" in caplog.text


def test_a_server_that_recovers_is_waited_for(
    serve: Any, judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.envs.utils.http.time.sleep", lambda _: None)
    server = serve(503, '{"verdicts": [0]}')
    assert verdicts(judge(server.url)(dialogue("a"))) == [0]
    assert len(server.asked) == 2


def test_a_server_that_stays_away_stops_the_run_with_a_reason(
    serve: Any, judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.envs.utils.http.time.sleep", lambda _: None)
    server = serve(500)
    with pytest.raises(JudgeError, match="3 attempts"):
        judge(server.url)(dialogue("a"))
    assert len(server.asked) == 3


def forked() -> Forest:
    """A shared turn, then one side that goes on and one that ends."""
    seen = np.array([72, 73], np.int64)
    grown = tree(
        turn(0.0, action="ask", obs_ids=seen),
        turn(1.0, action="do", parent=0, status="solved", obs_ids=seen),
        turn(0.0, action="undo", parent=0, status="failed", obs_ids=seen),
    )
    return Forest.of([Group("g", "t", [grown])])


def test_shared_turns_keep_the_first_path_s_verdict_and_one_mistake_each(
    serve: Any, judge: Any
) -> None:
    """Both paths were told that their first turn was wrong, or the second of the second path."""
    server = serve('{"verdicts": [-1, 1]}', '{"verdicts": [1, -1]}')
    judged = judge(server.url, workers=1)(forked())
    found = {p.turns: [t.verdict for t in judged.turns(p)] for p in judged}
    assert found == {(0, 1): [-1, 1], (0, 2): [-1, 0]}


def test_equal_questions_are_asked_once(serve: Any, judge: Any) -> None:
    server = serve('{"verdicts": [1]}')
    twice = Forest.of([*dialogue("a").groups, *dialogue("a").groups])
    judged = judge(server.url)(twice)
    assert [judged.turns(p)[0].verdict for p in judged] == [1, 1]
    assert len(server.asked) == 1


def test_an_action_that_was_cut_for_a_fork_is_one_turn(serve: Any, judge: Any) -> None:
    server = serve('{"verdicts": [1, -1]}')
    line = [
        turn(0.0, n=2, partial=True, obs_ids=np.array([72])),
        turn(0.0, parent=0, obs_ids=np.zeros(0, np.int64), action="look up"),
        turn(0.0, parent=1, status="failed", action="cancel", obs_ids=np.array([73])),
    ]
    judged = judge(server.url)(Forest.of([Group("g", "t", [tree(*line)])]))
    assert verdicts(judged) == [0, 1, -1]
    said = server.asked[0]["messages"][1]["content"]
    assert "Agent turn 1:\nlook up" in said
    assert "There are 2 agent turns" in said


def test_a_refused_question_is_not_repeated(serve: Any, judge: Any) -> None:
    server = serve(401)
    with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
        judge(server.url)(dialogue("a"))
    assert len(server.asked) == 1


def test_a_few_silent_replies_are_tolerated_and_counted(serve: Any, judge: Any) -> None:
    server = serve('{"verdicts": [1]}', 400, "nothing of use")
    many = Forest.of([g for word in "abc" for g in dialogue(word).groups])
    judged = judge(server.url, workers=1, tolerated=1)(many)
    assert [judged.turns(p)[0].verdict for p in judged] == [1, 0, 0]
    row = checked(shaped_metrics(judged))
    third = pytest.approx(1 / 3)
    assert row["judge/right_frac"] == row["judge/silent_frac"] == third
    assert row["judge/unreadable_frac"] == third
    assert all(not turns[-1].metrics for turns in map(many.turns, many))


def test_one_failure_too_many_stops_asking(serve: Any, judge: Any) -> None:
    server = serve(400)
    many = Forest.of([g for word in "abcdef" for g in dialogue(word).groups])
    with pytest.raises(JudgeError, match="refuses"):
        judge(server.url, workers=1, tolerated=1)(many)
    assert len(server.asked) == 2


def test_a_server_that_is_not_there_is_named(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngym.envs.utils.http.time.sleep", lambda _: None)
    with pytest.raises(JudgeError, match=r"127\.0\.0\.1:9/v1/chat/completions.*RuleJudge"):
        judge("http://127.0.0.1:9/v1")(dialogue("a"))


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no json",
        "[1, 0]",
        '{"verdict": [1, 0]}',
        '{"verdicts": [1]}',
        '{"verdicts": [1, 2]}',
        '{"verdicts": [true, 0]}',
        '{"verdicts": [-1, -1]}',
        '{"verdicts": "1 0"}',
    ],
)
def test_replies_that_are_no_verdicts(reply: str) -> None:
    assert read_verdicts(reply, 2) is None


def test_settings_are_checked() -> None:
    none: list[dict[str, Any]] = [{"timeout": 0}, {"attempts": 0}, {"workers": 0}]
    for bad in ({"url": "localhost"}, {"tolerated": -1}, *none):
        with pytest.raises(BadValueError):
            LlmJudge(**({"url": "http://x", "model": "m", "tokenizer": "t"} | bad))
