"""Engine servers that lie to the learner, and clients that lie to engine servers."""

from __future__ import annotations

import copy
import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from helpers.attack_cases import cases, filled, joined
from helpers.engine_help import ask, request
from helpers.engine_servers import engine_servers, http_engine
from helpers.http_servers import serve_app
from helpers.wire_server import WireServer, wire_server
from safetensors.torch import save_file

from turngym.agents.engines.base import Completion, EngineStats
from turngym.agents.engines.hand_over.forms import Form
from turngym.agents.engines.hand_over.group import Meeting, Membership, WeightGroup
from turngym.agents.engines.http.host import EngineHost
from turngym.agents.engines.http.server import AnswerReader, EngineServer, LostCallError
from turngym.agents.engines.http.settings import HttpSettings
from turngym.agents.engines.http.weights import WeightsFile, file_digest
from turngym.agents.engines.http.wire import (
    Facts,
    WeightsId,
    encode_answer,
    encode_request,
    json_line,
)
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.envs.core.errors import BadValueError, EngineFault

PATIENCE_S = 0.2
HELD = WeightsId(7, "sha256:0")
FACTS = {
    "engine": "transformers", "vocabulary": 300, "max_context": 512, "max_batch": 4,
    "max_open": None, "dtype": "float32", "tokenizer": "", "weights": HELD.to_json(),
    "can_sleep": False, "folder": False,
}  # fmt: skip
ASKED = [request([5, 6], max_tokens=3), request([7], max_tokens=3, top_logprobs=1)]
STATS = {"prompt_tokens": 3, "cached_tokens": 0, "sampled_tokens": 4}


def truth(at: int) -> dict[str, Any]:
    numbers = np.array([0.5, 0.25], np.float32)
    top = -numbers[:, None] if at else None
    done = Completion(
        ids=np.array([3, 4]), logprobs=-numbers, entropies=numbers, stop="length", cache=1,
        top_logprobs=top,
    )  # fmt: skip
    return encode_answer(at, done) | {"stats": dict(STATS)}


def reply(place: str = "", value: Any = None) -> bytes:
    """An answer to two requests, with one thing changed."""
    said: dict[str, Any] = {
        "head": {"weights": HELD.to_json(), "count": 2}, "first": truth(0), "answer": truth(1),
        "end": {"end": 2}, "behind": None,
    }  # fmt: skip
    if place == "raw":
        said["answer"] = filled(value)
    elif place == "end.at_once":
        said["answer"] = None
    elif place:
        *path, last = place.split(".")
        at = said
        for name in path:
            at = at[name]
        at[last] = value
    parts = (said[name] for name in ("head", "first", "answer", "end", "behind"))
    return b"".join(
        part.encode("latin-1") + b"\n" if isinstance(part, str) else json_line(part)
        for part in parts
        if part is not None
    )


def read(data: bytes, block: int) -> tuple[list[int], bool]:
    told: list[int] = []

    def answer(at: int, done: Any, counted: EngineStats) -> None:
        told.append(at)

    reader = AnswerReader(HELD, ASKED, 300, answer)
    for start in range(0, len(data), block):
        reader.feed(data[start : start + block])
    return told, reader.ended


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_the_reply_that_is_changed_is_believed(block: int) -> None:
    assert read(reply(), block) == ([0, 1], True)


@pytest.mark.parametrize("case", cases("engines", "reply"))
def test_a_server_that_lies(case: dict[str, Any]) -> None:
    """What was right before the lie counts; the lie and all behind it does not."""
    data = reply(case["place"], case["value"])
    if case["place"] == "end":
        assert read(data, 64) == ([0, 1], False)
        return
    if case["place"] == "behind":
        with pytest.raises(ValueError, match="behind the end"):
            read(data, 64)
        return
    told: list[int] = []
    reader = AnswerReader(HELD, ASKED, 300, lambda at, *_: told.append(at))
    with pytest.raises((ValueError, TypeError)) as caught:
        reader.feed(data)
    assert len(str(caught.value)) < 500
    assert told in ([], [0])
    assert not reader.ended


