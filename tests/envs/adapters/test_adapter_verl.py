"""verl's agent loop: whole episodes of token ids, by verl itself and by a stub of its interface."""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from helpers.adapter_play import (
    MICRO,
    SEARCH,
    SESSIONS,
    broken_world,
    loaded,
    modules,
    played,
    without,
    worlds_for,
)

from turngym.envs.adapters import conversation
from turngym.envs.adapters.verl_rows import verl_rows
from turngym.envs.core.errors import BadValueError, EnvFault, MissingExtraError

END = "<|im_end|>"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> Any:
    """One token per byte, and ChatML's two marks."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate(letters)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    marks = ["<|im_start|>", END]
    made.add_special_tokens([tokenizers.AddedToken(m, special=True) for m in marks])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token=END,
        chat_template=TEMPLATE,
        extra_special_tokens=marks,
    )


def rendered(tokens: Any, messages: list[dict[str, str]], *, prompt: bool) -> list[int]:
    return tokens.apply_chat_template(
        messages, tokenize=True, add_generation_prompt=prompt, return_dict=False
    )


def stub() -> dict[str, ModuleType]:
    """The part of verl 0.9's AgentLoopBase that the adapter uses, for ChatML."""

    class AgentLoopBase:
        def __init__(self, config: Any, server: Any, tokens: Any, **_: Any) -> None:
            self.rollout_config = config.actor_rollout_ref.rollout
            self.server_manager, self.tokenizer = server, tokens

        async def ct_build_initial_tokens(self, messages: list) -> list[int]:
            return rendered(self.tokenizer, messages, prompt=True)

        async def ct_merge_assistant_token(
            self, ids, new, mask, logps=None, assistant_logprobs=None
        ):
            merged = SimpleNamespace(token_ids=[*ids, *new])
            known = None if logps is None else [*logps, *assistant_logprobs]
            return merged, [*mask, *[1] * len(new)], known

        async def ct_merge_context_msg(self, before, after, ids, mask, logps=None):
            new = self.tokenizer.encode("\n")
            new += rendered(self.tokenizer, after[len(before) :], prompt=True)
            merged = SimpleNamespace(token_ids=[*ids, *new])
            known = None if logps is None else [*logps, *[0.0] * len(new)]
            return merged, [*mask, *[0] * len(new)], known

    class AgentLoopOutput:
        def __init__(self, **fields: Any) -> None:
            vars(self).update(fields)
            self.extra_fields: dict[str, Any] = {}

    names = {"AgentLoopBase": AgentLoopBase, "AgentLoopOutput": AgentLoopOutput}
    return modules(verl__experimental__agent_loop__agent_loop=names)


@pytest.fixture(params=["real", "stub"])
def adapter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded(request, monkeypatch, "verl_agent_loop", "verl", stub)


class Server:
    """Answers with given replies, token by token."""

    def __init__(self, tokens: Any, replies: list[str], logps: bool = True) -> None:
        self.replies = [tokens.encode(reply + END) for reply in replies]
        self.logps = logps
        self.prompts: list[list[int]] = []

    async def generate(self, *, request_id: str, prompt_ids: list[int], sampling_params: Any):
        ids = self.replies[len(self.prompts)]
        self.prompts.append(list(prompt_ids))
        logps = [-0.5 - i / 100 for i in range(len(ids))] if self.logps else None
        return SimpleNamespace(token_ids=ids, log_probs=logps, extra_fields={})


def run(adapter: Any, row: dict[str, Any], server: Server, tokens: Any, room: int = 10**6) -> Any:
    rollout = SimpleNamespace(prompt_length=10**6, response_length=room)
    config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout))

    async def play() -> Any:
        if adapter.TextEnvAgentLoop.__mro__[1].__module__.startswith("verl"):
            loop = adapter.TextEnvAgentLoop(
                SimpleNamespace(config=config),
                server,
                tokens,
                None,
                object,
                SimpleNamespace(config={}),
                hf_model_type="qwen2",
            )
        else:
            loop = adapter.TextEnvAgentLoop(config, server, tokens)
        return await loop.run({"temperature": 1.0}, raw_prompt=row["prompt"], **row)

    return asyncio.run(play())


