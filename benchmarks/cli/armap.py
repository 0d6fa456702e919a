"""`turngym armap pairs | train`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ...agents.engines.factory import build_engine
from ...agents.planning.generation import (
    HindsightRelabeller,
    PairMaker,
    PairSettings,
    Player,
    planner_player,
    policy_player,
)
from ...agents.planning.pair_scores import PairScores, evaluate_pairs
from ...agents.planning.records import Pair, read_pairs, write_pairs
from ...agents.planning.settings import ARMAP_LORA, PRESETS, ReadingSettings, RewardTraining
from ...agents.scripted import ExpertPolicy, scripted, scripted_names, text_env
from ...algos.runs.progress import Reporter, reporter
from ...algos.training.config import EnvConfig
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ..runtime.threads import prepare
from .arguments import values
from .armap_options import ArmapCommand, ArmapPairs, ArmapTrain
from .envs import existing_file
from .models import model_path, starter

STARTER = "starter"
HELD_OUT = 10
"""One of so many pairs is kept back for scoring."""


def run(command: ArmapCommand) -> None:
    """Do what was asked for."""
    action = command.action
    if isinstance(action, ArmapPairs):
        pairs(action)
    else:
        train(action)


def pairs(action: ArmapPairs) -> None:
    """Make pairs and write their file.

    Raises:
        BadValueError: Settings out of range, or players that all score the same.
        UnknownNameError: No such environment, split or player.
    """
    settings = PairSettings(
        tasks=action.n,
        tries=action.tries,
        contrasts=action.contrasts,
        edits=action.edits,
        seed=action.seed,
    )
    if action.mistakes and "expert" not in action.player:
        raise BadValueError("--mistakes: are those of the player expert, who does not play.")
    env = EnvConfig(id=action.env, settings=values(action.env_arg, "--env-arg")).make()
    report = reporter()
    players = [_player(name, action, text_env(env), report) for name in action.player]
    maker = PairMaker(env=env, players=players, settings=settings)
    if action.hindsight is not None:
        maker = replace(maker, instruct=_relabeller(action.hindsight, action))
    out = Path(action.out).expanduser()
    out.parent.mkdir(parents=True, exist_ok=True)
    with report.bar("playing") as bar:

        def tell(done: int, count: int) -> None:
            bar.update(done / count, f"{done:,} of {count:,} tasks")

        found = asyncio.run(maker.pairs(action.split, tell))
    write_pairs(out, found)
    report.note(f"{out}: {len(found):,} pairs from tasks of {action.env}, split {action.split}.")


def train(action: ArmapTrain) -> None:
    """Train a reward model, write its folder and print its scores.

    Raises:
        BadValueError: Settings that exclude each other or make no sense.
        DataError: A file that does not hold what it should.
    """
    out = Path(action.out).expanduser()
    if out.is_dir() and any(out.iterdir()):
        raise BadValueError(f"--out {out}: holds files; choose a new folder, or empty this one.")
    how, reading = _how(action)
    shown, held = _split(action)
    from ...agents.models.loading import load_model, load_tokenizer
    from ...agents.planning.reward_model import RewardModel
    from ...algos.training.supervised.epochs import TrainingProgress
    from ...algos.training.supervised.reward_model import train_reward_model

    report = reporter()
    folder = _folder(action.model, action.env, report)
    model = load_model(folder, dtype=action.dtype, device=action.device)
    reward = RewardModel(model, load_tokenizer(folder, pad="eos"), reading, seed=how.seed)
    with report.bar("training") as bar:

        def tell(now: TrainingProgress) -> None:
            bar.update(now.step / now.steps, f"loss {now.loss:.3f}")

        told = train_reward_model(reward, shown, how, tell)
    scores = evaluate_pairs(reward, held)
    training = {"pairs": len(shown), **told, "held_out": scores.figures()}
    reward.save(out, training)
    Console().print(_table(scores))
    report.note(f"{out}: trained on {len(shown):,} pairs, loss {told['loss']:.3f}.")


def _player(name: str, action: ArmapPairs, world: TextEnv[Any, Any], report: Reporter) -> Player:
    if name == "expert":
        world.expert(action.mistakes)  # refused now rather than in the first episode
        return policy_player(lambda seed: ExpertPolicy(action.mistakes, seed))
    if name in scripted_names(world):
        return policy_player(lambda seed: scripted(name, seed, world))
    from ...agents.models.loading import load_tokenizer
    from ...agents.planning.actors import EngineActor
    from ...agents.planning.planners import Sampling
    from ...agents.planning.search import PlannerSetup
    from ...agents.rendering.factory import make_renderer

    folder = _folder(name, action.env, report)
    tokenizer = load_tokenizer(folder)
    engine = build_engine(folder, tokenizer, action.sampler)
    first = EngineActor(engine, make_renderer(tokenizer, tools=world.tools), action.max_tokens)
    planner = Sampling(temperature=action.temperature)
    return planner_player(planner, lambda: PlannerSetup(actor=first.for_search()))


def _relabeller(name: str, action: ArmapPairs) -> Any:
    from ...agents.models.loading import load_tokenizer
    from ...agents.prompting import EngineModel

    tokenizer = load_tokenizer(name)
    model = EngineModel(build_engine(name, tokenizer, action.sampler), tokenizer)
    return HindsightRelabeller(model, chat=model.chats, seed=action.seed)


def _folder(name: str, env: str, report: Reporter) -> str:
    """A model's folder, the starter's where it is asked for."""
    prepare(small=name == STARTER)
    return starter(env, report) if name == STARTER else model_path(name, (STARTER,))


def _how(action: ArmapTrain) -> tuple[RewardTraining, ReadingSettings]:
    how, most = PRESETS[action.preset]
    given = {name: getattr(action, name) for name in ("lr", "epochs", "batch")}
    changed = {name: value for name, value in given.items() if value is not None}
    how = replace(how, **changed, seed=action.seed)
    if (rank := action.lora_rank) is not None:
        how = replace(how, lora=replace(ARMAP_LORA, rank=rank) if rank else None)
    if how.lora is None and action.dtype != "float32":
        raise BadValueError(f"--dtype {action.dtype}: training all weights needs float32.")
    return how, ReadingSettings(max_tokens=action.max_length or most, closing=action.closing)


def _split(action: ArmapTrain) -> tuple[list[Pair], list[Pair]]:
    """Pairs to train on and to score on; those of one task stay together."""
    found = read_pairs(existing_file(action.pairs, "--pairs"))
    if action.held_out is not None:
        return found, read_pairs(existing_file(action.held_out, "--held-out"))
    tasks = list(dict.fromkeys(pair.better.instruction for pair in found))
    kept = set(tasks[HELD_OUT - 1 :: HELD_OUT])
    shown = [pair for pair in found if pair.better.instruction not in kept]
    held = [pair for pair in found if pair.better.instruction in kept]
    if not held:
        raise BadValueError(
            f"--pairs: have {len(tasks)} instructions; to keep a tenth back there must be at least "
            f"{HELD_OUT}. Give more, or --held-out FILE."
        )
    return shown, held


def _table(scores: PairScores) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), title="held-out pairs", title_justify="left")
    for head in ("pairs", "accuracy", "loss", "centre", "ECE", "Brier"):
        table.add_column(head, justify="right")
    n, *others = scores.figures().values()
    table.add_row(f"{n:,.0f}", *(f"{x:.3f}" for x in others))
    return table