@pytest.mark.parametrize("case", cases("engines", "facts"))
def test_a_server_that_lies_about_itself(case: dict[str, Any]) -> None:
    value = case["value"]
    value = filled(value) if isinstance(value, list) and value else value
    assert Facts.read(FACTS).weights == HELD
    if case["place"] == "dtype":
        assert Facts.read(FACTS | {"dtype": value}).dtype == value  # the engine refuses it by name
        return
    with pytest.raises(ValueError, match=r".") as caught:
        Facts.read(FACTS | {case["place"]: value})
    assert len(str(caught.value)) < 300


@pytest.fixture(scope="module")
def wire() -> Iterator[WireServer]:
    with wire_server() as server:
        yield server


def call(wire: WireServer) -> LostCallError:
    server = EngineServer(wire.url, HttpSettings(timeout_s=PATIENCE_S, attempts=1))
    server.facts = Facts.read(FACTS)
    began = time.monotonic()
    with pytest.raises(EngineFault) as caught:
        server.generate(HELD, [(one, None) for one in ASKED], lambda *_: None, lambda: False)
    assert time.monotonic() - began < 20 * PATIENCE_S
    assert len(str(caught.value)) < 2000
    return caught.value  # type: ignore[return-value]


@pytest.mark.parametrize("case", cases("peers", "wire"))
def test_a_server_that_does_not_speak_http(wire: WireServer, case: dict[str, Any]) -> None:
    wire.say(joined(case["first"]).encode("latin-1"))
    call(wire)


@pytest.mark.parametrize("case", cases("peers", "drip"))
def test_a_server_whose_answer_never_ends(wire: WireServer, case: dict[str, Any]) -> None:
    again = joined(case["again"]).encode("latin-1")
    wire.say(joined(case["first"]).encode("latin-1"), again, case["pause_s"])
    call(wire)


def test_heartbeats_without_end_and_a_body_without_end(wire: WireServer) -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n" + reply().split(b"\n")[0] + b"\n"
    wire.say(head, b"\n", 0.01)
    assert "no answer within" in str(call(wire))
    wire.say(head, b"\n" * (1 << 20))
    assert "larger than" in str(call(wire))


def test_a_liar_beside_an_honest_server_changes_nothing(tiny_model: Path) -> None:
    """Whatever the liar is given is played by the other one; alone it ends the run."""
    tokenizer = load_tokenizer(tiny_model)
    net = load_model(tiny_model, device="cpu")
    asked = [request([5 + i, 6], seed=i, max_tokens=4) for i in range(12)]
    with engine_servers(tiny_model) as honest:
        facts = honest[0][1].facts().to_json()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return
            body = b""
            while (message := await receive()).get("more_body") or message.get("body"):
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break
            said = json.dumps(facts).encode()
            if scope["path"] == "/weights/upload":
                wanted = json.loads(body)["weights"] if scope["method"] == "POST" else None
                said = json.dumps(wanted or {"bytes": len(body)}).encode()
            elif scope["path"] == "/generate":
                wanted = json.loads(body)["weights"]
                lines = [{"weights": wanted, "count": 1}, truth(0) | {"ids": "AAAAAA=="}]
                said = b"".join(map(json_line, lines))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": said})

        with serve_app(app) as liar:
            eng = http_engine([liar, honest[0][0]], tokenizer, net)
            mixed = ask(eng, *asked)
            assert eng._servers[0].problem
            alone = ask(http_engine([honest[0][0]], tokenizer, net), *asked)
            for one, two in zip(mixed, alone, strict=True):
                assert one.ids.tolist() == two.ids.tolist()
            with pytest.raises(EngineFault, match="all 1 servers are lost") as caught:
                ask(http_engine([liar], tokenizer, net, attempts=1), *asked)
            assert len(str(caught.value)) < 2000


