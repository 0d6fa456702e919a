"""`turngym eval`: agents on the first n tasks of a split, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ...agents.drrn.settings import DRRN_FILE
from ...agents.engines.base import Engine
from ...agents.engines.factory import EngineSettings, build_engine
from ...agents.engines.openai_client import Endpoint
from ...agents.planning.actors import Actor, EngineActor, TextActor
from ...agents.planning.objective import Objective, Scorer
from ...agents.planning.search import PlannerSetup
from ...agents.prompting import Dialect, EngineModel, Limits, OpenAIModel, TextModel, prompting
from ...agents.prompting.episode import check_search_env
from ...agents.scripted import scripted, scripted_names, text_env
from ...algos.evaluation.defaults import TASKS, TEMPERATURE
from ...algos.evaluation.evaluate import (
    AGENT_ERROR,
    ENV_ERROR,
    EvalSet,
    Evaluation,
    Tick,
    evaluate_policy,
    mean_of_sets,
    pair_up,
)
from ...algos.evaluation.planning import Planning
from ...algos.evaluation.prompting import Prompted
from ...algos.evaluation.score_rows import Played, ScoreRow, score_rows, write_score_rows
from ...algos.evaluation.set_content import content_of
from ...algos.runs.progress import Bar, Reporter, reporter
from ...algos.training.config import EnvConfig, EvalConfig
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError, TurngymError, UnknownNameError
from ..runtime.threads import prepare, prepare_for
from ..science_world.table import show_tasks, task_sets
from .arguments import output_file, values
from .asked_model import ASKING, DRRN, ModelOptions, check_model_options, check_sampling
from .differences import (
    Earlier,
    check_against,
    check_comparable,
    open_earlier,
    show_scores,
)
from .env_options import Environment, EnvOptions, check_own_tasks, env_config, file_sets
from .model_options import (
    STARTER,
    Sampler,
    WarmStartOptions,
    Warmth,
    action_tokens,
    fitting_size,
    is_fetched,
    made_for,
    model_path,
    note_cut_actions,
    starter,
    warmed,
)
from .planner_options import (
    COMPARING,
    PLANNING,
    PlannerOptions,
    check_planner_options,
    make_budget,
    make_objective,
    make_planner,
)
from .tables import table_console

SERVER_CONCURRENCY = 16
CHAT_TOKENS = 512
PUBLISHED = ("paper", "gpt-4")
"""Tables that stand beside measured scores unless others are asked for."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Score agents on the first N tasks of a split.

    Attributes:
        agent: One or more of expert, random, null, a baseline of the environment (search-only,
            expand-all, expand-at-random, heuristic for PaperCrawler), drrn:FOLDER, starter (the
            small model made here), a model that `turngym models` lists, a model folder, GGUF file
            or run directory; or, with --model or --endpoint, of direct, cot, rag, ircot,
            search-o1, react (SearchQA), and of greedy, sampling, best-of-n, reflexion, mcts (any
            environment). The later ones are compared with the first one on the same tasks, too
            (not with --per-task).
        model_options: The model of prompting agents and planners.
        planner: How planners search.
        warm: What agents that are models imitate first.
        env: Id of the environment; `turngym envs` lists them.
        env_options: Settings of the environment.
        split: Split of the tasks; left out: dev.
        n: Number of tasks.
        per_task: Score every task of ScienceWorld on its own, n variations each, beside published
            scores (which are of 10 variations of the split test).
        published: Published tables that --per-task shows: paper, gpt-4, gpt-3.5; left out: the
            first two.
        eval_data: Question files (or folders, of which the last split counts) instead of a split,
            as name=file; searched in --corpus.
        seed: Seed of episodes and sampling.
        temperature: Temperature of a model's sampled score, beside which its greedy one stands;
            0 gives the greedy one only. Left out: 1, and 0 for prompting agents and DRRN.
        max_tokens: Maximum tokens of a model's action, or of one reply to a prompting agent; left
            out: the most a run was trained with, else 64; 512 for replies in the dialect chat.
        sampler: What samples a model's actions.
        out: File for the scores as JSON, with the outcome of every task (whole sets have it; parts
            and means of sets do not); prompting agents write their transcripts beside it, in a
            folder of the same name with -transcripts. An older file is replaced; where the call is
            stopped, the scores in it of agents that were not scored again stay.
        against: File that --out wrote earlier; every agent is compared with those of it on the same
            tasks. It must be of the same environment, settings, seed and tasks; models with other
            maximum tokens are left out, and at another temperature greedy scores alone are
            compared. Not with --per-task.
    """

    agent: tuple[str, ...]
    model_options: Annotated[ModelOptions, tyro.conf.arg(name="")] = field(
        default_factory=ModelOptions
    )
    planner: Annotated[PlannerOptions, tyro.conf.arg(name="")] = field(
        default_factory=PlannerOptions
    )
    warm: Warmth = field(default_factory=WarmStartOptions)
    env: str = "SearchQA-v0"
    env_options: Environment = field(default_factory=EnvOptions)
    split: str | None = None
    n: int = TASKS
    per_task: bool = False
    published: tuple[Literal["paper", "gpt-4", "gpt-3.5"], ...] | None = None
    eval_data: tuple[str, ...] = ()
    seed: int = 0
    temperature: float | None = None
    max_tokens: int | None = None
    sampler: Sampler = field(default_factory=EngineSettings)
    out: str | None = None
    against: str | None = None


def run(command: Command) -> None:
    """Score every agent on every set and print one table.

    Raises:
        TurngymError: Bad options, or an agent whose model's server failed in every episode.
    """
    out = output_file(command.out) if command.out is not None else None
    check_against(command.against, out, per_task=command.per_task)
    check_model_options(command.agent, command.model_options)  # before the first plays for minutes
    check_planner_options(command.agent, command.planner)
    env, configs = _configure_sets(command)
    made = [config.make() for config in configs]
    sets = [EvalSet(name=s.name, env=s.env, split=s.split, n=s.n, seed=command.seed) for s in made]
    keeps = out is not None or command.against is not None
    contents = [content_of(what, deep=keeps) for what in sets]
    earlier = None if command.against is None else open_earlier(command.against, sets, contents)
    agents = [(name, _find_agent(name, sets)) for name in command.agent]
    check_sampling(
        [agent for _, agent in agents],
        scripted_names(sets[0].base_env),
        temperature=command.temperature,
        max_tokens=command.max_tokens,
        engine=None if command.model_options.model or command.warm.warm_start else command.sampler,
    )
    if earlier is not None:  # what prompting agents reply with is known once their model is open
        known = [(name, agent) for name, agent in agents if agent not in ASKING]
        scored = sets[0].base_env
        check_comparable(earlier, [_about(*one, command, None, scored) for one in known])
    report = reporter()
    if any(agent == STARTER for _, agent in agents):  # made once nothing can be refused any more
        prepare(small=True)
        folder = starter(command.env, report)
        agents = [(name, folder if agent == STARTER else agent) for name, agent in agents]
    agents = _warm(agents, command, env, sets[0].base_env, report)
    asked = open_model(command, report) if any(a in ASKING for _, a in agents) else None
    about = [_about(name, agent, command, asked, sets[0].base_env) for name, agent in agents]
    if earlier is not None:
        check_comparable(earlier, about)
    if _action_tokens(command) in [one.max_tokens for one in about]:
        _action_tokens(command, report)
    rows: list[ScoreRow] = []
    failed: list[str] = []
    by_task: dict[str, list[Evaluation]] = {}
    try:
        for (name, agent), mine in zip(agents, about, strict=True):
            evaluations = by_task[name] = _evaluate(agent, sets, command, report, asked)
            for evaluation, content in zip(evaluations, contents, strict=True):
                rows += score_rows(mine, evaluation, content)
                failed += _report_failures(name, evaluation, report)
            if len(evaluations) > 1:
                rows.append(ScoreRow(**mine.fields(), score=mean_of_sets(evaluations)))
    finally:  # what took hours to play is kept where a later agent is stopped
        if rows:
            _keep(rows, by_task, command, out, earlier, [name for name, _ in agents])
    if failed:
        raise TurngymError(failed[0])


def _keep(
    rows: Sequence[ScoreRow],
    by_task: Mapping[str, Sequence[Evaluation]],
    command: Command,
    out: Path | None,
    earlier: Earlier | None,
    agents: Sequence[str],
) -> None:
    """Write the scores, and show them, also where the disk is full."""
    try:
        if out is not None:
            write_score_rows(out, rows, join=not by_task.keys() >= set(agents))
    finally:
        if command.per_task:
            published = PUBLISHED if command.published is None else command.published
            show_tasks(table_console(), by_task, published)
        else:
            show_scores(rows, earlier)


def _configure_sets(command: Command) -> tuple[EnvConfig, Sequence[EvalConfig]]:
    """Return the environment, and the sets of its tasks that are scored."""
    env, split = env_config(command.env, command.env_options), command.split or "dev"
    if not command.eval_data:  # files of the user's own are no world with a size
        env = fitting_size(env, _made_for(command), reporter())
    if command.per_task:
        if command.eval_data:
            raise BadValueError("--per-task: ScienceWorld has no question files; no --eval-data.")
        return env, task_sets(env, split, command.n)
    if command.published is not None:
        raise BadValueError("--published: goes with --per-task, whose tables it chooses.")
    if command.eval_data:
        asked = command.split and f"--split {command.split}"
        return env, file_sets(env, command.eval_data, command.n, asked)
    sizes = text_env(env.prototype).source.sizes()
    if split not in sizes:
        advice = "Choose one with --split, or name files of questions with --eval-data NAME=FILE."
        raise UnknownNameError("split", split, sizes, env.id, advice=advice)
    return env, (EvalConfig(name=split, env=env, split=split, n=command.n),)


def _made_for(command: Command) -> Mapping[str, Any]:
    """Return the environment's settings that the models know, where they agree."""
    found = [made_for(folder, command.env) for folder in _folders(command)]
    return found[0] if found and all(one == found[0] for one in found) else {}


