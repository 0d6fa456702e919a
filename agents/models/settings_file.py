"""The file in a trained model's folder that keeps its settings beside the weights."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...envs.core.errors import BadValueError, DataError

T = TypeVar("T")


@dataclass(frozen=True)
class SettingsFile(Generic[T]):
    """Reads and writes the settings of one kind of model.

    Attributes:
        name: Name of the file.
        key: Where the settings stand in it; how the model was trained stands under ``training``.
        kind: Dataclass of the settings.
        model: What the folder holds, for messages.
        command: Command that trains such a model.
    """

    name: str
    key: str
    kind: type[T]
    model: str
    command: str

    def write(
        self, folder: Path | str, settings: T, training: Mapping[str, Any] | None = None
    ) -> None:
        """Write the settings, and how the model was trained."""
        content = {self.key: dataclasses.asdict(settings), "training": dict(training or {})}  # type: ignore[call-overload]
        text = json.dumps(content, indent=2) + "\n"
        (Path(folder) / self.name).write_text(text, encoding="utf-8")

    def read(self, folder: Path | str, default: T | None = None) -> T:
        """Return the settings of a folder, or the default where it has no such file.

        Raises:
            BadValueError: The file is missing, and there is no default.
            DataError: The file does not hold these settings.
        """
        path = Path(folder) / self.name
        if not path.is_file():
            if default is not None:
                return default
            raise BadValueError(
                f"{folder}: no {self.model}: {self.name} is missing. Train one with "
                f"`{self.command}`."
            )
        try:
            return self.kind(**json.loads(path.read_text(encoding="utf-8"))[self.key])
        except (ValueError, KeyError, TypeError) as fault:
            raise DataError(
                f"{path}: not the settings of a {self.model} ({fault}); expected what "
                f"`{self.command}` writes. Train it again."
            ) from fault
