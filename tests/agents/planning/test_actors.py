"""Who proposes actions: engines, servers' models, and what they are shown."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.maze import Worth, begun, tools

import turngym.envs
from turngym.agents.engines.base import Completion, Request
from turngym.agents.engines.factory import EngineSettings
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.planning.actors import REFLECT, EngineActor, ProposalSettings, TextActor
from turngym.agents.planning.budget import PlanningBudget
from turngym.agents.planning.mcts import Mcts
from turngym.agents.planning.planners import BestOfN, Greedy, Reflexion
from turngym.agents.planning.position import Position
from turngym.agents.planning.search import PlannerSetup, PlanResult
from turngym.agents.prompting.text_model import Completed
from turngym.agents.rendering.factory import make_renderer
from turngym.algos.evaluation.evaluate import EvalSet
from turngym.algos.evaluation.lm_agent import TokenAgent
from turngym.algos.evaluation.planning import Planning
from turngym.envs.core.errors import BadValueError

assert turngym.envs


class Letter:
    """Writes the letters of its script in turn, then ``r``; remembers what it was shown."""

    version, vocabulary = 0, 256

    def __init__(self, script: str = "", context: int = 10_000) -> None:
        self.script = list(script)
        self.max_context = context
        self.shown: list[str] = []
        self.caches: list[int | None] = []
        self.released: list[int | None] = []

    async def generate(self, request: Request) -> Completion:
        self.shown.append("".join(map(chr, request.ids)))
        self.caches.append(request.cache)
        letter = self.script.pop(0) if self.script else "r"
        zero = np.zeros(1, np.float32)
        made = len(self.shown)
        ids = np.array([ord(letter)])
        return Completion(ids=ids, logprobs=zero, entropies=zero, stop="stop", cache=made)

    def release(self, cache: int | None) -> None:
        self.released.append(cache)


class Plain:
    """Every character is a token."""

    eos_id = pad_id = 0

    def open(self, instructions: str, observation: str) -> list[int]:
        return [ord(c) for c in instructions + observation]

    def observe(self, observation: str, action: Any = ()) -> list[int]:
        return [ord(c) for c in observation]

    def write(self, action: str) -> list[int]:
        return [ord(c) for c in action]

    def text(self, act_ids: Any) -> str:
        return "".join(map(chr, act_ids))

    action = text


def actor(engine: Letter, most: int = 4) -> EngineActor:
    return EngineActor(engine, Plain(), most)  # type: ignore[arg-type]


def plan(planner: Any, env: Any = None, **more: Any) -> PlanResult:
    return asyncio.run(planner.plan(env or begun(), tools(**more), 0))


def test_the_dialogue_only_grows_and_caches_are_continued() -> None:
    engine = Letter("lrr")
    planned = plan(Greedy(), actor=actor(engine))
    assert planned.actions == ("l", "r", "r")
    first = "Pull l or r.\ntask 0:"
    assert engine.shown == [first, f"{first}l\n1:", f"{first}l\n1:r\n2:"]
    assert engine.caches == [None, 1, 2]
    assert sorted(c for c in engine.released if c) == [1, 2, 3]
    assert planned.spent.prompt_tokens == sum(map(len, engine.shown))


def test_reflexion_shows_the_failure_and_then_the_plan() -> None:
    engine = Letter("rrr" + "p" + "lrr")
    planned = plan(Reflexion(tries=2, threshold=1.0), actor=actor(engine))
    assert planned.actions == ("l", "r", "r")
    first = "Pull l or r.\ntask 0:"
    assert engine.shown[3] == f"{first}r\n1:r\n2:r{REFLECT}"
    assert engine.shown[4] == "Pull l or r.\nPlan after a failed attempt: p\ntask 0:"
    assert engine.shown[5].endswith("task 0:l\n1:")
    assert planned.spent.sampled_tokens == 7


def test_a_full_context_cuts_a_trajectory() -> None:
    length = len("Pull l or r.\ntask 0:")
    planned = plan(Greedy(), actor=actor(Letter(context=length + 2)))
    assert planned.actions == ("r",)
    assert planned.context_full
    for planner in (BestOfN(n=2), Mcts(rollouts=3), Reflexion(tries=2)):
        cut = plan(planner, actor=actor(Letter(context=length + 2)), scorer=Worth())
        assert cut.actions == ("r",)
        assert cut.context_full
    assert plan(Greedy(), actor=actor(Letter(context=length))).actions == ()


def test_a_new_session_has_a_new_context() -> None:
    env = gym.make("Spawn-v0")
    env.reset(seed=0, options={"split": "train", "task": 0})
    letters = env.unwrapped.legal_actions()  # type: ignore[attr-defined]
    assert letters

    seen = []
    for letter in sorted({action[0] for action in letters}):
        engine = Letter(letter * 99)
        planned = plan(Greedy(), env=env, actor=actor(engine))
        assert planned.attempt.over
        lengths = [len(text) for text in engine.shown]
        seen.append(any(b <= a for a, b in pairwise(lengths)))
    assert any(seen)  # some letter opens a session, whose dialogue is shorter than the first


@pytest.fixture(scope="module")
def engine_of(tiny_model: Path) -> Any:
    tokenizer = load_tokenizer(tiny_model)
    engine = TransformersEngine(load_model(tiny_model, device="cpu"), tokenizer, dtype="float32")
    return EngineActor(engine, make_renderer(tokenizer), 8)


def test_greedy_is_what_greedy_evaluation_plays(tiny_model: Path, engine_of: Any) -> None:
    what = EvalSet(name="dev", env=gym.make("Letters-v0"), split="dev", n=6)
    settings = EngineSettings(device="cpu")
    usual = TokenAgent(str(tiny_model), max_tokens=8, temperature=0.0, engine=settings).evaluate(
        what
    )
    seat = Planning(planner=Greedy(), tools=lambda: PlannerSetup(actor=engine_of.for_search()))
    planned = asyncio.run(seat.evaluate(what))
    assert [e.return_ for e in planned.episodes] == [e.return_ for e in usual.episodes]
    assert [e.status for e in planned.episodes] == [e.status for e in usual.episodes]
    assert [e.tokens for e in planned.episodes] == [e.tokens for e in usual.episodes]


def test_an_engine_plans_alike_alone_and_in_company(engine_of: Any) -> None:
    class Length:
        def score(self, trajectories: Any) -> list[float]:
            return [float(len("".join(t.actions))) for t in trajectories]

    what = EvalSet(name="dev", env=gym.make("Letters-v0"), split="dev", n=6)
    found = []
    for seats in (1, 6):
        seat = Planning(
            planner=Mcts(rollouts=3, candidates=3),
            tools=lambda: PlannerSetup(
                actor=engine_of.for_search(), scorer=Length(), budget=PlanningBudget(tokens=150)
            ),
            concurrency=seats,
        )
        found.append(asyncio.run(seat.evaluate(what)).episodes)
    assert found[0] == found[1]
    assert all(e.tokens <= 150 for e in found[0])


class Server:
    """A text model that writes the letters of its script."""

    def __init__(self, script: str, continues: bool = True, counts: bool = True) -> None:
        self.script, self.continues, self.counts = list(script), continues, counts
        self.shown: list[Any] = []

    async def complete(self, prompt: Any, **how: Any) -> Completed:
        self.shown.append(prompt if isinstance(prompt, str) else [tuple(m) for m in prompt])
        tokens = 1 if self.counts else None
        letter = self.script.pop(0)
        return Completed(
            text=letter, prompt_tokens=tokens, completion_tokens=tokens, stop_reason="stop"
        )

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("chat", "plan"), [(True, "Pull left."), (False, "")], ids=["message", "text"]
)
def test_thoughts_are_no_plan(chat: bool, plan: str) -> None:
    class Thinker:
        continues = True

        async def complete(self, prompt: Any, *, stop: Any, **how: Any) -> Completed:
            said = "<think>\nRight.\n\nSo left.\n</think>\n\nPull left."
            for mark in stop:
                said = said[: said.index(mark) + len(mark)]
            return Completed(text=said, prompt_tokens=1, completion_tokens=1, stop_reason="end")

        async def close(self) -> None: ...

    actor = TextActor(Thinker(), 64, chat=chat)
    how = ProposalSettings(temperature=1.0, seed=0)
    assert asyncio.run(actor.reflect(Position.of(begun()), how)).text == plan


def test_text_models_see_messages_or_a_text() -> None:
    chat = Server("rrrplrr", continues=False)
    planned = plan(Reflexion(tries=2, threshold=1.0), actor=TextActor(chat, 4))
    assert planned.actions == ("l", "r", "r")
    first = ("user", "Pull l or r.\ntask 0:")
    assert chat.shown[0] == [first]
    assert chat.shown[2] == [
        first,
        ("assistant", "r"),
        ("user", "\n1:"),
        ("assistant", "r"),
        ("user", "\n2:"),
    ]
    assert chat.shown[3][-1] == ("user", REFLECT)
    assert chat.shown[4] == [("user", "Pull l or r.\nPlan after a failed attempt: p\ntask 0:")]
    flat = Server("lrr")
    assert plan(Greedy(), actor=TextActor(flat, 4, chat=False)).actions == ("l", "r", "r")
    assert flat.shown[2] == "Pull l or r.\ntask 0:l\n1:r\n2:"
    with pytest.raises(BadValueError, match="only answers dialogues"):
        TextActor(chat, 4, chat=False)
    with pytest.raises(BadValueError, match="does not report how many tokens"):
        plan(Greedy(), actor=TextActor(Server("lrr", counts=False), 4))
    with pytest.raises(BadValueError, match="max_tokens is 0"):
        TextActor(chat, 0)
    with pytest.raises(BadValueError, match="max_tokens is 0"):
        actor(Letter(), 0)