def _folders(command: Command) -> list[str | None]:
    """Return the folders of models that are named (others hide no agent), None for the starter."""
    agents = [name for name in command.agent if name not in (*scripted_names(), *ASKING)]
    names = [*agents, *filter(None, [command.model_options.model])]
    found = [n for n in names if n == STARTER or (Path(n).expanduser() / "config.json").is_file()]
    return [None if n == STARTER else model_path(n) for n in found]


def _find_agent(name: str, sets: Sequence[EvalSet]) -> str:
    if name in ASKING and name not in PLANNING:
        for what in sets:  # before a model is made or another agent plays
            check_search_env(what.env)
    if name in (*scripted_names(sets[0].base_env), *ASKING, STARTER):
        return name
    if name.startswith(DRRN):
        # Looked at now: a folder without a network is refused before anything plays.
        DRRN_FILE.read(Path(name.removeprefix(DRRN)).expanduser())
        return name
    return model_path(name, (STARTER, *ASKING, *sets[0].base_env.baselines()))


def _warm(
    agents: Sequence[tuple[str, str]],
    command: Command,
    env: EnvConfig,
    scored: TextEnv[Any, Any],
    report: Reporter,
) -> list[tuple[str, str]]:
    """Let the agents that are models imitate the expert first, where that is asked for.

    Their names say so afterwards: scores without it would be taken for those of the model as it is.

    Args:
        agents: Names as they were typed, and what they stand for.
        command: The options.
        env: What is imitated, as in training: not the questions of ``--eval-data`` with their
            answers, or a single task of ``--per-task``.
        scored: The environment of the first set, for the names of its players.
        report: Shows the progress.

    Raises:
        BadValueError: No agent is a model; ``--eval-data`` without questions to learn from.
    """
    scripts = (*scripted_names(scored), *ASKING)
    models = [a for _, a in agents if a not in scripts and not a.startswith(DRRN)]
    if command.warm.warm_start and command.eval_data:
        check_own_tasks(env, f"--warm-start {command.warm.warm_start}")
    if command.warm.warm_start and models:
        prepare(small=False)
    if command.warm.warm_start and not models:
        raise BadValueError(
            f"--warm-start {command.warm.warm_start}: goes with an agent that is a model; "
            "prompting agents and planners take theirs as it is, and --model may name the folder "
            "of a warm start; scripted ones learn nothing."
        )
    found = []
    for name, agent in agents:
        start = None
        if agent in models or not models:
            start = warmed(command.warm, agent, env, report, device=command.sampler.device)
        if start is None:
            found.append((name, agent))
        else:
            note_cut_actions(start, _action_tokens(command), report)
            label = f"{name} warm-start {command.warm.warm_start}"
            found.append((label, str(start.folder)))
    return found


