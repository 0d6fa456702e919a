"""Templates to pages: everything that is not markup of ours is escaped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from ...envs.core.errors import MissingExtraError
from . import formatting

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""What a page may load: files of the same site, nothing inline, nothing from elsewhere."""
_FILTERS = (
    "plain", "percent", "interval", "amount", "memory", "lasting", "few", "signed", "heat", "place",
    "probability",
)  # fmt: skip


class Renderer:
    """Fills templates.

    Args:
        uploads: Whether a server with pages for uploads serves the site.

    Raises:
        MissingExtraError: Jinja is missing.
    """

    def __init__(self, uploads: bool = False) -> None:
        try:
            import jinja2
        except ImportError as error:
            raise MissingExtraError("the leaderboard's site", "jinja2", "web") from error
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for name in _FILTERS:
            self._templates.filters[name] = getattr(formatting, name)
        self._templates.globals |= {"policy": POLICY, "uploads": uploads}

    def text(self, template: str, *, depth: int, here: str, **values: Any) -> str:
        """A page.

        Args:
            template: Its file.
            depth: Folders above the page inside the site.
            here: Which entry of the menu it belongs to.
            values: What the template shows.
        """
        found = self._templates.get_template(template)
        return found.render(root="../" * depth, here=here, **values)


class Folder:
    """The site's folder; each file is replaced as a whole, so that readers never see half of one.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.written: set[Path] = set()

    def write(self, path: str, text: str) -> None:
        """Write a page."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, target)
        self.written.add(target)

    def assets(self) -> None:
        """Copy style and script."""
        for source in sorted((HERE / "assets").iterdir()):
            self.write(f"assets/{source.name}", source.read_text(encoding="utf-8"))

    def keep(self, folder: str) -> None:
        """Leave what an earlier build put into a folder."""
        self.written.update(path for path in (self.root / folder).rglob("*") if path.is_file())

    def sweep(self, *parts: str) -> None:
        """Remove what no page of this build is, below these folders."""
        for part in parts:
            for path in sorted((self.root / part).rglob("*"), reverse=True):
                if path.is_file() and path not in self.written:
                    path.unlink()
                elif path.is_dir() and not any(path.iterdir()):
                    shutil.rmtree(path)
