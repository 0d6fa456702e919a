"""Options of `turngym papers`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from ...agents.engines.factory import EngineSettings
from .model_options import Sampler

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
Folder = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True, kw_only=True)
class PapersCheck:
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
class PapersPassages:
    """Write titles and abstracts as a passage file for `turngym index build`.

    Attributes:
        folder: Folder with id2paper.json and the zip, or PaSa's folder data.
        out: The file.
    """

    folder: Folder
    out: str


@dataclass(frozen=True, kw_only=True)
class PapersStats:
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
class PapersImitation:
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
        seed: Of requests and noise.
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
        temperature: Of a model's sampling; 0 is greedy.
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
class PapersDraw:
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
class PapersCurve:
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


@dataclass(frozen=True, kw_only=True)
class PapersCommand:
    """Papers for PaperCrawler: PaSa's files, generated worlds, and pictures of crawls."""

    action: Annotated[
        Annotated[PapersCheck, tyro.conf.subcommand("check")]
        | Annotated[PapersPassages, tyro.conf.subcommand("passages")]
        | Annotated[PapersStats, tyro.conf.subcommand("stats")]
        | Annotated[PapersImitation, tyro.conf.subcommand("imitation")]
        | Annotated[PapersDraw, tyro.conf.subcommand("draw")]
        | Annotated[PapersCurve, tyro.conf.subcommand("curve")],
        tyro.conf.arg(name=""),
    ] = field()
