"""Folders with the files of tau-bench and tau2.

tau2: ``db.json`` (products, users, orders), ``tasks.json``, ``split_tasks.json`` and ``policy.md``;
without the split file all tasks are the test split. tau-bench: ``users.json``, ``orders.json``,
``products.json``, its task lists exported as ``tasks_train.json``, ``tasks_dev.json``,
``tasks_test.json`` (rows with ``user_id``, ``instruction``, ``actions``, ``outputs``), and
``wiki.md``. The assertions that upstream gives to a language model are left out and counted
(``judged_left_out`` in the metrics).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...tasks import SPLITS, Task
from ..setup import Knowledge
from ..shop.semantics import semantics
from ..shop.tables import Shop
from ..shop.toolset import WRITES, toolset
from ..tasks.payload import Call, RetailTask
from .tables import made_shop, read_json, table_of

_TABLES = ("products", "users", "orders")


class FolderTasks:
    """Published tasks with their shop.

    Args:
        folder: Where they are.
        kind: ``"tau"`` or ``"tau1"``.
        shop: The shop.
        splits: Tasks per split, as (id, task).
        rules: The published rules; empty where there are none.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        shop: Shop,
        splits: Mapping[str, Sequence[tuple[str, RetailTask]]],
        rules: str,
    ) -> None:
        self.folder, self.kind, self.tables, self.rules = folder, kind, shop, rules
        self._splits = {split: list(rows) for split, rows in splits.items()}
        self._places = {
            split: {name: at for at, (name, _) in enumerate(rows)}
            for split, rows in self._splits.items()
        }

    def __deepcopy__(self, memo: Mapping[int, Any]) -> FolderTasks:
        return self

    def __reduce__(self) -> Any:
        return folder_tasks, (self.folder,)

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        return {split: len(rows) for split, rows in self._splits.items()}

    def task(self, split: str, index: int) -> Task[RetailTask]:
        """The task at ``index``."""
        name, payload = self._splits[split][index]
        return Task(name, split, index, payload, self.kind)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        return self._places[split].get(task_id)

    def shop(self, name: str) -> Shop:  # noqa: ARG002 - there is one
        """The shop."""
        return self.tables


def read_folder(folder: str | Path, mode: str | None) -> Knowledge:
    """The tasks of a folder, with the tools that belong to them.

    Args:
        folder: The folder.
        mode: How the tools behave; by default as published with these files.

    Raises:
        DataError: A file is missing or does not hold what it should.
        UnknownNameError: An unknown mode.
    """
    path = Path(folder).expanduser().absolute()
    source = folder_tasks(path)
    tools = toolset(source.kind if mode is None else semantics(mode).name)
    return Knowledge(size=None, source=source, tools=tools)


@lru_cache(maxsize=4)
def folder_tasks(folder: Path) -> FolderTasks:
    """The tasks of a folder; read once per process."""
    if (folder / "db.json").is_file():
        return _tau2(folder)
    if (folder / "users.json").is_file():
        return _tau1(folder)
    raise DataError(
        f"{folder}: holds neither db.json (tau2) nor users.json (tau-bench); expected a folder "
        "with the published files."
    )


def _rules(folder: Path, name: str) -> str:
    path = folder / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _tau2(folder: Path) -> FolderTasks:
    data = read_json(folder / "db.json")
    if not isinstance(data, dict):
        raise DataError(f"{folder / 'db.json'}: expected an object with {', '.join(_TABLES)}.")
    tables = {n: table_of(data.get(n), n, str(folder / "db.json")) for n in _TABLES}
    shop = made_shop(folder.name, tables, str(folder / "db.json"), (_shop_of, (folder,)))
    path = folder / "tasks.json"
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{path}: expected a list of tasks.")
    tasks = [_tau2_task(row, shop, f"{path}, task {n}") for n, row in enumerate(rows)]
    return FolderTasks(folder, "tau", shop, _split(folder, tasks), _rules(folder, "policy.md"))


