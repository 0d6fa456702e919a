"""The shape of the repository: rooms, import arrows, circles, file sizes, words, packages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "envs": {"envs"},
    "agents": {"envs", "agents"},
    "algos": {"envs", "agents", "algos"},
    "leaderboard": {"envs", "leaderboard"},
    "benchmarks": {"envs", "agents", "algos", "leaderboard", "benchmarks"},
}
NEVER = {"envs": {"torch", "transformers", "faiss", "vllm"}, "leaderboard": {"torch", "vllm"}}
# Entry points into a room above: a module named in a string, loaded when a user asks for it.
ENTRY_POINTS: dict[str, set[str]] = {
    "envs/paper_crawler/build.py": {"turngym.agents.paper_selector.model"},
    "envs/tools/retrieval/index/kinds.py": {
        "turngym.agents.retrieval.dense",
        "turngym.agents.retrieval.dense_build",
    },
}
MAX_LINES = 600
MAX_ENTRIES = 12
MAX_SHARED_IN_ENVS = 7
MAX_FRAGMENTS = 24
FRAGMENT_LINES = 70

DOTTED = re.compile(r"turngym(?:\.\w+)+(?::\w+)?")
EXAMPLE = re.compile(r"^ +from (turngym[\w.]*) import ([\w, ]+)$", re.MULTILINE)
"""An import of an indented block, as in the examples of docstrings."""


@dataclass(frozen=True)
class Arrow:
    """One import: from a module to a module, both as dotted names below ``turngym``."""

    line: int
    target: str
    in_string: bool = False


def sources(folder: str) -> list[Path]:
    """All Python files of a root folder."""
    return sorted((ROOT / folder).rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported(path: Path) -> tuple[Arrow, ...]:
    """Every import of a file as an absolute dotted name, and every module named in a string."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[Arrow]:
    parts = ["turngym", *path.relative_to(ROOT).with_suffix("").parts]
    package = parts[:-1]  # of a module and of an __init__ alike
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Arrow(node.lineno, name.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for name in node.names:
                yield Arrow(node.lineno, f"{module}.{name.name}")
        elif isinstance(node, ast.Constant) and DOTTED.fullmatch(str(node.value)):
            yield Arrow(node.lineno, str(node.value).partition(":")[0], in_string=True)


def missing(path: Path) -> list[str]:
    """What a file, or an example in it, imports of the package and is not there."""
    targets = {arrow.target for arrow in imported(path) if not arrow.in_string}
    targets |= examples(path.read_text(encoding="utf-8"))
    return sorted(t for t in targets if t.startswith("turngym.") and not is_there(t))


def examples(text: str) -> set[str]:
    """What the indented blocks of a text import of the package."""
    return {
        f"{module}.{name.split()[0]}"
        for module, names in EXAMPLE.findall(text)
        for name in names.split(",")
    }


def is_there(target: str) -> bool:
    """Whether a dotted name is a module or package, or a name in one."""
    module, _, name = target.rpartition(".")
    return bool(files_of(target)) or name in names_in(module)


def files_of(module: str) -> list[Path]:
    below = module.removeprefix("turngym").lstrip(".")
    path = ROOT / (below.replace(".", "/") or "turngym")
    files = [path.with_suffix(".py"), path / "__init__.py", path / "__init__.pyi"]
    return [file for file in files if file.is_file()]


@cache
def names_in(module: str) -> frozenset[str]:
    """Every name that a module defines or imports."""
    names = set()
    for file in files_of(module):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names |= {one.asname or one.name for one in node.names}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return frozenset(names)


def violations(path: Path, folder: str) -> list[str]:
    """Imports of a file that no file of this root folder may make."""
    here = path.relative_to(ROOT).as_posix()
    found = []
    for arrow in imported(path):
        top, _, rest = arrow.target.partition(".")
        target = rest.split(".")[0] if top == "turngym" else ""
        allowed = arrow.in_string and arrow.target in ENTRY_POINTS.get(here, ())
        if target in MAY_IMPORT and target not in MAY_IMPORT[folder] and not allowed:
            found.append(f"{here}:{arrow.line} imports turngym.{rest}")
        if top in NEVER.get(folder, ()):
            found.append(f"{here}:{arrow.line} imports {top}")
        if top in MAY_IMPORT:
            found.append(f"{here}:{arrow.line} imports top-level {top!r}")
    return found


@cache
def graph() -> dict[str, set[str]]:
    """Which module imports which, type-only imports included, below ``turngym``."""
    modules = {module_of(p) for folder in MAY_IMPORT for p in sources(folder)}
    arrows: dict[str, set[str]] = {module: set() for module in modules}
    for folder in MAY_IMPORT:
        for path in sources(folder):
            for arrow in imported(path):
                if arrow.in_string:
                    continue  # an entry point, loaded on demand: the test of arrows holds these
                name = arrow.target.removeprefix("turngym.")
                target = name if name in modules else name.rpartition(".")[0]
                if target in modules and target != module_of(path):
                    arrows[module_of(path)].add(target)
    return arrows


def circles(arrows: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of nodes that reach one another (strongly connected, more than one node)."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(arrows.get(start, ()))
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(arrows.get(node, ()))
        return seen

    reached = {node: reach(node) for node in arrows}
    groups = {
        tuple(sorted({node, *(other for other in ends if node in reached.get(other, ()))}))
        for node, ends in reached.items()
        if node in ends
    }
    return [list(group) for group in sorted(groups) if len(group) > 1]


def rooms(arrows: Mapping[str, Iterable[str]], package: str) -> dict[str, set[str]]:
    """The graph inside a package, its modules and packages taken as one node each."""
    inner: dict[str, set[str]] = defaultdict(set)
    for module, targets in arrows.items():
        if module.startswith(package + "."):
            room = module[len(package) + 1 :].split(".")[0]
            inner[room] |= {
                target[len(package) + 1 :].split(".")[0]
                for target in targets
                if target.startswith(package + ".")
            } - {room}
    return inner


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_import_arrows(folder: str) -> None:
    assert [v for p in sources(folder) for v in violations(p, folder)] == []


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_what_is_imported_is_there(folder: str) -> None:
    """Also by the examples of docstrings, and by benchmarks that no test runs."""
    found = {str(path.relative_to(ROOT)): missing(path) for path in sources(folder)}
    assert {path: names for path, names in found.items() if names} == {}


def test_every_allowed_entry_point_is_used() -> None:
    for file, targets in ENTRY_POINTS.items():
        assert targets == {
            arrow.target
            for arrow in imported(ROOT / file)
            if arrow.in_string and arrow.target.split(".")[1] not in MAY_IMPORT[file.split("/")[0]]
        }


def test_no_circle_of_modules() -> None:
    assert circles(graph()) == []


def test_no_circle_of_packages_at_any_level() -> None:
    packages = {
        ".".join(module.split(".")[:depth])
        for module in graph()
        for depth in range(1, module.count(".") + 1)
    }
    found = {package: circles(rooms(graph(), package)) for package in sorted(packages)}
    assert {package: groups for package, groups in found.items() if groups} == {}


def test_arrow_check_sees_a_wrong_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    bad = tmp_path / "envs" / "bad.py"
    bad.parent.mkdir()
    bad.write_text(
        "from ..algos.forest import Turn\nfrom .. import agents\nimport torch\n"
        "LATE = 'turngym.agents.engines.local:Engine'\n"
    )
    assert violations(bad, "envs") == [
        "envs/bad.py:1 imports turngym.algos.forest.Turn",
        "envs/bad.py:2 imports turngym.agents",
        "envs/bad.py:3 imports torch",
        "envs/bad.py:4 imports turngym.agents.engines.local",
    ]


def test_import_check_sees_names_that_are_not_there() -> None:
    assert examples("Thus:\n\n    from turngym.algos import train, trian as t\n") == {
        "turngym.algos.train",
        "turngym.algos.trian",
    }
    there = ("turngym.algos.train", "turngym.envs", "turngym.envs.core.registration.make_env")
    gone = ("turngym.algos.trian", "turngym.env", "turngym.envs.core.registration.World")
    assert [is_there(name) for name in (*there, *gone)] == [True] * 3 + [False] * 3


def test_circle_check_sees_circles_of_modules_and_of_packages() -> None:
    arrows = {
        "a.x.one": {"a.y.two"},
        "a.y.two": set(),
        "a.y.three": {"a.x.four"},
        "a.x.four": set(),
    }
    assert circles(arrows) == []
    assert circles(rooms(arrows, "a")) == [["x", "y"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def entries(folder: str) -> set[str]:
    """What a newcomer sees in a root folder: packages and modules with source in them."""
    return {
        path.relative_to(ROOT / folder).parts[0]
        for path in sources(folder)
        if path.relative_to(ROOT / folder).parts[0] != "__init__.py"
    }


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT.keys() - {"envs"}))
def test_rooms_are_few(folder: str) -> None:
    assert len(entries(folder)) <= MAX_ENTRIES, sorted(entries(folder))


def test_envs_shows_environments_and_few_shared_rooms() -> None:
    from turngym.envs import all_ids, find_environment

    modules = [find_environment(name).entry_point for name in all_ids(hidden=True)]
    homes = {module.split(".")[2] for module in modules if module.startswith("turngym.envs.")}
    assert len(entries("envs") - homes) <= MAX_SHARED_IN_ENVS, sorted(entries("envs") - homes)


def test_files_stay_short() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for folder in (*MAY_IMPORT, "tests")
        for p in sources(folder)
        if (n := len(p.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert long == {}


def test_files_earn_their_place() -> None:
    """Short modules with a single importer are rare; most belong into the one that uses them."""
    users: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph().items():
        for target in targets:
            users[target].add(module)
    fragments = [
        module_of(path)
        for folder in MAY_IMPORT
        for path in sources(folder)
        if path.name != "__init__.py"
        and not {"recipes", "diagnostic"} & set(path.parts)
        and len(users[module_of(path)]) == 1
        and len(path.read_text(encoding="utf-8").splitlines()) <= FRAGMENT_LINES
    ]
    assert len(fragments) <= MAX_FRAGMENTS, fragments


def test_every_package_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        "turngym." + ".".join(p.parent.relative_to(ROOT).parts)
        for folder in MAY_IMPORT
        for p in sources(folder)
        if p.name == "__init__.py"
    }
    assert set(settings["packages"]) == folders | {"turngym"}
    assert not (ROOT / "__init__.py").exists()


def test_every_data_file_is_installed() -> None:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    installed = {
        file
        for package, patterns in tables["package-data"].items()
        for pattern in patterns
        for file in (ROOT / package.removeprefix("turngym.").replace(".", "/")).glob(pattern)
    }
    data = {
        file
        for folder in MAY_IMPORT
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".json", ".jsonl", ".j2", ".html", ".css", ".js", ".pyi", ".typed"}
        or file.name == "py.typed"
    }
    data -= set((ROOT / "benchmarks" / "results").iterdir())  # published, of the repository alone
    assert data - installed == set()


def test_a_source_distribution_holds_what_the_readme_installs_with() -> None:
    rules = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    patterns = [p for rule in rules if rule.startswith("include ") for p in rule.split()[1:]]
    packed = {file.name for pattern in patterns for file in ROOT.glob(pattern)}
    read = (ROOT / "README.md").read_text() + (ROOT / "docs" / "installation.md").read_text()
    named = set(re.findall(r"constraints[\w-]*\.txt|(?<=\()[A-Z]+\.(?:md|cff)(?=\))", read))
    assert named <= packed
    assert {"constraints.txt", "CHANGELOG.md", "CITATION.cff", "SECURITY.md"} <= named


def test_every_folder_with_source_is_a_package() -> None:
    bare = {
        str(p.parent.relative_to(ROOT))
        for folder in MAY_IMPORT
        for p in sources(folder)
        if not (p.parent / "__init__.py").exists()
    }
    assert bare == set()


def test_constraints_pin_exact_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert all(re.fullmatch(r"[A-Za-z0-9_.\-]+==[A-Za-z0-9.]+", pin) for pin in pins)


def test_pinned_packages_run_on_the_least_python() -> None:
    """A set-up with Python 3.11.2, that of a stable Debian, ended at a pin for 3.11.5."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = about["requires-python"].removeprefix(">=") + ".0"
    names = re.findall(r"^([\w.\-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    asked = {
        found.name.replace("_", "-").lower(): SpecifierSet(found.metadata["Requires-Python"] or "")
        for found in metadata.distributions()
    }
    pinned = [name for name in names if name.lower() in asked]
    assert len(pinned) > 30
    assert [name for name in pinned if not asked[name.lower()].contains(least)] == []


def test_hashed_constraints_have_the_same_versions() -> None:
    """``make hashes`` writes them anew."""
    pins, hashed = (
        re.findall(r"^([A-Za-z0-9_.\-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE)
        for name in ("constraints.txt", "constraints-hashed.txt")
    )
    pinned = {(name.replace("_", "-"), version) for name, version in pins}
    assert {name for name, _ in pinned - set(hashed)} == {"torch"}, "its build is the machine's"
    assert set(hashed) < pinned
    blocks = re.split(r"\n(?=[a-z])", (ROOT / "constraints-hashed.txt").read_text())[1:]
    assert len(blocks) == len(hashed)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", block) for block in blocks)


def test_the_set_up_checks_hashes_before_it_installs_anything_pinned() -> None:
    rule = (ROOT / "Makefile").read_text().partition("\n$(STAMP):")[2].partition("\n\n")[0]
    installs = [
        line for line in rule.splitlines() if "install" in line and "-upgrade pip" not in line
    ]
    assert "--require-hashes --no-deps -r constraints-hashed.txt" in installs[0]
    assert "constraints-hashed.txt" in rule.partition("\n")[0], "a change of it installs anew"
