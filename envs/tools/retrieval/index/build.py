"""Build an index: resumable blocks of passages, then one merge."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from ....core.errors import BadValueError, DataError, UnknownNameError
from ....core.settings import check_integer
from ....utils.disk_cache import make_folder
from ....utils.disk_errors import disk_errors
from ....utils.file_rows import get_contents, parse_row, row_id, strip_byte_order_mark
from ....utils.system import try_lock
from .files import SCRATCH, save_array, save_arrays, save_json
from .kinds import INDEX_KINDS, load_entry
from .manifest import FILE, FORMAT, Manifest, corpus_digest, read_manifest
from .passages import ID_HASHES, ID_ORDER, OFFSETS, id_hash
from .progress import Progress, ignore_progress

BLOCK = 50_000
LOCK = "build.lock"
BEGUN = "build.json"
"""What is being built; there until the index is finished."""


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """One build.

    Attributes:
        corpus: The passage file.
        out: Folder of the index.
        kind: One of :data:`~turngym.envs.tools.retrieval.index.kinds.INDEX_KINDS`.
        settings: What the kind is built with.
        progress: Called with how far it is.
    """

    corpus: Path
    out: Path
    kind: str
    settings: Mapping[str, Any]
    progress: Progress

    def list_parts(self) -> list[Path]:
        """Return the files of the finished blocks, in order."""
        return sorted((self.out / "parts").glob("*.npz"), key=lambda path: int(path.stem))


def build_index(  # noqa: PLR0913 - what the command line takes
    corpus: str | Path,
    out: str | Path,
    *,
    kind: str = "bm25",
    settings: Mapping[str, Any] | None = None,
    block: int = BLOCK,
    overwrite: bool = False,
    progress: Progress = ignore_progress,
) -> Manifest:
    """Build an index of a passage file, resuming an interrupted build of the same.

    The texts are not copied: the index reads them from ``corpus``, which must stay as it is.

    Args:
        corpus: JSON lines with ``id`` and ``contents`` (first line: title), or ``title`` and
            ``text``. Not compressed, since passages are read from the middle of it.
        out: A new folder, or one with an unfinished build of the same.
        kind: ``bm25``, ``flat``, ``hnsw`` or ``ivfpq``.
        settings: Of dense kinds, see :mod:`turngym.agents.retrieval.dense_build`.
        block: Passages that are worked on together; memory grows with it.
        overwrite: Throw away what is in ``out``.
        progress: Called with how far it is.

    Returns:
        The facts of the finished index.

    Raises:
        UnknownNameError: Another kind.
        BadValueError: A setting that the kind does not have, or out of range; or `out` cannot be a
            folder.
        DataError: A bad line, an id used twice (file and line), a full disk, or a folder that
            holds something else or in which another process builds.
        MissingExtraError: A dense kind without its packages.
    """
    corpus, out = Path(corpus).resolve(), Path(out)
    if kind not in INDEX_KINDS:
        raise UnknownNameError("kind", kind, INDEX_KINDS, "build_index")
    check_integer("block", block, "build_index", min=1)
    entries = INDEX_KINDS[kind]
    build = load_entry(entries.build)
    checked = load_entry(entries.check)(kind, dict(settings or {}))
    plan = BuildPlan(corpus, out, kind, checked, progress)
    key = _make_key(plan, block)
    if not overwrite and (done := _find_finished(plan)) is not None:
        if (out / BEGUN).exists():  # its build was killed when all was there
            with suppress(DataError, OSError), _alone(out):
                _delete_leftovers(out)
        return done
    with disk_errors(out), _alone(out):
        if overwrite and (out / FILE).exists() | (out / BEGUN).exists():
            _clear(out)
        _delete_leftovers(out)
        if (done := _find_finished(plan)) is not None:  # another process was faster
            return done
        _open(out, key)
        parts = _scan(plan, block)
        count = _collect(plan, parts)
        build(plan, count)
        made = Manifest(
            format=FORMAT,
            kind=kind,
            passages=count,
            corpus=str(corpus),
            corpus_bytes=key["corpus_bytes"],
            corpus_digest=key["corpus_digest"],
            settings=checked,
        )
        made.save(out)
        _delete_leftovers(out)
    return made


def _make_key(plan: BuildPlan, block: int) -> dict[str, Any]:
    digest = corpus_digest(plan.corpus)
    if plan.corpus.suffix in (".gz", ".bz2", ".xz", ".zst"):
        raise DataError(
            f"{plan.corpus}: is compressed; unpack it first, passages are read from its middle."
        )
    return {
        "format": FORMAT,
        "kind": plan.kind,
        "corpus": str(plan.corpus),
        "corpus_bytes": plan.corpus.stat().st_size,
        "corpus_digest": digest,
        "settings": plan.settings,
        "block": block,
    }


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other builds out of a folder, where the system has locks.

    Raises:
        DataError: Another process builds there.
    """
    make_folder(out)
    path = out / LOCK
    while True:
        with path.open("ab") as file:
            try:
                free = try_lock(file, "building an index")
            except BadValueError:
                free = True
            if not free:
                raise DataError(
                    f"{out}: another process builds an index here; wait until it ends, or choose "
                    "another folder."
                )
            if not _is_at(file, path):  # its owner has ended and deleted it
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Tell whether an open file is the one that others find at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _clear(out: Path) -> None:
    """Empty the folder; killed on the way, it is one with an unfinished build of something else."""
    if (out / FILE).exists():
        (out / FILE).replace(out / BEGUN)
    for path in out.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in (LOCK, BEGUN):
            path.unlink()
    (out / BEGUN).unlink()