def _about(
    name: str, agent: str, command: Command, asked: PromptedModel | None, env: TextEnv[Any, Any]
) -> Played:
    """Return how an agent will be scored, which its rows say beside the scores.

    Args:
        name: Its name in tables.
        agent: What it stands for.
        command: The options.
        asked: The model of prompting agents and planners.
        env: The environment, for the names of its players.
    """
    played = Played(agent=name, seed=command.seed)
    heat = command.temperature or 0.0
    if agent in ASKING and asked is not None:
        limit = _reply_tokens(command, asked)
        played = replace(played, model=asked.label, dialect=asked.dialect, max_tokens=limit)
        return played if agent in PLANNING else replace(played, temperature=heat)
    if agent in scripted_names(env):
        return played
    if agent.startswith(DRRN):
        return replace(played, temperature=heat)
    heat = TEMPERATURE if command.temperature is None else command.temperature
    return replace(played, temperature=heat, max_tokens=_action_tokens(command))


def _report_failures(name: str, evaluation: Evaluation, report: Reporter) -> list[str]:
    """Report episodes that failed; return an error where the agent failed in all of them."""
    count = len(evaluation.episodes)
    if lost := [e for e in evaluation.episodes if e.status == ENV_ERROR]:
        why = next((f"; one of them, {e.task_id}: {e.why}" for e in lost if e.why), "")
        report.note(
            f"{name} on {evaluation.name}: the environment broke in {len(lost)} of {count} "
            f"episodes, which are in no mean{why}"
        )
    if full := [e for e in evaluation.scored if e.context_full]:
        first = f"; the first, {full[0].task_id}: {full[0].why}" if full[0].why else ""
        report.note(
            f"{name} on {evaluation.name}: {len(full)} of {count} episodes ended with a full "
            f"context and count as failed{first}"
        )
    bad = [e for e in evaluation.episodes if e.status == AGENT_ERROR]
    if not bad:
        return []
    message = (
        f"{name} on {evaluation.name}: {len(bad)} of {count} episodes failed and are in no mean; "
        f"the first, {bad[0].task_id}: {bad[0].why}"
    )
    if len(bad) == count:
        return [message]
    report.note(message)
    return []


