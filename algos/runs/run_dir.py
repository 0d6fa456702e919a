"""The run directory: configuration, metrics, checkpoints and lock.

=====================  =========================================================================
``config.json``        the resolved configuration; a run with another one is refused
``versions.json``      one entry per start: packages, git commit, platform, plugins, hashes of the
                       user's own classes and of some tasks of each evaluation set
``lock``               held while a process works here; freed by the system when it dies
``metrics.jsonl``      one JSON object per line, keys as in ``algos/runs/metrics.py``
``tensorboard/``       the same as TensorBoard events
``trajectories/``      sample transcripts as text, forests as JSON lines, some groups with
                       every number per token (what ``turngym view`` shows)
``checkpoints/``       models in Hugging Face form with the trainer's state beside them
``earlier-1/``, ...    metrics and result of a run that was here before and left no checkpoint
``result.json``        scores before and after, as ``RunResult`` of the evaluation
``curve.png``          reward and success against sampled tokens
=====================  =========================================================================

Of several processes the first writes there, the others into folders that are deleted at the end.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from ...envs.core.digest import digest_of
from ...envs.core.errors import BadValueError, DataError, TurngymError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import whole_file
from ...envs.utils.system import free_lock, require_posix, try_lock
from .metrics import checked
from .own_code import changed_code

if TYPE_CHECKING:
    from .process_group import Ranks

BUDGET = "budget"
"""The part of a configuration that may change when a run is resumed."""
SERVERS = "http"
"""Likewise: where engine servers are, and how patient to be with them."""
MEMORY = frozenset(
    {
        "max_batch",
        "learner.micro_batch_tokens",
        "learner.gradient_checkpointing",
        "learner.offload_activations",
    }
)
"""Settings that may change too: they decide what fits into memory, and nothing else."""
_MODELS = (("model", "model_digest"), ("warm_start.base", "warm_start.base_digest"))
"""Settings that name the folder of a model, with those that hold a hash of its weights."""
_VERSIONS = "versions.json"
_MAX_NAME = 150
_BEGUN = ("lock", "config.json.part")
"""What a run has that ended before its configuration was written."""


def run_name(recipe: str, env_id: str, settings: Mapping[str, Any], model: str, seed: int) -> str:
    """Return the usual name of a run's folder, which tells it from other runs.

    Args:
        recipe: Name of the recipe or preset.
        env_id: The environment.
        settings: Its settings, of which the size is part of the name.
        model: What was typed for the starting model; a checkpoint stands for its run.
        seed: Of training.
    """
    path = Path(model)
    if path.parent.name == "checkpoints":
        path = path.parent.parent
    parts = (recipe, env_id.removesuffix("-v0"), str(settings.get("size", "")), path.name)
    words = [re.sub(r"[^a-z0-9.-]+", "_", part.lower()).strip("_.-") for part in parts]
    name = "-".join(filter(None, words))
    if len(name) > _MAX_NAME:  # a file system takes 255 characters
        name = f"{name[:_MAX_NAME]}-{digest_of(name)[:12]}"
    return f"{name}-seed{seed}"


class RunLockedError(TurngymError, RuntimeError):
    """Another process works in this run directory."""


class Closing:
    """Base of objects that are closed at the end of a ``with`` block."""

    def close(self) -> None:
        """Release what the object holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class RunDir(Closing):
    """An opened, locked run directory; a context manager.

    Args:
        root: The folder; made when it does not exist.
        config: The resolved configuration as JSON data.

    Raises:
        RunLockedError: Another process holds the folder.
        BadValueError: The folder belongs to another configuration, or to something else, or the
            system or the folder's file system has no locks.
        DataError: ``config.json`` is damaged.
    """

    def __init__(self, root: Path | str, config: Mapping[str, Any]) -> None:
        require_posix("a run directory")
        self.root = Path(root).absolute()  # a notebook may change its folder meanwhile
        self.checkpoints = self.root / "checkpoints"
        make_folder(self.root)
        self._lock = _take_lock(self.root / "lock")
        self._owner = os.getpid()
        try:
            self._adopt(json.loads(json.dumps(config)))
        except BaseException:
            self.close()
            raise

    def _adopt(self, config: dict[str, Any]) -> None:
        path = self.root / "config.json"
        if path.exists():
            self.check_config(read_json(path), config)
        elif others := [p.name for p in self.root.iterdir() if p.name not in _BEGUN]:
            raise BadValueError(
                f"{self.root} is not empty ({', '.join(sorted(others)[:5])}) but holds no "
                "config.json: it is not a run directory, or a damaged one. Choose a new folder."
            )
        write_json(path, config)
        for name in ("trajectories", "checkpoints", "tensorboard"):
            (self.root / name).mkdir(exist_ok=True)

    def check_config(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Refuse a configuration that differs in more than budget, servers and memory."""
        differing = list_differences(old, new)
        if differing:
            raise BadValueError(
                f"{self.root} holds a run with another configuration. Differing: "
                + "; ".join(differing)
                + ". Give the same settings to resume it, or another folder to start a new run."
            )

    def check_held(self) -> None:
        """Refuse to write where the folder is another one since: a run may have begun there.

        Raises:
            DataError: The lock that this process holds is not the folder's any more, or was given
                back when the run was closed.
        """
        if self._lock.closed:
            raise DataError(
                f"{self.root}: this run was closed, and another one may go on in its folder. Make "
                "a new one of the same settings there, which resumes from the last checkpoint."
            )
        try:
            held = os.path.samestat(os.fstat(self._lock.fileno()), os.stat(self.root / "lock"))
        except (FileNotFoundError, NotADirectoryError):
            held = False
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            held = False
        if not held:
            raise DataError(
                f"{self.root}: the folder or its file `lock` was removed, moved or replaced while "
                "the run worked there. The run ends, and what is there now stays as it is. Start "
                "it again; where the folder was moved, with its new name."
            )

    # ------------------------------------------------------------------ metrics

    @property
    def metrics_path(self) -> Path:
        """``metrics.jsonl``."""
        return self.root / "metrics.jsonl"

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Write one line of metrics: a run directory is a logger itself.

        Raises:
            UnknownNameError: A key is not declared.
            DataError: As :meth:`check_held`.
        """
        self.check_held()
        line = json.dumps({"step": step, **checked(row)})
        with self.metrics_path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def metrics_size(self) -> int:
        """Return the size of ``metrics.jsonl`` in bytes; a checkpoint stores it.

        Raises:
            DataError: As :meth:`check_held`.
        """
        self.check_held()
        return self.metrics_path.stat().st_size if self.metrics_path.exists() else 0

    def rewind_metrics(self, size: int) -> None:
        """Drop the lines that were written after the checkpoint.

        Raises:
            DataError: The file is shorter than the checkpoint says, or damaged: at the end of the
                training it would be too late.
        """
        have = self.metrics_size()
        if have < size:
            raise DataError(
                f"{self.metrics_path} has {have} bytes; the checkpoint was written after {size}. "
                "The file was cut; restore it, or start a new run in another folder."
            )
        if have > size:
            with self.metrics_path.open("r+b") as file:
                file.truncate(size)
        read_metrics(self.metrics_path)
        if size and not self.metrics_path.read_bytes().endswith(b"\n"):
            raise DataError(
                f"{self.metrics_path}: its last line is damaged. Restore the file, or start a new "
                "run in another folder."
            )

    def set_aside(self) -> Path | None:
        """Move metrics and result of a run that left no checkpoint into a folder; return it.

        Returns:
            None where there are none.
        """
        there = [p for p in (self.metrics_path, self.root / "result.json") if p.exists()]
        if not there:
            return None
        taken = {p.name for p in self.root.glob("earlier-*")}
        number = next(n for n in range(1, len(taken) + 2) if f"earlier-{n}" not in taken)
        folder = self.root / f"earlier-{number}"
        folder.mkdir()
        for path in there:
            path.rename(folder / path.name)
        return folder

    def close(self) -> None:
        """Free the lock; in a fork of the process that holds it, leave it to that one."""
        if self._lock.closed:
            return
        if os.getpid() != self._owner:
            self._lock.close()
            return
        self._lock.seek(0)
        self._lock.truncate()
        free_lock(self._lock)


def list_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return by dotted name what makes a run another one: all but budget, servers and memory.

    Args:
        config: A configuration as JSON data.
    """
    return {
        key: value
        for key, value in _flat(config).items()
        if key.split(".")[0] not in (BUDGET, SERVERS) and key not in MEMORY
    }


def list_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return in which settings two configurations are those of different runs.

    The same weights in another folder are the same model: runs are moved to other machines.

    Args:
        old: A configuration as JSON data.
        new: Another one.
    """
    was, now = list_settings(old), list_settings(new)
    for model, digest in _MODELS:
        weights = str(was.get(digest, ""))
        if weights.startswith("sha256:") and weights == now.get(digest):
            was[model] = now[model]
    return [
        f"{key}: was {was.get(key, 'absent')!r}, now {now.get(key, 'absent')!r}"
        for key in sorted(was.keys() | now.keys())
        if was.get(key) != now.get(key)
    ]


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a ``metrics.jsonl``, without an incomplete last line.

    Raises:
        DataError: Any other line that is no JSON object.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise DataError(f"{path}, line {number}: expected a JSON object ({error}).") from error
        rows.append(row)
    return rows


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        DataError: The file is missing, cut or holds something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; the run directory is incomplete.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: not readable as JSON ({error}); the file was cut or damaged. Restore it, or "
            "start a new run in another folder."
        ) from error
    if not isinstance(data, dict):
        raise DataError(f"{path}: holds a {type(data).__name__}; expected a JSON object.")
    return data


