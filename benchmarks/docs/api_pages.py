"""The reference of the interface: which names stand on which page, and the sources to read.

mkdocstrings reads docstrings out of source files. It is given copies of the modules that have a
page, in which Sphinx's roles are written as Markdown: reading the whole package would take longer
than all the rest of the site.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..cli.docstrings import to_markdown


@dataclass(frozen=True)
class ApiPage:
    """A page of the reference.

    Attributes:
        path: Path of the page.
        title: Its title.
        text: What is said at its head.
        packages: Packages whose exported names stand on it, below ``turngym``.
        modules: Modules of which all public names stand on it.
        names: Further names, each as ``module:name``.
    """

    path: str
    title: str
    text: str
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


API = (
    ApiPage(
        "api/envs.md",
        "turngym.envs",
        "The contract of an environment, registration, checks, recording and replay. "
        "`import turngym.envs` also registers the environments with Gymnasium.",
        packages=("envs",),
        modules=("envs.core.errors", "envs.core.noisy_expert"),
    ),
    ApiPage(
        "api/agents.md",
        "turngym.agents",
        "Scripted agents, and the interface of engines that sample from models.",
        packages=("agents",),
    ),
    ApiPage(
        "api/algos.md",
        "turngym.algos",
        "Training and evaluation from Python: `train_on` takes three lines, `train` a whole "
        "configuration.",
        packages=("algos",),
        names=(
            "algos.recipes.registry:recipe",
            "algos.recipes.registry:find_recipe",
            "algos.recipes.settings:settings_of",
            "algos.recipes.settings:with_settings",
        ),
    ),
    ApiPage(
        "api/rollouts.md",
        "turngym.algos.core and rollouts",
        "The forest of turns, the protocols of a recipe's parts, and what decides where the next "
        "turn hangs.",
        packages=("algos.rollouts",),
        modules=("algos.core.forest", "algos.core.protocols", "algos.core.annotators"),
    ),
    ApiPage(
        "api/credit.md",
        "turngym.algos.credit and losses",
        "From rewards to one number per action token, and from those to a gradient.",
        packages=("algos.credit", "algos.losses"),
    ),
    ApiPage(
        "api/leaderboard.md",
        "turngym.leaderboard",
        "Entries, suites and verdicts; verification by replay.",
        modules=(
            "leaderboard.schema.entry",
            "leaderboard.schema.suite",
            "leaderboard.schema.result",
            "leaderboard.verification.verify",
            "leaderboard.entries_io.packing",
        ),
    ),
    ApiPage(
        "api/statistics.md",
        "turngym.envs.utils",
        "Intervals over tasks, tests over seeds.",
        modules=("envs.utils.statistics", "envs.utils.seed_tests"),
    ),
)


def api_pages(root: Path) -> dict[str, str]:
    """Return path and Markdown of the pages of the reference; mkdocstrings fills them in."""
    pages = {}
    for page in API:
        lines = [f"# {page.title}", "", page.text]
        for module, name in _entries(root, page):
            lines += ["", f"::: turngym.{module}{'.' + name if name else ''}"]
            if not name:
                lines += ["    options:", "      show_root_full_path: true"]
        pages[page.path] = "\n".join(lines) + "\n"
    return pages


def write_sources(root: Path, folder: Path) -> None:
    """Write copies of the modules that have a page, for mkdocstrings.

    Args:
        root: The repository.
        folder: Where the package ``turngym`` is written.
    """
    for module in {module for page in API for module, _ in _entries(root, page)}:
        target = folder / "turngym" / f"{module.replace('.', '/')}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        source = (root / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        target.write_text(to_markdown(source) + "\n", encoding="utf-8")
        for parent in target.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()


def exported(root: Path, package: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of everything that a package's ``__init__`` takes from its modules."""
    folder = root / package.replace(".", "/")
    stub = folder / "__init__.pyi"
    source = stub if stub.exists() else folder / "__init__.py"
    for node in _parsed(source).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            module = f"{package}.{node.module}"
            file = root / f"{module.replace('.', '/')}.py"
            if file.exists():
                yield from ((_home(root, module, alias.name), alias.name) for alias in node.names)
            else:  # a package, which has the names from its own modules
                inner = dict((name, home) for home, name in exported(root, module))
                yield from ((inner[a.name], a.name) for a in node.names if a.name in inner)


def _entries(root: Path, page: ApiPage) -> Iterator[tuple[str, str]]:
    for package in page.packages:
        yield from exported(root, package)
    for dotted in page.names:
        module, _, name = dotted.partition(":")
        yield module, name
    for module in page.modules:
        yield module, ""


def _home(root: Path, module: str, name: str) -> str:
    """Return the module that defines what ``module`` exports as ``name``."""
    file = root / f"{module.replace('.', '/')}.py"
    for node in _parsed(file).body:
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            parents = module.split(".")[: -node.level] if node.level else []
            return _home(root, ".".join([*parents, node.module or ""]), name)
    return module


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
