"""A saved language model as an agent."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from ...agents.engines.base import Sampling
from ...agents.engines.factory import EngineSettings, build_engine
from ...agents.models.loading import load_tokenizer
from ...agents.rendering.factory import make_renderer
from ...agents.scripted import text_env
from ..core.forest import Tree
from ..core.protocols import Start
from ..rollouts import EpisodeRunner, play_out
from ..rollouts.event_loop import run_to_end
from ..runs.progress import Reporter, Silent
from .defaults import MAX_TOKENS, TEMPERATURE
from .evaluate import EvalSet, Evaluation, evaluate_model
from .prompt_lengths import check_prompts


class TokenAgent:
    """An agent that samples from a loaded model.

    Args:
        model: Folder or hub name.
        max_tokens: Most tokens of one action.
        temperature: Of the sampling; 0 is greedy.
        engine: Which engine samples, and how; None for the default one.

    Raises:
        BadValueError: Not a model, or not one that can be sampled from.
        MissingExtraError: The engine's package is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int = MAX_TOKENS,
        temperature: float = TEMPERATURE,
        engine: EngineSettings | None = None,
    ) -> None:
        self.tokenizer = load_tokenizer(model)
        self.sampling = Sampling(max_tokens=max_tokens, temperature=temperature)
        self.engine = build_engine(model, self.tokenizer, engine or EngineSettings())

    def evaluate(self, what: EvalSet, report: Reporter | None = None) -> Evaluation:
        """Play every task of the set, sampled and greedily; at temperature 0 greedily only.

        Raises:
            BadValueError: A prompt does not fit the model's context.
        """
        runner = self.runner(what.env)
        room = self.engine.max_context - self.sampling.max_tokens
        check_prompts(what.env, what.split, runner.renderer, room, len(what.tasks))
        count = len(what.tasks)
        with (report or Silent()).bar(f"evaluating {what.name}") as bar:
            return run_to_end(
                evaluate_model(runner, what, lambda n: bar.update(n / count, f"{n} of {count}"))
            )

    def play(self, env: gym.Env[Any, Any], start: Start) -> Tree:
        """Play one episode."""

        async def episode() -> Tree:
            runner = self.runner(env)
            return await play_out(runner, await runner.open(start), Tree())

        return run_to_end(episode())

    def text(self, ids: Any) -> str:
        """Return the text of token ids."""
        return make_renderer(self.tokenizer).text(ids)

    def runner(self, env: gym.Env[Any, Any]) -> EpisodeRunner:
        """Return a runner that plays this agent in forks of ``env``."""
        renderer = make_renderer(self.tokenizer, tools=text_env(env).tools)
        return EpisodeRunner(env, self.engine, renderer, self.sampling)
