"""Plugins: files and modules of a user's own that register environments, recipes and engines.

There are three ways to one. ``--plugin FILE|MODULE`` and ``MODULE:Id-v0`` on the command line load
it now. An installed package names it in the entry-point group ``turngym.environments``, by the id
of each environment, and it is loaded when somebody asks for an unknown id or for a list. Processes
that this one starts load what it loaded, from an environment variable.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

from .errors import DataError

GROUP = "turngym.environments"
"""The group of entry points: the name is an environment's id, the value the module that registers
it."""
VARIABLE = "TURNGYM_PLUGINS"
"""The environment variable that tells the processes of a command which plugins it loaded."""
OF_MODULE = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.\w+)*):(?P<id>[A-Za-z][\w-]*-v\d+)")
"""An environment of a module, as in ``mine:Mine-v0``."""
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")


class Plugin(NamedTuple):
    """A plugin, as another process on this machine finds it.

    Attributes:
        module: Name of the module; empty for a file.
        path: Absolute path of the file; of a module the folder that it was looked for in.
    """

    module: str
    path: str


_loaded: dict[Plugin, str] = {}
"""What was loaded, with a hash of its content."""
_asked: set[str] = set()
"""What :func:`discover` has done already: "installed", and the values of the variable."""


def load_plugin(word: str) -> Plugin:
    """Load a plugin for what it registers.

    Args:
        word: Path of a Python file, or the name of a module that is installed or lies in the
            working folder.

    Raises:
        DataError: There is none, or it does not run; the message carries its own error.
    """
    plugin = _find(word)
    _execute(plugin, word)
    return plugin


def load_again(plugins: Iterable[Sequence[str]]) -> None:
    """Load plugins that another process loaded, unless this one has.

    Raises:
        DataError: One is gone, or does not run here.
    """
    for module, path in plugins:
        plugin = Plugin(module, path)
        if plugin not in _loaded:
            _execute(plugin, module or path)


def load_inherited() -> None:
    """Load what the process that started this one had loaded.

    Raises:
        DataError: One of its plugins is gone, or does not run here.
    """
    value = os.environ.get(VARIABLE, "")
    if value and value not in _asked:
        _asked.add(value)
        load_again(json.loads(value))


def loaded_plugins() -> tuple[Plugin, ...]:
    """Return what was loaded by name, in this order; installed packages are not among them."""
    return tuple(_loaded)


def plugin_versions() -> dict[str, str]:
    """Return what the loaded plugins were when they were loaded: a hash of their source by name.

    Of a file that file's alone, of a package all of its Python files.
    """
    return {p.module or Path(p.path).name: digest for p, digest in _loaded.items()}


@contextmanager
def passed_on() -> Iterator[None]:
    """Tell processes that are started within about the plugins that are loaded within."""
    before, outside = os.environ.get(VARIABLE), dict(_loaded)
    try:
        yield
    finally:
        _loaded.clear()
        _loaded.update(outside)
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def installed() -> list[EntryPoint]:
    """Return the environments that installed packages name, one entry point per id."""
    return list(entry_points(group=GROUP))


def discover() -> None:
    """Load the plugins of the parent process, and once those of installed packages.

    An installed package that does not load is left out with a warning: it must not keep others
    from working.

    Raises:
        DataError: A plugin of the parent process is gone, or does not run here.
    """
    load_inherited()
    if "installed" in _asked:
        return
    _asked.add("installed")  # first: a plugin may ask for lists itself
    for point in installed():
        try:
            point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a stranger's module does
            warn_left_out(point, error)


def warn_left_out(point: EntryPoint, error: BaseException) -> None:
    """Warn that an installed environment is not there, and why."""
    warnings.warn(
        f"the installed environment {point.name} ({point.value}) is left out: "
        f"{type(error).__name__}: {error}",
        stacklevel=3,
    )


def _find(word: str) -> Plugin:
    path = Path(word).expanduser()
    if path.is_file() or path.suffix == ".py" or "/" in word:
        if not path.is_file():
            raise DataError(f"--plugin: {word} is not a file.")
        if path.suffix != ".py":
            raise DataError(f"--plugin: {word} is no Python file (its name must end with .py).")
        return Plugin("", str(path.resolve()))
    if not _MODULE.fullmatch(word):
        raise DataError(f"--plugin: {word} is neither a file nor the name of a module.")
    return Plugin(word, str(Path.cwd()))


def _execute(plugin: Plugin, word: str) -> None:
    try:
        if plugin.module:
            _import(plugin)
        else:
            _run_file(Path(plugin.path))
    except DataError:
        raise
    except SystemExit as end:
        raise DataError(
            f"--plugin {word}: ends the program when it is imported ({end!r}); put what only a "
            'script does under if __name__ == "__main__".'
        ) from end
    except Exception as error:
        raise DataError(f"--plugin {word}: {type(error).__name__}: {error}") from error
    _loaded[plugin] = _hash_source(plugin)
    os.environ[VARIABLE] = json.dumps(list(_loaded))


def _hash_source(plugin: Plugin) -> str:
    """Return a hash of a plugin's source; empty where there is none to read (any more)."""
    module = sys.modules.get(plugin.module)  # of folders and of compiled ones there is no file
    path = Path(plugin.path if module is None else getattr(module, "__file__", None) or "")
    inner = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    found = hashlib.sha256()
    try:
        for file in inner:
            content = file.read_bytes()
            found.update(
                f"{file.relative_to(path.parent).as_posix()} {len(content)} ".encode() + content
            )
    except OSError:
        return ""
    return found.hexdigest()[:12]


def _import(plugin: Plugin) -> None:
    _add_to_path(plugin.path)
    top = plugin.module.partition(".")[0]
    if top not in sys.modules and find_spec(top) is None:
        raise DataError(
            f"--plugin {plugin.module}: there is no module {top!r}, neither installed nor in "
            f"{plugin.path}."
        )
    module = import_module(plugin.module)
    if getattr(module, "__file__", None) is None and hasattr(module, "__path__"):
        raise DataError(
            f"--plugin {plugin.module}: is a folder without __init__.py, so nothing in it was run; "
            f"expected a module: name one in it ({plugin.module}.NAME), or a file."
        )


def _run_file(path: Path) -> None:
    """Run a file under its own name where that is free, so that it can be imported by it too."""
    if not path.is_file():
        raise DataError(f"--plugin: {path} is not a file (any more).")
    _add_to_path(str(path.parent))
    name = path.stem if _is_free(path) else f"turngym_plugin_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    before = sys.modules.get(name)
    sys.modules[name] = module = module_from_spec(spec)  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise


def _is_free(path: Path) -> bool:
    """Return whether the file's name stands for nothing else."""
    if not path.stem.isidentifier():
        return False
    if path.stem in sys.modules:
        return getattr(sys.modules[path.stem], "__file__", None) == str(path)
    spec = find_spec(path.stem)
    return spec is None or spec.origin == str(path)


def _add_to_path(folder: str) -> None:
    """Let modules in a folder be imported, after all others of their name."""
    if folder not in sys.path:
        sys.path.append(folder)
        invalidate_caches()
