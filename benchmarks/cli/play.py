"""`turngym play`: an episode in the terminal, by hand or to watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import gymnasium as gym
import tyro
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from ...agents.engines.factory import EngineSettings
from ...agents.scripted import closed, scripted, scripted_names, text_env
from ...algos.evaluation.defaults import TEMPERATURE
from ...algos.runs.console import PlainConsole
from ...algos.runs.progress import reporter
from ...algos.training.config import EnvConfig
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ...envs.core.fork import fork
from ...envs.core.tasks import get_split_size
from ...envs.wrappers.record import RecordEpisodes
from ..runtime.threads import prepare, prepare_for
from .arguments import MAY_BE_EMPTY, output_file, refuse_without
from .env_options import Environment, EnvOptions, env_config
from .model_options import (
    OF_ENGINES,
    STARTER,
    Sampler,
    action_tokens,
    fitting_size,
    made_for,
    model_path,
    starter,
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """Play an episode in the terminal, or watch an agent play it.

    Attributes:
        env: Id of the environment; `turngym envs` lists them.
        env_options: Settings of the environment.
        agent: human, expert, random, null, a baseline of the environment, starter (the small model
            made here), a run directory, a model that `turngym models` lists, a GGUF file or a
            model folder.
        split: Split of the task.
        task: Index of the task; drawn from the seed when left out.
        seed: Seed of the episode.
        temperature: Temperature of a model's sampling; 0 is greedy.
        max_tokens: Maximum tokens of a model's action; left out: what a run was trained with, else
            64.
        sampler: What samples a model's actions.
        out: File that the episode is appended to, for `turngym view`; left out: with a human
            runs/plays/ENV.jsonl, else none; empty for none.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_options: Environment = field(default_factory=EnvOptions)
    agent: str = "human"
    split: str = "dev"
    task: int | None = None
    seed: int = 0
    temperature: float = TEMPERATURE
    max_tokens: int | None = None
    sampler: Sampler = field(default_factory=EngineSettings)
    out: Annotated[str | None, MAY_BE_EMPTY] = None


QUIT = ("quit", "exit")
HELP = ("help", "?")
LISTED = 12
"""Legal actions that the help shows at most."""
PLAYS = Path("runs") / "plays"


def run(command: Command) -> None:
    """Play one episode.

    Raises:
        BadValueError: A seed that no episode has, or an option that does not fit the agent.
    """
    if not 0 <= command.seed < 2**63 - 1:  # an example action is played with the next one
        raise BadValueError(f"--seed {command.seed}: expected a number from 0 to 2**63 - 2.")
    config = env_config(command.env, command.env_options)
    env = config.make()
    console = PlainConsole()
    options: dict[str, Any] = {"split": command.split}
    if command.task is not None:
        options["task"] = command.task
    inner = text_env(env)
    get_split_size(inner.source, command.split, inner.name)
    if command.agent == "human" or command.agent in scripted_names(inner):
        of_models = ("temperature", "max_tokens", *OF_ENGINES)
        refuse_without(command, "an --agent that is a model", of_models)
        _play_by_turns(env, command, options, console)
    elif command.out:
        raise BadValueError("play: --out goes with a human or a scripted agent, not with a model.")
    else:
        _watch_model(config, command, options, console)


def _play_by_turns(
    env: gym.Env[Any, Any], command: Command, options: dict[str, Any], console: Console
) -> None:
    human, inner = command.agent == "human", text_env(env)
    policy = None if human else scripted(command.agent, command.seed, inner)
    out = command.out
    if out is None and human:
        out = str(PLAYS / f"{command.env}.jsonl".lower())
    example = _example_action(inner, command) if human else ""

    def act(observation: str, info: Mapping[str, Any]) -> str | None:
        if policy is None:
            return _ask(console, inner, example)
        action = policy(env, observation, info)
        _action(console, action)
        return action

    steps = 0
    with RecordEpisodes(env, output_file(out) if out else None) as recorder:
        observation, info = recorder.reset(seed=command.seed, options=options)
        if inner.instructions:
            console.print(Panel(Text(inner.instructions.strip()), title="instructions"))
        if human:
            _introduce(console, inner, example)
        while info["status"] == "running":
            _observation(console, observation, info, inner.max_turns)
            action = act(observation, info)
            if action is None:
                console.print("stopped.")
                break
            observation, reward, _, _, info = recorder.step(closed(action, inner.stop))
            _reward(console, float(reward), info, human)
            steps += 1
        else:
            console.print(Text(observation.strip()), end="\n" if observation.strip() else "")
            _ending(console, info, inner)
    if out and steps:  # an episode without a step is not written
        console.print(f"transcript  {out}", markup=False, highlight=False, soft_wrap=True)
        console.print(f"see it with: turngym view {quote(str(out))}", markup=False, soft_wrap=True)


