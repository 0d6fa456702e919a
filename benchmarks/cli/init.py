"""`turngym init`: a package with an environment of one's own, which runs as it is written."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import tyro

from ...envs.core.errors import BadValueError
from ...envs.core.registration import all_ids
from .arguments import new_folder
from .tables import say

TEMPLATE = Path(__file__).parent / "package_template"
SUFFIX = ".tmpl"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class Command:
    """Write a package with an environment of your own: tasks, rules, expert, tests, README.

    It runs and passes its tests as it is written; then make it yours.

    Attributes:
        name: Name of the package, in small letters, as in my-game: the environment is MyGame-v0.
        out: New folder; left out: one of that name here.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    out: str | None = None


def run(command: Command) -> None:
    """Write the package and say what to do with it.

    Raises:
        BadValueError: The name is no name of a package, or taken; the folder holds files.
    """
    names = name_parts(command.name)
    folder = new_folder(command.out or command.name)
    written = write_package(names, folder)
    say(f"{names['id']} is in {folder}, {len(written)} files. Next:")
    say("")
    for line in (
        f"cd {folder}",
        "python -m pytest",
        f"turngym envs {names['module']}:{names['id']}",
        f"turngym play {names['module']}:{names['id']}",
        "pip install --no-deps --no-build-isolation -e .   # then the id alone is enough",
    ):
        say(f"  {line}")


def name_parts(name: str) -> dict[str, str]:
    """Return the names in a package that follow from its own.

    Raises:
        BadValueError: It is no name of a package, or stands for something else here.
    """
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(module):
        raise BadValueError(
            f"init: {name!r} is no name of a package; expected small letters and digits, with - "
            "between words, as in my-game."
        )
    env_class = "".join(word.capitalize() for word in module.split("_"))
    env_id = f"{env_class}-v0"
    if find_spec(module) is not None:
        raise BadValueError(f"init: there is a module {module!r} already; choose another name.")
    if env_id in all_ids(hidden=True):
        raise BadValueError(f"init: there is an environment {env_id} already; choose another name.")
    return {"name": name, "module": module, "class": env_class, "id": env_id}


def write_package(names: dict[str, str], folder: Path) -> list[Path]:
    """Write the files of the template with these names; return their paths."""
    written = []
    for source in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
        target = source.relative_to(TEMPLATE).with_suffix("")
        if target.suffix == ".py" and target.parent == Path():
            target = Path(names["module"]) / target
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Template(source.read_text(encoding="utf-8")).substitute(names)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
