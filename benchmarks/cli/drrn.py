"""`turngym drrn`: train a network that scores legal actions."""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from pathlib import Path

from ...agents.drrn.policy import DrrnPolicy, load_drrn, save_drrn
from ...agents.drrn.settings import DrrnSettings, DrrnTraining
from ...agents.scripted import RandomPolicy
from ...algos.evaluation.evaluate import EvalSet, evaluate_policy
from ...algos.runs.progress import reporter
from ...algos.training.supervised.drrn import DrrnProgress, train_drrn
from ..runtime.threads import prepare
from .drrn_options import DrrnCommand
from .envs import env_config
from .tables import score_table, table_console
from .train_options import WorldOptions


def run(command: DrrnCommand) -> None:
    """Train, save, and score the saved network beside random play."""
    prepare(small=True)
    env = env_config(command.env, WorldOptions(size=command.size, env_arg=command.env_arg))
    settings = DrrnSettings(encoder=command.encoder, hidden=command.hidden)
    training = DrrnTraining(
        steps=command.steps,
        envs=command.envs,
        gamma=command.gamma,
        lr=command.lr,
        seed=command.seed,
    )
    report, start = reporter(), time.monotonic()
    with report.bar(f"DRRN on {command.env}") as bar:

        def tell(at: DrrnProgress) -> None:
            done = min(1.0, at.steps / training.steps)
            bar.update(done, f"{at.episodes} episodes, latest returns {at.recent:.3f}")

        network = train_drrn(env.make(), settings, training, command.split, tell)
    how = {
        **dataclasses.asdict(training),
        "env": env.id,
        "env_settings": dict(env.settings),
        "split": command.split,
    }
    folder = Path(command.out).expanduser()
    save_drrn(network, folder, how)
    report.note(f"DRRN in {folder}, {time.monotonic() - start:.0f} s")
    if not command.eval_n:
        return
    what = EvalSet(
        name=command.eval_split,
        env=env.make(),
        split=command.eval_split,
        n=command.eval_n,
        seed=command.seed,
    )
    agents = {"drrn": partial(DrrnPolicy, load_drrn(folder), 0.0), "random": RandomPolicy}
    rows = [(name, evaluate_policy(what, made).score()) for name, made in agents.items()]
    table_console().print(score_table(rows))
