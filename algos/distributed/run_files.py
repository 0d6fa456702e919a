"""Where the processes of a run write: the first into the run directory, the others nowhere."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...envs.errors import DataError
from ..run_dir import RunDir
from .ranks import Ranks


class AsideDir(RunDir):
    """A private folder that begins as a copy of the run's counters, and is deleted at the end.

    Args:
        root: The run directory, which the first process has opened.
        config: The resolved configuration.
    """

    def __init__(self, root: Path | str, config: Mapping[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="turngym-rank-")
        super().__init__(self._folder.name, config)
        for name in ("metrics.jsonl", "ahead"):
            source, mine = Path(root) / name, self.root / name
            if source.is_dir():
                shutil.copytree(source, mine)
            elif source.exists():
                shutil.copy(source, mine)
        self.checkpoints = Path(root) / "checkpoints"

    def close(self) -> None:
        """Free the lock and delete the folder."""
        super().close()
        self._folder.cleanup()


def open_run_dir(root: Path | str, config: Mapping[str, Any], ranks: Ranks) -> RunDir:
    """The run directory as this process sees it.

    Raises:
        TurngymError: As :class:`~turngym.algos.run_dir.RunDir`; in the other processes too.
    """
    if not ranks.first:
        refused = ranks.learner.from_first("")
        if refused:
            raise DataError(f"{root}: the first process could not open it ({refused}).")
        aside = AsideDir(root, config)
        ranks.learner.everyone("copied")
        return aside
    try:
        opened = RunDir(root, config)
    except BaseException as fault:
        ranks.learner.from_first(str(fault) or type(fault).__name__)
        raise
    ranks.learner.from_first("")
    ranks.learner.everyone("copied")  # nothing is written before the others have their copies
    return opened
