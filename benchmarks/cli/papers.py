"""`turngym papers`: PaSa's files, generated worlds, imitation data, and pictures of crawls."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import tyro
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from ...agents.engines.factory import EngineSettings
from ...agents.scripted import ReplayPolicy, scripted, scripted_names
from ...agents.warm_start.demonstrations import Demonstrator
from ...algos.runs.console import PlainConsole
from ...algos.runs.progress import reporter
from ...envs.core.env import Policy
from ...envs.core.errors import BadValueError, DataError
from ...envs.core.tasks import find_task, get_split_size
from ...envs.paper_crawler.real.check import FoundPapers, FoundRows, PapersReport, check_papers
from ...envs.paper_crawler.real.database import PaperDatabase, write_passages
from ...envs.paper_crawler.real.layout import find_database_files
from ...envs.paper_crawler.world.expected_ranges import Measured, check_orderings, compare
from ...envs.paper_crawler.world.parameters import world_parameters
from ...envs.paper_crawler.world.statistics import average_statistics, compute_world_statistics
from ...envs.paper_crawler.world.world import load_world
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import write_whole
from ..papers.crawl_figures import crawl_tree, draw_crawl, draw_recall
from ..papers.crawl_trace import Trace, crawler_in, trace
from ..runtime.threads import prepare
from .arguments import Repeated, output_file, refuse_without, values
from .index import Stages
from .model_options import OF_ENGINES, Sampler, model_path
from .tables import plain_table, say, table_console

Folder = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]

PICTURES = (".png", ".svg", ".pdf")
ACTION_TOKENS = 64


@dataclass(frozen=True, kw_only=True)
class Check:
    """Say what a folder of PaSa's files holds, what it lacks, and what is damaged.

    Attributes:
        folder: PaSa's folder data, or the one around it.
        all: Read every paper of the zip, not only some.
        sample: Papers of the zip to read otherwise.
    """

    folder: Folder
    all: bool = False
    sample: int = 1_000


@dataclass(frozen=True, kw_only=True)
class Passages:
    """Write titles and abstracts as a passage file for `turngym index build`.

    Attributes:
        folder: Folder with id2paper.json and the zip, or PaSa's folder data.
        out: The file.
    """

    folder: Folder
    out: str


@dataclass(frozen=True, kw_only=True)
class Stats:
    """Measure generated worlds and compare them with their bands.

    Attributes:
        size: full or micro; only full worlds have bands.
        preset: default, easy, hard or deep.
        world_seed: Seeds of the worlds, one or several; values are means over them.
        n: Requests per world that are crawled for by each rule.
        out: File for the values as JSON.
    """

    size: str = "full"
    preset: str = "default"
    world_seed: tuple[int, ...] = (0, 1, 2)
    n: int = 240
    out: str | None = None


@dataclass(frozen=True, kw_only=True)
class Imitation:
    """Write sessions of the scripted expert as PaSa's dialogue rows, to imitate.

    Attributes:
        out: The file (.jsonl).
        n: Rows.
        size: Size of the generated world.
        env_arg: Any other setting of PaperCrawler as name=value, repeatable; short form:
            --env.NAME VALUE.
        per_layer: Papers per layer and request whose sessions are written.
        noise: Probability of opening a section that cites no answer (PaSa: 0.1).
        split: Split of the requests.
        seed: Seed of requests and noise.
    """

    out: str
    n: int = 1_000
    size: str | None = None
    env_arg: Repeated = ()
    per_layer: int = 2
    noise: float = 0.1
    split: str = "train"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class CrawlOptions:
    """Which crawls are drawn.

    Attributes:
        size: Size of the generated world.
        env_arg: Any other setting of PaperCrawler as name=value, repeatable; short form:
            --env.NAME VALUE.
        split: Split of the requests.
        seed: Seed of episodes and sampling.
        temperature: Temperature of a model's sampling; 0 is greedy.
        sampler: What samples a model's actions.
    """

    size: str | None = None
    env_arg: Repeated = ()
    split: str = "dev"
    seed: int = 0
    temperature: float = 0.0
    sampler: Sampler = field(default_factory=EngineSettings)


Crawls = Annotated[CrawlOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Draw one crawl as a tree: found papers, relevant ones, and what they cost.

    Attributes:
        agent: expert, search-only, expand-all, expand-at-random, heuristic, a run directory or a
            model folder.
        task: Index of the request.
        crawls: Settings of the crawl.
        out: The picture (.png, .svg or .pdf).
    """

    agent: str = "expert"
    task: int = 0
    crawls: Crawls = field(default_factory=CrawlOptions)
    out: str = "crawl.png"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Draw the recall of several agents against the number of their actions.

    Attributes:
        agent: One or more, as for draw.
        n: Requests that are crawled for.
        crawls: Settings of the crawls.
        out: The picture (.png, .svg or .pdf).
    """

    agent: tuple[str, ...] = ("expert", "heuristic", "expand-all", "search-only")
    n: int = 50
    crawls: Crawls = field(default_factory=CrawlOptions)
    out: str = "recall.png"


Command = (
    Annotated[Check, tyro.conf.subcommand("check")]
    | Annotated[Passages, tyro.conf.subcommand("passages")]
    | Annotated[Stats, tyro.conf.subcommand("stats")]
    | Annotated[Imitation, tyro.conf.subcommand("imitation")]
    | Annotated[Draw, tyro.conf.subcommand("draw")]
    | Annotated[Curve, tyro.conf.subcommand("curve")]
)


def run(command: Command) -> None:
    """Run the subcommand that the options belong to."""
    runners: dict[type, Callable[[Any], None]] = {
        Check: check,
        Passages: write_passage_file,
        Stats: measure_worlds,
        Imitation: write_imitation,
        Draw: draw,
        Curve: draw_curve,
    }
    runners[type(command)](command)


def check(action: Check) -> None:
    """Print what a folder holds; what is damaged is raised as an error.

    Raises:
        BadValueError: A size of a sample where all is read.
        DataError: No such folder, or something in it is damaged.
    """
    if action.all:
        refuse_without(action, "--all left out", ("sample",))
    with ExitStack() as stack:
        stages = Stages(reporter(), stack)
        report = check_papers(
            action.folder, every=action.all, sample=action.sample, progress=stages
        )
    PlainConsole().print(_report_parts(report))
    if report.damaged:
        raise DataError("\n".join(report.damaged))


def write_passage_file(action: Passages) -> None:
    """Write a passage file and say how to index it.

    Raises:
        DataError: Files are missing, or the passage file is there.
    """
    files = find_database_files(action.folder)
    with ExitStack() as stack:
        stages = Stages(reporter(), stack)
        written, damaged = write_passages(
            PaperDatabase(files.titles, files.papers), action.out, stages
        )
    lost = f", {damaged:,} of them without the abstract of a damaged member" if damaged else ""
    say(
        f"{written:,} papers in {action.out}{lost}. Next: turngym index build --corpus "
        f"{action.out} --out FOLDER"
    )


def _report_parts(report: PapersReport) -> Group:
    parts: list[Table | str] = [_files(report)]
    if report.queries or report.examples:
        parts += ["", _rows((*report.queries, *report.examples))]
    if report.papers is not None:
        parts += ["", _papers(report.papers)]
    return Group(*parts)


def _files(report: PapersReport) -> Table:
    table = Table(title=escape(str(report.folder)), title_justify="left", box=None)
    table.add_column("file", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("gives", overflow="fold")
    for found in report.files:
        need = "missing" if found.part.needed else "missing, not needed"
        state = f"[yellow]{need}[/]" if found.size is None else f"{found.size / 2**20:,.1f} MiB"
        table.add_row(escape(found.name), state, found.part.gives)
    return table


def _rows(found: tuple[FoundRows, ...]) -> Table:
    table = Table(box=None)
    table.add_column("rows of", overflow="fold", min_width=20)
    for name in ("good", "unanswered", "bad", "answers", "repeated", "titled", "in zip"):
        table.add_column(name, justify="right")
    for rows in found:
        table.add_row(
            escape(rows.name.removesuffix(".jsonl")),
            *(f"{n:,}" for n in (rows.rows, rows.unanswered, rows.damaged.count)),
            *(f"{n:,}" for n in (rows.answers, rows.repeated)),
            *(_share(n, rows.answers) for n in (rows.with_title, rows.with_member)),
        )
    return table


def _papers(found: FoundPapers) -> Table:
    table = Table(box=None, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in {
        "papers in id2paper.json": f"{found.papers:,}",
        "with a member in the zip": _share(found.with_member, found.papers),
        "id without a date": f"{found.undated:,}",
        "title shared with an earlier one": f"{found.shared_titles:,}",
        "members of the zip": f"{found.members:,}",
        "hidden by a later member": f"{found.repeated:,}",
        "members read": f"{found.checked:,}",
        "damaged among them": f"{found.damaged.count:,}",
        "sections per member": f"{found.sections / max(found.checked, 1):.1f}",
        "citations per member": f"{found.cited / max(found.checked, 1):.1f}",
        "citations that resolve": _share(found.resolved, found.cited),
    }.items():
        table.add_row(name, value)
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def measure_worlds(action: Stats) -> None:
    """Measure the worlds, print the table, and say what lies outside its band.

    Raises:
        BadValueError: No seed, or fewer than one request.
        UnknownNameError: No such size or preset.
    """
    if not action.world_seed or action.n < 1:
        raise BadValueError(
            f"papers stats: seeds {action.world_seed} and n {action.n}; expected one seed and one "
            "request at least."
        )
    parameters = world_parameters(action.size, action.preset)
    out = None if action.out is None else output_file(action.out)
    measured = []
    with reporter().bar("measuring worlds") as bar:
        for number, seed in enumerate(action.world_seed):
            bar.update(number / len(action.world_seed), f"seed {seed}")
            measured.append(compute_world_statistics(load_world(parameters, seed), action.n))
    values = average_statistics(measured)
    rows = compare(values, action.size, action.preset)
    console = table_console()
    console.print(_table(rows))
    for ordering in check_orderings(values) if action.preset == "default" else ():
        mark = "[green]holds[/]" if ordering.holds else "[red]does not hold[/]"
        say(f"{ordering.text}: {mark}", markup=True)
    judged = [row for row in rows if row.inside is not None]
    if judged:
        inside = sum(bool(row.inside) for row in judged)
        console.print(f"{inside} of {len(judged)} values lie inside their bands.")
    if out is not None:
        write_whole(out, json.dumps(values, indent=2) + "\n")


def _table(rows: list[Measured]) -> Table:
    table = plain_table("value", right=("measured", "band from", "to"), padding=(0, 1))
    table.add_column("")
    for row in rows:
        band = (
            ("", "")
            if row.low is None or row.high is None
            else (_number(row.low), _number(row.high))
        )
        mark = {True: "[green]inside[/]", False: "[red]outside[/]", None: ""}[row.inside]
        table.add_row(row.name, _number(row.value), *band, mark)
    return table


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def write_imitation(action: Imitation) -> None:
    """Write the rows, a session each; the file appears whole or not at all.

    One search session per request, then papers drawn from each layer: sections that bring a
    relevant paper, and others with probability ``noise`` (PaSa, arXiv 2501.10120, section 4.1).

    Raises:
        BadValueError: Fewer than one row.
        DataError: The file is there already.
    """
    out = Path(action.out).expanduser()
    if action.n < 1:
        raise BadValueError(f"papers imitation: n is {action.n}; expected 1 or more.")
    if out.exists():
        raise DataError(f"--out {action.out}: is there already; name another file.")
    settings = {
        "granularity": "session",
        "schedule": "sampled",
        **({} if action.size is None else {"size": action.size}),
        **values(action.env_arg, "--env-arg"),
    }
    if settings["schedule"] == "sampled":
        settings.setdefault("per_layer", action.per_layer)
    else:
        refuse_without(action, "--env.schedule sampled", ("per_layer",))
    env = crawler_in(gym.make("PaperCrawler-v0", **settings))
    demonstrator = Demonstrator(env, action.split, action.seed, mistakes=action.noise)
    make_folder(out.parent)
    draft = out.with_name(f".{out.name}.writing")
    written = 0
    try:
        with draft.open("w", encoding="utf-8") as file, reporter().bar("writing rows") as bar:
            while written < action.n:
                for dialogue in demonstrator.dialogues()[: action.n - written]:
                    [(prompt, session)] = dialogue
                    messages = [
                        {"role": "user", "content": f"{env.instructions}{prompt}"},
                        {"role": "assistant", "content": session},
                    ]
                    file.write(json.dumps({"messages": messages}, ensure_ascii=False) + "\n")
                    written += 1
                bar.update(written / action.n, f"{written} of {action.n}")
        os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)
    say(f"{written:,} sessions in {action.out}")


def draw(action: Draw) -> None:
    """Crawl for one request, print its tree and draw it."""
    out = _picture(action.out)
    env = _env(action.crawls)
    crawler = crawler_in(env)
    find_task(crawler.source, action.crawls.split, action.task, crawler.name)
    _check_read(action, [action.agent], env)
    crawl = _crawls(env, action.agent, [action.task], action.crawls)[0]
    PlainConsole().print(crawl_tree(crawl))
    draw_crawl(crawl, out)
    say(f"drawn in {out}")


def draw_curve(action: Curve) -> None:
    """Crawl with every agent for the same requests, and draw their recall."""
    out = _picture(action.out)
    env = _env(action.crawls)
    crawler = crawler_in(env)
    size = get_split_size(crawler.source, action.crawls.split, crawler.name)
    if action.n < 1:
        raise BadValueError(f"papers curve: n is {action.n}; expected 1 or more.")
    tasks = range(action.n if size is None else min(action.n, size))
    _check_read(action, action.agent, env)
    crawls = {agent: _crawls(env, agent, tasks, action.crawls) for agent in action.agent}
    draw_recall(crawls, out)
    for agent, traces in crawls.items():
        recall = sum(t.recall()[-1] for t in traces) / len(traces)
        actions = sum(len(t.actions) for t in traces) / len(traces)
        line = f"{agent}: recall {recall:.3f} after {actions:.1f} actions, {len(traces)} requests"
        say(line)
    say(f"drawn in {out}")


def _check_read(action: Draw | Curve, agents: Sequence[str], env: gym.Env[Any, Any]) -> None:
    """Refuse options that none of the agents reads.

    Raises:
        BadValueError: One was given.
    """
    if set(agents) <= set(scripted_names(crawler_in(env))):
        refuse_without(action, "an --agent that is a model", ("temperature", *OF_ENGINES))


def _env(options: CrawlOptions) -> gym.Env[Any, Any]:
    settings = values(options.env_arg, "--env-arg")
    if options.size is not None:
        settings["size"] = options.size
    return gym.make("PaperCrawler-v0", **settings)


def _crawls(
    env: gym.Env[Any, Any], agent: str, tasks: Sequence[int], options: CrawlOptions
) -> list[Trace]:
    policy = _policies(env, agent, options)
    traces = []
    with reporter().bar(f"{agent}") as bar:
        for number, task in enumerate(tasks):
            where = {"split": options.split, "task": task}
            traces.append(trace(env, policy(task), options.seed + task, where))
            bar.update((number + 1) / len(tasks), f"{number + 1} of {len(tasks)}")
    return traces


def _policies(env: gym.Env[Any, Any], agent: str, options: CrawlOptions) -> Callable[[int], Policy]:
    """Return what makes a request's policy; a model plays first, and its actions are replayed."""
    crawler = crawler_in(env)
    if agent in scripted_names(crawler):
        return lambda task: scripted(agent, options.seed + task, crawler)
    from ...algos.core.protocols import Start
    from ...algos.evaluation.lm_agent import TokenAgent

    prepare(small=False)
    model = TokenAgent(
        model_path(agent, scripted_names(crawler)),
        max_tokens=ACTION_TOKENS,
        temperature=options.temperature,
        engine=options.sampler,
    )

    def replay(task: int) -> Policy:
        start = Start(options.split, task, options.seed + task, f"crawl/{task}")
        return ReplayPolicy([turn.action for turn in model.play(env, start).turns])

    return replay


def _picture(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix not in PICTURES:
        raise BadValueError(f"--out {name}: expected a name that ends in {' or '.join(PICTURES)}.")
    return path
