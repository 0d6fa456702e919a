"""The words of the trade: what a reader who knows reinforcement learning would have to learn."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("envs", "agents", "algos", "leaderboard", "benchmarks")
# A word of ours that is no term of the field -> what it is called now.
IDENTIFIERS = {
    "knob": "setting",
    "knobs": "settings",
    "lessons": "presets",
    "meter": "budget",
    "pupil": "trainer",
    "seat": "episode handle",
    "stranger": "untrusted",
    "strangers": "untrusted",
    "told": "what it is: a warning, a report, a metric",
}
PHRASES = {
    r"\bknobs?\b": "settings",
    r"\bstrangers?\b": "untrusted",
    r"\bpupils?\b": "trainer",
    r"\b(take|takes|took) up the\b": "resume",
    r"\bin no mean\b": "excluded from averages",
    r"\bmend the\b": "fix the",
    r"\ba word about\b": "a warning",
    r"\bcosts a turn and teaches\b": "consumes a turn and returns an error message",
    r"\bmiddling player\b": "mid-level policy",
    r"\btext worlds?\b": "text environment",
    r"\b(your|own|registered|every|each|diagnostic) worlds\b": "environments",
}
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that a module defines: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def words(name: str) -> set[str]:
    """``EpisodeHandle.open_one`` is made of episode, handle, open and one."""
    return {part.lower() for part in PARTS.findall(name)}


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)) is not None:
            yield getattr(node, "lineno", 1), text


def forbidden(text: str) -> list[str]:
    """The phrases in a text that must not come back, each with what to say."""
    return [
        f"{found.group()!r}: say {instead!r}"
        for phrase, instead in PHRASES.items()
        if (found := re.search(phrase, text, re.IGNORECASE))
    ]


def test_names_and_docstrings_are_words_of_the_trade() -> None:
    found = set()
    for path in sources():
        tree, file = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT)
        for line, name in identifiers(tree):
            for word in words(name) & IDENTIFIERS.keys():
                found.add(f"{file}:{line} {name}: say {IDENTIFIERS[word]}")
        for line, text in docstrings(tree):
            found |= {f"{file}:{line} {hit}" for hit in forbidden(text)}
    assert sorted(found) == []


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.name)
def test_pages_are_in_words_of_the_trade(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [f"{n}: {hit}" for n, line in enumerate(lines, 1) for hit in forbidden(line)] == []


def test_the_check_sees_words_in_names_of_any_style() -> None:
    tree = ast.parse("class PupilSeat:\n    def told_faults(self, knobs): ...\n")
    found = {word for _, name in identifiers(tree) for word in words(name)} & IDENTIFIERS.keys()
    assert found == {"pupil", "seat", "told", "knobs"}
    assert forbidden("Mend the server") == ["'Mend the': say 'fix the'"]
