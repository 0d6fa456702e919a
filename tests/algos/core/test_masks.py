"""What is trained is what the model wrote: real model, real engine, real world."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import turngym.envs
from turngym.agents.engines.base import Completion, Request, Sampling
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.algos.core.forest import Forest, Turn
from turngym.algos.core.protocols import Start
from turngym.algos.learner.batching.rows import rows_of
from turngym.algos.rollouts import Chains, EpisodeRunner


class Listening(gym.Wrapper[Any, Any, Any, Any]):
    """Annotations, beside everybody else's bookkeeping, every text that passes."""

    def __init__(self, env: gym.Env[Any, Any], log: dict[str, list[str]] | None = None) -> None:
        super().__init__(env)
        self.log: dict[str, list[str]] = {} if log is None else log
        self.heard: list[str] = []

    def reset(self, **more: Any) -> Any:
        observation, info = super().reset(**more)
        self.heard = [self.unwrapped.instructions + observation]  # pyright: ignore
        return observation, info

    def step(self, action: Any) -> Any:
        result = super().step(action)
        self.heard += [action, result[0]]
        self.log["".join(self.heard[:-1])] = self.heard[:-1]
        return result

    def fork_wrapper(self, inner: gym.Env[Any, Any]) -> Listening:
        twin = Listening(inner, self.log)
        twin.heard = list(self.heard)
        return twin


class ReplayEngine:
    """Writes what a table says for the text before it, token by token."""

    version = 0
    max_context = 2048

    def __init__(self, tokenizer: Any, answers: dict[str, str], end: bool) -> None:
        self.tokenizer, self.answers, self.end = tokenizer, answers, end

    async def generate(self, request: Request) -> Completion:
        seen = [int(i) for i in request.ids if int(i) != self.tokenizer.eos_token_id]
        text = self.answers[self.tokenizer.decode(seen)]
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        ids += [self.tokenizer.eos_token_id] * self.end
        zeros = np.zeros(len(ids), np.float32)
        return Completion(ids=np.array(ids), logprobs=zeros, entropies=zeros, stop="stop")

    def release(self, cache: int | None) -> None:
        raise AssertionError("no cache was given")


def world(**more: Any) -> Listening:
    return Listening(gym.make("SearchQA-v0", size="micro", **more))


def written(turn: Turn, tokenizer: Any) -> list[int]:
    """The action's ids without the end-of-text token that closed it."""
    ids = turn.act_ids.tolist()
    return ids[:-1] if turn.stop == "eos" or ids[-1] == tokenizer.eos_token_id else ids


def check(forest: Forest, env: Listening, tokenizer: Any) -> None:
    """Trained tokens are the actions, all tokens are the transcript."""
    for path, row in zip(forest, rows_of(forest), strict=True):
        turns = forest.turns(path)
        for i, turn in enumerate(turns):
            np.testing.assert_array_equal(row.ids[row.at[row.turns == i]], turn.act_ids)
            assert tokenizer.decode(written(turn, tokenizer)) == turn.action
        pieces = [(tokenizer.decode(t.obs_ids.tolist()), t.action) for t in turns]
        texts = [text for pair in pieces for text in pair]
        assert env.log["".join(texts)] == texts
        whole = [i for t in turns for i in [*t.obs_ids.tolist(), *written(t, tokenizer)]]
        assert tokenizer.decode(whole) == "".join(texts)
        trained = np.zeros(len(row.ids), bool)
        trained[row.at] = True
        context = row.ids[~trained]
        np.testing.assert_array_equal(context, np.concatenate([t.obs_ids for t in turns]))


def rollout(runner: EpisodeRunner, n: int, tasks: int) -> Forest:
    async def play() -> Forest:
        starts = [Start("dev", i, 11 * i, f"u{i}") for i in range(tasks)]
        return Forest.of(await asyncio.gather(*(Chains(n=n)(runner, s) for s in starts)))

    return asyncio.run(play())


@pytest.mark.parametrize("prompt", ["none", "search-r1"])
def test_a_real_model_is_trained_on_exactly_what_it_wrote(tiny_model: Path, prompt: str) -> None:
    tokenizer, model = load_tokenizer(tiny_model), load_model(tiny_model, device="cpu")
    env = world(prompt=prompt, max_turns=2)
    engine = TransformersEngine(model, tokenizer, dtype="float32", max_batch=8)
    sampling = Sampling(max_tokens=12, temperature=0.7)
    forest = rollout(EpisodeRunner(env, engine, make_renderer(tokenizer), sampling), n=4, tasks=3)
    assert len(forest.paths) == 12
    stops = {t.stop for p in forest for t in forest.turns(p)}
    assert "length" in stops
    if prompt == "search-r1":  # the long prompt leaves this model's context room for one action
        assert all(forest.turns(p)[-1].overflow for p in forest)
    check(forest, env, tokenizer)

    # the recorded log-probabilities are those of these very tokens at these very places
    for row in rows_of(forest)[::4]:
        with torch.no_grad():
            logits = model(torch.from_numpy(row.ids)[None]).logits[0] / 0.7
        scores = logits.log_softmax(-1)[row.at - 1, row.ids[row.at]]
        np.testing.assert_allclose(row.sampled, scores.numpy(), atol=2e-5)


@pytest.mark.parametrize("end", [False, True])
def test_search_episodes_keep_passages_out_of_training(tiny_model: Path, end: bool) -> None:
    tokenizer = load_tokenizer(tiny_model)
    answers: dict[str, str] = {}
    bare = gym.make("SearchQA-v0", size="micro")
    for i in range(4):
        observation, info = bare.reset(seed=11 * i, options={"split": "dev", "task": i})
        policy = bare.unwrapped.expert(mistakes=0.3, seed=i)  # pyright: ignore
        seen, over = bare.unwrapped.instructions + observation, False  # pyright: ignore
        while not over:
            action = policy(bare, observation, info)
            answers[seen] = action
            observation, _, ended, cut, info = bare.step(action)
            seen, over = seen + action + observation, ended or cut
    env = world()
    engine: Any = ReplayEngine(tokenizer, answers, end)
    forest = rollout(
        EpisodeRunner(env, engine, make_renderer(tokenizer), Sampling(max_tokens=64)), n=1, tasks=4
    )
    check(forest, env, tokenizer)
    turns = [t for p in forest for t in forest.turns(p)]
    assert any("<information>" in tokenizer.decode(t.obs_ids.tolist()) for t in turns)
    for t in turns:
        assert "<information>" not in tokenizer.decode(t.act_ids.tolist())
        assert bool(t.act_ids[-1] == tokenizer.eos_token_id) is end
        assert t.valid


def test_a_broken_search_is_left_out_and_counted(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load_tokenizer(tiny_model)
    env = world()
    prototype = env.unwrapped

    def play(self: Any, episode: Any, action: str) -> Any:
        if episode.task.index == 1 and episode.turn == 2:
            raise turngym.envs.core.errors.EnvFault("index gone")
        return original(self, episode, action)

    original = type(prototype).play
    monkeypatch.setattr(type(prototype), "play", play)
    engine = TransformersEngine(
        load_model(tiny_model, device="cpu"), tokenizer, dtype="float32", max_batch=8
    )
    forest = rollout(
        EpisodeRunner(env, engine, make_renderer(tokenizer), Sampling(max_tokens=4)), n=2, tasks=2
    )
    assert forest.env_errors == 2
    assert {p.group for p in forest} == {0}
    assert len(rows_of(forest)) == 2
