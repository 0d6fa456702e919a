"""`turngym recipes`: the algorithms and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from ...algos.runs.console import PlainConsole
from .tables import escape, plain_table


@dataclass(frozen=True, kw_only=True)
class Command:
    """List the recipes, or all settings of one.

    Attributes:
        name: Recipe whose settings are shown.
    """

    name: Annotated[str | None, tyro.conf.Positional] = None


def run(command: Command) -> None:
    """Print the recipes, or the settings of one."""
    from ...algos.recipes import RECIPES, make_recipe, settings_of

    console = PlainConsole()
    if command.name is None:
        table = plain_table("recipe", "rollout", "credit", "loss", "ratio")
        for name, entry in RECIPES.items():
            recipe = entry.factory()
            parts = (recipe.rollout, recipe.credit, recipe.loss)
            names = (type(part).__name__ for part in parts)
            ratio = getattr(getattr(recipe.loss, "policy", recipe.loss), "ratio", "")
            table.add_row(f"[bold]{escape(name)}[/]", *names, ratio)
        console.print(table)
        console.print()
        for name, entry in RECIPES.items():
            console.print(f"[bold]{escape(name)}[/]: {escape(entry.summary)}", highlight=False)
            console.print(f"    {escape(entry.factory().paper)}", highlight=False, style="dim")
        console.print()
        console.print("`turngym recipes NAME` shows its settings.")
        return
    small = settings_of(make_recipe(command.name, small=True))
    recipe = make_recipe(command.name)
    table = plain_table("--recipe.NAME VALUE", "paper", "small model")
    for name, value in settings_of(recipe).items():
        other = "" if small[name] == value else str(small[name])
        table.add_row(name, escape(str(value)), escape(other))
    console.print(f"[bold]{escape(recipe.name)}[/]: {escape(recipe.paper)}", highlight=False)
    console.print(table)
