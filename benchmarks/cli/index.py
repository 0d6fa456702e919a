"""`turngym index`: build, describe and search indexes over passage files."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from ...algos.runs.console import PlainConsole
from ...algos.runs.progress import Bar, Reporter, reporter
from ...envs.core.errors import BadValueError, DataError
from ...envs.tools.retrieval.index.build import build_index
from ...envs.tools.retrieval.index.factory import open_indexes
from ...envs.tools.retrieval.index.manifest import Manifest, read_manifest
from ...envs.tools.retrieval.index.passages import Passages
from .arguments import Repeated, values
from .tables import plain_table

Folders = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]


@dataclass(frozen=True, kw_only=True)
class Build:
    """Index a passage file; the same command again resumes an interrupted build.

    Attributes:
        corpus: Passage file: JSON lines with id and contents (first line: title), or title and
            text. It stays where it is: the index reads the texts from it.
        out: Folder of the index.
        kind: bm25 by words; by meaning, with --encoder: flat (exact, vectors on the disk), hnsw
            (fast, in memory), ivfpq (small).
        encoder: Folder of a sentence-transformers model, for the dense kinds.
        set: A setting of a dense kind as name=value, repeatable: max_length, batch_size,
            query_prefix, passage_prefix; neighbours, ef_construction, ef_search (hnsw); lists,
            bytes_per_vector, probes, training (ivfpq).
        block: Passages that are processed together.
        overwrite: Throw away an index that is there.
    """

    corpus: str
    out: str
    kind: Literal["bm25", "flat", "hnsw", "ivfpq"] = "bm25"
    encoder: str | None = None
    set: Repeated = ()
    block: int = 50_000
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class Info:
    """Say what an index is, and whether its corpus is still the one it was built for.

    Attributes:
        folders: The indexes.
    """

    folders: Folders


@dataclass(frozen=True, kw_only=True)
class Search:
    """Search an index, or several at once as a hybrid (reciprocal rank fusion).

    Attributes:
        folders: The indexes.
        query: What to look for.
        k: Passages to show.
    """

    folders: Folders
    query: str
    k: int = 3


Command = (
    Annotated[Build, tyro.conf.subcommand("build")]
    | Annotated[Info, tyro.conf.subcommand("info")]
    | Annotated[Search, tyro.conf.subcommand("search")]
)


_SHOWN = 600


def run(command: Command) -> None:
    """Build, describe or search an index."""
    if isinstance(command, Build):
        build(command)
    elif isinstance(command, Info):
        show_info(command)
    else:
        search(command)


def build(action: Build) -> None:
    """Build an index and say what it is.

    Raises:
        BadValueError: An encoder for BM25, or none for a dense kind.
    """
    settings = values(action.set, "--set")
    if action.encoder is not None:
        if action.kind == "bm25":
            raise BadValueError("--encoder: bm25 needs none; choose --kind flat, hnsw or ivfpq.")
        settings["encoder"] = action.encoder
    elif action.kind != "bm25":
        raise BadValueError(
            f"--kind {action.kind}: needs --encoder, the folder of a sentence-transformers model."
        )
    with ExitStack() as stack:
        stages = Stages(reporter(), stack)
        made = build_index(
            action.corpus,
            action.out,
            kind=action.kind,
            settings=settings,
            block=action.block,
            overwrite=action.overwrite,
            progress=stages,
        )
    PlainConsole().print(_facts(Path(action.out), made))


class Stages:
    """One progress bar per stage of a build."""

    def __init__(self, report: Reporter, stack: ExitStack) -> None:
        self._report, self._outer = report, stack
        self._stage: str | None = None
        self._inner = stack.enter_context(ExitStack())
        self._bar: Bar | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """See :class:`turngym.envs.tools.retrieval.index.progress.Progress`."""
        if stage != self._stage:
            self._inner.close()
            self._bar = self._inner.enter_context(self._report.bar(stage))
            self._stage = stage
        if self._bar is not None:
            text = f"{done >> 20:,} of {total >> 20:,} MiB" if stage == "reading" else ""
            self._bar.update(done / max(total, 1), text or f"{done:,} of {total:,}")


def show_info(action: Info) -> None:
    """Print the facts of indexes; a corpus that is missing or changed is an error.

    Raises:
        BadValueError: No folder was named.
        DataError: Not an index, or its corpus has changed.
    """
    if not action.folders:
        raise BadValueError("turngym index info: no folder was named; expected at least one.")
    wrong: list[str] = []
    for folder in map(Path, action.folders):
        made = read_manifest(folder)
        PlainConsole().print(_facts(folder, made))
        try:
            Passages(folder, made)
        except DataError as error:
            wrong.append(str(error))
    if wrong:
        raise DataError("\n".join(wrong))


def search(action: Search) -> None:
    """Print the best passages for one query."""
    (hits,) = open_indexes(action.folders).search([action.query], action.k)
    console = PlainConsole()
    if not hits:
        console.print("nothing found.")
    for rank, hit in enumerate(hits, start=1):
        console.print(f"[bold]{rank}. {escape(hit.title)}[/]  id {escape(hit.id)}  {hit.score:.4g}")
        text = hit.text if len(hit.text) <= _SHOWN else f"{hit.text[:_SHOWN]} …"
        console.print(escape(text), highlight=False)


def _facts(folder: Path, made: Manifest) -> Table:
    table = plain_table("", show_header=False)
    table.add_column(overflow="fold")
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    rows = {
        "index": str(folder),
        "kind": made.kind,
        "passages": f"{made.passages:,}",
        "corpus": f"{made.corpus} ({_size(made.corpus_bytes)}, digest {made.corpus_digest})",
        "on disk": _size(size),
        **{name: str(value) for name, value in made.settings.items()},
    }
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:,.3g} GiB"
