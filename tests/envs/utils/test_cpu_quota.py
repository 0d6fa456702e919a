"""Limits of processor time, read from made trees of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngym.envs.utils.cpu_quota import read_cpu_quota

V2, V1 = "0::{}\n", "9:name=systemd:/\n3:cpu,cpuacct:{}\n0::/\n"


def tree(root: Path, groups: str, **limits: str) -> Path:
    """A file system with this ``/proc/self/cgroup``, and limits by file."""
    for name, text in {"proc/self/cgroup": groups, **limits}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def v2(**limits: str) -> dict[str, str]:
    return {f"sys/fs/cgroup/{group}/cpu.max": text for group, text in limits.items()}


def v1(folder: str, group: str, quota: int, period: int = 100000) -> dict[str, str]:
    at = f"sys/fs/cgroup/{folder}/{group}"
    return {f"{at}/cpu.cfs_quota_us": f"{quota}\n", f"{at}/cpu.cfs_period_us": f"{period}\n"}


@pytest.mark.parametrize(
    ("groups", "limits", "quota"),
    [
        (V2.format("/"), v2(**{"": "400000 100000\n"}), 4.0),
        (V2.format("/"), v2(**{"": "max 100000\n"}), None),
        (V2.format("/"), {}, None),
        # a container that sees its own group as the top, under the name it has outside
        (V2.format("/docker/abc"), v2(**{"": "50000 100000"}), 0.5),
        # a job of a cluster: the step has no limit of its own, the job has
        (V2.format("/slurm/job_1/step_0"), v2(**{"slurm/job_1": "800000 100000"}), 8.0),
        (V2.format("/a/b"), v2(**{"a": "300000 100000", "a/b": "200000 100000"}), 2.0),
        (V2.format("/a/../../.."), v2(**{"": "300000 100000"}), 3.0),
        (V1.format("/"), v1("cpu,cpuacct", "", 250000), 2.5),
        (V1.format("/docker/abc"), v1("cpu", "", 100000, 50000), 2.0),
        (V1.format("/docker/abc"), v1("cpu", "docker/abc", 200000), 2.0),
        (V1.format("/"), v1("cpu", "", -1), None),
        (V1.format("/"), v1("cpu", "", 100000, 0), None),
        (V2.format("/"), v2(**{"": "soon"}), None),
        ("no groups at all", {}, None),
        ("", v2(**{"": "100000 100000"}), None),
    ],
)
def test_the_least_limit_counts(
    groups: str, limits: dict[str, str], quota: float | None, tmp_path: Path
) -> None:
    assert read_cpu_quota(tree(tmp_path, groups, **limits)) == quota


def test_a_system_without_groups(tmp_path: Path) -> None:
    assert read_cpu_quota(tmp_path) is None
