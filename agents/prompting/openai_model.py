"""A model behind an OpenAI-compatible server as a text model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...envs.core.errors import BadValueError, UnknownNameError
from ..engines.openai_client import Endpoint
from .text_model import Completed, Ending, Prompt, flat, restored

Api = Literal["chat", "completions"]
APIS = ("chat", "completions")
_PATHS = {"chat": "chat/completions", "completions": "completions"}
MAX_STOPS = 4
"""Stop strings that the protocol allows."""
MAX_COUNT = 2**53
"""Most tokens that a count is believed to have; sums of such counts fit into numbers of a table."""


class OpenAIModel:
    """``/chat/completions`` or ``/completions`` of a server.

    The protocol cuts the stop string off; it is put back where it can be told (see
    :func:`~turngym.agents.prompting.text_model.restored`, and vLLM's ``stop_reason``). A reply
    that holds reasoning and nothing else becomes an unclosed ``<think>``.

    Args:
        endpoint: Address, key and patience.
        model: Name of the server's model.
        api: Which of the two.
        extra: Further fields of each request; None leaves a field out.

    Raises:
        BadValueError: No model name.
        UnknownNameError: No such API.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        api: Api = "chat",
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if not model:
            raise BadValueError("OpenAIModel: model is empty; expected the server's name for it.")
        if api not in APIS:
            raise UnknownNameError("API", api, APIS, "OpenAIModel")
        self._endpoint = endpoint
        self._model = model
        self._api = api
        self._extra = dict(extra or {})

    @property
    def continues(self) -> bool:
        """Only ``/completions`` continues a text."""
        return self._api == "completions"

    async def complete(
        self,
        prompt: Prompt,
        *,
        stop: Sequence[str] = (),
        max_tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Completed:
        """See :class:`~turngym.agents.prompting.text_model.TextModel`."""
        if len(stop) > MAX_STOPS:
            raise BadValueError(
                f"OpenAIModel: {len(stop)} stop strings; the protocol allows {MAX_STOPS}."
            )
        body: dict[str, Any] = {"model": self._model, **self._shown(prompt)}
        body |= {"max_tokens": max_tokens, "temperature": temperature, "seed": seed % 2**31}
        if stop:
            body["stop"] = list(stop)
        body = {k: v for k, v in (body | self._extra).items() if v is not None}
        before = prompt if isinstance(prompt, str) else ""
        return await self._endpoint.ask_async(
            _PATHS[self._api], body, lambda reply: _read(reply, stop, before)
        )

    async def close(self) -> None:
        """Do nothing: connections are the process's."""

    def _shown(self, prompt: Prompt) -> dict[str, Any]:
        if self._api == "completions":
            return {"prompt": prompt if isinstance(prompt, str) else flat(prompt)}
        if isinstance(prompt, str):
            raise BadValueError(
                "OpenAIModel: a text to continue came, but /chat/completions only answers "
                "dialogues; use api='completions', or agents of the dialect 'chat'."
            )
        return {"messages": [message._asdict() for message in prompt]}


def _read(reply: Any, stop: Sequence[str], before: str) -> Completed:
    """Return what a reply says.

    Raises:
        ValueError, KeyError, IndexError, TypeError: Not the reply of such a server.
    """
    choice = _mapping(reply["choices"][0])
    text = _text(choice)
    ending: Ending = "length" if choice.get("finish_reason") == "length" else "end"
    mark = choice.get("stop_reason")  # vLLM names the string that stopped it
    if ending != "length" and stop:
        named = isinstance(mark, str) and mark in stop and not text.endswith(mark)
        whole = text + str(mark) if named else restored(text, stop, before)
        ending = "stop" if any(whole.endswith(s) for s in stop) else "end"
        text = whole
    usage = _mapping(reply.get("usage") or {})
    return Completed(
        text=text,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        stop_reason=ending,
    )


def _mapping(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"expected an object, not a {type(given).__name__}")
    return given


def _text(choice: Mapping[str, Any]) -> str:
    if "message" not in choice:
        return _checked(choice["text"])
    message = _mapping(choice["message"])
    content = message.get("content")
    thought = message.get("reasoning_content") or message.get("reasoning")
    if not content and isinstance(thought, str):
        return _checked(f"<think>{thought}")
    if content is None and "content" in message:
        return ""  # the model wrote nothing
    return _checked(content)


def _checked(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError(f"the text is a {type(text).__name__}")
    return text.encode("utf-8", "replace").decode()  # lone surrogates fit into no file


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None
