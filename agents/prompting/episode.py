"""One episode of a searching environment as a prompting agent sees it, with everything counted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

import gymnasium as gym

from ...envs.core.batched_calls import call_env
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError
from ...envs.core.randomness import derive_seed
from ...envs.core.settings import check_integer, check_number
from ...envs.mixed_tasks.env import MixedTasks
from ...envs.search_qa.text import GRAMMAR, STOP
from ..scripted import text_env
from .text_model import Completed, Prompt, TextModel

Dialect = Literal["chat", "tags"]
DIALECTS = ("chat", "tags")
LONGEST_QUERY = 400
"""Maximum characters of a query; the rest of what a model wrote there is not sent."""
LONGEST_ANSWER = 10_000
"""Maximum characters of an answer or a thought: a longer action than its space has is none."""
TAG = re.compile(r"</?(?:search|answer|information|think)>")
_DOC = re.compile(r"^Doc \d+(?=\(Title: )", re.MULTILINE)
_BLOCK = re.compile(r"<information>(.*?)</information>", re.DOTALL)


@dataclass(kw_only=True, slots=True)
class Usage:
    """What an episode cost.

    Attributes:
        model_calls: Completions asked for and received.
        tool_calls: Searches sent to the environment.
        prompt_tokens: Tokens that the model read, over all calls.
        completion_tokens: Tokens that it wrote.
        uncounted_calls: Calls whose server did not report tokens; they count 0 above.
    """

    model_calls: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted_calls: int = 0

    def add(self, done: Completed) -> None:
        """Count one call."""
        self.model_calls += 1
        self.prompt_tokens += done.prompt_tokens or 0
        self.completion_tokens += done.completion_tokens or 0
        self.uncounted_calls += done.prompt_tokens is None or done.completion_tokens is None

    def metrics(self) -> dict[str, float]:
        """By name."""
        return {name: float(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How a model is asked.

    Attributes:
        max_tokens: Maximum tokens of one completion; a call may ask for fewer.
        temperature: 0 is greedy.
    """

    max_tokens: int = 512
    temperature: float = 0.0

    def __post_init__(self) -> None:
        check_integer("max_tokens", self.max_tokens, "Limits", min=1)
        check_number("temperature", self.temperature, "Limits", min=0.0)


class Agent(Protocol):
    """A prompting agent: plays an episode from the question to its end."""

    @property
    def dialect(self) -> Dialect:
        """``"chat"`` instructs a model in words; ``"tags"`` lets it continue the dialogue."""
        ...

    async def __call__(self, episode: PromptedEpisode) -> None:
        """Search and answer until ``episode.over``."""
        ...


