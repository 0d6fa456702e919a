"""Environments and evaluation sets on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from ...algos.training.config import EnvConfig, EvalConfig
from ...envs.core.errors import BadValueError, DataError
from .arguments import Repeated, pairs, values


@dataclass(frozen=True, kw_only=True)
class EnvOptions:
    """Settings of the environment.

    Attributes:
        size: Size of the generated world, e.g. micro or full.
        hops: Facts that a question needs, one number or several (SearchQA).
        data: File of questions to use instead of the generated world, or a folder with a file per
            split (SearchQA).
        corpus: File of passages that goes with --data, or the folder of an index over one.
        env_arg: Any other setting as name=value, repeatable; short form: --env.NAME VALUE.
    """

    size: str | None = None
    hops: tuple[int, ...] = ()
    data: str | None = None
    corpus: str | None = None
    env_arg: Repeated = ()


Environment = Annotated[EnvOptions, tyro.conf.arg(name="")]
_SEARCHED = ("corpus", "retriever", "site", "search_url")


def env_config(env: str, options: EnvOptions) -> EnvConfig:
    """Return the environment that the options describe.

    Raises:
        BadValueError: A setting given twice.
        DataError: A file that does not exist.
    """
    settings: dict[str, Any] = {}
    if options.size is not None:
        settings["size"] = options.size
    if options.hops:
        settings["hops"] = options.hops[0] if len(options.hops) == 1 else list(options.hops)
    for name in ("data", "corpus"):
        if (file := getattr(options, name)) is not None:
            settings[name] = existing_file(file, f"--{name}", folder=True)
    for name, value in values(options.env_arg, "--env-arg").items():
        if name in settings:
            raise BadValueError(f"--env.{name}: was given as --{name} too; give it once.")
        settings[name] = value
    return EnvConfig(id=env, settings=settings)


def file_sets(
    env: EnvConfig, words: tuple[str, ...], n: int, split: str | None = None
) -> tuple[EvalConfig, ...]:
    """Return evaluation sets from ``name=file`` words, with the environment's other settings.

    ``weights`` are left out: they mix the sets that are trained on.

    Args:
        env: The environment.
        words: The words.
        n: Tasks of each set.
        split: A split that was asked for too, with its option.

    Raises:
        BadValueError: The environment has nothing of the user's own to search in; a split as well.
        DataError: A file that does not exist.
    """
    if words and split:
        raise BadValueError(
            f"{split}: does not go with --eval-data, whose files are scored in place of a split (a "
            "folder's last one). Leave one of them out; another split of a folder is a file of it, "
            "as in --eval-data NAME=FOLDER/train.jsonl."
        )
    if words and not any(name in env.settings for name in _SEARCHED):
        raise BadValueError(
            "--eval-data: needs what is searched for the answers: --corpus or --env.retriever (for "
            "WebQA: --env.site or --env.search_url)."
        )
    sets = []
    kept = {name: value for name, value in env.settings.items() if name != "weights"}
    for name, file in pairs(words, "--eval-data").items():
        settings = {**kept, "data": existing_file(file, f"--eval-data {name}", folder=True)}
        made = EnvConfig(id=env.id, settings=settings)
        sets.append(EvalConfig(name=name, env=made, split="", n=n))
    return tuple(sets)


def check_own_tasks(env: EnvConfig, option: str) -> None:
    """Refuse an option that learns where ``--eval-data`` names the only tasks.

    Raises:
        BadValueError: The environment has no tasks of its own.
    """
    try:
        env.prototype  # noqa: B018 - made here
    except BadValueError as fault:
        raise BadValueError(
            f"{option}: learns from tasks of the split train, never from those of --eval-data, "
            f"which are scored; name the questions to learn from with --data ({fault})."
        ) from fault


def existing_file(file: str, option: str, folder: bool = False) -> str:
    """Return the absolute path of a file that must exist, or of a folder where one may be given.

    Raises:
        DataError: It does not.
    """
    path = Path(file).expanduser()
    if not (path.is_file() or (folder and path.is_dir())):
        raise DataError(f"{option}: {file} is not a file{' or a folder' if folder else ''}.")
    return str(path.absolute())
