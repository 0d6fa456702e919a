"""The documentation site: all its pages, where files of the repository are shown, the navigation.

Pages below ``docs/`` are written by hand; pages on environments, recipes, commands, metrics and
the interface are generated, and files outside ``docs/`` that a page links to are shown too.
"""

from __future__ import annotations

import ast
import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...algos.runs.metrics import METRICS
from ...envs.core.errors import BadValueError
from ..cli.docstrings import table_cell
from ..cli.environment_pages import environment_pages
from .api_pages import API, api_pages
from .command_pages import INDEX, command_pages
from .links import find_links, join_pages, relink
from .packed_results import packed_rows
from .recipe_pages import recipe_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs"
SHOWN = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "results/measured.md",
    "benchmarks/results/README.md": "results/packed.md",
}
"""Pages that show a Markdown file from elsewhere in the repository."""
LANGUAGES = {".py": "python", ".toml": "toml", ".txt": "text", ".json": "json", ".yml": "yaml"}
MAX_SOURCE = 60_000
"""Most characters of a source file that a page shows."""


@dataclass(frozen=True)
class Site:
    """The pages of the site.

    Attributes:
        root: The repository.
    """

    root: Path = ROOT

    @cached_property
    def written(self) -> dict[str, str]:
        """The pages that are written by hand, by path below ``docs/``."""
        docs = self.root / DOCS
        return {
            path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(docs.rglob("*.md"))
        }

    @cached_property
    def generated(self) -> dict[str, str]:
        """The pages that are made from the code, and those of files elsewhere."""
        pages = join_pages(
            environment_pages(),
            recipe_pages(packed_rows(self.root / "benchmarks" / "results")),
            command_pages(),
            api_pages(self.root),
            self._examples(),
            {"reference/metrics.md": metrics_page()},
        )
        pages = {path: self.relinked(text, f"{DOCS}/{path}", path) for path, text in pages.items()}
        for file, path in SHOWN.items():
            if file != "README.md":
                text = (self.root / file).read_text(encoding="utf-8")
                pages[path] = self.relinked(text, file, path)
        return pages | self._sources(pages)

    @property
    def pages(self) -> dict[str, str]:
        """Every page by its path, links as they are on the site."""
        own = {
            path: self.relinked(text, f"{DOCS}/{path}", path) for path, text in self.written.items()
        }
        return own | self.generated

    def relinked(self, text: str, written_at: str, shown_at: str) -> str:
        """Return a page's text with links to files of the repository as links of the site."""
        return relink(text, written_at, shown_at, self.place)

    def place(self, path: str) -> str:
        """Return the path of the page or file that shows a path of the repository."""
        if path in SHOWN:
            return SHOWN[path]
        if path == DOCS or path.startswith(f"{DOCS}/"):
            inside = Path(posixpath.relpath(path, DOCS))
            shown = inside.with_suffix(".md") if inside.suffix in (".py", ".ipynb") else inside
            return shown.as_posix()
        return f"source/{path}.md"

    def navigation(self, given: Sequence[Any]) -> list[Any]:
        """Return mkdocs' navigation with generated pages in place of words such as ``@commands``.

        Raises:
            BadValueError: There is no such list of pages.
        """
        return _filled(given, self._lists(json.dumps(given)))

    def _lists(self, named: str) -> dict[str, list[Any]]:
        from ...envs.core.registration import all_ids

        below = {
            folder: sorted(path for path in self.generated if path.startswith(f"{folder}/"))
            for folder in ("environments", "algorithms", "commands", "examples")
        }
        tasks = [f"environments/{name}.md" for name in all_ids()]
        hidden = [p for p in below["environments"] if p not in tasks and "index" not in p]
        special = ("algorithms/index.md", "algorithms/papers.md")
        return {
            "@environments": list(tasks),
            "@diagnostic": list(hidden),
            "@recipes": [p for p in below["algorithms"] if p not in special],
            "@commands": [p for p in below["commands"] if p != INDEX],
            "@examples": [
                {Path(p).stem.replace("_", " ").capitalize(): p} for p in below["examples"]
            ],
            "@api": [page.path for page in API],
            "@others": [p for p in self.written if f'"{p}"' not in named and "/" not in p],
        }

    def _examples(self) -> dict[str, str]:
        """Return a page per example script, and per notebook with what its cells print."""
        pages = {}
        for path in sorted((self.root / DOCS / "examples").glob("*.*")):
            if path.suffix == ".py":
                pages[f"examples/{path.stem}.md"] = script_page(path)
            elif path.suffix == ".ipynb":
                pages[f"examples/{path.stem}.md"] = notebook_page(path)
        return pages

    def _sources(self, pages: Mapping[str, str]) -> dict[str, str]:
        """Return pages that show the files and folders which other pages link to."""
        found: dict[str, str] = {}
        texts = [*pages.items()] + [
            (path, self.relinked(text, f"{DOCS}/{path}", path))
            for path, text in self.written.items()
        ]
        for path, text in texts:
            for link in find_links(text):
                target = posixpath.normpath(
                    posixpath.join(posixpath.dirname(path), link.target.partition("#")[0])
                )
                if target.startswith("source/") and target not in found:
                    found[target] = self._source_page(target)
        return found

    def _source_page(self, page: str) -> str:
        path = self.root / page.removeprefix("source/").removesuffix(".md")
        name = path.relative_to(self.root).as_posix()
        if path.is_dir():
            inside = sorted(p.name for p in path.iterdir() if not p.name.startswith(("_", ".")))
            return f"# {name}\n\n" + "".join(f"- `{name}/{entry}`\n" for entry in inside)
        if not path.exists():
            raise BadValueError(f"documentation: a page links to {name}, which does not exist.")
        text = path.read_text(encoding="utf-8")[:MAX_SOURCE]
        return f"# {name}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n````\n"