@dataclass(eq=False)
class PromptedEpisode:
    """A running episode: the agent asks the model, and acts on the environment through it.

    Attributes:
        env: The environment, after its reset.
        model: The language model.
        limits: How it is asked.
        seed: Of the episode; each call's seed follows from it.
        observation: The environment's latest observation.
        info: What it reported with it.
        text: The environment's own dialogue so far: instructions, observations and actions.
        usage: What was used.
        events: Every model call and every action, for transcripts.
        rewards: Sum of the rewards.
    """

    env: gym.Env[Any, Any]
    model: TextModel
    limits: Limits
    seed: int
    observation: str
    info: Mapping[str, Any]
    text: str
    usage: Usage = field(default_factory=Usage)
    events: list[dict[str, Any]] = field(default_factory=list)
    rewards: float = 0.0
    over: bool = False

    @classmethod
    async def open(
        cls,
        env: gym.Env[Any, Any],
        model: TextModel,
        *,
        limits: Limits,
        seed: int,
        options: Mapping[str, Any] | None = None,
    ) -> PromptedEpisode:
        """Reset ``env`` and begin its episode.

        Raises:
            BadValueError: Not an environment of searches and answers.
            EnvFault: The environment is broken.
        """
        inner = check_search_env(env)
        settings = dict(options) if options else None
        observation, info = await call_env(inner, lambda: env.reset(seed=seed, options=settings))
        text = inner.instructions + observation
        return cls(env, model, limits, seed, observation, info, text)

    def __post_init__(self) -> None:
        inner = text_env(self.env)
        rules = inner.view_member().instructions if isinstance(inner, MixedTasks) else ""
        task = self.observation.removeprefix(rules).strip()
        self.question = task.removeprefix("Question:").strip()

    @property
    def searches_left(self) -> int:
        """Searches that still leave a turn for the answer."""
        return max(0, text_env(self.env).max_turns - int(self.info["turn"]) - 1)

    async def ask(
        self, prompt: Prompt, stop: Sequence[str] = (), max_tokens: int | None = None
    ) -> str:
        """Return what the model writes, a stop string included.

        Args:
            prompt: A dialogue, or a text to continue.
            stop: Strings that end the completion.
            max_tokens: Maximum tokens; None, or more than the limits', means the limits'.

        Raises:
            ContextFullError: The prompt leaves the model no room to write.
            EndpointError: The model's server refuses, or does not answer.
        """
        limits = self.limits
        done = await self.model.complete(
            prompt,
            stop=stop,
            max_tokens=limits.max_tokens
            if max_tokens is None
            else min(max_tokens, limits.max_tokens),
            temperature=limits.temperature,
            seed=derive_seed(self.seed, self.usage.model_calls),
        )
        self.usage.add(done)
        shown = prompt if isinstance(prompt, str) else [m._asdict() for m in prompt]
        self.events.append(
            {
                "event": "model",
                "prompt": shown,
                "text": done.text,
                "prompt_tokens": done.prompt_tokens,
                "completion_tokens": done.completion_tokens,
                "stop_reason": done.stop_reason,
            }
        )
        return done.text

    async def act(self, action: str) -> str:
        """Take an action as it stands; returns the observation.

        Raises:
            EpisodeError: The episode is over.
            EnvFault: The environment broke, which ends the episode.
        """
        if self.over:
            raise EpisodeError(f"task {self.info['task_id']}: an action after the episode's end.")
        inner = text_env(self.env)
        self.observation, reward, terminated, truncated, self.info = await call_env(
            inner, lambda: self.env.step(action)
        )
        read = GRAMMAR.parse(action)
        self.usage.tool_calls += getattr(read, "tag", "") == "search"
        self.rewards += float(reward)
        self.over = bool(terminated or truncated)
        self.text += action + self.observation
        self.events.append(
            {
                "event": "step",
                "action": action,
                "observation": self.observation,
                "reward": float(reward),
                "status": self.info["status"],
            }
        )
        if self.info["status"] == "env_error":
            raise EnvFault(self.observation)
        return self.observation

    async def search(self, query: str) -> str:
        """Search; returns the passages.

        The query is put on one line and cut at :data:`LONGEST_QUERY`; for an empty one the question
        itself is searched.
        """
        query = plain(query)[:LONGEST_QUERY].strip() or plain(self.question)
        return passages(await self.act(GRAMMAR.write("search", query)))

    async def answer(self, text: str) -> None:
        """Answer, which ends the episode; the answer is cut at :data:`LONGEST_ANSWER`."""
        await self.act(GRAMMAR.write("answer", plain(text)[:LONGEST_ANSWER]))


def check_search_env(env: gym.Env[Any, Any]) -> TextEnv[Any, Any]:
    """Return the environment inside ``env``.

    Raises:
        BadValueError: Not one whose actions are searches and answers.
    """
    inner = text_env(env)
    for played in inner.members.values() if isinstance(inner, MixedTasks) else (inner,):
        if tuple(played.stop) != STOP:
            raise BadValueError(
                f"prompting agents: {played.name} does not take {GRAMMAR.expected} alone; "
                "expected an environment such as SearchQA-v0, with no tool but the search."
            )
    return inner


def check_dialect(dialect: str, model: TextModel) -> None:
    """Refuse a dialect that does not exist, and a model that cannot be asked in it.

    Raises:
        UnknownNameError: No such dialect.
        BadValueError: The dialect continues a text, the model answers dialogues only.
    """
    if dialect not in DIALECTS:
        raise UnknownNameError("dialect", dialect, DIALECTS, "prompting agents")
    if dialect == "tags" and not model.continues:
        raise BadValueError(
            "prompting agents: the dialect 'tags' continues a text, but this model only answers "
            "dialogues; use the dialect 'chat', or a server's /completions."
        )


def plain(text: str) -> str:
    """``text`` on one line and without the environment's tags, so that it can stand inside one."""
    return " ".join(TAG.sub(" ", text).split())


def passages(observation: str) -> str:
    """Return what stands in the information block; empty when there is none."""
    found = _BLOCK.search(observation)
    return found[1].strip() if found else ""


def each_passage(text: str) -> list[str]:
    """Return the passages of :func:`passages` apart, without their numbers.

    One may have several lines.
    """
    parts = _DOC.split(text)[1:]
    return [part.strip() for part in parts]
