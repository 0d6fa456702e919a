"""A page per recipe under CleanRL's five headings, the table of them, and the index of papers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...algos.core.recipe import Recipe
from ...algos.recipes import ONE_GRADIENT, RECIPES, make_recipe, settings_of
from ...algos.recipes.registry import Entry
from ...algos.runs.metrics import METRICS
from ...algos.training.presets import PRESETS, Preset
from ..cli.docstrings import Docstring, read_docstring, table_cell
from .packed_results import PackedRow

_ARXIV = re.compile(r"(?:arXiv[: ]\s*)?(?<![\d/.])(\d{4}\.\d{5})(?!\d)")
_PLACE = re.compile(r"\b(?:sections?|tables?|equations?|appendix|scripts|code)\b[^);.]*|\d\.\d")
_ALWAYS = ("rollout/", "update/", "credit/", "budget/", "time/", "eval/")


def recipe_pages(results: Sequence[PackedRow] = ()) -> dict[str, str]:
    """Return path and Markdown of a page per recipe, of their table and of the index of papers.

    Args:
        results: Rows of packed results, which are shown on the pages of their recipes.
    """
    pages = {
        f"algorithms/{name}.md": recipe_page(
            name, entry, [row for row in results if row.recipe == name]
        )
        for name, entry in RECIPES.items()
    }
    pages["algorithms/index.md"] = recipe_table()
    pages["algorithms/papers.md"] = paper_index()
    return pages


def recipe_table() -> str:
    """Return the page that lists the recipes with their parts."""
    lines = [
        "# Algorithms",
        "",
        "A recipe is a value: `Recipe(rollout=…, credit=…, loss=…, …)`. Everything it sees is a "
        "forest of turns with the tokens as they were sampled; observations are never trained on, "
        "actions always are. Every recipe runs on every environment; invalid combinations are "
        "refused with the reason. [A recipe of your own](../adding-a-recipe.md), "
        "[a credit rule of your own](../adding-a-credit-rule.md), "
        "[the papers with the place of each setting](papers.md).",
        "",
        "| recipe | | rollout | credit | loss | paper |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in RECIPES.items():
        recipe = entry.factory()
        parts = (recipe.rollout, recipe.credit, recipe.loss)
        names = " | ".join(f"`{type(part).__name__}`" for part in parts)
        lines.append(
            f"| [`{name}`]({name}.md) | {table_cell(entry.summary)} | {names} "
            f"| {link_papers(table_cell(recipe.paper))} |"
        )
    return "\n".join(lines) + "\n"


def recipe_page(name: str, entry: Entry, results: Sequence[PackedRow]) -> str:
    """Return the page of a recipe."""
    recipe, doc = entry.factory(), read_docstring(entry.factory)
    file = _file(entry.factory)
    parts = [
        f"# {name}",
        f"{entry.summary[0].upper()}{entry.summary[1:]}. {link_papers(doc.summary)}",
        "## Use",
        _use(name),
        "## Logged metrics",
        _metrics(recipe),
        "## Implementation details",
        _details(name, entry, recipe, doc),
        "## Results",
        _results(name, results),
        "## References",
        f"{link_papers(recipe.paper)}. Source: [`{file}`](../../{file}).",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def paper_index() -> str:
    """Return the index of papers: which settings each gives, and where they stand in it."""
    lines = [
        "# Papers and the place of each setting",
        "",
        "What a recipe's description says of its paper, with the section or table it names, then "
        "the settings themselves. What is done in another way stands on the recipe's page.",
    ]
    for name, entry in RECIPES.items():
        recipe, doc = entry.factory(), read_docstring(entry.factory)
        lines += ["", f"## {name}", "", link_papers(recipe.paper), ""]
        text = " ".join(doc.body.split())
        sentences = re.split(r"(?<=[.;])\s+(?=[A-Z`])", text)
        placed = [sentence for sentence in sentences if _PLACE.search(sentence)]
        lines += [f"- {link_papers(sentence)}" for sentence in placed]
        settings = settings_of(recipe)
        lines += ["", '??? note "All settings"', "", "    | setting | value |", "    |---|---|"]
        lines += [f"    | `{key}` | `{table_cell(value)}` |" for key, value in settings.items()]
    lines += ["", "## Published runs", ""]
    for preset in PRESETS.values():
        lines += _preset_lines(preset)
    return "\n".join(lines) + "\n"


def link_papers(text: str) -> str:
    """Return text in which arXiv numbers are links."""
    return _ARXIV.sub(
        lambda found: f"[{found.group(0)}](https://arxiv.org/abs/{found.group(1)})", text
    )


def _use(name: str) -> str:
    lines = [f"turngym train --recipe {name} --env SearchQA-v0 --size micro --steps 60"]
    presets = [preset for preset in PRESETS.values() if preset.recipe == name]
    lines += [f"turngym train --preset {preset.name}" for preset in presets]
    text = f"```sh\n{chr(10).join(lines)}\n```\n\n"
    if presets:
        text += (
            "A preset is the setting of a published run: [its settings](papers.md#published-runs)."
        )
        text += "\n\n"
    return text + (
        "```python\nfrom turngym.algos import train_on\n\n"
        f'result = train_on("SearchQA-v0", "{name}", settings={{"size": "micro"}}, steps=60)\n```'
    )


def _metrics(recipe: Recipe) -> str:
    own = [key for key in METRICS if _logs(recipe, key)]
    lines = ["| key | |", "|---|---|"]
    lines += [f"| `{key}` | {table_cell(METRICS[key])} |" for key in own]
    return (
        "`metrics.jsonl` and TensorBoard hold one row a step. Beside "
        "[those of every recipe](../reference/metrics.md) (rollouts, update, budget, times, "
        "evaluations):\n\n" + "\n".join(lines)
    )


def _logs(recipe: Recipe, key: str) -> bool:
    """Whether a key that only some recipes log is one of this recipe's."""
    kinds = {type(part).__name__ for part in (recipe.credit, recipe.loss)}
    given: dict[str, Callable[[], bool]] = {
        "loss/nll": lambda: "ImitationLoss" in kinds,
        "loss/dpo": lambda: "StepDpoLoss" in kinds,
        "loss/preferred": lambda: "StepDpoLoss" in kinds,
        "loss/value": lambda: recipe.critic,
        "loss/kl_nats": lambda: recipe.reference and not kinds & {"StepDpoLoss"},
        "credit/pairs": lambda: "StepPairs" in kinds,
        "credit/value_explained_frac": lambda: recipe.critic,
        "credit/surprise_mean": lambda: recipe.tracker is not None,
        "credit/informative_trees_frac": lambda: "TreeCredit" in kinds,
        "update/critic_grad_norm": lambda: recipe.critic,
        "update/critic_lr": lambda: recipe.critic,
    }
    if key in given:
        return given[key]()
    if key.startswith("loss/value"):
        return recipe.critic
    if key.startswith("shaped/"):
        return bool(recipe.shapers)
    if key.startswith("judge/"):
        return any(shaper.judges for shaper in recipe.shapers)
    if key.startswith("tracker/"):
        return recipe.tracker is not None
    return key.startswith("loss/") and not kinds & {"ImitationLoss", "StepDpoLoss"}


