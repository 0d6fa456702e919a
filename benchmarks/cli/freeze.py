"""`turngym leaderboard freeze`: a suite over one environment, of one's own for example."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro

from ...algos.runs.progress import reporter
from ...envs.core.errors import BadValueError
from ...envs.core.registration import find_environment
from ...envs.core.tasks import get_split_size
from ...envs.utils.disk_cache import make_folder
from ...leaderboard.schema.base import make_form
from ...leaderboard.schema.suite import Cell, Suite
from ...leaderboard.suites.digests import make_cell_env, with_digests
from ...leaderboard.suites.files import write_suite
from .arguments import Repeated, plugin_words, values
from .tables import say


@dataclass(frozen=True, kw_only=True)
class Command:
    """Freeze tasks of an environment as a suite, in a file that submit and verify take.

    Attributes:
        env: Id of the environment; one of your own as MODULE:Id-v0.
        name: Name of the suite; left out: the environment's.
        version: Its version; a suite that changes needs the next.
        env_arg: A setting of the environment as name=value, repeatable; short form: --env.NAME
            VALUE.
        split: Split of the tasks.
        n: Number of tasks, the first ones; left out: at most 50.
        trials: Episodes of each task.
        out: Folder of the file.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    name: str | None = None
    version: int = 1
    env_arg: Repeated = ()
    split: str = "test"
    n: int | None = None
    trials: int = 2
    out: str = "."


DEFAULT_TASKS = 50


def run(command: Command) -> None:
    """Compute the digests of the tasks and write the suite.

    Raises:
        UnknownNameError: No such environment, setting or split.
        BadValueError: The split holds less tasks, or a number is out of range.
        DataError: The file holds another suite.
    """
    row, out = find_environment(command.env), make_folder(Path(command.out).expanduser())
    cell = make_form(
        Cell,
        "freeze",
        key=row.id,
        env_id=row.id,
        settings=values(command.env_arg, "--env-arg"),
        split=command.split,
        tasks=(0,),
        trials=command.trials,
        metric="success" if row.leaderboard is None else row.leaderboard.metric,
        max_turns=1,
        digests=("0" * 32,),
    )
    env = make_cell_env(cell)
    size = get_split_size(env.source, command.split, row.id)
    wanted = command.n if command.n is not None else min(DEFAULT_TASKS, size or DEFAULT_TASKS)
    if wanted < 1 or (size is not None and wanted > size):
        raise BadValueError(
            f"--n is {wanted}; split {command.split!r} of {row.id} holds "
            f"{'tasks without end' if size is None else f'{size} tasks'}."
        )
    listed = {"tasks": tuple(range(wanted)), "digests": ("0" * 32,) * wanted}
    draft = make_form(
        Suite,
        "freeze",
        name=command.name or row.id.rpartition("-v")[0].lower(),
        version=command.version,
        description=f"{wanted} tasks of {row.id}, {command.trials} episodes each.",
        cells=(Cell(**(dict(cell) | listed)),),
    )
    with reporter().bar("freezing") as bar:
        suite = with_digests(draft, lambda done, count: bar.update(done / count))
    path = write_suite(suite, out)
    say(f"{suite.id}: {wanted} tasks, digest {suite.digest[:8]}, in {path}")
    file, plugins = quote(str(path)), plugin_words()
    about = "--name … --organisation … --licence …"
    say(f"turngym submit AGENT --suite {file}{plugins} {about} --out ENTRY")
    say(f"turngym leaderboard verify ENTRY --suite-file {file}{plugins}")
