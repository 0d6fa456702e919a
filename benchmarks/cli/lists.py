"""`turngym envs` and `turngym recipes`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ...envs.core.registration import all_ids, find_environment
from .plugins import run_plugins
from .train_options import EnvsCommand, RecipesCommand


def list_envs(command: EnvsCommand) -> None:
    """Print the environments."""
    from ...agents.scripted import text_env
    from ...algos.training.config import EnvConfig

    run_plugins(command.plugin)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("id", "sizes", "splits", "turn limit", "return"):
        table.add_column(head)
    summaries = []
    for name in all_ids(hidden=command.hidden):
        about = find_environment(name)
        world = text_env(EnvConfig(id=name, settings=about.smallest).make())
        low, high = about.reward_range
        table.add_row(
            f"[bold]{name}[/]",
            ", ".join(about.sizes),
            ", ".join(about.splits),
            str(world.max_turns),
            f"{low:g} to {high:g}",
        )
        summaries.append(f"[bold]{name}[/]: {about.summary}")
    console = Console()
    console.print(table)
    console.print()
    for line in summaries:
        console.print(line, highlight=False)


def list_recipes(command: RecipesCommand) -> None:
    """Print the recipes, or the settings of one."""
    from ...algos.recipes import RECIPES, make_recipe, settings_of

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    if command.name is None:
        for head in ("recipe", "rollout", "credit", "loss", "ratio"):
            table.add_column(head)
        for name, entry in RECIPES.items():
            recipe = entry.factory()
            parts = (recipe.rollout, recipe.credit, recipe.loss)
            names = (type(part).__name__ for part in parts)
            ratio = getattr(getattr(recipe.loss, "policy", recipe.loss), "ratio", "")
            table.add_row(f"[bold]{name}[/]", *names, ratio)
        console.print(table)
        console.print()
        for name, entry in RECIPES.items():
            console.print(f"[bold]{name}[/]: {entry.summary}", highlight=False)
            console.print(f"    {entry.factory().paper}", highlight=False, style="dim")
        console.print()
        console.print("`turngym recipes NAME` shows its settings.")
        return
    small = settings_of(make_recipe(command.name, small=True))
    recipe = make_recipe(command.name)
    for head in ("--recipe.NAME VALUE", "paper", "small model"):
        table.add_column(head)
    for name, value in settings_of(recipe).items():
        table.add_row(name, str(value), "" if small[name] == value else str(small[name]))
    console.print(f"[bold]{recipe.name}[/]: {recipe.paper}", highlight=False)
    console.print(table)
