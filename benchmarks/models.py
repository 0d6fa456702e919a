"""Models by what a person types: a folder, a hub name, or the directory of a run."""

from __future__ import annotations

from pathlib import Path

from ..agents.scripted import scripted_names
from ..envs.errors import BadValueError, UnknownNameError


def model_path(name: str) -> str:
    """Folder of the newest checkpoint of a run directory; anything else as it is.

    Raises:
        BadValueError: A run directory without a checkpoint.
        UnknownNameError: A word that is neither a scripted agent nor a path.
    """
    folder = Path(name).expanduser()
    if (folder / "checkpoints").is_dir():
        from ..algos.checkpoint import newest_whole

        newest = newest_whole(folder / "checkpoints")
        if newest is None:
            raise BadValueError(
                f"{name}: the run has no checkpoint yet; let it train longer, or name a model."
            )
        return str(newest)
    if not folder.exists() and "/" not in name:
        known = (*scripted_names(), "human", "a run directory", "a model folder")
        raise UnknownNameError("agent", name, known)
    return str(folder) if folder.exists() else name