def _evaluate(
    agent: str,
    sets: Sequence[EvalSet],
    command: Command,
    report: Reporter,
    asked: PromptedModel | None,
) -> list[Evaluation]:
    """Score an agent on every set, each with a bar of its own."""
    env = sets[0].base_env
    if agent not in (*scripted_names(env), *ASKING) and not agent.startswith(DRRN):
        from ...algos.evaluation.lm_agent import TokenAgent

        prepare_for(agent)
        limit, heat = _action_tokens(command), command.temperature
        heat = TEMPERATURE if heat is None else heat
        model = TokenAgent(agent, max_tokens=limit, temperature=heat, engine=command.sampler)
        return [model.evaluate(what, report) for what in sets]
    evaluate = _make_evaluator(agent, command, asked, env)
    found = []
    for what in sets:
        count = len(what.tasks)
        with report.bar(f"{agent} on {what.name}") as bar:

            def tick(n: int, count: int = count, bar: Bar = bar) -> None:
                bar.update(n / count, f"{n} of {count}")

            found.append(evaluate(what, tick))
    return found


def _action_tokens(command: Command, report: Reporter | None = None) -> int:
    models = [folder or STARTER for folder in _folders(command)]
    models += filter(is_fetched, (*command.agent, command.model_options.model or ""))
    return action_tokens(models, command.max_tokens, report)


