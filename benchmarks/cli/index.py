"""`turngym index build | info | search`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...algos.runs.progress import Bar, Reporter, reporter
from ...envs.core.errors import BadValueError, DataError
from ...envs.tools.retrieval.index.build import build_index
from ...envs.tools.retrieval.index.factory import open_indexes
from ...envs.tools.retrieval.index.manifest import Manifest, read_manifest
from ...envs.tools.retrieval.index.passages import Passages
from .arguments import values
from .index_options import IndexBuild, IndexCommand, IndexInfo, IndexSearch

_SHOWN = 600


def run(command: IndexCommand) -> None:
    """Do what was asked for."""
    action = command.action
    if isinstance(action, IndexBuild):
        build(action)
    elif isinstance(action, IndexInfo):
        info(action)
    else:
        search(action)


def build(action: IndexBuild) -> None:
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
    Console().print(_facts(Path(action.out), made))


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


def info(action: IndexInfo) -> None:
    """Print the facts of indexes; a corpus that is missing or changed is told as an error.

    Raises:
        BadValueError: No folder was named.
        DataError: Not an index, or its corpus has changed.
    """
    if not action.folders:
        raise BadValueError("turngym index info: no folder was named; expected at least one.")
    wrong: list[str] = []
    for folder in map(Path, action.folders):
        made = read_manifest(folder)
        Console().print(_facts(folder, made))
        try:
            Passages(folder, made)
        except DataError as error:
            wrong.append(str(error))
    if wrong:
        raise DataError("\n".join(wrong))


def search(action: IndexSearch) -> None:
    """Print the best passages for one query."""
    (hits,) = open_indexes(action.folders).search([action.query], action.k)
    console = Console()
    if not hits:
        console.print("nothing found.")
    for rank, hit in enumerate(hits, start=1):
        console.print(f"[bold]{rank}. {escape(hit.title)}[/]  id {escape(hit.id)}  {hit.score:.4g}")
        text = hit.text if len(hit.text) <= _SHOWN else f"{hit.text[:_SHOWN]} …"
        console.print(escape(text), highlight=False)


def _facts(folder: Path, made: Manifest) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column()
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
