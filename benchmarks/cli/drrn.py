"""`turngym drrn`: train a network that scores legal actions."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated

import tyro

from ...agents.drrn.settings import DrrnSettings, DrrnTraining
from ...agents.scripted import RandomPolicy
from ...algos.evaluation.evaluate import EvalSet, evaluate_policy
from ...algos.runs.progress import reporter
from ...algos.training.config import EnvConfig
from ..runtime.threads import prepare
from .arguments import Repeated, new_folder, refuse_without
from .env_options import EnvOptions, env_config
from .tables import score_table, table_console


@dataclass(frozen=True, kw_only=True)
class Command:
    """Train a small network that scores legal actions (DRRN), and compare it with random play.

    Attributes:
        out: Folder of the network; afterwards `turngym eval --agent drrn:FOLDER` plays it.
        env: Id of an environment that lists legal actions.
        size: Size of the generated world, e.g. micro or full.
        env_arg: Any other setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        split: Split of the training tasks.
        network: Shape of the network.
        training: How it is trained.
        eval_split: Split of the comparison.
        eval_n: Tasks of the comparison; 0 for none.
    """

    out: str
    env: str = "ScienceWorld-v0"
    size: str | None = None
    env_arg: Repeated = ()
    split: str = "train"
    network: Annotated[DrrnSettings, tyro.conf.arg(name="")] = field(default_factory=DrrnSettings)
    training: Annotated[DrrnTraining, tyro.conf.arg(name="")] = field(default_factory=DrrnTraining)
    eval_split: str = "dev"
    eval_n: int = 100


def run(command: Command) -> None:
    """Train, save, and score the saved network beside random play."""
    from ...agents.drrn.policy import DrrnPolicy, load_drrn, save_drrn
    from ...algos.training.supervised.drrn import DrrnProgress, train_drrn

    folder = new_folder(command.out)
    prepare(small=True)
    env = env_config(command.env, EnvOptions(size=command.size, env_arg=command.env_arg))
    training = command.training
    if command.eval_n:  # a wrong split is refused now, not after the training
        _compared(command, env)
    else:
        refuse_without(command, "--eval-n above 0", ("eval_split",))
    report, start = reporter(), time.monotonic()
    with report.bar(f"DRRN on {command.env}") as bar:

        def show(at: DrrnProgress) -> None:
            done = min(1.0, at.steps / training.steps)
            bar.update(done, f"{at.episodes} episodes, latest returns {at.recent:.3f}")

        network = train_drrn(env.make(), command.network, training, command.split, show)
    how = {
        **asdict(training),
        "env": env.id,
        "env_settings": dict(env.settings),
        "split": command.split,
    }
    save_drrn(network, folder, how)
    report.note(f"DRRN in {folder}, {time.monotonic() - start:.0f} s")
    if not command.eval_n:
        return
    what = _compared(command, env)
    agents = {"drrn": partial(DrrnPolicy, load_drrn(folder), 0.0), "random": RandomPolicy}
    rows = [(name, evaluate_policy(what, made).score()) for name, made in agents.items()]
    table_console().print(score_table(rows))


def _compared(command: Command, env: EnvConfig) -> EvalSet:
    """Return the tasks that the network is scored on beside random play."""
    split, seed = command.eval_split, command.training.seed
    return EvalSet(name=split, env=env.make(), split=split, n=command.eval_n, seed=seed)