def write_json(path: Path, data: Any, *, compact: bool = False) -> None:
    """Write JSON so that a reader sees the old file or the whole new one.

    Args:
        path: The file.
        data: JSON data.
        compact: Whether it is on one line: not for people, but in a third of the time and space.
    """
    with whole_file(path, sync=True) as file:
        if compact:  # json.dump would encode in Python, value by value
            file.write(json.dumps(data, separators=(",", ":"), ensure_ascii=False))
        else:
            json.dump(data, file, indent=2, ensure_ascii=False)
        file.write("\n")


def add_version(root: Path, entry: Mapping[str, Any]) -> list[str]:
    """Append an entry to ``versions.json``, one for each start of the run.

    Returns:
        Classes and plugins of the user's own that were other code at an earlier start.
    """
    starts = read_starts(root)
    write_json(root / _VERSIONS, {"starts": [*starts, entry]})
    return sorted({name for start in starts for name in changed_code(start, entry)})


def read_starts(root: Path) -> list[dict[str, Any]]:
    """Return the entries of ``versions.json``, one for each start of the run so far.

    Raises:
        DataError: The file is damaged.
    """
    path = root / _VERSIONS
    return read_json(path)["starts"] if path.exists() else []


def _take_lock(path: Path) -> IO[str]:
    """Lock ``path`` for this process; the system releases the lock when the process ends."""
    file = path.open("a+", encoding="utf-8")
    try:
        locked = try_lock(file, "a run directory")
    except BaseException:
        file.close()
        raise
    if not locked:
        file.seek(0)
        holder = file.read().strip() or "an unknown process"
        file.close()
        if holder == _describe_process():
            raise RunLockedError(
                f"{path.parent} is in use by {holder}, which is this one. Close the trainer that "
                "holds it (its close(), or a with block), or choose another run directory."
            )
        raise RunLockedError(
            f"{path.parent} is in use by {holder}. Wait until it ends, stop it, or choose another "
            "run directory."
        )
    file.seek(0)
    file.truncate()
    file.write(_describe_process())
    file.flush()
    return file


def _describe_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat.update(_flat(value, name + ".") or {name: {}})
        else:
            flat[name] = value
    return flat


class AsideDir(RunDir):
    """A temporary folder of a further process, deleted at the end.

    Args:
        root: The run directory, which the first process has opened.
        config: The resolved configuration.
    """

    def __init__(self, root: Path | str, config: Mapping[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="turngym-rank-")
        super().__init__(self._folder.name, config)
        root = Path(root).absolute()
        for name in ("metrics.jsonl", "ahead"):
            source, mine = root / name, self.root / name
            if source.is_dir():
                shutil.copytree(source, mine)
            elif source.exists():
                shutil.copy(source, mine)
        self.checkpoints = root / "checkpoints"

    def check_held(self) -> None:
        """Nobody else writes here."""

    def close(self) -> None:
        """Free the lock and delete the folder."""
        super().close()
        self._folder.cleanup()


def open_run_dir(root: Path | str, config: Mapping[str, Any], ranks: Ranks) -> RunDir:
    """Open the run directory for this process.

    Raises:
        TurngymError: As :class:`~RunDir`; in the other processes too.
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