def _delete_leftovers(out: Path) -> None:
    """Delete what killed builds left: files half written, and the blocks of a finished index."""
    if (out / FILE).exists():
        shutil.rmtree(out / "parts", ignore_errors=True)
        (out / BEGUN).unlink(missing_ok=True)
    elif not (out / BEGUN).exists():
        return  # something else
    for path in [*out.glob(".*"), *out.glob("parts/.*")]:
        if SCRATCH.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _find_finished(plan: BuildPlan) -> Manifest | None:
    """Return the existing index if it is this one."""
    if not (plan.out / FILE).exists():
        return None
    made = read_manifest(plan.out)
    same = (
        made.kind == plan.kind
        and made.corpus_digest == corpus_digest(plan.corpus)
        and made.settings == dict(plan.settings)
    )
    if not same:
        raise DataError(
            f"{plan.out}: holds a finished {made.kind} index of {made.corpus}, which is another "
            "one; choose another folder, or say --overwrite."
        )
    return made


def _open(out: Path, key: Mapping[str, Any]) -> None:
    """Begin, or see that what was begun is the same."""
    path = out / BEGUN
    if path.exists():
        try:
            begun = json.loads(path.read_bytes())
        except ValueError:
            begun = {}
        if begun != json.loads(json.dumps(key)):
            differs = sorted(k for k in key if begun.get(k) != key[k])
            raise DataError(
                f"{out}: holds an unfinished build of something else (differs in "
                f"{', '.join(differs)}); choose another folder, or say --overwrite."
            )
        return
    others = (p.name for p in out.iterdir() if p.name != LOCK)
    if any(not name.startswith(".build.json-") for name in others):  # cut off in the line below
        raise DataError(f"{out}: is not empty and holds no index; choose another folder.")
    save_json(path, key)


