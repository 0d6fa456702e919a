"""tau-bench's files out of a checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.tiny_shop import tiny

from turngym.envs.core.errors import DataError
from turngym.envs.retail.env import Retail
from turngym.envs.retail.tasks.checkout import export_checkout

LIST = """
from tau_bench.types import Action, Task
TASKS = [
    Task(annotator="0", user_id="ada", instruction="Can" "cel.", outputs=["10.00"], actions=[
        Action(name="cancel_pending_order",
               kwargs={"order_id": "#W4", "reason": "no longer needed"}),
    ]),
]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "tau-bench" / "tau_bench" / "envs" / "retail"
    (folder / "data").mkdir(parents=True)
    shop = tiny()
    for name in ("products", "users", "orders"):
        (folder / "data" / f"{name}.json").write_text(json.dumps(getattr(shop, name)))
    for split in ("train", "dev", "test"):
        (folder / f"tasks_{split}.py").write_text(LIST)
    (folder / "wiki.md").write_text("# Be kind\n")
    return tmp_path / "tau-bench"


def test_an_exported_checkout_is_played(checkout: Path, tmp_path: Path) -> None:
    counts = export_checkout(checkout, tmp_path / "out")
    assert counts == {"train": 1, "dev": 1, "test": 1}
    env = Retail(data=tmp_path / "out")
    observation, info = env.reset(seed=0, options={"split": "test", "task": 0})
    assert "Cancel." in env.episode.task.payload.brief
    expert, total = env.expert(), 0.0
    while info["status"] == "running":
        observation, reward, *_, info = env.step(expert(env, observation, info))
        total += reward
    assert total == 1.0
    within = checkout / "tau_bench" / "envs" / "retail"
    assert export_checkout(within, tmp_path / "again") == counts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TASKS = [Task(user_id=open('x'))]", "line 1: .* is no literal"),
        ("TASKS = [Task(**more)]", "is no literal"),
        ("TASKS = 3", "holds no list"),
        ("TASKS = [", "is no Python"),
        (None, r"tasks_dev.py: cannot be read"),
    ],
)
def test_what_is_no_task_list_is_refused(
    checkout: Path, tmp_path: Path, text: str | None, said: str
) -> None:
    path = checkout / "tau_bench" / "envs" / "retail" / "tasks_dev.py"
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=said):
        export_checkout(checkout, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_table_is_named(checkout: Path, tmp_path: Path) -> None:
    (checkout / "tau_bench" / "envs" / "retail" / "data" / "orders.json").unlink()
    with pytest.raises(DataError, match=r"orders.json: no such file"):
        export_checkout(checkout, tmp_path / "out")
