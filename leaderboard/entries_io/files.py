"""Read and write the folder of an entry."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from ...envs.core.errors import BadValueError, DataError
from ..schema.base import F, parse_form
from ..schema.entry import EPISODES, MANIFEST, SIGNATURE, Episode, Manifest
from ..schema.limits import ReadLimits
from ..schema.result import refused
from ..schema.untrusted_json import parse_untrusted_json
from .file_policy import check_file, check_path
from .signing import Signature, canonical_bytes


class EntryFiles:
    """An entry's folder, checked as untrusted.

    Args:
        root: The folder.
        limits: Limits on what is read.

    Raises:
        Refused: A link, a file that is too large or of a wrong type, or no ``entry.json``.
    """

    def __init__(self, root: Path, limits: ReadLimits | None = None) -> None:
        self.root = root
        self.limits = limits or ReadLimits()
        self.files = _listed(root, self.limits)
        for needed in (MANIFEST, EPISODES):
            if not any(path.parts[0] == needed for path in self.files):
                raise refused("format", f"the entry has no {needed}.")
        self._canonical: bytes | None = None

    @property
    def canonical(self) -> bytes:
        """Return the bytes that a signature covers."""
        if self._canonical is None:
            self._canonical = canonical_bytes(self.root, self.files)
        return self._canonical

    def manifest(self) -> Manifest:
        """Read the description.

        Raises:
            Refused: It does not match the schema.
        """
        return _form(Manifest, self._bytes(MANIFEST), MANIFEST, self.limits)

    def signature(self) -> Signature | None:
        """Read the signature; None when there is none.

        Raises:
            Refused: It does not match the schema.
        """
        if PurePosixPath(SIGNATURE) not in self.files:
            return None
        return _form(Signature, self._bytes(SIGNATURE), SIGNATURE, self.limits)

    def episodes(self) -> Iterator[Episode]:
        """Yield every episode, file by file in the order of names.

        Raises:
            Refused: A line does not match the schema; names file and line.
        """
        for path in self.files:
            if path.parts[0] != EPISODES:
                continue
            if path.suffix != ".jsonl" or len(path.parts) != 2:
                raise refused("format", f"{path}: expected {EPISODES}/NAME.jsonl.")
            with (self.root / path).open("rb") as file:
                for number in itertools.count(1):
                    line = file.readline(self.limits.line_bytes + 2)
                    if not line:
                        break
                    where = f"{path}, line {number}"
                    yield _form(Episode, line.rstrip(b"\r\n"), where, self.limits)

    def _bytes(self, name: str) -> bytes:
        with (self.root / name).open("rb") as file:
            return file.read(self.limits.line_bytes + 1)


def _listed(root: Path, limits: ReadLimits) -> list[PurePosixPath]:
    if root.is_symlink() or not root.is_dir():
        raise refused("format", f"{root.name}: is not a folder.")
    found: list[PurePosixPath] = []
    seen = total = 0
    for folder, folders, files in os.walk(root):
        folders.sort()
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        for name in folders:
            if (Path(folder) / name).is_symlink():
                raise refused("archive", f"{here / name}: is a link; only plain files are taken.")
        for name in sorted(files):
            path = check_path(str(here / name), limits)
            total += check_file(root, path, limits)
            found.append(path)
        seen += len(folders) + len(files)
        if seen > limits.members or total > limits.total_bytes:
            raise refused(
                "archive",
                f"more than {limits.members} members or {limits.total_bytes} bytes.",
            )
    return sorted(found, key=str)


def _form(kind: type[F], data: bytes, where: str, limits: ReadLimits) -> F:
    parse_untrusted_json(data, where, limits)
    try:
        return parse_form(kind, data, where)
    except DataError as error:
        raise refused("format", str(error)) from error


def write_entry(
    root: Path,
    manifest: Manifest,
    episodes: Iterable[Episode],
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write an entry, with one file of episodes per environment.

    Args:
        root: An empty or new folder.
        manifest: The description.
        episodes: Episodes; each file keeps their order.
        notes: Texts by file name, such as ``README.md``.

    Raises:
        BadValueError: The folder is not empty.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise BadValueError(f"{root}: is not empty; name a new folder for the entry.")
    (root / EPISODES).mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {}
    for episode in episodes:
        lines.setdefault(episode.env, []).append(episode.model_dump_json(exclude_defaults=True))
    for env, texts in lines.items():
        path = root / EPISODES / f"{env}.jsonl"
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    for name, text in (notes or {}).items():
        (root / name).write_text(text, encoding="utf-8")
    path = root / MANIFEST
    path.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")


def write_signature(root: Path, signature: Signature) -> None:
    """Write a signature into an entry's folder."""
    path = root / SIGNATURE
    path.write_text(signature.model_dump_json(indent=1) + "\n", encoding="utf-8")
