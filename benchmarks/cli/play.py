"""`turngym play`: an episode in the terminal, by hand or to watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import gymnasium as gym
import tyro
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from ...agents.engines.factory import EngineSettings
from ...agents.scripted import scripted, scripted_names, text_env
from ...algos.evaluation.defaults import MAX_TOKENS, TEMPERATURE
from ...algos.runs.console import PlainConsole
from ...envs.core.env import TextEnv
from ...envs.core.tasks import get_split_size
from ..runtime.threads import prepare
from .env_options import Environment, EnvOptions, env_config
from .model_options import Sampler, model_path


@dataclass(frozen=True, kw_only=True)
class Command:
    """Play an episode in the terminal, or watch an agent play it.

    Attributes:
        env: Id of the environment; `turngym envs` lists them.
        env_options: Its settings.
        agent: human, expert, random, null, a baseline of the environment, a run directory, a model
            that `turngym models` lists, a GGUF file or a model folder.
        split: Split of the task.
        task: Index of the task; drawn from the seed when left out.
        seed: Seed of the episode.
        temperature: Temperature of a model's sampling; 0 is greedy.
        max_tokens: Maximum tokens of a model's action.
        sampler: What samples a model's actions.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_options: Environment = field(default_factory=EnvOptions)
    agent: str = "human"
    split: str = "dev"
    task: int | None = None
    seed: int = 0
    temperature: float = TEMPERATURE
    max_tokens: int = MAX_TOKENS
    sampler: Sampler = field(default_factory=EngineSettings)


QUIT = ("quit", "exit")


def run(command: Command) -> None:
    """Play one episode."""
    env = env_config(command.env, command.env_options).make()
    console = PlainConsole()
    options: dict[str, Any] = {"split": command.split}
    if command.task is not None:
        options["task"] = command.task
    inner = text_env(env)
    get_split_size(inner.source, command.split, inner.name)
    if command.agent == "human" or command.agent in scripted_names(inner):
        _play_by_turns(env, command, options, console)
    else:
        _watch_model(env, command, options, console)


def _play_by_turns(
    env: gym.Env[Any, Any], command: Command, options: dict[str, Any], console: Console
) -> None:
    human = command.agent == "human"
    policy = None if human else scripted(command.agent, command.seed, text_env(env))
    observation, info = env.reset(seed=command.seed, options=options)
    inner = text_env(env)
    if inner.instructions:
        console.print(Panel(Text(inner.instructions.strip()), title="instructions"))
    if human:
        ends = " or ".join(inner.stop) or "the end of the line"
        console.print(f"An action ends with {ends}. {' or '.join(QUIT)} stops.", markup=False)
    while True:
        _observation(console, observation, info, inner.max_turns)
        action = _ask(console) if policy is None else policy(env, observation, info)
        if action is None:
            console.print("stopped.")
            return
        if policy is not None:
            _action(console, action)
        observation, reward, _, _, info = env.step(action)
        _reward(console, float(reward), info)
        if info["status"] != "running":
            if observation.strip():
                console.print(Text(observation.strip()))
            _ending(console, info, inner)
            return


def _watch_model(
    env: gym.Env[Any, Any], command: Command, options: dict[str, Any], console: Console
) -> None:
    from ...algos.core.protocols import Start
    from ...algos.evaluation.lm_agent import TokenAgent

    prepare(small=False)
    agent = TokenAgent(
        model_path(command.agent),
        max_tokens=command.max_tokens,
        temperature=command.temperature,
        engine=command.sampler,
    )
    _, info = env.reset(seed=command.seed, options=options)
    tree = agent.play(env, Start(command.split, info["task_id"], command.seed, "play"))
    limit = text_env(env).max_turns
    for number, turn in enumerate(tree.turns):
        _observation(console, agent.text(turn.obs_ids), {"turn": number}, limit)
        _action(console, turn.action)
        _reward(console, turn.reward, {"reward_terms": dict(turn.reward_terms)})
    last = tree.turns[-1]
    _ending(console, {"status": last.status, "metrics": dict(last.metrics)}, text_env(env))


def _ask(console: Console) -> str | None:
    try:
        text = console.input("[bold]> [/]")
    except EOFError:
        return None
    return None if text.strip() in QUIT else text


def _observation(console: Console, text: str, info: Mapping[str, Any], limit: int) -> None:
    console.print(Panel(Text(text.strip()), title=f"turn {info['turn'] + 1} of {limit}"))


def _action(console: Console, action: str) -> None:
    console.print(Text(f"> {action}", style="bold"))


def _reward(console: Console, reward: float, info: Mapping[str, Any]) -> None:
    terms = ", ".join(f"{name} {value + 0.0:+g}" for name, value in info["reward_terms"].items())
    console.print(f"reward {reward:+g}" + (f" ({terms})" if terms else ""), highlight=False)


def _ending(console: Console, info: Mapping[str, Any], env: TextEnv[Any, Any]) -> None:
    console.print(f"[bold]{info['status']}[/]", highlight=False)
    if env.open_ended and info["status"] == "failed":
        console.print(
            "(success is a matter of degree here: the return and the metrics below say how good "
            "the episode was)",
            highlight=False,
        )
    width = max(map(len, info["metrics"]), default=0) + 2
    for name, value in info["metrics"].items():
        console.print(f"  {name:{width}}{value:g}", highlight=False)
