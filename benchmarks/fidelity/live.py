"""What the original engines play now for `turngym fidelity --live`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...envs.core.errors import BadValueError


@dataclass(frozen=True, kw_only=True)
class LiveSettings:
    """What is generated.

    Attributes:
        runs: Variations (for household: games) per task with --live; each gives a run that solves
            it and a random walk.
        steps: Actions of a random walk with --live.
        seed: Seed of the variations, games and walks of --live.
        keep: Folder to write the transcripts of --live to.
    """

    runs: int = 2
    steps: int = 40
    seed: int = 0
    keep: str | None = None

    def __post_init__(self) -> None:
        for name in ("runs", "steps"):
            if getattr(self, name) < 1:
                raise BadValueError(
                    f"fidelity --live: {name} is {getattr(self, name)}; expected at least 1."
                )

    def write(self, name: str, text: str) -> None:
        """Write a file below ``keep``, or nothing where that is None.

        Raises:
            BadValueError: It cannot be written.
        """
        if self.keep is None:
            return
        path = Path(self.keep).expanduser() / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as fault:
            raise BadValueError(f"fidelity: cannot write {path} ({fault.strerror}).") from fault
