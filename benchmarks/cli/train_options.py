"""The command line's options; reading them imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from ...agents.engines.factory import EngineSettings
from ...algos.learner.settings import LearnerSettings
from ...algos.training.settings import TrainSettings
from ..viewer.options import ViewCommand
from .adapter_options import McpCommand, OpenEnvCommand
from .armap_options import ArmapCommand
from .bench_options import BenchCommand
from .claims_options import ClaimsCommand
from .drrn_options import DrrnCommand
from .index_options import IndexCommand
from .leaderboard_options import LeaderboardCommand, SubmitCommand
from .model_options import Asked, ModelOptions, Sampler
from .papers_options import PapersCommand
from .planner_options import PlannerOptions, Planners
from .retail_options import RetailCommand
from .selector_options import SelectorCommand
from .tuning_options import (
    Executor,
    ExecutorOptions,
    LoraOptions,
    MergeCommand,
    PlanCommand,
)

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
Words = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WorldOptions:
    """Settings of the environment.

    Attributes:
        size: World size, e.g. micro or full.
        hops: Facts that a question needs, one number or several (SearchQA).
        data: File of questions to use instead of the generated world, or a folder with a file per
            split (SearchQA).
        corpus: File of passages that goes with --data, or the folder of an index over one.
        env_arg: Any other setting as name=value, repeatable; short form: --env.NAME VALUE.
    """

    size: str | None = None
    hops: tuple[int, ...] = ()
    data: str | None = None
    corpus: str | None = None
    env_arg: Repeated = ()


World = Annotated[WorldOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class EnvsCommand:
    """List the environments.

    Attributes:
        hidden: The diagnostic worlds too.
        plugin: Python file that is run first, repeatable: it may register environments.
    """

    hidden: bool = False
    plugin: Repeated = ()


@dataclass(frozen=True, kw_only=True)
class RecipesCommand:
    """List the recipes, or all settings of one.

    Attributes:
        name: Recipe whose settings are shown.
    """

    name: Annotated[str | None, tyro.conf.Positional] = None


@dataclass(frozen=True, kw_only=True)
class PlayCommand:
    """Play an episode in the terminal, or watch an agent play it.

    Attributes:
        env: Id of the environment; `turngym envs` lists them.
        world: Its settings.
        agent: human, expert, random, null, a baseline of the environment, a run directory or a
            model folder.
        split: Split of the task.
        task: Index of the task; drawn from the seed when left out.
        seed: Seed of the episode.
        temperature: Of a model's sampling; 0 is greedy.
        max_tokens: Most tokens of a model's action.
        sampler: What samples a model's actions.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    world: World = field(default_factory=WorldOptions)
    agent: str = "human"
    split: str = "dev"
    task: int | None = None
    seed: int = 0
    temperature: float = 0.0
    max_tokens: int = 64
    sampler: Sampler = field(default_factory=EngineSettings)


@dataclass(frozen=True, kw_only=True)
class EvalCommand:
    """Score agents on the first N tasks of a split.

    Attributes:
        agent: One or more of expert, random, null, a baseline of the environment (search-only,
            expand-all, expand-at-random, heuristic for PaperCrawler), drrn:FOLDER, a run
            directory, a model folder; or, with --model or --endpoint, of direct, cot, rag, ircot,
            search-o1, react (SearchQA), and of greedy, sampling, best-of-n, reflexion, mcts (any
            environment).
        asked: The model of prompting agents and planners.
        planner: How planners search.
        env: Id of the environment; `turngym envs` lists them.
        plugin: Python file that is run first, repeatable: it may register environments.
        world: Its settings.
        split: Split of the tasks.
        n: Number of tasks.
        per_task: Score every task of ScienceWorld on its own, n variations each, beside published
            scores (which are of 10 variations of the split test).
        published: Published tables that are shown: paper, gpt-4, gpt-3.5.
        eval_data: Question files (or folders, of which the last split counts) instead of a split,
            as name=file; searched in --corpus.
        seed: Seed of episodes and sampling.
        temperature: Of a model's sampling; 0 is greedy.
        max_tokens: Most tokens of a model's action, or of one reply to a prompting agent; left
            out: 64, and 512 in the dialect chat.
        sampler: What samples a model's actions.
        out: File for the scores as JSON; prompting agents write their transcripts beside it, in
            a folder of the same name with -transcripts.
    """

    agent: Words
    asked: Asked = field(default_factory=ModelOptions)
    planner: Planners = field(default_factory=PlannerOptions)
    env: str = "SearchQA-v0"
    plugin: Repeated = ()
    world: World = field(default_factory=WorldOptions)
    split: str = "dev"
    n: int = 200
    per_task: bool = False
    published: tuple[Literal["paper", "gpt-4", "gpt-3.5"], ...] = ("paper", "gpt-4")
    eval_data: Words = ()
    seed: int = 0
    temperature: float = 0.0
    max_tokens: int | None = None
    sampler: Sampler = field(default_factory=EngineSettings)
    out: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """Train a language model; the same command again resumes an interrupted run.

    Attributes:
        recipe: The algorithm; `turngym recipes` lists them.
        recipe_arg: A setting of the recipe as name=value, repeatable; short: --recipe.NAME VALUE.
        env: Id of the environment; `turngym envs` lists them.
        world: Its settings.
        model: Folder or hub name of the starting model; left out: the small starter, made here,
            with settings for small models.
        run_dir: Folder of the run; left out: runs/RECIPE-ENV-seedN.
        plugin: Python file that is run first, repeatable: it may register recipes and environments.
        steps: Training steps (100 when no budget is given).
        tokens: Stop after so many sampled tokens.
        calls: Stop after so many actions taken.
        minutes: Stop after so much time.
        eval_split: Split that is evaluated before, while and after; empty for none.
        eval_n: Tasks per evaluation.
        eval_data: Question files (or folders, of which the last split counts) to evaluate on
            instead, as name=file; searched in --corpus.
        settings: Everything else about the run, its engine included.
        learner: How the learner computes.
        preset: Settings of a published run, `turngym plan` lists them; options given beside it
            take their place.
        lora: Adapters that are trained in place of the weights.
        where: Where rollouts are played.
    """

    preset: str | None = None
    recipe: str = "grpo"
    recipe_arg: Repeated = ()
    env: str = "SearchQA-v0"
    world: World = field(default_factory=WorldOptions)
    model: str | None = None
    run_dir: str | None = None
    plugin: Repeated = ()
    steps: int | None = None
    tokens: int | None = None
    calls: int | None = None
    minutes: float | None = None
    eval_split: str = "dev"
    eval_n: int = 200
    eval_data: Words = ()
    settings: Annotated[TrainSettings, tyro.conf.arg(name="")] = field(
        default_factory=TrainSettings
    )
    learner: Annotated[LearnerSettings, tyro.conf.arg(name="")] = field(
        default_factory=LearnerSettings
    )
    lora: Annotated[LoraOptions, tyro.conf.arg(name="")] = field(default_factory=LoraOptions)
    where: Executor = field(default_factory=ExecutorOptions)