def _details(name: str, entry: Entry, recipe: Recipe, doc: Docstring) -> str:
    parts = [link_papers(doc.body)]
    if differs := doc.section("Differs from the paper"):
        parts += ["**Differs from the paper**", link_papers(differs)]
    if cases := doc.section("Degenerate cases"):
        parts.append(f"**Degenerate cases**: {cases}")
    if name in ONE_GRADIENT:
        same = ONE_GRADIENT[name]
        parts.append(
            f"**Same gradient**: on the same rollouts its update is that of "
            f"[`{same.equals}`]({same.equals}.md): {same.why}."
        )
    parts.append(
        "**Settings**, each changed with `--recipe.NAME VALUE`. The second column holds for a "
        "model of a few million parameters, which `turngym train` takes without `--model`."
    )
    small = settings_of(make_recipe(name, small=True)) if entry.small else settings_of(recipe)
    lines = ["| setting | paper | small model |", "|---|---|---|"]
    for key, value in settings_of(recipe).items():
        other = "" if small[key] == value else f"`{table_cell(small[key])}`"
        lines.append(f"| `{key}` | `{table_cell(value)}` | {other} |")
    return "\n\n".join([part for part in parts if part] + ["\n".join(lines)])


def _results(name: str, results: Sequence[PackedRow]) -> str:
    if not results:
        return (
            "No packed result of a suite holds this recipe yet "
            "([how they are made](../results/packed.md)); single measurements are among the "
            "[measured figures](../results/measured.md). "
            f"`turngym bench --suite quick --only row={name}` plays it on every environment."
        )
    parts = []
    for file in dict.fromkeys(row.file for row in results):
        rows = [row for row in results if row.file == file]
        lines = [
            "| environment | row | seeds | area | sampled | greedy | training success |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [row.table_row() for row in rows]
        parts.append(
            f"From `benchmarks/results/{file}`, made by `{rows[0].command}`: means over seeds; the "
            "area is the mean success of the training episodes over the sampled tokens.\n\n"
            + "\n".join(lines)
        )
    return "\n\n".join(parts)


def _preset_lines(preset: Preset) -> list[str]:
    lines = [f"### {preset.name}", "", f"{link_papers(preset.paper)}.", ""]
    options = " ".join(f"{name} {value}".strip() for name, value in preset.options())
    lines += ["```sh", f"turngym train {options}", "```", ""]
    if preset.published:
        lines += ["| the paper reports | this | rival |", "|---|---|---|"]
        lines += [
            f"| {table_cell(one.measure)} | {table_cell(one.value)} | {table_cell(one.rival)} |"
            for one in preset.published
        ]
        lines.append("")
    return lines + [f"- {note}" for note in preset.notes] + [""]


def _file(factory: Callable[[], Recipe]) -> str:
    """Return the file of a recipe as its path in the repository."""
    return factory.__module__.removeprefix("turngym.").replace(".", "/") + ".py"
