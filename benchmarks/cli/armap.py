"""`turngym armap`: trajectory pairs, and the reward model that planners follow."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.table import Table

from ...agents.engines.factory import EngineSettings, build_engine
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
from ...algos.runs.console import PlainConsole
from ...algos.runs.progress import Reporter, reporter
from ...algos.training.config import EnvConfig
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError, DataError
from ..runtime.threads import prepare
from .arguments import Repeated, given, new_folder, output_file, refuse_without, values
from .env_options import existing_file
from .model_options import OF_ENGINES, STARTER, Sampler, action_tokens, model_path, starter
from .tables import plain_table


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Make pairs of a better and a worse trajectory, without human labels.

    Attributes:
        out: File to write, one pair a line; where the call is stopped, those of the tasks that were
            over are beside it, in a file of the same name with .part.
        player: Who plays each task, one or more: expert, random, null, a baseline of the
            environment, starter, a model that `turngym models` lists, a model folder, GGUF file or
            run directory. Higher score against lower; ties are dropped.
        env: Id of the environment; `turngym envs` lists them.
        env_arg: A setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        split: Split of the tasks.
        n: Number of tasks.
        tries: Attempts of each player per task.
        contrasts: Maximum pairs per task of two attempts with different scores.
        edits: Actions changed per task in its best attempt; what scores lower when it is played
            again is kept.
        mistakes: Share of mistakes of --player expert.
        hindsight: The model that writes each pair's instruction in hindsight, one that `turngym
            models` lists, a model folder, GGUF file or hub name, or a run directory; left out: the
            environment's own first prompt.
        temperature: Temperature of models that play.
        max_tokens: Maximum tokens of a model's action; left out: the most a run was trained with,
            else 64.
        seed: Seed of everything.
        sampler: What samples the actions of models.
    """

    out: str
    player: tuple[str, ...] = ("starter",)
    env: str = "SearchQA-v0"
    env_arg: Repeated = ()
    split: str = "train"
    n: int = 1000
    tries: int = 4
    contrasts: int = 2
    edits: int = 2
    mistakes: float = 0.0
    hindsight: str | None = None
    temperature: float = 1.0
    max_tokens: int | None = None
    seed: int = 0
    sampler: Sampler = field(default_factory=EngineSettings)


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a reward model on pairs, and score it on held-out ones.

    Attributes:
        pairs: File of pairs.
        out: Folder of the reward model; must be new or empty.
        model: The causal model that it begins from: one that `turngym models` lists, a model
            folder, GGUF file or hub name, a run directory, or "starter".
        env: Environment of the starter.
        held_out: File of pairs to score on; left out: a tenth of the pairs is kept back.
        preset: Settings: small, or ARMAP's for webshop, scienceworld, game24, alfworld (LoRA).
        lr: Learning rate; left out: the preset's.
        epochs: Times that every pair is seen; left out: the preset's.
        batch: Pairs per step; left out: the preset's.
        max_length: Maximum tokens of a trajectory; left out: the preset's.
        closing: Read the observation that answers the last action; --no-closing judges the actions
            alone where an environment shows its verdict there.
        lora_rank: Low-rank training with this rank, 0 trains all weights; left out: the preset's.
        seed: Seed of the head's weights and the pairs' order.
        device: auto, cpu or cuda.
        dtype: Number format of a LoRA backbone's weights.
    """

    pairs: str
    out: str
    model: str = "starter"
    env: str = "SearchQA-v0"
    held_out: str | None = None
    preset: Literal["small", "webshop", "scienceworld", "game24", "alfworld"] = "small"
    lr: float | None = None
    epochs: int | None = None
    batch: int | None = None
    max_length: int | None = None
    closing: bool = True
    lora_rank: int | None = None
    seed: int = 42
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "float32"


Command = (
    Annotated[Pairs, tyro.conf.subcommand("pairs")]
    | Annotated[Train, tyro.conf.subcommand("train")]
)


HELD_OUT = 10
"""One of so many pairs is kept back for scoring."""
_PAIR_ID = re.compile(r"(.+-v\d+/.+)/\d+")
"""Environment, task and number, as :class:`PairMaker` names pairs."""


def run(command: Command) -> None:
    """Make pairs, or train on them."""
    if isinstance(command, Pairs):
        make_pairs(command)
    else:
        train(command)


def make_pairs(action: Pairs) -> None:
    """Make pairs and write their file.

    Raises:
        BadValueError: Settings out of range, or players that all score the same.
        UnknownNameError: No such environment, split or player.
    """
    numbers = given(action, "tries", "contrasts", "edits", "seed")
    settings = PairSettings(tasks=action.n, **numbers)
    if action.mistakes and "expert" not in action.player:
        raise BadValueError("--mistakes requires --player expert.")
    env = EnvConfig(id=action.env, settings=values(action.env_arg, "--env-arg")).make()
    if set(action.player) <= set(scripted_names(text_env(env))):
        unread = () if action.hindsight is not None else OF_ENGINES
        needed = "a --player that is a model"
        refuse_without(action, needed, ("temperature", "max_tokens", *unread))
    report = reporter()
    scripts = scripted_names(text_env(env))
    folders = {p: _folder(p, action.env, report) for p in action.player if p not in scripts}
    limit = action_tokens(folders.values(), action.max_tokens, report)
    action = replace(action, max_tokens=limit)
    players = [_make_player(p, action, text_env(env), folders.get(p, "")) for p in action.player]
    maker = PairMaker(env=env, players=players, settings=settings)
    relabeller: HindsightRelabeller | None = None
    if action.hindsight is not None:
        relabeller = _make_relabeller(action.hindsight, action, report)
        maker = replace(maker, instruct=relabeller)
    out = output_file(action.out)
    part = out.with_name(f"{out.name}.part")
    over: dict[int, list[Pair]] = {}
    try:
        with report.bar("playing") as bar:

            def show(done: int, count: int) -> None:
                bar.update(done / count, f"{done:,} of {count:,} tasks")

            found = asyncio.run(maker.pairs(action.split, show, over.__setitem__))
    except BaseException:
        with suppress(DataError):  # a full disk: what stopped the play is what is told
            _keep_part(part, over, report)
        raise
    write_pairs(out, found)
    part.unlink(missing_ok=True)
    report.note(f"{out}: {len(found):,} pairs from tasks of {action.env}, split {action.split}.")
    if relabeller is not None and relabeller.too_long:
        report.note(
            f"--hindsight: {relabeller.too_long:,} of their instructions are the environment's own "
            "first prompt: the trajectory left the model no room to write one."
        )


def _keep_part(part: Path, over: Mapping[int, Sequence[Pair]], report: Reporter) -> None:
    """Write the pairs of the tasks that were over; a file of more, of an earlier call, stays."""
    found = [pair for task in sorted(over) for pair in over[task]]
    if found and (not part.exists() or len(found) >= len(read_pairs(part))):
        write_pairs(part, found)
        report.note(f"{part}: {len(found):,} pairs from the {len(over):,} tasks that were over.")


def train(action: Train) -> None:
    """Train a reward model, write its folder and print its scores.

    Raises:
        BadValueError: Settings that exclude each other or make no sense.
        DataError: A file that does not hold what it should.
    """
    if action.model != STARTER:
        refuse_without(action, f"--model {STARTER}", ("env",))
    out = new_folder(action.out)
    how, reading = _settings(action)
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

        def show(now: TrainingProgress) -> None:
            bar.update(now.step / now.steps, f"loss {now.loss:.3f}")

        result = train_reward_model(reward, shown, how, show)
    scores = evaluate_pairs(reward, held)
    training = {"pairs": len(shown), **result, "held_out": scores.figures()}
    reward.save(out, training)
    PlainConsole().print(_table(scores))
    report.note(f"{out}: trained on {len(shown):,} pairs, loss {result['loss']:.3f}.")


def _make_player(name: str, action: Pairs, env: TextEnv[Any, Any], folder: str) -> Player:
    if name == "expert":
        env.expert(action.mistakes)  # refuse now rather than in the first episode
        return policy_player(lambda seed: ExpertPolicy(action.mistakes, seed))
    if name in scripted_names(env):
        return policy_player(lambda seed: scripted(name, seed, env))
    from ...agents.models.loading import load_tokenizer
    from ...agents.planning.actors import EngineActor
    from ...agents.planning.planners import Sampling
    from ...agents.planning.search import PlannerSetup
    from ...agents.rendering.factory import make_renderer

    tokenizer = load_tokenizer(folder)
    engine = build_engine(folder, tokenizer, action.sampler)
    limit = action_tokens([folder], action.max_tokens)
    first = EngineActor(engine, make_renderer(tokenizer, tools=env.tools), limit)
    planner = Sampling(temperature=action.temperature)
    return planner_player(planner, lambda: PlannerSetup(actor=first.for_search()))


def _make_relabeller(name: str, action: Pairs, report: Reporter) -> HindsightRelabeller:
    from ...agents.models.loading import load_tokenizer
    from ...agents.prompting import EngineModel

    folder = _folder(name, action.env, report)
    tokenizer = load_tokenizer(folder)
    model = EngineModel(build_engine(folder, tokenizer, action.sampler), tokenizer)
    return HindsightRelabeller(model, chat=model.chats, seed=action.seed)


def _folder(name: str, env: str, report: Reporter) -> str:
    """Return a model's folder, the starter's where it is asked for."""
    prepare(small=name == STARTER)
    return starter(env, report) if name == STARTER else model_path(name, (STARTER,), "model")


def _settings(action: Train) -> tuple[RewardTraining, ReadingSettings]:
    how, max_tokens = PRESETS[action.preset]
    how = replace(how, **given(action, "lr", "epochs", "batch"), seed=action.seed)
    if (rank := action.lora_rank) is not None:
        how = replace(how, lora=replace(ARMAP_LORA, rank=rank) if rank else None)
    if how.lora is None and action.dtype != "float32":
        raise BadValueError(f"--dtype {action.dtype}: training all weights needs float32.")
    longest = max_tokens if action.max_length is None else action.max_length
    return how, ReadingSettings(max_tokens=longest, closing=action.closing)


def _split(action: Train) -> tuple[list[Pair], list[Pair]]:
    """Return pairs to train on and to score on; those of one task stay together."""
    found = read_pairs(existing_file(action.pairs, "--pairs"))
    if action.held_out is not None:
        return found, read_pairs(existing_file(action.held_out, "--held-out"))
    tasks = _tasks(found)
    distinct = list(dict.fromkeys(tasks))
    kept = set(distinct[HELD_OUT - 1 :: HELD_OUT])
    shown = [pair for pair, task in zip(found, tasks, strict=True) if task not in kept]
    held = [pair for pair, task in zip(found, tasks, strict=True) if task in kept]
    if not held:
        raise BadValueError(
            f"--pairs: have {len(distinct)} instructions; to keep a tenth back there must be at "
            f"least {HELD_OUT}. Give more, or --held-out FILE."
        )
    return shown, held


def _tasks(pairs: Sequence[Pair]) -> list[str]:
    """Return a word for the task of each pair: the same for equal instructions, and for equal ids.

    Instructions in hindsight differ between pairs of one task, which share trajectories.
    """
    same: dict[str, str] = {}

    def first(name: str) -> str:
        while (other := same.setdefault(name, name)) != name:
            name = other
        return name

    names = [f"instruction {pair.better.instruction}" for pair in pairs]
    for pair, name in zip(pairs, names, strict=True):
        if made_here := _PAIR_ID.fullmatch(pair.id):
            same[first(f"task {made_here[1]}")] = first(name)
    return [first(name) for name in names]


def _table(scores: PairScores) -> Table:
    heads = ("pairs", "accuracy", "loss", "centre", "ECE", "Brier")
    table = plain_table(right=heads, title="held-out pairs", title_justify="left")
    n, *others = scores.figures().values()
    table.add_row(f"{n:,.0f}", *(f"{x:.3f}" for x in others))
    return table
