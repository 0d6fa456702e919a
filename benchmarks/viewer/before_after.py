"""One task before and after training: two evaluation episodes of a run, side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...algos.training.run_writer import WrittenEpisode

_FILE = re.compile(r"step-(\d+)-(?P<name>.+)\.txt")
_GREEDY = "greedy"
_BROKEN = ("env_error", "agent_error")


@dataclass(frozen=True, kw_only=True)
class BeforeAfter:
    """A task's episodes before and after training.

    Attributes:
        name: The evaluation set.
        steps: The training steps of both.
        before: The episode of the first evaluation.
        after: That of the last one, of the same task and decoding.
    """

    name: str
    steps: tuple[int, int]
    before: WrittenEpisode
    after: WrittenEpisode

    @property
    def worth(self) -> tuple[bool, float, bool]:
        """Return how much it shows: failed, then solved; the gain; without luck of sampling."""
        turned = self.before.status != "solved" and self.after.status == "solved"
        greedy = self.after.decoding == _GREEDY
        return turned, self.after.total - self.before.total, greedy


def find_before_after(folder: Path) -> BeforeAfter | None:
    """Return the pair that shows most; None where a run was not evaluated twice.

    Args:
        folder: The run's folder of trajectories.
    """
    pairs = [pair for files in _evaluations(folder).values() for pair in _pairs(files)]
    return max(pairs, key=lambda pair: pair.worth, default=None)


def _evaluations(folder: Path) -> Mapping[str, list[tuple[int, Path]]]:
    """Return the files of each evaluation set, by step."""
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in sorted(folder.glob("step-*.txt")):
        match = _FILE.fullmatch(path.name)
        if match is not None and match["name"] != "train":
            found.setdefault(match["name"], []).append((int(match[1]), path))
    return {name: sorted(files) for name, files in found.items()}


def _pairs(files: list[tuple[int, Path]]) -> list[BeforeAfter]:
    from ...algos.training.run_writer import read_evaluation  # it loads torch

    (first, old), (last, new) = files[0], files[-1]
    if first == last:
        return []
    match = _FILE.fullmatch(new.name)
    assert match is not None
    known = {(e.task_id, e.decoding): e for e in read_evaluation(old) if e.status not in _BROKEN}
    return [
        BeforeAfter(name=match["name"], steps=(first, last), before=before, after=after)
        for after in read_evaluation(new)
        if after.status not in _BROKEN
        and (before := known.get((after.task_id, after.decoding))) is not None
    ]
