"""`turngym envs`: the environments, their sizes, splits and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from ...envs.core.errors import BadValueError
from ...envs.core.registration import all_ids, find_environment
from ...envs.utils.untrusted_text import plain
from .tables import escape, plain_table, table_console


@dataclass(frozen=True, kw_only=True)
class Command:
    """List the environments, with the limits that they have without settings, or describe one.

    Attributes:
        name: Environment that is described: its rules, actions, rewards, settings, an episode.
        hidden: List the diagnostic environments too.
    """

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None
    hidden: bool = False


def run(command: Command) -> None:
    """Print the environments, or all about one.

    Raises:
        UnknownNameError: There is no such environment.
    """
    if command.name is not None:
        if command.hidden:
            raise BadValueError("envs: --hidden goes with the list, not with a name.")
        describe(command.name)
        return
    from ...agents.scripted import text_env
    from ...algos.training.config import EnvConfig

    table = plain_table("id", "sizes", "splits", "turn limit", "return")
    summaries = []
    for name in all_ids(hidden=command.hidden):
        about = find_environment(name)
        env = text_env(EnvConfig(id=name).make())
        turns = str(env.max_turns)
        if about.smallest:
            small = text_env(EnvConfig(id=name, settings=about.smallest).make())
            if small.max_turns != env.max_turns:
                turns += f" (micro {small.max_turns})"
        low, high = env.reward_range
        table.add_row(
            f"[bold]{name}[/]",
            ", ".join(about.sizes),
            ", ".join(about.splits),
            turns,
            f"{low:g} to {high:g}",
        )
        summaries.append(f"[bold]{name}[/]: {escape(about.summary)}")
    console = table_console()
    console.print(table)
    console.print()
    for line in summaries:
        console.print(line, highlight=False)


def describe(name: str) -> None:
    """Print the rules, actions, rewards and settings of an environment, and an episode of it."""
    from rich.markdown import Markdown

    from .environment_pages import Described, environment_guide

    table_console().print(Markdown(plain(environment_guide(Described(find_environment(name))))))