def _split(
    folder: Path, tasks: list[tuple[str, RetailTask]]
) -> dict[str, list[tuple[str, RetailTask]]]:
    path = folder / "split_tasks.json"
    if not path.is_file():
        return {"test": tasks}
    named = read_json(path)
    by_id = dict(tasks)
    splits = {}
    for split in SPLITS:
        ids = named.get(split) if isinstance(named, dict) else None
        if ids is None:
            continue
        missing = [i for i in ids if i not in by_id]
        if missing:
            raise DataError(f"{path}: split {split!r} names task {missing[0]!r}, which is missing.")
        splits[split] = [(i, by_id[i]) for i in ids]
    if not splits:
        raise DataError(f"{path}: names none of the splits {', '.join(SPLITS)}.")
    return splits


def _tau2_task(row: Any, shop: Shop, where: str) -> tuple[str, RetailTask]:
    try:
        told = row["user_scenario"]["instructions"]
        criteria = row["evaluation_criteria"]
        gold = tuple((a["name"], dict(a["arguments"])) for a in criteria["actions"] or ())
        basis = criteria.get("reward_basis") or ()
        said = tuple(criteria.get("communicate_info") or ()) if "COMMUNICATE" in basis else ()
        judged = tuple(criteria.get("nl_assertions") or ())
        name = str(row["id"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{where}: has not the form of tau2: {type(error).__name__} {error}."
        ) from None
    parts = (told.get(k) for k in ("known_info", "unknown_info", "reason_for_call"))
    brief = " ".join(p for p in (*parts, told.get("task_instructions")) if p)
    return name, _task(shop, brief, gold, said, judged, where)


def _tau1(folder: Path) -> FolderTasks:
    tables = {n: table_of(read_json(folder / f"{n}.json"), n, str(folder)) for n in _TABLES}
    shop = made_shop(folder.name, tables, str(folder), (_shop_of, (folder,)))
    splits: dict[str, list[tuple[str, RetailTask]]] = {}
    for split in SPLITS:
        path = folder / f"tasks_{split}.json"
        if not path.is_file():
            continue
        rows = read_json(path)
        if not isinstance(rows, list):
            raise DataError(f"{path}: expected a list of tasks.")
        splits[split] = [
            (f"{split}/{n}", _tau1_task(row, shop, f"{path}, task {n}"))
            for n, row in enumerate(rows)
        ]
    if not splits:
        raise DataError(f"{folder}: holds no tasks_test.json; expected a task list per split.")
    return FolderTasks(folder, "tau1", shop, splits, _rules(folder, "wiki.md"))


def _tau1_task(row: Any, shop: Shop, where: str) -> RetailTask:
    try:
        gold = tuple(
            (a["name"], dict(a["kwargs"] if "kwargs" in a else a["arguments"]))
            for a in row["actions"]
        )
        said = tuple(str(output) for output in row.get("outputs") or ())
        brief = row["instruction"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{where}: has not the form of tau-bench: {type(error).__name__} {error}."
        ) from None
    return _task(shop, brief, gold, said, (), where)


def _task(
    shop: Shop,
    brief: str,
    gold: tuple[Call, ...],
    outputs: tuple[str, ...],
    judged: tuple[str, ...],
    where: str,
) -> RetailTask:
    for name, given in gold:
        order_id, user_id = given.get("order_id"), given.get("user_id")
        if name in WRITES and order_id is not None and order_id not in shop.orders:
            raise DataError(f"{where}: {name} names order {order_id!r}, which does not exist.")
        if name in WRITES and user_id is not None and user_id not in shop.users:
            raise DataError(f"{where}: {name} names user {user_id!r}, who does not exist.")
    return RetailTask(shop=shop.name, brief=brief, gold=gold, outputs=outputs, judged=judged)


def _shop_of(folder: Path) -> Shop:
    return folder_tasks(folder).tables
