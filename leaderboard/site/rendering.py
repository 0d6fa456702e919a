"""Render templates to pages, with autoescaping, and write the site's files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...envs.core.errors import BadValueError, MissingExtraError
from ...envs.utils.disk_errors import whole_file
from ...envs.utils.system import try_lock
from ...envs.utils.untrusted_text import plain
from . import formatting

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""Content security policy: only files of the same site, nothing inline."""
LOCK = ".lock"
"""File of the site's folder that is held while a process writes there."""
_WAIT_S = 0.2
_FILTERS = (
    "percent", "interval", "amount", "memory", "lasting", "few", "signed", "heat", "place",
    "probability", "counted", "shorten",
)  # fmt: skip


class Renderer:
    """Renders the templates.

    Args:
        uploads: Whether the site is served with pages for uploads.

    Raises:
        MissingExtraError: Jinja is missing.
    """

    def __init__(self, uploads: bool = False) -> None:
        try:
            import jinja2
        except ImportError as error:
            raise MissingExtraError("the leaderboard's site", "jinja2", "web", error) from error
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for name in _FILTERS:
            self._templates.filters[name] = getattr(formatting, name)
        self._templates.filters["plain"] = plain
        self._templates.globals |= {"policy": POLICY, "uploads": uploads}

    def text(self, template: str, *, depth: int, here: str, **values: Any) -> str:
        """Render a page.

        Args:
            template: File name of the template.
            depth: Number of folders above the page inside the site.
            here: Menu entry that the page belongs to.
            values: Variables of the template.
        """
        found = self._templates.get_template(template)
        return found.render(root="../" * depth, here=here, **values)


class Folder:
    """The site's folder; files are replaced atomically.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.written: set[Path] = set()

    @contextmanager
    def alone(self, on_wait: Callable[[], object]) -> Iterator[None]:
        """Wait until no other process writes the site, and keep others from it meanwhile.

        Files that are half written have the same names in all processes, and a sweep takes what
        another one has just written. On a file system without locks nobody waits.

        Args:
            on_wait: Called once, before the wait for another process.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / LOCK).open("ab") as file:
            waits = False
            with suppress(BadValueError):
                while not try_lock(file, "writing a site"):
                    if not waits:
                        on_wait()
                    waits = True
                    time.sleep(_WAIT_S)
            yield

    def write(self, path: str, text: str) -> None:
        """Write a page."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file:
            file.write(text)
        self.written.add(target)

    def assets(self) -> None:
        """Copy style sheet and scripts."""
        for source in sorted((HERE / "assets").iterdir()):
            self.write(f"assets/{source.name}", source.read_text(encoding="utf-8"))

    def keep(self, folder: str) -> None:
        """Mark the files that an earlier build wrote into a folder as current."""
        self.written.update(path for path in (self.root / folder).rglob("*") if path.is_file())

    def sweep(self, *parts: str) -> None:
        """Remove files that are not part of this build from these folders."""
        for part in parts:
            for path in sorted((self.root / part).rglob("*"), reverse=True):
                if path.is_file() and path not in self.written:
                    path.unlink()
                elif path.is_dir() and not any(path.iterdir()):
                    shutil.rmtree(path)
