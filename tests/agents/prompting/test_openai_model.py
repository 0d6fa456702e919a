"""The model behind a server: what is sent, what is read, what is tried again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from helpers.model_server import ModelServer, completion, serving

from turngym.agents.engines.openai_client import Endpoint, EndpointContextError, EndpointError
from turngym.agents.prompting import Completed, Message, OpenAIModel, Prompt, Usage
from turngym.envs.core.errors import BadValueError, ContextFullError, UnknownNameError

TALK = [Message("user", "hi")]


def complete(url: str, prompt: Prompt = TALK, model: Any = None, **more: Any) -> Completed:
    """One completion; ``more`` goes to the endpoint, to the model, or into the call."""
    at = {k: more.pop(k) for k in ("key_variable", "timeout", "attempts") if k in more}
    made = {k: more.pop(k) for k in ("api", "extra") if k in more}
    model = model or OpenAIModel(Endpoint(url=url, first_pause=0.01, **at), "m", **made)

    async def one() -> Completed:
        try:
            return await model.complete(prompt, **{"max_tokens": 8, **more})
        finally:
            await model.close()

    return asyncio.run(one())


def test_a_dialogue_goes_to_chat_completions() -> None:
    talk = [*TALK, Message("assistant", "yes?"), Message("user", "bye")]
    with serving("done") as server:
        done = complete(server.url, talk, stop=("x",), temperature=0.5, seed=2**40 + 3)
    assert done == Completed(text="done", prompt_tokens=7, completion_tokens=3, stop_reason="end")
    (asked,) = server.asked
    assert asked == {
        "path": "/v1/chat/completions",
        "model": "m",
        "messages": [m._asdict() for m in talk],
        "max_tokens": 8,
        "temperature": 0.5,
        "seed": 3,
        "stop": ["x"],
    }
    assert "Authorization" not in server.headers[0]


def test_a_text_goes_to_completions() -> None:
    with serving(" R2 ") as server:
        done = complete(
            server.url + "/", "Q\n<answer>", api="completions", stop=("</search>", "</answer>")
        )
    assert server.asked[0]["path"] == "/v1/completions"
    assert server.asked[0]["prompt"] == "Q\n<answer>"
    assert done.text == " R2 </answer>"
    assert done.stop_reason == "stop"


def test_a_dialogue_can_be_flattened_but_a_text_is_no_dialogue() -> None:
    with serving("x") as server:
        complete(server.url, TALK, api="completions")
        assert server.asked[0]["prompt"] == "hi\n"
        with pytest.raises(BadValueError, match="api='completions'"):
            complete(server.url, "text")


def test_the_key_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("x") as server:
        monkeypatch.setenv("MY_KEY", "secret")
        complete(server.url, key_variable="MY_KEY")
        monkeypatch.delenv("MY_KEY")
        complete(server.url, key_variable="MY_KEY")
    found = [h.get("Authorization") for h in server.headers]
    assert found == ["Bearer secret", None]


def test_further_fields_are_added_or_left_out() -> None:
    with serving("x") as server:
        complete(server.url, extra={"seed": None, "max_tokens": None, "max_completion_tokens": 9})
    assert server.asked[0].keys() == {
        *("path", "model", "messages", "temperature", "max_completion_tokens")
    }


@pytest.mark.parametrize(
    ("reply", "text", "reason"),
    [
        (completion("<search> a "), "<search> a </search>", "stop"),
        (completion("I end here."), "I end here.", "end"),
        (completion("<search> a </search>"), "<search> a </search>", "stop"),
        (completion("so ", stop_reason="</search>"), "so </search>", "stop"),
        (completion("so ", stop_reason=151643), "so ", "end"),
        (completion("<search> a ", finish="length"), "<search> a ", "length"),
    ],
)
def test_stop_strings_that_the_server_cut_off(reply: Any, text: str, reason: str) -> None:
    with serving(reply) as server:
        done = complete(server.url, stop=("</search>",))
    assert (done.text, done.stop_reason) == (text, reason)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "a", "reasoning_content": "b"}, "a"),
        ({"content": None, "reasoning_content": "b"}, "<think>b"),
        ({"content": "", "reasoning": "b"}, "<think>b"),
        ({"content": None}, ""),
    ],
)
def test_reasoning_alone_is_an_unclosed_thought(message: Any, text: str) -> None:
    with serving({"choices": [{"message": message, "finish_reason": "stop"}]}) as server:
        done = complete(server.url)
    assert done.text == text
    assert done.prompt_tokens is done.completion_tokens is None


@pytest.mark.parametrize(
    "bad",
    [
        429,
        503,
        500,
        {"raw": b"not json"},
        {"raw": b"{}"},
        {"raw": b'{"choices": []}'},
        {"raw": b'{"choices": [{"message": {"content": 3}}]}'},
        {"raw": b"[1]"},
    ],
)
def test_what_may_pass_is_tried_again(bad: Any) -> None:
    with serving(bad, bad, "done") as server:
        assert complete(server.url).text == "done"
        assert len(server.asked) == 3


def test_a_late_reply_is_asked_for_again() -> None:
    with serving({"raw": b"", "wait": 2.0}, "done") as server:
        assert complete(server.url, timeout=0.2).text == "done"


def test_retry_after_is_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    monkeypatch.setattr("turngym.envs.utils.http.time.sleep", pauses.append)

    def busy(after: str) -> Any:
        return {"raw": b"", "status": 429, "headers": {"Retry-After": after}}

    with serving(busy("7"), busy("0"), busy("900"), busy("Wed, 1 Jan"), "done") as server:
        assert complete(server.url, attempts=9).text == "done"
    # the test's own server sleeps too
    assert [pause for pause in pauses if pause] == [7.0, 0.02, 30.0, 0.08]


def test_attempts_end_with_the_last_reason() -> None:
    with (
        serving(503) as server,
        pytest.raises(EndpointError, match=r"2 attempts \(last: status 503"),
    ):
        complete(server.url, attempts=2)
    assert len(server.asked) == 2
    with pytest.raises(EndpointError, match=r"127\.0\.0\.1:9/v1/chat/completions.*ConnectError"):
        complete("http://127.0.0.1:9/v1", attempts=2)
    with (
        serving({"raw": b"oops"}) as server,
        pytest.raises(EndpointError, match=r"cannot be read.*oops"),
    ):
        complete(server.url, attempts=1)


def test_a_refusal_is_final_and_names_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    with serving(401) as server:
        with pytest.raises(
            EndpointError, match=r"status 401.*MY_KEY \(the variable is set\)"
        ) as caught:
            complete(server.url, key_variable="MY_KEY")
        assert "secret" not in str(caught.value)
        with pytest.raises(EndpointError, match="none was sent"):
            complete(server.url)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "reply",
    [
        {"error": {"message": "too long", "code": "context_length_exceeded"}},
        {"error": {"message": "too long", "code": 400, "type": "exceed_context_size_error"}},
        {"error": {"message": "This model's maximum context length is 8 tokens.", "code": 400}},
        {"object": "error", "message": "The prompt exceeds the maximum model length of 8."},
        {"object": "error", "message": "The input is longer than the model's context length."},
    ],
)
def test_a_prompt_without_room_at_the_server_is_told_apart(reply: dict[str, Any]) -> None:
    refusal = {"raw": json.dumps(reply).encode(), "status": 400}
    with serving(refusal) as server, pytest.raises(EndpointContextError, match="longer than the"):
        complete(server.url)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "raw", [b"", b"oops", b"[1]", b'{"error": "no"}', b'{"error": {"message": 3, "code": [1]}}']
)
def test_any_other_refusal_is_no_question_of_room(raw: bytes) -> None:
    with (
        serving({"raw": raw, "status": 400}) as server,
        pytest.raises(EndpointError, match="refuses the request") as caught,
    ):
        complete(server.url)
    assert not isinstance(caught.value, ContextFullError)


def test_many_requests_wait_together() -> None:
    slow = {"raw": json.dumps(completion("x")).encode(), "wait": 0.3}

    async def all_of_them(server: ModelServer) -> float:
        model = OpenAIModel(Endpoint(url=server.url), "m")
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.gather(*(model.complete(TALK, max_tokens=1) for _ in range(8)))
        await model.close()
        return loop.time() - begun

    with serving(slow) as server:
        assert asyncio.run(all_of_them(server)) < 1.8


def test_one_model_lives_through_several_event_loops() -> None:
    with serving("x") as server:
        model = OpenAIModel(Endpoint(url=server.url), "m")
        for _ in range(2):
            assert complete("", model=model).text == "x"

        async def unclosed() -> str:
            return (await model.complete(TALK, max_tokens=1)).text

        assert asyncio.run(unclosed()) == asyncio.run(unclosed()) == "x"


def test_settings_are_checked() -> None:
    with pytest.raises(BadValueError, match="the url is 'localhost'"):
        Endpoint(url="localhost")
    for bad in ({"timeout": 0}, {"attempts": 0}, {"first_pause": -1}):
        with pytest.raises(BadValueError, match=f"{next(iter(bad))} is"):
            Endpoint(url="http://x", **bad)
    here = Endpoint(url="http://x")
    with pytest.raises(BadValueError, match="model is empty"):
        OpenAIModel(here, "")
    with pytest.raises(UnknownNameError, match="'chat'"):
        OpenAIModel(here, "m", api="chats")  # pyright: ignore
    with pytest.raises(BadValueError, match="the protocol allows 4"):
        complete("http://127.0.0.1:9", stop=("a", "b", "c", "d", "e"))


@pytest.mark.parametrize("count", [10**400, True, -1, 2.5, "7", None])
def test_a_count_of_tokens_that_is_none_is_uncounted(count: Any) -> None:
    reply = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": count}}
    with serving(reply) as server:
        done = complete(server.url)
    usage = Usage()
    usage.add(done)
    assert done.prompt_tokens is None
    assert usage.metrics()["uncounted_calls"] == 1
