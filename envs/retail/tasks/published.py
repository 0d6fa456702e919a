"""Published tasks: folders with the files of tau-bench and tau2.

tau2: ``db.json`` (products, users, orders), ``tasks.json``, ``split_tasks.json`` and ``policy.md``;
without the split file all tasks are the test split. tau-bench: ``users.json``, ``orders.json``,
``products.json``, its task lists exported as ``tasks_train.json``, ``tasks_dev.json``,
``tasks_test.json`` (rows with ``user_id``, ``instruction``, ``actions``, ``outputs``), and
``wiki.md``. The assertions that upstream gives to a language model are left out and counted
(``judged_left_out`` in the metrics).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...core.errors import DataError
from ...core.fork import Shared
from ...core.tasks import SPLITS, Task
from ..shop.tables import Shop, Table
from ..shop.toolset import WRITES
from .payload import Call, RetailTask

_TABLES = ("products", "users", "orders")
_METHOD_FIELDS = ("source", "id")
Row = tuple[str, RetailTask]
"""The id of a published task and the task."""


class PublishedTasks(Shared):
    """Published tasks with their shop.

    Args:
        folder: Where they are.
        mode: How the tools behave in the publication: ``"tau"`` or ``"tau1"``.
        shop: The shop.
        splits: Tasks per split, as (id, task).
        rules: The published rules; empty where there are none.
    """

    def __init__(
        self,
        folder: Path,
        mode: str,
        shop: Shop,
        splits: Mapping[str, Sequence[Row]],
        rules: str,
    ) -> None:
        self.folder, self.mode, self.tables, self.rules = folder, mode, shop, rules
        self._splits = {split: list(rows) for split, rows in splits.items()}
        self._places = {
            split: {name: at for at, (name, _) in enumerate(rows)}
            for split, rows in self._splits.items()
        }

    def __reduce__(self) -> Any:
        return _load_folder, (self.folder,)

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of tasks per split."""
        return {split: len(rows) for split, rows in self._splits.items()}

    def task(self, split: str, index: int) -> Task[RetailTask]:
        """Return the task at ``index``."""
        name, payload = self._splits[split][index]
        return Task(name, split, index, payload, self.mode)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the place of the task with this id."""
        return self._places[split].get(task_id)

    def shop(self, name: str) -> Shop:  # noqa: ARG002 - there is one
        """Return the shop."""
        return self.tables


def read_tasks(folder: str | Path) -> PublishedTasks:
    """Return the tasks of a folder.

    Raises:
        DataError: A file is missing or does not hold what it should.
    """
    return _load_folder(Path(folder).expanduser().absolute())


@lru_cache(maxsize=4)
def _load_folder(folder: Path) -> PublishedTasks:
    """Return the tasks of a folder, which is read once per process."""
    if (folder / "db.json").is_file():
        return _load_tau2(folder)
    if (folder / "users.json").is_file():
        return _load_tau1(folder)
    raise DataError(
        f"{folder}: holds neither db.json (tau2) nor users.json (tau-bench); expected a folder "
        "with the published files."
    )


def _read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is no JSON: {error}.") from None


def _read_task_rows(path: Path) -> list[tuple[str, Any]]:
    """Return the rows of a task list, each with its place for error messages."""
    rows = _read_json(path)
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a list of tasks.")
    return [(f"{path}, task {n}", row) for n, row in enumerate(rows)]


def _read_rules(folder: Path, name: str) -> str:
    path = folder / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _load_tau2(folder: Path) -> PublishedTasks:
    data = _read_json(folder / "db.json")
    if not isinstance(data, dict):
        raise DataError(f"{folder / 'db.json'}: expected an object with {', '.join(_TABLES)}.")
    tables = {n: _check_table(data.get(n), n, str(folder / "db.json")) for n in _TABLES}
    shop = _build_shop(folder.name, tables, str(folder / "db.json"), (_load_shop, (folder,)))
    path = folder / "tasks.json"
    tasks = [_parse_tau2(row, shop, where) for where, row in _read_task_rows(path)]
    if not tasks:
        raise DataError(f"{path}: expected a list of tasks; it is empty.")
    splits = _read_splits(folder, tasks)
    return PublishedTasks(folder, "tau", shop, splits, _read_rules(folder, "policy.md"))


def _read_splits(folder: Path, tasks: list[Row]) -> dict[str, list[Row]]:
    path = folder / "split_tasks.json"
    if not path.is_file():
        return {"test": tasks}
    named = _read_json(path)
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


def _parse_tau2(row: Any, shop: Shop, where: str) -> Row:
    try:
        given = row["user_scenario"]["instructions"]
        criteria = row["evaluation_criteria"]
        gold = tuple((a["name"], dict(a["arguments"])) for a in criteria["actions"] or ())
        basis = criteria.get("reward_basis") or ()
        outputs = tuple(criteria.get("communicate_info") or ()) if "COMMUNICATE" in basis else ()
        judged = tuple(criteria.get("nl_assertions") or ())
        name = str(row["id"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{where}: has not the form of tau2: {type(error).__name__} {error}."
        ) from None
    parts = (given.get(k) for k in ("known_info", "unknown_info", "reason_for_call"))
    brief = " ".join(p for p in (*parts, given.get("task_instructions")) if p)
    return name, _check_gold(shop, brief, gold, outputs, judged, where)


def _load_tau1(folder: Path) -> PublishedTasks:
    tables = {n: _check_table(_read_json(folder / f"{n}.json"), n, str(folder)) for n in _TABLES}
    shop = _build_shop(folder.name, tables, str(folder), (_load_shop, (folder,)))
    splits: dict[str, list[Row]] = {}
    for split in SPLITS:
        path = folder / f"tasks_{split}.json"
        if not path.is_file():
            continue
        splits[split] = [
            (f"{split}/{n}", _parse_tau1(row, shop, where))
            for n, (where, row) in enumerate(_read_task_rows(path))
        ]
    if not splits:
        raise DataError(f"{folder}: holds no tasks_test.json; expected a task list per split.")
    return PublishedTasks(folder, "tau1", shop, splits, _read_rules(folder, "wiki.md"))


def _parse_tau1(row: Any, shop: Shop, where: str) -> RetailTask:
    try:
        gold = tuple(
            (a["name"], dict(a["kwargs"] if "kwargs" in a else a["arguments"]))
            for a in row["actions"]
        )
        outputs = tuple(str(output) for output in row.get("outputs") or ())
        brief = row["instruction"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{where}: has not the form of tau-bench: {type(error).__name__} {error}."
        ) from None
    return _check_gold(shop, brief, gold, outputs, (), where)


def _check_gold(
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


def _load_shop(folder: Path) -> Shop:
    return _load_folder(folder).tables


def _check_table(value: Any, name: str, where: str) -> Table:
    """Return a table of records by id."""
    good = isinstance(value, Mapping) and all(isinstance(r, dict) for r in value.values())
    if not good or not value:
        raise DataError(f"{where}: {name} is no table; expected an object of records by id.")
    return dict(value)


def _build_shop(name: str, tables: Mapping[str, Table], where: str, origin: Any) -> Shop:
    """Return the shop of published tables, in which every reference leads somewhere."""
    products, users, orders = (tables[key] for key in ("products", "users", "orders"))
    try:
        _check_orders(products, users, orders, where)
        _check_users(users, orders, where)
        return Shop(name, products, users, orders, origin=origin)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{where}: a record has not the expected form: {type(error).__name__} {error}."
        ) from None


def _check_orders(products: Table, users: Table, orders: Table, where: str) -> None:
    for order_id, order in orders.items():
        if order["user_id"] not in users:
            raise DataError(
                f"{where}: order {order_id!r} belongs to {order['user_id']!r}, who is not among "
                "the users."
            )
        for line in order["items"]:
            if line["product_id"] not in products:
                raise DataError(
                    f"{where}: order {order_id!r} holds product {line['product_id']!r}, which is "
                    "not among the products."
                )
        methods = users[order["user_id"]]["payment_methods"]
        for entry in order["payment_history"]:
            if entry["payment_method_id"] not in methods:
                raise DataError(
                    f"{where}: order {order_id!r} was paid by {entry['payment_method_id']!r}, "
                    f"which is none of the methods of {order['user_id']!r}."
                )


def _check_users(users: Table, orders: Table, where: str) -> None:
    for user_id, user in users.items():
        for order_id in user["orders"]:
            if order_id not in orders:
                raise DataError(
                    f"{where}: user {user_id!r} has order {order_id!r}, which is not among the "
                    "orders."
                )
        for method_id, method in user["payment_methods"].items():
            if any(field not in method for field in _METHOD_FIELDS):
                raise DataError(
                    f"{where}: payment method {method_id!r} of {user_id!r} lacks source or id."
                )