def _example_action(env: TextEnv[Any, Any], command: Command) -> str:
    """Return what an action looks like, from another task than the one that is played."""
    inner = text_env(fork(env))
    sizes = inner.source.sizes()
    split = next((s for s, n in sizes.items() if s != command.split and n != 0), command.split)
    observation, info = inner.reset(seed=command.seed + 1, options={"split": split})
    first = "expert" if inner.find_expert() is not None else next(iter(inner.baselines()), "random")
    return scripted(first, command.seed, inner)(inner, observation, info).strip()


def _introduce(console: Console, env: TextEnv[Any, Any], example: str) -> None:
    """Say how to act."""
    console.print(f"You have {env.max_turns} turns; write an action in each.", highlight=False)
    if example:
        console.print(f"In another task one looks like: {example}", markup=False, highlight=False)
    ends = [stop for stop in env.stop if stop.strip()]
    if ends:
        console.print(f"An action ends with {' or '.join(ends)}.", markup=False, highlight=False)
    console.print(
        f"{' or '.join(HELP)} shows this again and costs nothing; {' or '.join(QUIT)} stops.",
        markup=False,
        highlight=False,
    )


def _help(console: Console, env: TextEnv[Any, Any], example: str) -> None:
    """Show the rules, an example, and what makes sense now."""
    if env.instructions:
        console.print(Panel(Text(env.instructions.strip()), title="instructions"))
    _introduce(console, env, example)
    if legal := env.legal_actions():
        more = f" … ({len(legal)} in all)" if len(legal) > LISTED else ""
        shown = ", ".join(action.strip() for action in legal[:LISTED])
        console.print(f"You can: {shown}{more}", markup=False, highlight=False)


def _watch_model(
    config: EnvConfig, command: Command, options: dict[str, Any], console: Console
) -> None:
    """Show an episode that a model played, in the world that it was made for."""
    from ...algos.core.protocols import Start
    from ...algos.evaluation.lm_agent import TokenAgent

    report, own = reporter(), command.agent == STARTER
    if own:
        prepare(small=True)
    model = starter(command.env, report) if own else model_path(command.agent, ("human", STARTER))
    prepare_for(model)
    env = fitting_size(config, made_for(model, command.env), report).make()
    agent = TokenAgent(
        model,
        max_tokens=action_tokens([model], command.max_tokens, report),
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


def _ask(console: Console, env: TextEnv[Any, Any], example: str) -> str | None:
    while True:
        try:
            text = console.input("[bold]> [/]")
        except (EOFError, KeyboardInterrupt):  # Ctrl-D and Ctrl-C stop like a word of QUIT
            console.print()
            return None
        if text.strip() in QUIT:
            return None
        if text.strip() in HELP:
            _help(console, env, example)
        elif text.strip():  # a line of nothing is a slip of the hand, and asked for again
            return text


def _observation(console: Console, text: str, info: Mapping[str, Any], limit: int) -> None:
    console.print(Panel(Text(text.strip()), title=f"turn {info['turn'] + 1} of {limit}"))


def _action(console: Console, action: str) -> None:
    console.print(Text(f"> {action}", style="bold"))


def _reward(console: Console, reward: float, info: Mapping[str, Any], human: bool = False) -> None:
    terms = ", ".join(f"{name} {value + 0.0:+g}" for name, value in info["reward_terms"].items())
    console.print(
        f"reward {reward:+g}" + (f" ({terms})" if terms else ""), highlight=False, markup=False
    )
    if human and not info["valid_action"]:
        console.print(
            "[bold]You[/] wrote no action of this environment, which cost you a turn. "
            f"[bold]{HELP[0]}[/] costs nothing."
        )


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
        console.print(f"  {name:{width}}{value:g}", highlight=False, markup=False)
