"""The software versions of a run."""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ...envs.core.plugins import plugin_versions
from .own_code import own_classes

PACKAGES = (
    "turngym",
    "gymnasium",
    "numpy",
    "scipy",
    "bm25s",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
)


def versions(env_ids: list[str], step: int, parts: Iterable[Any] = ()) -> dict[str, Any]:
    """Return one entry of ``versions.json``.

    Args:
        env_ids: Ids of the environments used; the version is part of an id.
        step: Training step that the process started from.
        parts: What may be of the user's own classes.
    """
    import torch

    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "from_step": step,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "torch_threads": torch.get_num_threads(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
        "git_commit": git_commit(),
        "environments": env_ids,
        "packages": dict(_package_versions()),
        "plugins": plugin_versions(),
        "own_classes": own_classes(parts),
    }


@cache
def _package_versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


@cache
def git_commit() -> str | None:
    """Return the source tree's git commit; None without git.

    ``+changes`` behind it says that files differ, ``+unknown`` that git could not tell. Asked once
    per process: what was imported does not change afterwards.
    """
    git = shutil.which("git")
    root = Path(__file__).resolve().parents[2]
    if git is None or not (root / ".git").exists():
        return None
    commit = _git(git, root, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(git, root, "status", "--porcelain")
    return commit + ("+unknown" if changes is None else "+changes" if changes else "")


def _git(git: str, root: Path, *words: str) -> str | None:
    command = [git, "--no-optional-locks", "-C", str(root), *words]  # it only reads
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError:  # no further process can be started, or git itself cannot
        return None
    return done.stdout.strip() if done.returncode == 0 else None
