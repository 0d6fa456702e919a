"""Prompting agents over a set: side by side, written down, and honest about failures."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.letters_world import Letters
from helpers.prompting_help import FakeModel, make_world

from turngym.agents.engines.openai_client import EndpointError
from turngym.agents.prompting import Completed, Limits, Rag, React, prompting
from turngym.algos.evaluation.evaluate import EvalSet, mean_of_sets
from turngym.algos.evaluation.prompting import Prompted
from turngym.algos.evaluation.result import SetScore
from turngym.envs import replay
from turngym.envs.core.errors import BadValueError, ContextFullError, EnvFault, EpisodeError
from turngym.envs.wrappers.record import read_transcripts

assert Letters


class Reader(FakeModel):
    """Copies the river out of the first passage; fails where a question names a ``broken`` town."""

    def __init__(self, broken: str = "") -> None:
        super().__init__()
        self.broken = broken
        self.now = self.most = 0

    async def complete(self, prompt: Any, **more: Any) -> Completed:
        text = prompt if isinstance(prompt, str) else prompt[-1].content
        if self.broken and f"of {self.broken}?" in text:
            raise EndpointError("the server is down")
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        river = text.split("the river ", 1)[1].split(".", 1)[0]
        return Completed(text=river, prompt_tokens=9, completion_tokens=1, stop_reason="end")


def world_set(folder: Path, **settings: Any) -> EvalSet:
    return EvalSet(name="towns", env=make_world(folder, **settings), split="train", n=5)


def evaluate(what: EvalSet, model: Any, agent: Any = None, **more: Any) -> Any:
    seat = Prompted(agent=agent or Rag(), model=model, limits=Limits(), **more)
    return asyncio.run(seat.evaluate(what))


def test_episodes_run_side_by_side_within_the_limit(tmp_path: Path) -> None:
    for limit, most in ((16, 5), (2, 2)):
        model, seen = Reader(), []
        seat = Prompted(agent=Rag(), model=model, limits=Limits(), concurrency=limit)
        done = asyncio.run(seat.evaluate(world_set(tmp_path), seen.append))
        assert done.success.mean == 1.0
        assert [e.task_id for e in done.episodes] == ["Aral", "Brno", "Cork", "Doha", "Erie"]
        assert model.most == most
        assert seen == [1, 2, 3, 4, 5]
        assert model.closed == 1
    score = done.score()
    want = {"em": 1, "f1": 1, "tool_calls": 1, "model_calls": 1, "prompt_tokens": 9}
    assert want.items() <= score.metrics.items()
    assert done.row()["eval/towns/tokens_mean"] == 1.0


def test_a_failing_model_is_an_agent_error_and_no_score(tmp_path: Path) -> None:
    done = evaluate(world_set(tmp_path), Reader("Cork"), folder=tmp_path / "out")
    score = done.score()
    assert (score.n, score.errors, score.agent_errors) == (4, 0, 1)
    assert score.success.mean == 1.0
    bad = done.episodes[2]
    assert bad.status == "agent_error"
    assert bad.why == "EndpointError: the server is down"
    assert bad.metrics == {}
    written = score.model_dump(by_alias=True)
    assert SetScore.model_validate(written) == score
    del written["agent_errors"]  # files from before
    assert SetScore.model_validate(written).agent_errors == 0
    end = events(tmp_path / "out" / "towns" / "00002.jsonl")[-1]
    assert end["status"] == "agent_error"
    assert "the server is down" in end["why"]


class Short(Reader):
    """A reader whose context a question about Cork does not fit into."""

    async def complete(self, prompt: Any, **more: Any) -> Completed:
        if "of Cork?" in str(prompt):
            raise ContextFullError("no room for a single token")
        return await super().complete(prompt, **more)


def test_a_context_that_is_too_short_is_a_failed_episode(tmp_path: Path) -> None:
    done = evaluate(world_set(tmp_path), Short(), folder=tmp_path / "out")
    score = done.score()
    assert (score.n, score.errors, score.agent_errors, score.context_full) == (5, 0, 0, 1)
    assert score.success.mean == score.metrics["f1"] == 0.8
    assert score.return_.mean == 0.8
    bad = done.episodes[2]
    assert (bad.status, bad.return_, bad.why) == ("truncated", 0.0, "no room for a single token")
    want = {"success": 0.0, "em": 0.0, "searches": 1.0, "turns": 1.0, "tool_calls": 1.0}
    assert want.items() <= bad.metrics.items()
    assert done.row()["eval/towns/context_full"] == 1.0
    assert mean_of_sets([done, done]).context_full == 2
    end = events(tmp_path / "out" / "towns" / "00002.jsonl")[-1]
    assert (end["status"], end["why"]) == ("truncated", bad.why)


@pytest.mark.parametrize("mistake", [BadValueError("16 stop strings"), KeyError("choices")])
def test_a_mistake_in_the_program_ends_the_evaluation(tmp_path: Path, mistake: Exception) -> None:
    class Wrong(Reader):
        async def complete(self, prompt: Any, **more: Any) -> Completed:
            raise mistake

    with pytest.raises(type(mistake), match=str(mistake.args[0])):
        evaluate(world_set(tmp_path), Wrong())


def events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_smaller_evaluation_leaves_no_transcripts_of_a_larger_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for n in (5, 2):
        evaluate(replace(world_set(tmp_path), n=n), Reader(), folder=out)
    assert sorted(p.name for p in (out / "towns").iterdir()) == ["00000.jsonl", "00001.jsonl"]


def test_transcripts_stay_until_there_are_new_ones(tmp_path: Path) -> None:
    """The next evaluation deleted them at its start, and a server that was off gave no others."""

    class Off(Reader):
        async def complete(self, prompt: Any, **more: Any) -> Completed:
            raise EndpointError("the server is down")

    class Idle:
        dialect = "chat"

        async def __call__(self, episode: Any) -> None:
            return None

    out = tmp_path / "out"
    evaluate(world_set(tmp_path), Reader(), folder=out)
    names = ("towns.jsonl", "towns/00004.jsonl")
    kept = [(out / name).read_bytes() for name in names]
    evaluate(world_set(tmp_path), Off(), folder=out)
    with pytest.raises(EpisodeError):
        evaluate(world_set(tmp_path), Reader(), Idle(), folder=out)
    assert [(out / "earlier-1" / name).read_bytes() for name in names] == kept
    assert (out / "earlier-2" / "towns" / "00004.jsonl").exists()
    evaluate(world_set(tmp_path), Reader(), folder=out)
    assert sorted(p.name for p in out.iterdir()) == ["towns", "towns.jsonl"]


def test_transcripts_hold_every_call_and_replay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):  # a second run writes anew
        evaluate(world_set(tmp_path), Reader("Cork"), folder=out)
    assert sorted(p.name for p in (out / "towns").iterdir())[-1] == "00004.jsonl"
    task, step, call, answer, end = events(out / "towns" / "00000.jsonl")
    assert task["task_id"] == "Aral"
    assert task["agent"] == "Rag"
    assert step["action"].startswith("<search> Which river")
    assert call["prompt"][0]["role"] == "user"
    assert call["text"] == "R0"
    assert answer["status"] == end["status"] == "solved"
    assert end["usage"]["model_calls"] == 1
    played = list(read_transcripts(out / "towns.jsonl"))
    assert sorted(t.task_id for t in played) == ["Aral", "Brno", "Doha", "Erie"]
    for transcript in played:
        assert replay(transcript).same


def test_broken_worlds_are_counted_apart(tmp_path: Path) -> None:
    class Down:
        """A search engine that is off."""

        def __call__(self, requests: Any) -> Any:
            raise EnvFault("the index is gone")

    what = world_set(tmp_path)
    what.base_env._serve = Down()  # pyright: ignore
    done = evaluate(what, Reader(), folder=tmp_path / "out")
    score = done.score()
    assert (score.n, score.errors, score.agent_errors) == (0, 5, 0)
    assert "the index is gone" in done.episodes[0].why
    assert events(tmp_path / "out" / "towns" / "00000.jsonl")[-1]["status"] == "env_error"


def test_an_agent_that_stops_too_early_is_a_mistake_in_the_program(tmp_path: Path) -> None:
    class Lazy:
        dialect = "chat"

        async def __call__(self, game: Any) -> None:
            """Nothing."""

    with pytest.raises(EpisodeError, match="Lazy stopped before the episode's end"):
        evaluate(world_set(tmp_path), Reader(), Lazy())


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="concurrency is 0"):
        evaluate(world_set(tmp_path), Reader(), concurrency=0)
    chat_only = FakeModel(continues=False)
    with pytest.raises(BadValueError, match="dialect 'tags'"):
        evaluate(world_set(tmp_path), chat_only, React(dialect="tags"))
    letters = EvalSet(name="dev", env=gym.make("Letters-v0"), split="dev", n=3)
    with pytest.raises(BadValueError, match="Letters-v0 does not take"):
        evaluate(letters, Reader(), prompting("rag"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_retrieval_helps_the_starter_on_questions_of_one_hop() -> None:
    from turngym.agents.engines.local.engine import TransformersEngine
    from turngym.agents.models.loading import load_model, load_tokenizer
    from turngym.agents.prompting import PROMPTING, EngineModel
    from turngym.agents.warm_start.cache import ensure_starter

    folder = ensure_starter()
    tokenizer = load_tokenizer(folder)
    model = EngineModel(TransformersEngine(load_model(folder, device="cpu"), tokenizer), tokenizer)
    env = gym.make("SearchQA-v0", size="micro", hops=1)
    what = EvalSet(name="test", env=env, split="test", n=100)
    right = {}
    for name in PROMPTING:
        seat = Prompted(agent=prompting(name, "tags"), model=model, limits=Limits(max_tokens=64))
        right[name] = asyncio.run(seat.evaluate(what)).success.mean
    assert min(right[n] for n in ("rag", "ircot", "react", "search-o1")) > right["direct"] + 0.4