@pytest.fixture(scope="module")
def served(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("weights") / "inside"
    folder.mkdir()
    (folder.parent / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(folder.parent / "secret")
    with engine_servers(tiny_model, weights_folder=folder) as ((url, host),):
        yield url, host, folder


def still_works(host: EngineHost) -> None:
    assert host.weights is not None
    found: list[Any] = []
    host.generate(host.weights, [ASKED[0]], lambda at, done: found.append(done)).result(10)
    assert isinstance(found[0], Completion)


@pytest.mark.parametrize("case", cases("engines", "call"))
def test_a_client_whose_calls_cannot_be_read(served: Any, case: dict[str, Any]) -> None:
    url, host, _ = served
    said = httpx.post(url + "/generate", content=filled(case["text"]).encode())
    assert said.status_code == 422
    assert len(said.text) < 2000
    still_works(host)


@pytest.mark.parametrize("case", cases("engines", "request"))
def test_a_client_whose_requests_are_none(served: Any, case: dict[str, Any]) -> None:
    url, host, _ = served
    changed = copy.deepcopy(encode_request(ASKED[0], None))
    at: Any = changed
    *path, last = case["place"].split(".")
    for name in path:
        at = at[name]
    at[last] = float("nan") if case["value"] == "NaN" else case["value"]
    body = {"weights": host.weights.to_json(), "requests": [changed]}
    said = httpx.post(url + "/generate", content=json.dumps(body).encode())
    assert said.status_code == 422
    still_works(host)


@pytest.mark.parametrize("case", cases("engines", "file"))
def test_files_outside_the_folder_of_weights(served: Any, case: dict[str, Any]) -> None:
    url, host, _ = served
    held = host.weights
    name = filled(case["name"]) if isinstance(case["name"], list) else case["name"]
    wanted = {"version": 1, "digest": file_digest(served[2].parent / "secret")}
    said = httpx.post(url + "/weights/file", json={"weights": wanted, "file": name})
    assert said.status_code == 422
    assert "secret" not in said.text or name in said.text
    assert host.weights == held
    still_works(host)


def test_weights_that_are_cut_off_changed_or_of_another_model(
    served: Any, tiny_model: Path
) -> None:
    _, host, folder = served
    held = host.weights
    net = load_model(tiny_model, device="cpu")
    good = {name: p.detach().clone() for name, p in net.named_parameters()}
    first = next(iter(good))
    bad: list[tuple[dict[str, torch.Tensor], str]] = [
        ({k: v for k, v in good.items() if k != first}, "1 names differ"),
        (good | {"more": torch.zeros(1)}, "1 names differ"),
        (good | {first: torch.zeros(3, 5)}, "has shape"),
        (good | {first: good[first].to(torch.int32)}, "in I32"),
    ]
    for number, (tensors, why) in enumerate(bad):
        path = folder / f"bad-{number}"
        save_file(tensors, path)
        with pytest.raises(BadValueError, match=why):
            host.take_file(WeightsId(1, file_digest(path)), path.name)
    whole = folder / "whole"
    save_file(good, whole)
    digest = file_digest(whole)
    data = whole.read_bytes()
    for wrong in (data[:-1], data[:100], data[:-1] + b"x", b"", b"\xff" * 64):
        whole.write_bytes(wrong)
        with pytest.raises(ValueError, match="cut off or changed"):
            host.take_file(WeightsId(1, digest), "whole")
        if len(wrong) < 101:
            with pytest.raises(ValueError, match="no weights in safetensors form"):
                host.take_file(WeightsId(1, file_digest(whole)), "whole")
    assert host.weights == held
    still_works(host)


def test_groups_that_nobody_is_in_and_weights_that_nobody_sends(
    served: Any, tiny_model: Path
) -> None:
    url, host, _ = served
    held = host.weights
    place: dict[str, Any] = {
        "name": "g", "host": "127.0.0.1", "port": 9, "size": 2, "rank": 1, "backend": "gloo",
        "join_s": 0.2, "wait_s": 0.3,
    }  # fmt: skip

    def post(path: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{url}/weights/group/{path}", json=body)

    for wrong in (
        None,
        {},
        [],
        place | {"rank": 0},
        place | {"port": 10**6},
        place | {"join_s": 1e9},
    ):
        assert post("join", place=wrong).status_code == 422
    assert post("join", place=place | {"backend": "nccl"}).status_code == 422, "there is no card"
    assert "did not meet" in post("join", place=place).json()["detail"], "nobody is there"
    wanted = {"version": 1, "digest": "group:1"}
    net = load_model(tiny_model, device="cpu")
    forms: list[Any] = [Form.of(name, p) for name, p in net.named_parameters()]
    assert post("offer", weights=wanted, group="g", forms=forms).status_code == 409, "no member"
    assert post("take", weights=wanted).status_code == 409, "nothing was offered"

    meeting, first = Meeting("127.0.0.1"), []
    place |= {"host": meeting.host, "port": meeting.port, "join_s": 5.0}
    mine = Membership.read(place)
    learner = threading.Thread(
        target=lambda: first.append(
            WeightGroup(dataclasses.replace(mine, rank=0), torch.device("cpu"), meeting)
        )
    )
    learner.start()
    assert post("join", place=place).status_code == 200
    learner.join()
    bad = [
        [], forms[1:], [*forms, forms[0]], [*forms, ["more", [1], "float32"]], "forms", [1],
        [[forms[0].name, [3], "float32"], *forms[1:]],
        [*forms[1:], [forms[0].name, [2**50], "int8"]],
    ]  # fmt: skip
    for wrong in bad:
        assert post("offer", weights=wanted, group="g", forms=wrong).status_code == 422
    assert post("offer", weights=wanted, group="other", forms=forms).status_code == 409
    assert post("offer", weights=wanted, group="g", forms=forms).status_code == 200
    assert host.weights == held
    other = {"version": 2, "digest": "group:1"}
    assert post("take", weights=other).status_code == 409, "others were offered"
    assert post("offer", weights=wanted, group="g", forms=forms).status_code == 200
    said = post("take", weights=wanted)
    assert (said.status_code, host.weights) == (409, None), "a sender that is silent"
    assert "did not arrive" in said.json()["detail"]
    assert httpx.get(url + "/health").json()["weights"] is None
    first[0].close()
    http_engine([url], load_tokenizer(tiny_model), net)
    still_works(host)


def test_uploads_out_of_order_too_large_or_of_nothing(served: Any) -> None:
    url, host, _ = served

    def put(at: int, data: bytes, digest: str = "sha256:1") -> httpx.Response:
        return httpx.put(f"{url}/weights/upload?digest={digest}&at={at}", content=data)

    assert put(10, b"x").json() == {"bytes": 0}, "a hole"
    assert put(0, b"abc").json() == {"bytes": 3}
    assert put(0, b"abc").json() == {"bytes": 3}, "the same piece again"
    assert put(3, b"def").json() == {"bytes": 6}
    assert put(-1, b"x").status_code == 422
    assert put(0, b"x", "md5:1").status_code == 422
    assert put(0, b"x" * (host._most_bytes + 1)).status_code == 422
    assert httpx.put(f"{url}/weights/upload?digest=sha256:1&at=x", content=b"").status_code == 422
    for digest in ("sha256:1", "sha256:none", "../../x"):
        body = {"weights": {"version": 3, "digest": digest}}
        assert httpx.post(f"{url}/weights/upload", json=body).status_code == 422
    assert not list(host._spool.path.iterdir()), "what was uploaded is gone"
    still_works(host)


def test_a_server_that_claims_other_weights_after_a_hand_over(
    wire: WireServer, tmp_path: Path
) -> None:
    said = json.dumps(FACTS | {"version": 6, "digest": "sha256:0", "bytes": 3}).encode()
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d"  # it hangs up, and says so
    wire.say(head % len(said) + b"\r\n\r\n" + said)
    server = EngineServer(wire.url, HttpSettings(weights_timeout_s=1.0))
    server.facts = Facts.read(FACTS)
    path = tmp_path / "w"
    path.write_bytes(b"abc")
    with pytest.raises(LostCallError, match="says that it took"):
        server.hand_over(HELD, WeightsFile(path, "sha256:0", 3), None)
