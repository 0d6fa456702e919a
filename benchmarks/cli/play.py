"""`turngym play`: an episode in the terminal, by hand or to watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from ...agents.scripted import scripted, scripted_names, text_env
from ...envs.core.tasks import get_split_size
from ..runtime.threads import prepare
from .envs import env_config
from .models import model_path
from .train_options import PlayCommand

QUIT = ("quit", "exit")


def run(command: PlayCommand) -> None:
    """Play one episode."""
    env = env_config(command.env, command.world).make()
    console = Console()
    options: dict[str, Any] = {"split": command.split}
    if command.task is not None:
        options["task"] = command.task
    world = text_env(env)
    get_split_size(world.source, command.split, world.name)
    if command.agent == "human" or command.agent in scripted_names(world):
        _steps(env, command, options, console)
    else:
        _watch_model(env, command, options, console)


def _steps(
    env: gym.Env[Any, Any], command: PlayCommand, options: dict[str, Any], console: Console
) -> None:
    human = command.agent == "human"
    policy = None if human else scripted(command.agent, command.seed, text_env(env))
    observation, info = env.reset(seed=command.seed, options=options)
    world = text_env(env)
    if world.instructions:
        console.print(Panel(Text(world.instructions.strip()), title="instructions"))
    if human:
        ends = " or ".join(world.stop) or "the end of the line"
        console.print(f"An action ends with {ends}. {' or '.join(QUIT)} stops.", markup=False)
    while True:
        _observation(console, observation, info, world.max_turns)
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
            _ending(console, info)
            return


def _watch_model(
    env: gym.Env[Any, Any], command: PlayCommand, options: dict[str, Any], console: Console
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
    _ending(console, {"status": last.status, "metrics": dict(last.metrics)})


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


def _ending(console: Console, info: Mapping[str, Any]) -> None:
    console.print(f"[bold]{info['status']}[/]", highlight=False)
    for name, value in info["metrics"].items():
        console.print(f"  {name:18}{value:g}", highlight=False)
