"""The customer that a language model plays: a small server that answers well, badly or never."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from helpers.http_servers import QuietServer

from turngym.envs.core.errors import BadValueError, EnvFault
from turngym.envs.retail.customer.chat import ChatEndpoint
from turngym.envs.retail.customer.llm import LlmCustomer
from turngym.envs.retail.env import Retail
from turngym.envs.wrappers.vector import TextVectorEnv


class Server:
    """Answers with what ``reply`` gives for a request: a text, or bytes as they are."""

    def __init__(self) -> None:
        self.reply: Callable[[dict[str, Any]], str | bytes] = lambda _: "Hello."
        self.asked: list[dict[str, Any]] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body["key"], body["path"] = self.headers.get("Authorization"), self.path
                outer.asked.append(body)
                said = outer.reply(body)
                if isinstance(said, str):
                    said = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def world(server: Server, **settings: Any) -> Retail:
    customer = {k: settings.pop(k) for k in ("checks", "most_turns") if k in settings}
    answers = ChatEndpoint(url=server.url, wait_s=0.01, **settings)
    return Retail(size="micro", customer=LlmCustomer(answers=answers, model="m", **customer))


def find_change() -> int:
    """The first task of the micro shop that takes one change."""
    source = Retail(size="micro").source
    return next(i for i in range(100) if source.task("test", i).payload.features["writes"] == 1)


def scripted(*lines: str) -> Callable[[dict[str, Any]], str]:
    """Answers by how many messages the customer has said before."""
    return lambda body: lines[sum(m["role"] == "assistant" for m in body["messages"])]


def test_a_visit_with_a_model(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    server.reply = scripted("<think>hm</think> Hi,\n cancel it.", "Yes.", "###STOP###")
    env = world(server)
    observation, _ = env.reset(seed=0, options={"split": "test", "task": 0})
    assert observation == "Customer: Hi, cancel it.\n"
    assert env.step("<think>secret plan</think>Shall I?")[0] == "Customer: Yes.\n"
    *_, info = env.step("Done.")
    assert (env.episode.observation, info["status"]) == ("Customer: ###STOP###\n", "failed")
    first, second, _ = server.asked
    assert first["path"] == "/v1/chat/completions"
    assert first["key"] == "Bearer secret"
    assert env.source.task("test", 0).payload.brief in first["messages"][0]["content"]
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "user"]
    assert "secret plan" not in json.dumps(second)


def test_a_model_that_plays_along_leads_to_success(server: Server) -> None:
    task = find_change()
    env = world(server)
    payload = env.source.task("test", task).payload
    (name, given), who = payload.accepted[0][0], payload.scenario.identity
    server.reply = scripted("Hi.", who.email, "Yes.", "###STOP###")
    env.reset(seed=0, options={"split": "test", "task": task})
    write = env.knowledge.tools.write
    env.step("Your email?")
    env.step(write("find_user_id_by_email", {"email": who.email}))
    env.step("Shall I do it?")
    env.step(write(name, given))
    assert env.step("Done.")[4]["status"] == "solved"


def test_first_words_are_no_yes_to_anything(server: Server) -> None:
    env = world(server)
    task = find_change()
    payload = env.source.task("test", task).payload
    (name, given), who = payload.accepted[0][0], payload.scenario.identity
    write = env.knowledge.tools.write
    find = write("find_user_id_by_email", {"email": who.email})
    for lines, agreed in ((("Sure, I agree to all.",), False), (("Hi.", "Sure, I agree."), True)):
        server.reply = scripted(*lines)
        env.reset(seed=0, options={"split": "test", "task": task})
        env.step(find)
        before = env.state_digest()
        if agreed:
            env.step("I will change it. Do you agree?")
            assert env.state_digest() != before
        env.step(write(name, given))
        ((_, _, confirmed),) = env.episode.state.calls
        assert confirmed == agreed
        broken = {key for _, key in env.episode.state.violations}
        assert ("confirm_first" in broken) != agreed


@pytest.mark.parametrize(
    "nonsense",
    [
        b"<html>",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": null}}]}',
        "<think>only</think>",
    ],
)
def test_nonsense_breaks_the_episode_and_is_no_score(server: Server, nonsense: Any) -> None:
    env = world(server, attempts=2)
    env.reset(seed=0)
    server.reply = lambda _: nonsense
    *_, cut, info = env.step("Hello?")
    assert (cut, info["status"], info["reward_terms"]) == (True, "env_error", {})
    assert "customer's model" in env.episode.observation


def test_a_server_that_hangs_breaks_the_episode_in_time(server: Server) -> None:
    env = world(server, attempts=2, timeout_s=0.15)
    env.reset(seed=0)

    def slow(_: dict[str, Any]) -> str:
        time.sleep(0.6)
        return "late"

    server.reply = slow
    start = time.monotonic()
    assert env.step("Hello?")[4]["status"] == "env_error"
    assert time.monotonic() - start < 3


def test_refusals_are_not_tried_again_and_faults_are(server: Server) -> None:
    env = world(server, attempts=3)
    env.reset(seed=0)
    for status, tries in ((401, 1), (500, 3)):
        server.status, before = status, len(server.asked)
        assert env.fork().step("Hello?")[4]["status"] == "env_error"
        assert len(server.asked) - before == tries
    with pytest.raises(EnvFault):
        env.reset(seed=0)


def test_a_customer_that_never_stops(server: Server) -> None:
    env = world(server, most_turns=3)
    env.reset(seed=0)
    statuses = [env.step(f"Hm {n}")[4]["status"] for n in range(4)]
    assert statuses == ["running", "running", "running", "env_error"]


def test_answers_are_kept_for_an_exact_replay(server: Server, tmp_path: Path) -> None:
    numbers = iter(range(100))
    server.reply = lambda _: f"Number {next(numbers)}."
    env = world(server, cache=str(tmp_path))
    first = [env.reset(seed=1)[0], env.step("A")[0], env.step("B")[0]]
    asked = len(server.asked)
    again = world(server, cache=str(tmp_path))
    assert [again.reset(seed=1)[0], again.step("A")[0], again.step("B")[0]] == first
    assert len(server.asked) == asked
    assert again.reset(seed=2)[0] not in first


def test_a_message_that_the_model_finds_amiss_is_drawn_again(server: Server) -> None:
    def reply(body: dict[str, Any]) -> str:
        if "true or false" in body["messages"][0]["content"]:
            return "false" if "bad" in body["messages"][0]["content"] else "true"
        return "bad" if body["seed"] in firsts else "fine"

    firsts: set[int] = set()
    server.reply = reply
    env = world(server)
    for seed in range(6):
        env.reset(seed=seed)
    firsts |= {body["seed"] for body in server.asked[::2]}
    env = world(server, checks=1)
    strict = [env.reset(seed=seed)[0] for seed in range(6)]
    assert set(strict) == {"Customer: fine\n"}
    assert {world(server).reset(seed=seed)[0] for seed in range(6)} == {
        "Customer: fine\n",
        "Customer: bad\n",
    }


def test_many_customers_answer_side_by_side(server: Server) -> None:
    envs = TextVectorEnv(world(server), 4)
    envs.reset(seed=0)

    def slow(_: dict[str, Any]) -> str:
        time.sleep(0.2)
        return "Hi."

    server.reply = slow
    start = time.monotonic()
    observations, *_ = envs.step(["Hello"] * 4)
    assert list(observations) == ["Customer: Hi.\n"] * 4
    assert time.monotonic() - start < 0.7


def test_bad_addresses_are_refused() -> None:
    with pytest.raises(BadValueError, match="expected an address"):
        ChatEndpoint(url="localhost:8000")
    with pytest.raises(BadValueError, match="attempts"):
        ChatEndpoint(url="http://localhost", attempts=0)


def test_a_model_as_a_setting(server: Server) -> None:
    env = Retail(size="micro", customer={"url": server.url, "model": "m", "wait_s": 0.01})
    assert env.reset(seed=0)[0] == "Customer: Hello.\n"
    assert env.step("Hi.")[4]["verdict"] is None
    for bad, said in (({"url": "http://x", "modle": "m"}, "'model'"), ({"model": "m"}, "'url'")):
        with pytest.raises(ValueError, match=said):
            Retail(size="micro", customer=bad)