@dataclass(frozen=True, kw_only=True)
class DemoCommand:
    """Watch a small model learn to search and answer: table, curve and transcripts.

    Attributes:
        run_dir: Folder of the run; left out: the next runs/demo-N.
        steps: Training steps.
        n: Questions of the evaluations.
        seed: Seed of the training.
        sampler: What samples the model's actions.
    """

    run_dir: str | None = None
    steps: int = 120
    n: int = 200
    seed: int = 0
    sampler: Sampler = field(default_factory=lambda: EngineSettings(max_batch=128))


@dataclass(frozen=True, kw_only=True)
class RetrieverCommand:
    """Answer searches over HTTP, as Search-R1's retrieval servers do; Ctrl-C ends it.

    Attributes:
        action: What to do.
        index: Folder of an index, repeatable: several are searched together.
        corpus: File of passages (.jsonl), searched by BM25; instead of --index.
        host: Address to listen on; 0.0.0.0 for all of this machine.
        port: Port to listen on; 0 for a free one.
        topk: Passages per query where a request does not say.
    """

    action: Annotated[Literal["serve"], tyro.conf.Positional]
    index: Repeated = ()
    corpus: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    topk: int = 3


@dataclass(frozen=True, kw_only=True)
class FidelityCommand:
    """Replay transcripts of an original world here, and say how many steps agree.

    Attributes:
        world: The world that the transcripts are of: scienceworld.
        folder: Folder of transcripts, one JSON file each.
        live: Let the original engine play now instead: gold runs and random walks over variations
            drawn from the seed. Needs the extra science-jvm and Java.
        runs: Variations per task with --live.
        steps: Actions of a random walk with --live.
        seed: Of the variations and walks with --live.
        keep: Folder to write the transcripts of --live to.
        task: Name or id of a task to replay, repeatable; left out: all.
        json: File for the figures.
    """

    world: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WORLD")]
    folder: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = None
    live: bool = False
    runs: int = 2
    steps: int = 40
    seed: int = 0
    keep: str | None = None
    task: Repeated = ()
    json: str | None = None


Command = (
    Annotated[DemoCommand, tyro.conf.subcommand("demo")]
    | Annotated[EnvsCommand, tyro.conf.subcommand("envs")]
    | Annotated[RecipesCommand, tyro.conf.subcommand("recipes")]
    | Annotated[PlayCommand, tyro.conf.subcommand("play")]
    | Annotated[TrainCommand, tyro.conf.subcommand("train")]
    | Annotated[PlanCommand, tyro.conf.subcommand("plan")]
    | Annotated[MergeCommand, tyro.conf.subcommand("merge")]
    | Annotated[EvalCommand, tyro.conf.subcommand("eval")]
    | Annotated[IndexCommand, tyro.conf.subcommand("index")]
    | Annotated[PapersCommand, tyro.conf.subcommand("papers")]
    | Annotated[RetailCommand, tyro.conf.subcommand("retail")]
    | Annotated[RetrieverCommand, tyro.conf.subcommand("retriever")]
    | Annotated[SelectorCommand, tyro.conf.subcommand("selector")]
    | Annotated[FidelityCommand, tyro.conf.subcommand("fidelity")]
    | Annotated[ArmapCommand, tyro.conf.subcommand("armap")]
    | Annotated[SubmitCommand, tyro.conf.subcommand("submit")]
    | Annotated[LeaderboardCommand, tyro.conf.subcommand("leaderboard")]
    | Annotated[BenchCommand, tyro.conf.subcommand("bench")]
    | Annotated[ClaimsCommand, tyro.conf.subcommand("claims")]
    | Annotated[ViewCommand, tyro.conf.subcommand("view")]
    | Annotated[McpCommand, tyro.conf.subcommand("mcp")]
    | Annotated[OpenEnvCommand, tyro.conf.subcommand("openenv")]
    | Annotated[DrrnCommand, tyro.conf.subcommand("drrn")]
)
