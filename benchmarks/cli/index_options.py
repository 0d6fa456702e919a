"""Options of `turngym index`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
Folders = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]


@dataclass(frozen=True, kw_only=True)
class IndexBuild:
    """Index a passage file; the same command again goes on with an interrupted build.

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
        block: Passages that are worked on together.
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
class IndexInfo:
    """Say what an index is, and whether its corpus is still the one it was built for.

    Attributes:
        folders: The indexes.
    """

    folders: Folders


@dataclass(frozen=True, kw_only=True)
class IndexSearch:
    """Search an index, or several at once as a hybrid (reciprocal rank fusion).

    Attributes:
        folders: The indexes.
        query: What to look for.
        k: Passages to show.
    """

    folders: Folders
    query: str
    k: int = 3


@dataclass(frozen=True, kw_only=True)
class IndexCommand:
    """Build, describe and search indexes over passage files."""

    action: Annotated[
        Annotated[IndexBuild, tyro.conf.subcommand("build")]
        | Annotated[IndexInfo, tyro.conf.subcommand("info")]
        | Annotated[IndexSearch, tyro.conf.subcommand("search")],
        tyro.conf.arg(name=""),
    ] = field()