def _make_evaluator(
    agent: str, command: Command, asked: PromptedModel | None, env: TextEnv[Any, Any]
) -> Callable[[EvalSet, Tick], Evaluation]:
    if agent.startswith(DRRN):
        from ...agents.drrn.policy import DrrnPolicy, load_drrn

        prepare(small=True)
        network = load_drrn(agent.removeprefix(DRRN))

        def at(heat: float) -> Callable[[EvalSet, Tick], Evaluation]:
            made = partial(DrrnPolicy, network, heat)
            return lambda what, tick: evaluate_policy(what, made, tick)

        return _both_ways(at, command.temperature or 0.0)
    if asked is None or agent not in ASKING:
        return lambda what, tick: evaluate_policy(what, lambda s: scripted(agent, s, env), tick)
    if agent in PLANNING:
        return _run_async(make_planning(agent, command, asked, env), asked.model)
    return _both_ways(
        lambda heat: _run_async(make_prompted(agent, command, asked, heat), asked.model),
        command.temperature or 0.0,
    )


def _run_async(
    evaluator: Planning | Prompted, model: TextModel
) -> Callable[[EvalSet, Tick], Evaluation]:
    async def evaluate(what: EvalSet, tick: Tick) -> Evaluation:
        try:
            return await evaluator.evaluate(what, tick)
        finally:
            await model.close()

    return lambda what, tick: asyncio.run(evaluate(what, tick))