@pytest.mark.parametrize("env_id", worlds_for("verl"))
def test_an_expert_s_episode_as_tokens(adapter: Any, env_id: str) -> None:
    tokens, direct = tokenizer(), played(env_id)
    row = verl_rows(env_id, 2, split="dev", seed=5, settings=MICRO)[1]
    server = Server(tokens, direct.actions)
    out = run(adapter, row, server, tokens)
    messages = [{"role": "user", "content": direct.prompt}]
    for action, observation in zip(direct.actions, direct.observations, strict=True):
        messages += [
            {"role": "assistant", "content": action},
            {"role": "user", "content": observation},
        ]
    whole = rendered(tokens, messages[:-1], prompt=False)
    assert out.prompt_ids == rendered(tokens, row["prompt"], prompt=True)
    # The whole trajectory is the template's own rendering, up to the newline after the last mark.
    assert [*out.prompt_ids, *out.response_ids] == whole[: -len(tokens.encode("\n"))]
    sampled = [i for i, m in zip(out.response_ids, out.response_mask, strict=True) if m]
    assert sampled == [i for reply in server.replies for i in reply]
    for prompt in server.prompts:
        assert [*out.prompt_ids, *out.response_ids][: len(prompt)] == prompt
    assert [bool(p) for p in out.response_logprobs] == [bool(m) for m in out.response_mask]
    assert out.reward_score == pytest.approx(direct.total)
    assert out.num_turns == 2 * len(direct.actions)
    extra = out.extra_fields
    assert extra["reward_terms"] == pytest.approx(direct.terms)
    assert (extra["status"], extra["task_id"]) == (direct.status, direct.row["task"])
    assert len(extra["turn_scores"]) == len(direct.actions)


def test_the_response_length_ends_the_trajectory(adapter: Any) -> None:
    tokens, direct = tokenizer(), played("SearchQA-v0")
    row = verl_rows("SearchQA-v0", 2, split="dev", seed=5, settings=MICRO)[1]
    server = Server(tokens, direct.actions, logps=False)
    out = run(adapter, row, server, tokens, room=60)
    assert len(out.response_ids) == len(out.response_mask) == 60
    assert out.response_logprobs is None
    assert out.extra_fields["status"] == "running"
    assert len(server.prompts) == 1


@pytest.mark.parametrize("logps", [True, False])
def test_the_environment_gets_as_much_of_a_reply_as_is_trained_on(
    adapter: Any, logps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, direct = tokenizer(), played("SearchQA-v0")
    row = verl_rows("SearchQA-v0", 2, split="dev", seed=5, settings=MICRO)[1]
    stepped: list[str] = []
    act = conversation.Conversation.act
    monkeypatch.setattr(
        conversation.Conversation, "act", lambda talk, a: (stepped.append(a), act(talk, a))[1]
    )
    answer = direct.actions[-1]
    whole = len(tokens.encode(answer))
    for room in (whole, whole - 3):  # of the first, the end mark alone is cut off
        out = run(adapter, row, Server(tokens, [answer], logps), tokens, room=room)
        assert (
            stepped.pop() == tokens.decode(out.response_ids) == answer[: len(answer) - whole + room]
        )
        assert out.response_mask == [1] * room
        assert out.response_logprobs is None or len(out.response_logprobs) == room
        assert (out.extra_fields["status"] == "solved") is (room == whole)
        assert (out.reward_score > 0) is (room == whole)


def test_a_broken_world_raises(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start = conversation.Conversation.start

    def break_after(self: Any, row: Any) -> str:
        text = start(self, row)
        broken_world(self)
        return text

    monkeypatch.setattr(conversation.Conversation, "start", break_after)
    row = verl_rows("SearchQA-v0", 1, split="dev", settings=SEARCH)[0]
    tokens = tokenizer()
    with pytest.raises(EnvFault, match="server is down"):
        run(adapter, row, Server(tokens, ["<search> x </search>"]), tokens)


def test_rows() -> None:
    rows = verl_rows("Game24-v0", 3, split="dev", settings=MICRO)
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2]
    assert {row["agent_name"] for row in rows} == {"turngym"}
    with pytest.raises(BadValueError, match="the verl adapter keeps one append-only"):
        verl_rows(SESSIONS[0], 1, settings=MICRO)


def test_without_the_package() -> None:
    for _ in without("verl", "verl_agent_loop"):
        with pytest.raises(MissingExtraError, match=r"verl.*turngym\[verl\]"):
            importlib.import_module("turngym.envs.adapters.verl_agent_loop")
