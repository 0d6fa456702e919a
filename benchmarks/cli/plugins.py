"""Plugins: Python files that register environments and recipes before a command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ...envs.core.errors import DataError
from .env_options import existing_file


def run_plugins(files: Sequence[str]) -> None:
    """Run Python files for what they register.

    Raises:
        DataError: A file that does not exist or cannot be run; the message carries its own error.
    """
    for file in files:
        _run_plugin(existing_file(file, "--plugin"))


def _run_plugin(file: str) -> None:
    name = f"turngym_plugin_{Path(file).stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise DataError(f"--plugin: {file} is no Python file (its name must end with .py).")
    sys.modules[name] = module = module_from_spec(spec)  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError, NameError, AttributeError, TypeError) as error:
        raise DataError(f"--plugin {file}: {type(error).__name__}: {error}") from error
