"""Export tau-bench's retail files from a checkout: its Python task lists are read, never run."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import DataError

_FOLDER = Path("tau_bench/envs/retail")
_TABLES = ("users.json", "orders.json", "products.json")
_SPLITS = ("train", "dev", "test")
_CALLS = ("Task", "Action")


def export_checkout(checkout: str | Path, out: str | Path) -> Mapping[str, int]:
    """Write the folder that ``Retail-v0`` opens with ``data=``.

    Args:
        checkout: A checkout of tau-bench, or the retail folder in it.
        out: The folder to write.

    Returns:
        Tasks per split.

    Raises:
        DataError: A file is missing, or a task list is more than literal values.
    """
    source, target = Path(checkout).expanduser(), Path(out).expanduser()
    folder = source / _FOLDER if (source / _FOLDER).is_dir() else source
    lists = {split: _read_task_list(folder / f"tasks_{split}.py") for split in _SPLITS}
    for name in _TABLES:
        if not (folder / "data" / name).is_file():
            raise DataError(f"{folder / 'data' / name}: no such file; expected a tau-bench table.")
    target.mkdir(parents=True, exist_ok=True)
    for name in _TABLES:
        shutil.copyfile(folder / "data" / name, target / name)
    if (folder / "wiki.md").is_file():
        shutil.copyfile(folder / "wiki.md", target / "wiki.md")
    for split, tasks in lists.items():
        (target / f"tasks_{split}.json").write_text(json.dumps(tasks), encoding="utf-8")
    return {split: len(tasks) for split, tasks in lists.items()}


def _read_task_list(path: Path) -> list[Any]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror or error}; expected a task list of a "
            "tau-bench checkout."
        ) from None
    except (SyntaxError, ValueError) as error:
        raise DataError(f"{path}: is no Python: {error}.") from None
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            return [_read_value(item, path) for item in node.value.elts]
    raise DataError(f"{path}: holds no list; expected `TASKS_... = [Task(...), ...]`.")


def _read_value(node: ast.expr, path: Path) -> Any:
    """Return a literal; the call of a task's part becomes the mapping of its keywords."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        return {word.arg: _read_value(word.value, path) for word in node.keywords}
    if isinstance(node, ast.List):
        return [_read_value(item, path) for item in node.elts]
    if isinstance(node, ast.Dict) and all(key is not None for key in node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _read_value(value, path) for key, value in pairs if key}
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise DataError(
            f"{path}, line {node.lineno}: {ast.unparse(node)[:60]!r} is no literal value; expected "
            "Task and Action with strings, numbers, lists and objects."
        ) from None