def _both_ways(
    at: Callable[[float], Callable[[EvalSet, Tick], Evaluation]], temperature: float
) -> Callable[[EvalSet, Tick], Evaluation]:
    """Return what evaluates at the temperature and, where it is not 0, greedily after it."""

    def evaluate(what: EvalSet, tick: Tick) -> Evaluation:
        if not temperature:
            return pair_up(at(0.0)(what, tick))
        half = lambda done: tick(done // 2)  # noqa: E731
        sampled = at(temperature)(what, half)
        greedy = at(0.0)(what, lambda done: half(done + len(what.tasks)))
        return pair_up(sampled, greedy, temperature)

    return evaluate


@dataclass(frozen=True, kw_only=True)
class PromptedModel:
    """The model behind prompting agents and planners.

    Attributes:
        label: Its name in result files.
        model: Writes the replies.
        dialect: The form of its prompts.
        engine: The engine of a model in this process; None for a server's.
        tokenizer: The engine's tokenizer.
    """

    label: str
    model: TextModel
    dialect: Dialect
    engine: Engine | None = None
    tokenizer: Any = None


def make_prompted(
    name: str, command: Command, asked: PromptedModel, temperature: float
) -> Prompted:
    """Return the evaluator of the prompting agent ``name`` at a temperature."""
    second = bool(command.temperature) and temperature == 0
    return Prompted(
        agent=prompting(name, asked.dialect),
        model=asked.model,
        limits=Limits(max_tokens=_reply_tokens(command, asked), temperature=temperature),
        concurrency=_concurrency(command),
        folder=_transcripts(command.out, f"{name}-greedy" if second else name),
    )


def _reply_tokens(command: Command, asked: PromptedModel) -> int:
    own = command.max_tokens is None and asked.dialect == "chat"
    return CHAT_TOKENS if own else _action_tokens(command)


def _concurrency(command: Command) -> int:
    if command.model_options.concurrency is not None:
        return command.model_options.concurrency
    local = command.model_options.endpoint is None
    return command.sampler.max_batch if local else SERVER_CONCURRENCY


def _transcripts(out: str | None, agent: str) -> Path | None:
    """Return the folder of an agent's transcripts beside the result file; None without one."""
    if out is None:
        return None
    file = Path(out).expanduser()
    return file.with_name(f"{file.stem}-transcripts") / agent


def open_model(command: Command, report: Reporter) -> PromptedModel:
    """Load the model, or connect to the server.

    Raises:
        BadValueError: No such model, or one that does not fit the options.
    """
    asked = command.model_options
    found = _open_endpoint(asked) if asked.endpoint is not None else _load_local(command, report)
    return found if asked.dialect == "auto" else replace(found, dialect=asked.dialect)


def _open_endpoint(asked: ModelOptions) -> PromptedModel:
    endpoint = Endpoint(
        url=asked.endpoint or "",
        key_variable=asked.api_key_env or "",
        timeout=asked.timeout,
        attempts=asked.attempts,
    )
    name, extra = asked.model_name or "", values(asked.request_arg, "--request-arg")
    model = OpenAIModel(endpoint, name, api=asked.api, extra=extra)
    return PromptedModel(label=name, model=model, dialect="tags" if model.continues else "chat")


def _load_local(command: Command, report: Reporter) -> PromptedModel:
    from ...agents.models.loading import load_tokenizer

    name = command.model_options.model or ""
    small = name == STARTER
    prepare(small=small)
    folder = starter(command.env, report) if small else model_path(name, (STARTER,), "model")
    tokenizer = load_tokenizer(folder)
    engine = build_engine(folder, tokenizer, command.sampler)
    model = EngineModel(engine, tokenizer)
    return PromptedModel(
        label=name,
        model=model,
        dialect="chat" if model.chats else "tags",
        engine=engine,
        tokenizer=tokenizer,
    )


def make_planning(
    name: str, command: Command, asked: PromptedModel, env: TextEnv[Any, Any]
) -> Planning:
    """Return the evaluator of the planner ``name``, with its model and reward model.

    Raises:
        BadValueError: A setting out of range, or no reward model in the folder.
        DataError: A file of the reward model cannot be read.
    """
    options = command.planner
    scorer: Scorer | None = None
    if name in COMPARING and options.reward_model is not None:
        from ...agents.planning.reward_model import open_reward_model

        scorer = open_reward_model(options.reward_model, device=command.sampler.device)
    objective = make_objective(options) if scorer is not None else Objective()
    budget = make_budget(options, _reply_tokens(command, asked))
    make_actor = _actor_maker(command, asked, env)
    return Planning(
        planner=make_planner(name, options),
        tools=lambda: PlannerSetup(
            actor=make_actor(), scorer=scorer, objective=objective, budget=budget
        ),
        concurrency=_concurrency(command),
        folder=_transcripts(command.out, name),
    )


def _actor_maker(
    command: Command, asked: PromptedModel, env: TextEnv[Any, Any]
) -> Callable[[], Actor]:
    """Return what makes an actor per episode; they share the model."""
    max_tokens = _reply_tokens(command, asked)
    if asked.engine is None:
        return lambda: TextActor(asked.model, max_tokens, chat=asked.dialect == "chat")
    from ...agents.rendering.factory import make_renderer

    style = "plain" if asked.dialect == "tags" else "auto"
    renderer = make_renderer(asked.tokenizer, style, tools=env.tools)
    return EngineActor(asked.engine, renderer, max_tokens).for_search