def _filled(given: Sequence[Any], lists: Mapping[str, list[Any]]) -> list[Any]:
    out: list[Any] = []
    for item in given:
        if isinstance(item, Mapping):
            ((title, inside),) = item.items()
            out.append({title: _filled(inside, lists) if isinstance(inside, list) else inside})
        elif not str(item).startswith("@"):
            out.append(item)
        elif item in lists:
            out += lists[item]
        else:
            raise BadValueError(
                f"mkdocs.yml, nav: {item} is no list of pages; expected one of "
                f"{', '.join(sorted(lists))}."
            )
    return out


def metrics_page() -> str:
    """Return the page of all metrics that a run may log."""
    lines = [
        "# Metrics",
        "",
        "A run logs `stage/quantity_unit`; `*` stands for a name (a reward term, an evaluation "
        "set). Units: `frac` is a share from 0 to 1, `nats` natural logarithms, `s` seconds. A key "
        "that is not declared here is refused when it is logged.",
    ]
    for stage in dict.fromkeys(key.partition("/")[0] for key in METRICS):
        lines += ["", f"## {stage}", "", "| key | |", "|---|---|"]
        lines += [
            f"| `{key}` | {table_cell(text)} |"
            for key, text in METRICS.items()
            if key.partition("/")[0] == stage
        ]
    return "\n".join(lines) + "\n"


def script_page(path: Path) -> str:
    """Return the page of an example script: its docstring as text, then the script.

    Raises:
        BadValueError: It has no docstring.
    """
    source = path.read_text(encoding="utf-8")
    head = ast.get_docstring(ast.parse(source, path.name))
    if not head:
        raise BadValueError(
            f"documentation: {path} has no docstring; expected one at its top, whose first line is "
            "the page's title."
        )
    title, _, text = head.partition("\n\n")
    return (
        f"# {title.rstrip('.')}\n\n{text}\n\n"
        f"```sh\npython docs/examples/{path.name}\n```\n\n````python\n{source.rstrip()}\n````\n"
    )


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown: its texts, its cells, and what they print or return."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"]).rstrip()
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        found = (out.get("text", out.get("data", {}).get("text/plain")) for out in cell["outputs"])
        printed = "".join("".join(text or ()) for text in found).rstrip()
        if printed:
            parts.append(f"```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"