def _scan(plan: BuildPlan, block: int) -> list[Path]:
    """Write each block of the corpus to a file, in one pass; skip finished blocks."""
    entry = INDEX_KINDS[plan.kind].blocks
    postings = load_entry(entry)() if entry else None
    parts: list[Path] = []
    place, line = 0, 0
    size = plan.corpus.stat().st_size
    folder = plan.out / "parts"
    folder.mkdir(exist_ok=True)
    for path in plan.list_parts():
        try:
            with np.load(path) as part:
                place, line = int(part["end"]), int(part["line"])
                if postings is not None:
                    postings.restore({k: part[k] for k in ("words.bytes", "words.ends")})
        except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
            raise DataError(
                f"{path}: cannot be read ({error}); build the index again with --overwrite."
            ) from None
        parts.append(path)
    for rows in _read_blocks(plan.corpus, place, line, block):
        path = folder / f"{len(parts):05d}.npz"
        arrays = {
            "starts": np.array(rows.starts, dtype=np.int64),
            "hashes": np.array(rows.hashes, dtype=np.uint64),
            "end": np.array(rows.end),
            "line": np.array(rows.line),
        }
        if postings is not None:
            arrays |= postings.block(rows.passages)
        save_arrays(path, **arrays)
        parts.append(path)
        plan.progress("reading", rows.end, size)
    return parts


@dataclass(slots=True)
class _Rows:
    starts: list[int]
    hashes: list[int]
    passages: list[tuple[str, str]]
    end: int
    line: int


def _read_blocks(corpus: Path, place: int, line: int, block: int) -> Iterator[_Rows]:
    """Yield blocks of checked rows from byte ``place``, just after line ``line``."""
    rows = _Rows([], [], [], place, line)
    with corpus.open("rb") as file:
        file.seek(place)
        for raw in file:
            rows.line += 1
            start, rows.end = rows.end, rows.end + len(raw)
            if rows.line == 1:
                raw = strip_byte_order_mark(raw)
                start = rows.end - len(raw)
            if raw.isspace() or not raw:
                continue
            where = f"{corpus}:{rows.line}"
            row = parse_row(raw, where)
            rows.starts.append(start)
            rows.hashes.append(id_hash(row_id(row, where)))
            rows.passages.append(get_contents(row, where))
            if len(rows.starts) == block:
                yield rows
                rows = _Rows([], [], [], rows.end, rows.line)
    if rows.starts:
        yield rows


def _collect(plan: BuildPlan, parts: list[Path]) -> int:
    """Write where the passages lie and what they are called; how many there are."""
    if not parts:
        raise DataError(
            f"{plan.corpus}: holds no passage; expected JSON lines with id and contents, or id, "
            "title and text."
        )
    starts, hashes = [], []
    for path in parts:
        with np.load(path) as part:
            starts.append(part["starts"])
            hashes.append(part["hashes"])
    offsets = np.concatenate([*starts, [plan.corpus.stat().st_size]])
    names = np.concatenate(hashes)
    order = np.argsort(names, kind="stable")
    ordered = names[order]
    _check_twins(plan.corpus, offsets, order, ordered)
    save_array(plan.out / OFFSETS, offsets)
    save_array(plan.out / ID_HASHES, ordered)
    save_array(plan.out / ID_ORDER, order.astype(np.uint32))
    return len(names)


def _check_twins(corpus: Path, offsets: np.ndarray, order: np.ndarray, ordered: np.ndarray) -> None:
    """Refuse ids that are used twice; equal hashes of different ids are fine."""
    for at in np.flatnonzero(ordered[1:] == ordered[:-1]):
        seen: dict[str, int] = {}
        end = int(np.searchsorted(ordered, ordered[at], side="right"))
        for number in order[at:end]:
            start, stop = int(offsets[number]), int(offsets[number + 1])
            with corpus.open("rb") as file:
                file.seek(start)
                named = row_id(parse_row(file.read(stop - start), str(corpus)), str(corpus))
            if named in seen:
                lines = (_count_lines(corpus, offset) for offset in (start, seen[named]))
                here, there = lines
                raise DataError(f"{corpus}:{here}: id {named!r} was used before, in line {there}.")
            seen[named] = start


def _count_lines(corpus: Path, offset: int) -> int:
    """Return the number, from 1, of the line that begins at ``offset``."""
    lines, left = 1, offset
    with corpus.open("rb") as file:
        while left > 0 and (piece := file.read(min(left, 1 << 22))):
            lines += piece.count(b"\n")
            left -= len(piece)
    return lines
