"""The shape of the repository: import arrows, file sizes, packages, one voice for versions."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "envs": {"envs"},
    "agents": {"envs", "agents"},
    "algos": {"envs", "agents", "algos"},
    "leaderboard": {"envs", "leaderboard"},
    "benchmarks": {"envs", "agents", "algos", "leaderboard", "benchmarks"},
}
NEVER = {"envs": {"torch", "transformers", "faiss", "vllm"}, "leaderboard": {"torch", "vllm"}}
MAX_LINES = 600


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of every import in a file, relative ones resolved."""
    parts = ["turngym", *path.relative_to(ROOT).with_suffix("").parts]
    package = parts[:-1]  # of a module and of an __init__ alike
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if node.module is None or module in ("turngym",):
                for name in node.names:
                    yield node.lineno, f"{module}.{name.name}"
            else:
                yield node.lineno, module


def violations(path: Path, folder: str) -> list[str]:
    found = []
    for line, name in imported(path):
        top, _, rest = name.partition(".")
        target = rest.split(".")[0] if top == "turngym" else ""
        if target in MAY_IMPORT and target not in MAY_IMPORT[folder]:
            found.append(f"{path.relative_to(ROOT)}:{line} imports turngym.{target}")
        if top in NEVER.get(folder, ()):
            found.append(f"{path.relative_to(ROOT)}:{line} imports {top}")
        if top in MAY_IMPORT:
            found.append(f"{path.relative_to(ROOT)}:{line} imports top-level {top!r}")
    return found


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_import_arrows(folder: str) -> None:
    assert [v for p in sources(folder) for v in violations(p, folder)] == []


def test_arrow_check_sees_a_wrong_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    bad = tmp_path / "envs" / "bad.py"
    bad.parent.mkdir()
    bad.write_text("from ..algos.forest import Turn\nfrom .. import agents\nimport torch\n")
    assert violations(bad, "envs") == [
        "envs/bad.py:1 imports turngym.algos",
        "envs/bad.py:2 imports turngym.agents",
        "envs/bad.py:3 imports torch",
    ]


def test_files_stay_short() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for folder in (*MAY_IMPORT, "tests")
        for p in sources(folder)
        if (n := len(p.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert long == {}


def test_every_package_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        "turngym." + ".".join(p.parent.relative_to(ROOT).parts)
        for folder in MAY_IMPORT
        for p in sources(folder)
        if p.name == "__init__.py"
    }
    assert set(settings["packages"]) == folders
    assert not (ROOT / "__init__.py").exists()


def test_constraints_pin_exact_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert all(re.fullmatch(r"[A-Za-z0-9_.\-]+==[A-Za-z0-9.]+", pin) for pin in pins)


def test_test_files_have_names_of_their_own() -> None:
    names = [path.name for path in sources("tests") if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))
