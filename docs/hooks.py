"""Give mkdocs the generated pages, the navigation, and the links of the site (see mkdocs.yml)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from turngym.benchmarks.docs.api_pages import write_sources
from turngym.benchmarks.docs.site import Site

ROOT = Path(__file__).resolve().parents[1]
SITE = Site(ROOT)
SOURCES = ROOT / "build" / "docs-api"
ELSEWHERE, HERE = "https://unpkg.com/iframe-worker/shim", "assets/file-worker.js"
"""The theme's address of what lets pages in a folder search, and the file that we have for it."""


def on_startup(command: str, dirty: bool) -> None:  # noqa: ARG001
    """Write what mkdocstrings reads, before it looks for the folder and forgets one not there."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    write_sources(ROOT, SOURCES)


def on_config(config: Any) -> Any:
    """Complete the navigation."""
    config.nav = SITE.navigation(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for path, text in SITE.generated.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:  # noqa: ARG001
    """Rewrite links out of ``docs/`` on pages that are written by hand."""
    path = page.file.src_uri
    if path not in SITE.written:
        return markdown
    return SITE.relinked(markdown, f"docs/{path}", path)


def on_post_page(output: str, page: Any, config: Any) -> str:  # noqa: ARG001
    """Load nothing from elsewhere."""
    return output.replace(ELSEWHERE, "../" * page.file.src_uri.count("/") + HERE)


def on_post_template(output: str, template_name: str, config: Any) -> str:  # noqa: ARG001
    """Do the same for what is no page (404.html)."""
    return output.replace(ELSEWHERE, HERE)
